//! The node's certificates, while it runs: files are read again, and the log warns of their end.

use std::sync::Arc;
use std::time::Duration;

use greenroom_security::watched::{Look, Watched};
use greenroom_world::{Stage, Timestamp};

use crate::here::Here;
use crate::observe::events::Happened;

/// Looks after the files of certificates, as long as the node runs.
pub(super) fn watch(node: &Arc<Here>) {
    if node.links().certificates().is_none() {
        return;
    }
    let watched = node.clone();
    // Not on the control stage: a file system that hangs must not hold up the node's lease.
    node.world().spawn(Stage::Door, Box::pin(async move { look_after(&watched).await }));
}

async fn look_after(node: &Here) {
    let world = node.world();
    let mut told: Option<Timestamp> = None;
    while !node.is_stopped() {
        if let Some(certificates) = node.links().certificates() {
            look(node, "the node's certificates", certificates);
            if let Some(certificates) = node.geo().and_then(|geo| geo.certificates()) {
                look(node, "the certificates for other clusters", certificates);
            }
            let left = Duration::from_secs(certificates.current().seconds_left());
            let now = world.now();
            if left < EXPIRY_WARNING && told.is_none_or(|told| now.since(told) >= EXPIRY_PAUSE) {
                told = Some(now);
                tracing::warn!(
                    hours_left = left.as_secs() / 3600,
                    "the node's certificate expires soon; renew its files"
                );
            }
        }
        let every = node.config().reload_every.max(RELOAD_MIN);
        world.sleep_until(world.now() + every).await;
    }
}

/// Takes up new files, and says so.
fn look<T>(node: &Here, what: &str, watched: &Watched<T>) {
    match watched.look() {
        Look::Unchanged => {}
        Look::Renewed => {
            tracing::info!("{what} have been read again: new connections use them");
            node.happened(Happened::Renewed { what: what.to_owned() });
        }
        Look::Kept(error) => {
            tracing::error!(%error, "{what} have changed and cannot be used; the old ones stay in force");
            node.happened(Happened::NotRenewed { what: what.to_owned(), why: error.to_string() });
        }
    }
}

/// Shortest time between two looks at files.
const RELOAD_MIN: Duration = Duration::from_millis(10);
/// Time left of a certificate from which on the log warns of it, and how often.
const EXPIRY_WARNING: Duration = Duration::from_secs(7 * 24 * 3600);
const EXPIRY_PAUSE: Duration = Duration::from_secs(12 * 3600);
