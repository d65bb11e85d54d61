//! Bounds of single settings: a node does not start with what is outside of them, and `greenroom config check` says so as well.

use std::io;
use std::time::Duration;

use super::Result;
use super::config::Config;
use super::error::Error;
use crate::actor::key::check_within;
use crate::reliable::check_outlets;

/// Refuses settings that are outside of their bounds.
///
/// # Errors
/// The first of them, by its name.
pub(super) fn check_settings(config: &Config) -> Result<()> {
    if !config.name.is_empty() {
        check_within(&config.name, NAME_LEN_MAX).map_err(|reason| Error::Name {
            what: "node",
            name: config.name.clone(),
            reason,
        })?;
    }
    for role in &config.roles {
        check_within(role, NAME_LEN_MAX).map_err(|reason| Error::Name { what: "role", name: role.clone(), reason })?;
    }
    check_positive(config)?;
    if !matches!(config.hosts.listen.as_str(), "" | "auto" | "off") {
        let path = config.hosts.listen.strip_prefix("unix:").filter(|path| !path.is_empty());
        path.ok_or_else(|| {
            let error = io::Error::new(io::ErrorKind::InvalidInput, "write `auto`, `off` or `unix:PATH`");
            Error::Listen { what: "hosts", address: config.hosts.listen.clone(), error }
        })?;
    }
    config.reliable.check().map_err(|reason| wrong("reliable", reason))?;
    check_outlets(&config.reliable.outlets)
}

/// Refuses zero where it would mean that nothing works.
fn check_positive(config: &Config) -> Result<()> {
    let times = [
        ("call_timeout", config.call_timeout),
        ("store_timeout", config.store_timeout),
        ("http_head_timeout", config.http_head_timeout),
        ("http_body_timeout", config.http_body_timeout),
        ("http_idle_timeout", config.http_idle_timeout),
        ("reload_every", config.reload_every),
    ];
    let lengths = [
        ("mailbox_len_max", config.mailbox_len_max as usize),
        ("http_body_len_max", config.http_body_len_max),
        ("http_requests_max", config.http_requests_max),
        ("http_connections_max", config.http_connections_max),
        ("backlog_len_max", config.backlog_len_max),
    ];
    let zero = times.into_iter().find(|(_, time)| *time == Duration::ZERO).map(|(setting, _)| setting);
    match zero.or_else(|| lengths.into_iter().find(|(_, length)| *length == 0).map(|(setting, _)| setting)) {
        Some(setting) => {
            Err(wrong(setting, "it is 0, with which nothing works; leave it out for the default".to_owned()))
        }
        None => Ok(()),
    }
}

fn wrong(setting: &str, reason: String) -> Error {
    Error::Config { path: setting.to_owned(), reason }
}

/// Returns true for `HOST:PORT`.
pub(super) fn is_host_and_port(address: &str) -> bool {
    let Some((host, port)) = address.rsplit_once(':') else { return false };
    let is_whole = !host.contains(':') || host.starts_with('[') && host.ends_with(']');
    let is_plain =
        !host.is_empty() && !host.contains(|char: char| char.is_control() || char.is_whitespace() || char == '/');
    is_whole && is_plain && port.parse::<u16>().is_ok()
}

/// Bytes of a node's name, and of a role's: those of a host's name.
const NAME_LEN_MAX: usize = 255;
