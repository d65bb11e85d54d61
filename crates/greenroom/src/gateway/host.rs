//! The names that the door answers to.
//!
//! Whoever owns a name decides where it leads. A page of theirs may have it lead to this machine (DNS rebinding), and then,
//! to its visitors' browsers, the door is the page's own site: neither `Origin` nor the address that a visitor comes from
//! tells. What tells is the name that the browser asks for.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};

use greenroom_security::rules;
use hyper::header::{HOST, HeaderValue};
use hyper::{Request, Version};

use super::problem::Problem;
use crate::node::Config;
use crate::node::error::Error;

/// The names and addresses that are the door's own.
#[derive(Default)]
pub(super) struct Hosts {
    /// In lower case; a `*` is any text.
    names: Vec<String>,
    /// Whether it listens on all addresses of its machine, and so perhaps on some that only others know it by.
    everywhere: bool,
}

/// Whom a request asks for.
#[derive(Clone, PartialEq, Eq, Debug)]
enum Asked {
    Address(IpAddr),
    /// In lower case.
    Name(String),
}

impl Hosts {
    /// Those of a door that listens at `bound`, as `config` names them.
    ///
    /// # Errors
    /// [`Error::Config`]: one of `http_hosts` is no host.
    pub(super) fn of(config: &Config, bound: SocketAddr) -> Result<Self, Error> {
        let mut names = vec!["localhost".to_owned(), bound.ip().to_string()];
        let told = [config.http.clone(), Some(config.advertised_http(&bound.to_string())), config.advertise.clone()];
        names.extend(told.iter().flatten().filter_map(|told| Asked::read(told)).map(|asked| asked.text()));
        for host in &config.http_hosts {
            let path = "http_hosts".to_owned();
            let reason = format!("{host:?} is no host; write a name or an address, without a scheme, port or path");
            let named = !host.is_empty()
                && !host.contains(|char: char| "/@,".contains(char) || char.is_whitespace() || char.is_control())
                && !names_port(host);
            if !named {
                return Err(Error::Config { path, reason });
            }
            names.push(host.trim_matches(['[', ']']).trim_end_matches('.').to_ascii_lowercase());
        }
        Ok(Self { names, everywhere: bound.ip().is_unspecified() })
    }

    /// Lets a request pass that asks for this door.
    ///
    /// # Errors
    /// The problem that the client is told: it does not say whom it asks for, or somebody else.
    pub(super) fn check<B>(&self, request: &Request<B>) -> Result<(), Problem> {
        let mut fields = request.headers().get_all(HOST).iter();
        let field = match (fields.next(), fields.next()) {
            (Some(_), Some(_)) => return Err(Problem::bad_host("the request has several headers Host")),
            (None, _) if request.version() != Version::HTTP_10 => {
                return Err(Problem::bad_host("the request has no header Host"));
            }
            (field, _) => field.map(HeaderValue::to_str),
        };
        let unreadable = || Problem::bad_host("the header Host is no host with or without a port");
        let field = field.transpose().map_err(|_| unreadable())?;
        // Asked as a proxy is, by a whole URL, the door must be meant by both.
        let line = request.uri().authority().map(|authority| authority.as_str());
        for text in field.into_iter().chain(line) {
            let asked = Asked::read(text).ok_or_else(unreadable)?;
            if !self.admits(&asked) {
                return Err(Problem::unknown_host(&asked.text()));
            }
        }
        Ok(())
    }

    fn admits(&self, asked: &Asked) -> bool {
        // An address leads where it leads: nobody's page can have it lead here.
        let own = match asked {
            Asked::Address(address) => self.everywhere || address.to_canonical().is_loopback(),
            Asked::Name(_) => false,
        };
        own || self.names.iter().any(|name| rules::matches(name, &asked.text()))
    }
}

impl Asked {
    /// Reads a host with or without a port.
    fn read(authority: &str) -> Option<Self> {
        let (host, port) = match authority.strip_prefix('[').map(|rest| rest.split_once(']')) {
            Some(parts) => {
                parts.map(|(host, port)| (host, port.strip_prefix(':').or(port.is_empty().then_some(""))))?
            }
            None => authority.split_once(':').map_or((authority, Some("")), |(host, port)| (host, Some(port))),
        };
        if !port?.bytes().all(|digit| digit.is_ascii_digit()) {
            return None;
        }
        if authority.starts_with('[') {
            return host.parse::<Ipv6Addr>().ok().map(|address| Self::Address(address.into()));
        }
        if let Ok(address) = host.parse::<Ipv4Addr>() {
            return Some(Self::Address(address.into()));
        }
        // A dot at the end says only that the name is whole.
        let name = host.strip_suffix('.').unwrap_or(host);
        let fits = |byte: u8| byte.is_ascii_alphanumeric() || b"-._~%!$&'()*+,;=".contains(&byte);
        (!name.is_empty() && name.bytes().all(fits)).then(|| Self::Name(name.to_ascii_lowercase()))
    }

    fn text(&self) -> String {
        match self {
            Self::Address(address) => address.to_string(),
            Self::Name(name) => name.clone(),
        }
    }
}

/// Whether there is a port behind the host; of the colons in a bare IPv6 address, none begins one.
fn names_port(host: &str) -> bool {
    host.contains(':') && host.trim_matches(['[', ']']).parse::<Ipv6Addr>().is_err()
}

#[cfg(test)]
mod tests {
    use hyper::StatusCode;

    use super::*;

    fn config(change: impl FnOnce(&mut Config)) -> Config {
        let mut config = Config { http: Some("127.0.0.1:0".into()), ..Config::default() };
        change(&mut config);
        config
    }

    fn hosts(bound: &str, change: impl FnOnce(&mut Config)) -> Hosts {
        Hosts::of(&config(change), bound.parse().unwrap()).unwrap()
    }

    fn status(hosts: &Hosts, version: Version, uri: &str, fields: &[&str]) -> u16 {
        let mut request = Request::builder().version(version).uri(uri);
        for field in fields {
            request = request.header(HOST, *field);
        }
        let checked = hosts.check(&request.body(()).unwrap());
        checked.map_or_else(|problem| problem.answer().status(), |()| StatusCode::OK).as_u16()
    }

    fn asked(hosts: &Hosts, host: &str) -> u16 {
        status(hosts, Version::HTTP_11, "/", &[host])
    }

    #[test]
    fn only_the_doors_own_names_are_answered() {
        let loopback = hosts("127.0.0.1:7070", |_| {});
        for own in ["localhost", "LocalHost:7070", "localhost.", "127.0.0.1:1", "127.8.0.1", "[::1]", "[::1]:7070"] {
            assert_eq!(asked(&loopback, own), 200, "{own}");
        }
        for other in
            ["evil.example", "evil.example:7070", "localhost.evil.example", "127.0.0.1.evil.example", "2130706433", "a"]
        {
            assert_eq!(asked(&loopback, other), 421, "{other}");
        }
        for address in ["10.0.0.5:7070", "0.0.0.0:7070", "[2001:db8::1]"] {
            assert_eq!(asked(&loopback, address), 421, "{address}: not one that it listens on");
            assert_eq!(asked(&hosts("0.0.0.0:7070", |_| {}), address), 200, "{address}: perhaps one of its machine's");
        }
        assert_eq!(asked(&hosts("10.0.0.5:7070", |_| {}), "10.0.0.5:7070"), 200);
    }

    #[test]
    fn what_the_configuration_names_is_the_doors_own() {
        let named = hosts("0.0.0.0:7070", |config| {
            config.http = Some("door.example.org:7070".into());
            config.advertise = Some("node-1.example.org:7000".into());
            config.http_hosts = vec!["Games.example.org".into(), "*.internal".into()];
        });
        for own in ["door.example.org", "node-1.example.org:7070", "games.EXAMPLE.org.", "a.b.internal:80"] {
            assert_eq!(asked(&named, own), 200, "{own}");
        }
        for other in ["internal", "games.example.org.evil.example", "example.org"] {
            assert_eq!(asked(&named, other), 421, "{other}");
        }
        let fronted =
            hosts("127.0.0.1:7070", |config| config.http_hosts = vec!["203.0.113.7".into(), "2001:db8::7".into()]);
        assert_eq!([asked(&fronted, "203.0.113.7:80"), asked(&fronted, "[2001:DB8::7]")], [200; 2]);
        assert_eq!(asked(&fronted, "203.0.113.8"), 421);
        for wrong in ["", "https://games.example.org", "games.example.org:443", "[::1]:443", "a b"] {
            let error =
                Hosts::of(&config(|config| config.http_hosts = vec![wrong.into()]), "127.0.0.1:1".parse().unwrap());
            assert!(error.is_err_and(|error| error.to_string().contains("http_hosts")), "{wrong}");
        }
    }

    #[test]
    fn a_request_says_once_whom_it_asks_for() {
        let hosts = hosts("127.0.0.1:7070", |_| {});
        for (fields, now, old) in [
            (&[][..], 400, 200),
            (&["localhost", "localhost"], 400, 400),
            (&["localhost", "evil.example"], 400, 400),
            (&["evil.example"], 421, 421),
            (&[""], 400, 400),
            (&["localhost:a"], 400, 400),
            (&["a@localhost"], 400, 400),
            (&["[::1"], 400, 400),
            (&["[::1]7070"], 400, 400),
            (&["::1"], 400, 400),
            (&["lo cal"], 400, 400),
        ] {
            assert_eq!(status(&hosts, Version::HTTP_11, "/", fields), now, "{fields:?}");
            assert_eq!(status(&hosts, Version::HTTP_10, "/", fields), old, "{fields:?} of HTTP/1.0");
        }
        for (uri, wanted) in [("http://localhost/", 200), ("http://evil.example/", 421)] {
            assert_eq!(status(&hosts, Version::HTTP_11, uri, &["localhost"]), wanted, "{uri}");
            assert_eq!(status(&hosts, Version::HTTP_11, uri, &["evil.example"]), 421, "{uri}");
        }
    }
}
