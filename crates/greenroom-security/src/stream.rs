//! A stream inside TLS, as the world's other streams are.

use std::io;
use std::pin::Pin;
use std::task::{Context, Poll, ready};

use greenroom_world::Stream;
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio_rustls::TlsStream;

/// What TLS runs on: a stream whose first byte may have been looked at.
pub(crate) struct Socket {
    /// `None` only after its rebinding has failed.
    stream: Option<Box<dyn Stream>>,
    first: Option<u8>,
}

impl Socket {
    pub(crate) fn new(stream: Box<dyn Stream>) -> Self {
        Self { stream: Some(stream), first: None }
    }

    /// A stream whose first byte has been read already.
    pub(crate) fn behind(first: u8, stream: Box<dyn Stream>) -> Self {
        Self { stream: Some(stream), first: Some(first) }
    }

    pub(crate) fn into_stream(self) -> Option<Box<dyn Stream>> {
        self.stream
    }

    fn stream(&mut self) -> io::Result<&mut Box<dyn Stream>> {
        self.stream.as_mut().ok_or_else(|| io::ErrorKind::NotConnected.into())
    }
}

impl AsyncRead for Socket {
    fn poll_read(mut self: Pin<&mut Self>, cx: &mut Context<'_>, buf: &mut ReadBuf<'_>) -> Poll<io::Result<()>> {
        if buf.remaining() > 0
            && let Some(first) = self.first.take()
        {
            buf.put_slice(&[first]);
            return Poll::Ready(Ok(()));
        }
        Pin::new(self.stream()?).poll_read(cx, buf)
    }
}

impl AsyncWrite for Socket {
    fn poll_write(mut self: Pin<&mut Self>, cx: &mut Context<'_>, buf: &[u8]) -> Poll<io::Result<usize>> {
        Pin::new(self.stream()?).poll_write(cx, buf)
    }

    fn poll_write_vectored(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        bufs: &[io::IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        Pin::new(self.stream()?).poll_write_vectored(cx, bufs)
    }

    fn is_write_vectored(&self) -> bool {
        self.stream.as_ref().is_some_and(|stream| stream.is_write_vectored())
    }

    fn poll_flush(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(self.stream()?).poll_flush(cx)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(self.stream()?).poll_shutdown(cx)
    }
}

/// A stream inside TLS.
pub(crate) struct Wrapped {
    tls: TlsStream<Socket>,
    /// Whether TLS still holds bytes that the socket did not take: whoever polls next drives them on.
    held: bool,
}

impl Wrapped {
    pub(crate) fn new(tls: TlsStream<Socket>) -> Self {
        Self { tls, held: true }
    }

    /// Hands what TLS holds to the socket, as far as it takes it.
    fn drive(&mut self, cx: &mut Context<'_>) -> io::Result<()> {
        match Pin::new(&mut self.tls).poll_flush(cx) {
            Poll::Ready(Ok(())) => self.held = false,
            Poll::Ready(Err(error)) => return Err(error),
            Poll::Pending => self.held = true,
        }
        Ok(())
    }
}

impl Stream for Wrapped {
    fn rebind(mut self: Box<Self>) -> io::Result<Box<dyn Stream>> {
        let (socket, _) = self.tls.get_mut();
        let stream = socket.stream.take().ok_or(io::ErrorKind::NotConnected)?;
        socket.stream = Some(stream.rebind()?);
        Ok(self)
    }
}

impl AsyncRead for Wrapped {
    fn poll_read(mut self: Pin<&mut Self>, cx: &mut Context<'_>, buf: &mut ReadBuf<'_>) -> Poll<io::Result<()>> {
        // Who only writes and reads, as shards do, has what was held up leave here.
        if self.held {
            self.drive(cx)?;
        }
        let before = buf.filled().len();
        match ready!(Pin::new(&mut self.tls).poll_read(cx, buf)) {
            // A peer that goes without a word of farewell has closed all the same: frames say what is whole.
            Err(error) if error.kind() == io::ErrorKind::UnexpectedEof && buf.filled().len() == before => {
                Poll::Ready(Ok(()))
            }
            Err(error) => Poll::Ready(Err(io::Error::new(error.kind(), crate::explain::handshake(&error)))),
            Ok(()) => Poll::Ready(Ok(())),
        }
    }
}

impl AsyncWrite for Wrapped {
    fn poll_write(mut self: Pin<&mut Self>, cx: &mut Context<'_>, buf: &[u8]) -> Poll<io::Result<usize>> {
        let written = ready!(Pin::new(&mut self.tls).poll_write(cx, buf))?;
        self.drive(cx)?;
        Poll::Ready(Ok(written))
    }

    fn poll_flush(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        let flushed = Pin::new(&mut self.tls).poll_flush(cx);
        self.held = flushed.is_pending();
        flushed
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.tls).poll_shutdown(cx)
    }
}
