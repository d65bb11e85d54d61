//! URLs whose requests cross a network in the clear.

use std::net::IpAddr;

/// Returns true for a URL without encryption whose host is another machine: nothing secret is sent there.
///
/// ```
/// use greenroom_store::url::is_in_the_clear;
///
/// assert!(is_in_the_clear("http://db.example.org:7070"));
/// assert!(!is_in_the_clear("https://db.example.org:7070"));
/// assert!(!is_in_the_clear("http://[::1]:7070"));
/// ```
pub fn is_in_the_clear(url: &str) -> bool {
    url.split_once("://").is_some_and(|(scheme, _)| scheme.eq_ignore_ascii_case("http")) && !is_on_this_machine(url)
}

/// Returns true for a URL whose host is this machine's loopback: no proxy can know the way to it. Names other than `localhost`
/// are not trusted to stay what they are.
pub fn is_on_this_machine(url: &str) -> bool {
    let rest = url.split_once("://").map_or(url, |(_, rest)| rest);
    let authority = rest.split(['/', '\\', '?', '#']).next().unwrap_or_default();
    let authority = authority.rsplit_once('@').map_or(authority, |(_, host)| host);
    let host = match authority.rsplit_once(':') {
        Some((host, port)) if port.bytes().all(|digit| digit.is_ascii_digit()) => host,
        _ => authority,
    };
    let host = host.trim_matches(['[', ']']);
    host.eq_ignore_ascii_case("localhost") || host.parse::<IpAddr>().is_ok_and(|ip| ip.to_canonical().is_loopback())
}
