//! Where hosts come in on this machine.

use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use greenroom_world::Stage;

use super::greeting::{Peer, attend};
use super::settings::HostsConfig;
use super::socket::{self, Bound, Process, SocketUsers, UnixLane};
use crate::here::Here;
use crate::node::error::Error;

/// Takes the socket that the configuration asks for.
///
/// # Errors
/// [`Error::Listen`]: one that is named cannot be had. Of one that is not, the log says so.
pub(super) fn bind(config: &HostsConfig, name: &str) -> Result<Option<Bound>, Error> {
    let listen = &*config.listen;
    let users = if config.uids.is_empty() { SocketUsers::Own } else { SocketUsers::Others };
    let failed = |error| Error::Listen { what: "hosts", address: listen.to_owned(), error };
    match listen {
        "" | "off" => Ok(None),
        "auto" => {
            let path = socket::path_of(name);
            match socket::bind(&path, users) {
                Ok(bound) => Ok(Some(bound)),
                Err(error) => {
                    tracing::warn!(path = %path.display(), %error, "hosts cannot come in; name a socket by `hosts.listen`");
                    Ok(None)
                }
            }
        }
        listen => match listen.strip_prefix("unix:") {
            Some(path) => socket::bind(Path::new(path), users).map(Some).map_err(failed),
            None => Err(failed(std::io::Error::other("write `auto`, `off` or `unix:PATH`"))),
        },
    }
}

/// Lets hosts in, until the node stops.
pub(super) fn open(here: &Arc<Here>, bound: Bound) {
    let here = here.clone();
    let world = here.world().clone();
    let counted = here.count_entrance();
    let accepting = async move {
        accept(here, bound).await;
        drop(counted);
    };
    world.spawn(Stage::Door, Box::pin(accepting));
}

async fn accept(here: Arc<Here>, bound: Bound) {
    tracing::info!(path = %bound.path.display(), "hosts come in here");
    let accepting = async {
        loop {
            let stream = match bound.listener.accept().await {
                Ok((stream, _)) => stream,
                Err(error) => {
                    // The usual cause is too many open files.
                    tracing::debug!(%error, "a host's connection could not be accepted");
                    tokio::time::sleep(ACCEPT_PAUSE).await;
                    continue;
                }
            };
            // SAFETY: it has no preconditions and cannot fail.
            let own = unsafe { libc::geteuid() };
            let (uid, pid) = match stream.peer_cred() {
                Ok(who) => (who.uid(), who.pid()),
                Err(error) => {
                    tracing::debug!(%error, "a host's user is not known");
                    continue;
                }
            };
            if uid != own && !here.config().hosts.uids.contains(&uid) {
                tracing::warn!(uid, "a host of another user was not let in; name the user in `hosts.uids`");
                continue;
            }
            let process = pid.and_then(Process::watch);
            let from = format!("process {}", pid.unwrap_or_default());
            let peer = Peer { process, visa: None, is_local: true, from };
            let here = here.clone();
            tokio::spawn(async move { attend(&here, Box::new(UnixLane::new(stream)), peer).await });
        }
    };
    tokio::select! {
        () = accepting => {}
        _ = here.halted() => {}
    }
}

const ACCEPT_PAUSE: Duration = Duration::from_millis(50);
