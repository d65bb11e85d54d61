//! How the operating system tells a node to stop.

use tokio::signal::unix::{Signal, SignalKind, signal};

use super::{Error, Result};

/// Ctrl-C, SIGTERM, and SIGHUP of a terminal or session that has gone. They end the process at once until somebody listens, and are
/// kept for whoever does from then on: listen before telling the world that the node is there.
pub struct StopSignals {
    interrupt: Signal,
    terminate: Signal,
    /// None where it is ignored, as `nohup` has it.
    hang_up: Option<Signal>,
}

impl StopSignals {
    /// Listens from now on. It takes a tokio runtime.
    ///
    /// # Errors
    /// [`Error::System`]: the system does not let this process listen.
    pub fn listen() -> Result<Self> {
        let listen = |kind, what| signal(kind).map_err(|error| Error::System { what, error });
        Ok(Self {
            interrupt: listen(SignalKind::interrupt(), "listen for SIGINT")?,
            terminate: listen(SignalKind::terminate(), "listen for SIGTERM")?,
            hang_up: (!is_hang_up_ignored()).then(|| listen(SignalKind::hangup(), "listen for SIGHUP")).transpose()?,
        })
    }

    /// Waits until the node is told to stop.
    ///
    /// # Cancel safety
    /// A signal that came before is told to the next who waits.
    pub async fn told(&mut self) {
        let hang_up = async {
            match &mut self.hang_up {
                Some(signal) => drop(signal.recv().await),
                None => std::future::pending().await,
            }
        };
        tokio::select! {
            () = hang_up => {}
            _ = self.interrupt.recv() => {}
            _ = self.terminate.recv() => {}
        }
    }
}

fn is_hang_up_ignored() -> bool {
    let mut action = std::mem::MaybeUninit::<libc::sigaction>::uninit();
    // SAFETY: it changes nothing and writes the present action, which is read only if it has.
    unsafe {
        libc::sigaction(libc::SIGHUP, std::ptr::null(), action.as_mut_ptr()) == 0
            && action.assume_init().sa_sigaction == libc::SIG_IGN
    }
}
