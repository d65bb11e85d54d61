//! A client's connection, below TLS: the one way in which every endpoint reads, writes and closes.

use std::io;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll, ready};
use std::time::{Duration, Instant};

use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio::net::TcpStream;

use super::connections::Seat;
use crate::net::Lingering;

/// A connection that has its place at the endpoint and closes without taking back the last answer.
pub(super) struct ClientStream {
    stream: Lingering<TcpStream>,
    seat: Arc<Seat>,
    /// Time for the head of a request, from its first byte on.
    head_timeout: Duration,
}

impl ClientStream {
    pub(super) fn new(stream: TcpStream, seat: Arc<Seat>, head_timeout: Duration) -> Self {
        Self { stream: Lingering::new(stream), seat, head_timeout }
    }

    /// Returns the socket.
    pub(super) fn socket(&self) -> &TcpStream {
        self.stream.get_ref()
    }
}

impl AsyncRead for ClientStream {
    fn poll_read(self: Pin<&mut Self>, context: &mut Context<'_>, into: &mut ReadBuf<'_>) -> Poll<io::Result<()>> {
        let this = self.get_mut();
        let before = into.filled().len();
        ready!(Pin::new(&mut this.stream).poll_read(context, into))?;
        if into.filled().len() > before {
            this.seat.hears(Instant::now() + this.head_timeout);
        }
        Poll::Ready(Ok(()))
    }
}

impl AsyncWrite for ClientStream {
    fn poll_write(self: Pin<&mut Self>, context: &mut Context<'_>, bytes: &[u8]) -> Poll<io::Result<usize>> {
        Pin::new(&mut self.get_mut().stream).poll_write(context, bytes)
    }

    fn poll_flush(self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.get_mut().stream).poll_flush(context)
    }

    fn poll_shutdown(self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.get_mut().stream).poll_shutdown(context)
    }
}
