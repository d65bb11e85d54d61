//! Who may connect to the node: its certificates, and where it may listen without any.

use greenroom_security::link::Links;

use super::Result;
use super::config::{Config, is_loopback};
use super::error::Error;

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
    let tls = "give it a certificate (`tls` or `http_tls`, --tls-dir; `greenroom certs` makes some to try with)";
    let credentials = "name some in `auth` (--tokens; `greenroom token` makes some)";
    let missing = match (config.door_tls().is_some(), config.auth.is_configured()) {
        (true, true) => None,
        (true, false) => Some(("credentials", credentials)),
        (false, true) => Some(("TLS", tls)),
        (false, false) => Some(("TLS and credentials", BOTH_REMEDIES)),
    };
    for (what, address) in [("the HTTP door", &config.http), ("the gRPC door", &config.grpc)] {
        if let Some(address) = address {
            expose(config, what, address, missing)?;
        }
    }
    Ok(())
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

const BOTH_REMEDIES: &str = "give it a certificate (`tls` or `http_tls`, --tls-dir; `greenroom certs` makes some to try \
                             with) and credentials (`auth`, --tokens; `greenroom token` makes some)";
