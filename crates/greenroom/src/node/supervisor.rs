//! What the supervisor that has started this process hears of its node: that it is ready, that it lives, that it stops.
//!
//! The protocol is systemd's `sd_notify`: datagrams of `NAME=VALUE` to the socket whose path is in `NOTIFY_SOCKET`, if it is set.
//! `WATCHDOG_USEC` says after how long a silence the supervisor ends the process.

use std::env;
use std::ffi::OsStr;
use std::os::unix::net::UnixDatagram;
use std::sync::Arc;
use std::time::Duration;

use greenroom_world::Stage;

use super::{Error, Result};
use crate::here::Here;

/// The supervisor of a process; many have none.
pub(super) struct Supervisor {
    node: Arc<Here>,
    socket: Option<UnixDatagram>,
    watchdog: Option<Duration>,
}

impl Supervisor {
    /// The one that the environment names.
    ///
    /// # Errors
    /// [`Error::System`]: it cannot be reached, and would take the node for one that never starts.
    pub(super) fn of_process(node: &Arc<Here>) -> Result<Self> {
        let socket = env::var_os("NOTIFY_SOCKET").map(|path| dial(&path)).transpose();
        let socket = socket.map_err(|error| Error::System { what: "reach NOTIFY_SOCKET", error })?;
        let for_this = env::var("WATCHDOG_PID").is_ok_and(|pid| pid == std::process::id().to_string());
        let for_this = for_this || env::var_os("WATCHDOG_PID").is_none();
        let every = env::var("WATCHDOG_USEC").ok().and_then(|every| every.parse().ok()).filter(|every| *every > 0);
        let watchdog = every.filter(|_| for_this).map(Duration::from_micros);
        Ok(Self { node: node.clone(), socket, watchdog })
    }

    /// The node serves. From now on it says that it lives, until it has stopped, and from the stage that keeps its lease: a node
    /// whose stage hangs falls silent.
    pub(super) fn ready(&self) {
        self.say("READY=1");
        let socket = self.socket.as_ref().and_then(|socket| socket.try_clone().ok());
        if let (Some(socket), Some(watchdog)) = (socket, self.watchdog) {
            self.node.world().spawn(Stage::Control, Box::pin(live(self.node.clone(), socket, watchdog / 2)));
        }
    }

    /// The node is about to leave.
    pub(super) fn stopping(&self) {
        self.say("STOPPING=1");
    }

    fn say(&self, what: &str) {
        if let Some(socket) = &self.socket {
            send(socket, what);
        }
    }
}

async fn live(node: Arc<Here>, socket: UnixDatagram, every: Duration) {
    while !node.is_stopped() {
        send(&socket, "WATCHDOG=1");
        node.world().sleep_until(node.world().now() + every).await;
    }
}

fn send(socket: &UnixDatagram, what: &str) {
    if let Err(error) = socket.send(what.as_bytes()) {
        tracing::warn!(%error, what, "the supervisor at NOTIFY_SOCKET was not told");
    }
}

fn dial(path: &OsStr) -> std::io::Result<UnixDatagram> {
    let socket = UnixDatagram::unbound()?;
    socket.connect(path)?;
    socket.set_nonblocking(true)?;
    Ok(socket)
}
