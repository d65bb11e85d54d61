//! What a node holds of a simulated connection.

use std::io;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};

use greenroom_world::Stream;
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};

use crate::shared::Shared;

/// One end of a simulated connection. Dropping it closes it.
pub(crate) struct SimStream {
    pub(crate) shared: Arc<Shared>,
    pub(crate) connection: u64,
    pub(crate) side: usize,
}

impl Stream for SimStream {
    fn rebind(self: Box<Self>) -> io::Result<Box<dyn Stream>> {
        Ok(self)
    }
}

impl AsyncRead for SimStream {
    fn poll_read(self: Pin<&mut Self>, cx: &mut Context<'_>, buf: &mut ReadBuf<'_>) -> Poll<io::Result<()>> {
        self.shared.with(|core, _| core.poll_read(self.connection, self.side, cx, buf))
    }
}

impl AsyncWrite for SimStream {
    fn poll_write(self: Pin<&mut Self>, cx: &mut Context<'_>, buf: &[u8]) -> Poll<io::Result<usize>> {
        self.shared.with(|core, now| core.poll_write(now, self.connection, self.side, cx, buf))
    }

    fn poll_flush(self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<io::Result<()>> {
        Poll::Ready(Ok(()))
    }

    fn poll_shutdown(self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<io::Result<()>> {
        self.shared.with(|core, now| core.shut(now, self.connection, self.side));
        Poll::Ready(Ok(()))
    }
}

impl Drop for SimStream {
    fn drop(&mut self) {
        self.shared.with(|core, now| core.close(now, self.connection, self.side));
    }
}
