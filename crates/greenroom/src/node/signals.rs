//! How the operating system tells a node to stop.

use tokio::signal::unix::{Signal, SignalKind, signal};

use super::{Error, Result};

/// Ctrl-C and SIGTERM. They end the process at once until somebody listens, and are kept for whoever does from then on:
/// listen before telling the world that the node is there.
pub(crate) struct Signals {
    interrupt: Signal,
    terminate: Signal,
}

impl Signals {
    pub(crate) fn listen() -> Result<Self> {
        let listen = |kind, what| signal(kind).map_err(|error| Error::System { what, error });
        Ok(Self {
            interrupt: listen(SignalKind::interrupt(), "listen for SIGINT")?,
            terminate: listen(SignalKind::terminate(), "listen for SIGTERM")?,
        })
    }

    /// Waits until the node is told to stop.
    ///
    /// # Cancel safety
    /// A signal that came before is told to the next who waits.
    pub(crate) async fn told(&mut self) {
        tokio::select! {
            _ = self.interrupt.recv() => {}
            _ = self.terminate.recv() => {}
        }
    }
}
