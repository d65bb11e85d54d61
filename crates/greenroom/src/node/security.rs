//! Who may connect to the node: its certificates, and where it may listen without any.

use std::sync::Arc;
use std::time::Duration;

use greenroom_security::link::Links;
use greenroom_security::watched::{Look, Watched};
use greenroom_world::{Stage, Timestamp};

use super::Result;
use super::config::{Config, is_loopback};
use super::error::Error;
use crate::here::Here;

/// How the node's connections to others are made.
pub(super) fn links(config: &Config) -> Result<Links> {
    match &config.tls {
        Some(files) => Ok(Links::secure(files, &config.cluster)?),
        None => Ok(Links::default()),
    }
}

/// Refuses to listen where strangers may come by, if something that keeps them out is missing.
pub(super) fn check_exposure(config: &Config) -> Result<()> {
    let node = config
        .tls
        .is_none()
        .then_some(("TLS", "give the nodes certificates (`tls`, --tls-dir; `greenroom certs` makes some to try with)"));
    expose(config, "the node's port", &config.listen, node)?;
    if let Some(gateway) = config.geo.as_ref().and_then(|geo| geo.gateway.as_ref()) {
        expose(config, "the gateway for other clusters", gateway, node)?;
    }
    let Some(http) = &config.http else { return Ok(()) };
    let tls = "give it a certificate (`tls` or `http_tls`, --tls-dir; `greenroom certs` makes some to try with)";
    let credentials = "name some in `auth` (--tokens; `greenroom token` makes some)";
    let missing = match (config.door_tls().is_some(), config.auth.is_configured()) {
        (true, true) => None,
        (true, false) => Some(("credentials", credentials)),
        (false, true) => Some(("TLS", tls)),
        (false, false) => Some(("TLS and credentials", BOTH_REMEDIES)),
    };
    expose(config, "the HTTP door", http, missing)
}

/// Lets a port be open to strangers only if nothing is missing, or if it was asked for in so many words.
fn expose(
    config: &Config,
    what: &'static str,
    address: &str,
    missing: Option<(&'static str, &'static str)>,
) -> Result<()> {
    let Some((missing, remedy)) = missing.filter(|_| !is_loopback(address)) else { return Ok(()) };
    if !config.insecure_listen {
        return Err(Error::Exposed { what, address: address.to_owned(), missing, remedy });
    }
    tracing::warn!(%address, missing, "INSECURE: {what} is open beyond loopback: whoever reaches it can call every actor");
    Ok(())
}

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
            look("the node's certificates", certificates);
            if let Some(certificates) = node.geo().and_then(|geo| geo.certificates()) {
                look("the certificates for other clusters", certificates);
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
fn look<T>(what: &str, watched: &Watched<T>) {
    match watched.look() {
        Look::Unchanged => {}
        Look::Renewed => tracing::info!("{what} have been read again: new connections use them"),
        Look::Kept(error) => {
            tracing::error!(%error, "{what} have changed and cannot be used; the old ones stay in force")
        }
    }
}

const BOTH_REMEDIES: &str = "give it a certificate (`tls` or `http_tls`, --tls-dir; `greenroom certs` makes some to try \
                             with) and credentials (`auth`, --tokens; `greenroom token` makes some)";
/// Shortest time between two looks at files.
const RELOAD_MIN: Duration = Duration::from_millis(10);
/// Time left of a certificate from which on the log warns of it, and how often.
const EXPIRY_WARNING: Duration = Duration::from_secs(7 * 24 * 3600);
const EXPIRY_PAUSE: Duration = Duration::from_secs(12 * 3600);
