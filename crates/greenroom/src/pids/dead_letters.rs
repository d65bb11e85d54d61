//! One-way messages that came to nothing, for whoever wants to see them.

use std::pin::Pin;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::task::{Context, Poll};

use futures_util::Stream;
use tokio::sync::mpsc;

use crate::actor::error::Refusal;
use crate::actor::key::ActorId;

/// A one-way message that was refused, with nobody to tell.
#[derive(Clone, PartialEq, Eq, Debug)]
#[non_exhaustive]
pub struct DeadLetter {
    /// Whom it was for.
    pub to: ActorId,
    /// The method that it called. Its arguments are not kept.
    pub method: String,
    /// Why it came to nothing.
    pub why: Refusal,
}

/// The dead letters of one node from a time on: [`Node::dead_letters`](crate::Node::dead_letters). A stream that ends
/// when the node is gone.
#[derive(Debug)]
pub struct DeadLetters {
    letters: mpsc::Receiver<DeadLetter>,
    dropped: Arc<AtomicU64>,
}

impl DeadLetters {
    /// The next one; `None` when the node is gone.
    ///
    /// # Cancel safety
    /// Safe: no letter is lost.
    pub async fn next(&mut self) -> Option<DeadLetter> {
        self.letters.recv().await
    }

    /// Letters that found no room here, as those before them had not been taken: the stream holds
    /// [`DEAD_LETTERS_LEN_MAX`].
    pub fn dropped(&self) -> u64 {
        self.dropped.load(Ordering::Relaxed)
    }
}

impl Stream for DeadLetters {
    type Item = DeadLetter;

    fn poll_next(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Option<DeadLetter>> {
        self.letters.poll_recv(context)
    }
}

/// Where a node's dead letters go.
#[derive(Default)]
pub(crate) struct Office {
    count: AtomicU64,
    readers: Mutex<Vec<Reader>>,
}

struct Reader {
    letters: mpsc::Sender<DeadLetter>,
    dropped: Arc<AtomicU64>,
}

impl Office {
    /// Takes a message in that came to nothing.
    pub(crate) fn post(&self, to: &ActorId, method: &str, why: &Refusal) {
        self.count.fetch_add(1, Ordering::Relaxed);
        tracing::debug!(actor = %to, method, %why, "a one-way message came to nothing");
        let mut readers = self.readers.lock().unwrap_or_else(PoisonError::into_inner);
        readers.retain(|reader| {
            let letter = DeadLetter { to: to.clone(), method: method.to_owned(), why: why.clone() };
            match reader.letters.try_send(letter) {
                Ok(()) => true,
                Err(mpsc::error::TrySendError::Full(_)) => {
                    reader.dropped.fetch_add(1, Ordering::Relaxed);
                    true
                }
                Err(mpsc::error::TrySendError::Closed(_)) => false,
            }
        });
    }

    pub(crate) fn open(&self) -> DeadLetters {
        let (sender, letters) = mpsc::channel(DEAD_LETTERS_LEN_MAX);
        let dropped = Arc::new(AtomicU64::new(0));
        let reader = Reader { letters: sender, dropped: dropped.clone() };
        self.readers.lock().unwrap_or_else(PoisonError::into_inner).push(reader);
        DeadLetters { letters, dropped }
    }

    /// Dead letters since the node started.
    pub(crate) fn count(&self) -> u64 {
        self.count.load(Ordering::Relaxed)
    }
}

/// Dead letters that wait for one reader.
pub const DEAD_LETTERS_LEN_MAX: usize = 1024;

#[cfg(test)]
mod tests {
    use super::*;
    use crate::actor::key::Kind;

    #[test]
    fn a_reader_that_does_not_read_loses_letters_and_knows_how_many() {
        let office = Office::default();
        let to = ActorId::unchecked(Kind::intern("dead_letters_test"), "k");
        let reader = office.open();
        for _ in 0..DEAD_LETTERS_LEN_MAX + 3 {
            office.post(&to, "m", &Refusal::Stopping);
        }
        assert_eq!((reader.dropped(), office.count()), (3, DEAD_LETTERS_LEN_MAX as u64 + 3));
        drop(reader);
        office.post(&to, "m", &Refusal::Stopping);
        assert!(office.readers.lock().expect("nobody panicked").is_empty(), "who has gone is forgotten");
    }
}
