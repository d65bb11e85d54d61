//! A task a mailbox: what hand-written actors on tokio do.

use std::io;
use std::time::{Duration, Instant};

use tokio::sync::{mpsc, oneshot};

/// Calls a second of [`PAIRS`] callers, each to a task with a mailbox of its own and with one call in flight, on one thread.
pub(super) fn calls(time: Duration) -> io::Result<f64> {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
    runtime.block_on(async {
        let begun = Instant::now();
        let mut callers = tokio::task::JoinSet::new();
        for _ in 0..PAIRS {
            let (mailbox, mut messages) = mpsc::channel::<oneshot::Sender<u64>>(MAILBOX_LEN);
            tokio::spawn(async move {
                let mut turns = 0;
                while let Some(reply) = messages.recv().await {
                    turns += 1;
                    let _ = reply.send(turns);
                }
            });
            callers.spawn(async move {
                let mut answered = 0u64;
                while !answered.is_multiple_of(CALLS_A_CLOCK) || begun.elapsed() < time {
                    let (reply, answer) = oneshot::channel();
                    if mailbox.send(reply).await.is_err() || answer.await.is_err() {
                        break;
                    }
                    answered += 1;
                }
                answered
            });
        }
        let answered: u64 = callers.join_all().await.into_iter().sum();
        Ok(answered as f64 / begun.elapsed().as_secs_f64())
    })
}

const PAIRS: usize = 64;
const MAILBOX_LEN: usize = 64;
/// Calls between two looks at the clock.
const CALLS_A_CLOCK: u64 = 64;
