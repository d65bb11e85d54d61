//! Connections of clients that close without taking back the last answer.
//!
//! A connection that is closed over bytes that nobody has read is reset, and the reset discards the answers that the client has not
//! read yet. A client that still sends the body of a refused request would see a broken connection instead of the refusal.

use std::io;
use std::pin::Pin;
use std::task::{Context, Poll, ready};
use std::time::Duration;

use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio::time::{Instant, Sleep};

/// A connection whose shutdown first half-closes and then reads on, until the client has closed too or a bound is reached.
pub(crate) struct Lingering<S> {
    stream: S,
    state: State,
}

enum State {
    Open,
    /// Nothing more is sent; bytes that still come are discarded.
    HalfClosed(Box<Ending>),
    Closed,
}

/// Progress of a close.
struct Ending {
    /// Bytes that may still be discarded.
    left: usize,
    /// End of the whole close.
    over: Instant,
    /// End of the time in which the next byte has to come.
    patience: Pin<Box<Sleep>>,
}

impl<S> Lingering<S> {
    pub(crate) fn new(stream: S) -> Self {
        Self { stream, state: State::Open }
    }

    /// Returns the connection itself, which then closes at once when it is dropped.
    pub(crate) fn into_inner(self) -> S {
        self.stream
    }

    /// Returns the connection itself.
    pub(crate) fn get_ref(&self) -> &S {
        &self.stream
    }
}

impl<S: AsyncRead + Unpin> Lingering<S> {
    fn poll_discard(&mut self, context: &mut Context<'_>) -> Poll<()> {
        let State::HalfClosed(ending) = &mut self.state else { return Poll::Ready(()) };
        let mut discarded = [0; DISCARDED_AT_ONCE];
        loop {
            let mut buffer = ReadBuf::new(&mut discarded);
            match Pin::new(&mut self.stream).poll_read(context, &mut buffer) {
                Poll::Ready(Ok(())) if !buffer.filled().is_empty() => {
                    ending.left = ending.left.saturating_sub(buffer.filled().len());
                    if ending.left == 0 {
                        return Poll::Ready(());
                    }
                    ending.patience.as_mut().reset((Instant::now() + QUIET_MAX).min(ending.over));
                }
                // The client has closed, or is gone.
                Poll::Ready(_) => return Poll::Ready(()),
                Poll::Pending => return ending.patience.as_mut().poll(context),
            }
        }
    }
}

impl<S: AsyncRead + Unpin> AsyncRead for Lingering<S> {
    fn poll_read(self: Pin<&mut Self>, context: &mut Context<'_>, into: &mut ReadBuf<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.get_mut().stream).poll_read(context, into)
    }
}

impl<S: AsyncRead + AsyncWrite + Unpin> AsyncWrite for Lingering<S> {
    fn poll_write(self: Pin<&mut Self>, context: &mut Context<'_>, bytes: &[u8]) -> Poll<io::Result<usize>> {
        Pin::new(&mut self.get_mut().stream).poll_write(context, bytes)
    }

    fn poll_flush(self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.get_mut().stream).poll_flush(context)
    }

    fn poll_shutdown(self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        let this = self.get_mut();
        if let State::Open = this.state {
            ready!(Pin::new(&mut this.stream).poll_shutdown(context))?;
            let now = Instant::now();
            let patience = Box::pin(tokio::time::sleep_until(now + QUIET_MAX));
            this.state = State::HalfClosed(Box::new(Ending { left: DISCARDED_MAX, over: now + LINGER_MAX, patience }));
        }
        ready!(this.poll_discard(context));
        this.state = State::Closed;
        Poll::Ready(Ok(()))
    }
}

/// Time for a client to send the rest of what it is sending, and to close.
const LINGER_MAX: Duration = Duration::from_secs(10);
/// Time in which a client that neither closes nor sends is given up.
const QUIET_MAX: Duration = Duration::from_secs(2);
/// Bytes of a client that are discarded at most.
const DISCARDED_MAX: usize = 16 << 20;
/// Bytes that are discarded at a time.
const DISCARDED_AT_ONCE: usize = 16 << 10;
