//! What a door of another protocol is to the node: it speaks on connections that have been let in.

use std::io;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll, ready};

use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};

use super::guard::Entered;
use super::visit::Visit;
use super::watching::Running;

/// A protocol that clients call actors by, at a port of its own: see [`Builder::grpc_door`](crate::Builder::grpc_door).
///
/// The node takes the port, bounds and counts the connections, and opens TLS on them; what is asked on one goes through its
/// [`Visit`], which knows credentials, rules and bounds.
pub trait Protocol: Send + Sync + 'static {
    /// Its name in ALPN, which clients must want where the door has a certificate.
    fn alpn(&self) -> &'static [u8];

    /// Serves one connection to its end. The future is dropped when the connection must go: once it has kept the door waiting
    /// for too long.
    fn attend(&self, visit: Visit, connection: Connection) -> Pin<Box<dyn Future<Output = ()> + Send>>;
}

/// A client's connection, inside of TLS if the door has a certificate.
pub struct Connection {
    entered: Entered,
    running: Arc<Running>,
    /// Bytes of the preface that have not come yet.
    preface_left: usize,
}

impl Connection {
    pub(super) fn new(entered: Entered, visit: &Visit) -> Self {
        Self { entered, running: visit.running().clone(), preface_left: PREFACE_LEN }
    }
}

impl AsyncRead for Connection {
    fn poll_read(self: Pin<&mut Self>, context: &mut Context<'_>, into: &mut ReadBuf<'_>) -> Poll<io::Result<()>> {
        let this = self.get_mut();
        let before = into.filled().len();
        ready!(match &mut this.entered {
            Entered::Plain(stream) => Pin::new(stream).poll_read(context, into),
            Entered::Secure(stream) => Pin::new(stream).poll_read(context, into),
        })?;
        if this.preface_left > 0 {
            this.preface_left = this.preface_left.saturating_sub(into.filled().len() - before);
            if this.preface_left == 0 {
                this.running.has_greeted();
            }
        }
        Poll::Ready(Ok(()))
    }
}

impl AsyncWrite for Connection {
    fn poll_write(self: Pin<&mut Self>, context: &mut Context<'_>, bytes: &[u8]) -> Poll<io::Result<usize>> {
        match &mut self.get_mut().entered {
            Entered::Plain(stream) => Pin::new(stream).poll_write(context, bytes),
            Entered::Secure(stream) => Pin::new(stream).poll_write(context, bytes),
        }
    }

    fn poll_flush(self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        match &mut self.get_mut().entered {
            Entered::Plain(stream) => Pin::new(stream).poll_flush(context),
            Entered::Secure(stream) => Pin::new(stream).poll_flush(context),
        }
    }

    fn poll_shutdown(self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        match &mut self.get_mut().entered {
            Entered::Plain(stream) => Pin::new(stream).poll_shutdown(context),
            Entered::Secure(stream) => Pin::new(stream).poll_shutdown(context),
        }
    }
}

/// Bytes that a client of HTTP/2 sends before anything else. A client of another protocol says more than that, too, before it asks.
const PREFACE_LEN: usize = 24;
