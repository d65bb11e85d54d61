//! An engine behind a network, as a URL names it: `scheme://user:password@host:port,host:port/path?name=value&…`.

use std::collections::BTreeMap;
use std::fmt;
use std::path::PathBuf;

use super::percent::{self, Encoded};
use super::secret::{self, Password, Secret};
use super::{Error, redact};
use crate::StoreError;

/// What the URL of an engine behind a network says. `Debug` and `Display` show no password.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[non_exhaustive]
pub struct Remote {
    /// As in the URL, in its canonical spelling: `postgres`, `redis`, `rediss`, `etcd`, `kafka`, `s3`.
    pub scheme: &'static str,
    /// The name before the `@`, decoded, or `?user=`.
    pub user: Option<String>,
    /// Where the password comes from; [`password`](Self::password) reads it.
    pub password: Password,
    /// At least one. Only etcd, Kafka and PostgreSQL may have several; the bucket is the one of `s3`.
    pub hosts: Vec<Host>,
    /// What follows the hosts, decoded, without the slash before it: a database, a prefix. May be empty.
    pub path: String,
    /// Whether to use TLS: `rediss:` or `?tls=on`; `None` if the URL does not say.
    pub tls: Option<bool>,
    /// The other parameters.
    pub parameters: Parameters,
}

/// A host and its port.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[non_exhaustive]
pub struct Host {
    /// A name or an address, an IPv6 one without brackets.
    pub name: String,
    /// As in the URL, or the engine's own; 0 for a bucket.
    pub port: u16,
}

impl Remote {
    /// The password as it is now: a file is read again each time, so that a reconnection uses a new one.
    ///
    /// # Errors
    ///
    /// [`StoreError::Denied`], which says which file or environment variable is missing.
    pub fn password(&self) -> Result<Option<Secret>, StoreError> {
        self.password.read().map_err(|reason| StoreError::Denied { store: self.to_string(), reason })
    }

    /// Refuses every parameter that is not among those `known` to the provider.
    ///
    /// # Errors
    ///
    /// [`StoreError::Configuration`], which names the parameter and the known ones.
    pub fn check_parameters(&self, known: &[&str]) -> Result<(), StoreError> {
        self.parameters.check(&self.to_string(), known)
    }

    pub(super) fn parse(engine: &Engine, scheme: &'static str, text: &str, rest: &str) -> Result<Self, Error> {
        let malformed = |reason: &str| Error::Malformed { text: redact(text), reason: reason.to_owned() };
        let rest = rest.strip_prefix("//").ok_or_else(|| incomplete(engine, text))?;
        let (rest, query) = rest.split_once('?').unwrap_or((rest, ""));
        let (authority, path) = rest.split_once('/').unwrap_or((rest, ""));
        if path.contains('@') {
            return Err(malformed("there is an `@` behind the first slash; escape a slash in a password as \"%2F\""));
        }
        let (credentials, hosts) = authority.rsplit_once('@').map_or((None, authority), |(who, at)| (Some(who), at));
        let mut parameters = Parameters::parse(query).map_err(|reason| malformed(&reason))?;
        let decode = |part: &str| percent::decode(part).map_err(malformed);
        let (user, inline) = match credentials.map(|who| who.split_once(':').unwrap_or((who, ""))) {
            Some((user, password)) => (decode(user)?, decode(password)?),
            None => Default::default(),
        };
        let inline = (!inline.is_empty()).then(|| Password::Inline(Secret::new(inline)));
        let file = parameters.take("password_file").map(|path| Password::File(path.into()));
        let env = parameters.take("password_env").map(Password::Env);
        let mut passwords = inline.into_iter().chain(file).chain(env);
        let password = passwords.next().unwrap_or_default();
        if passwords.next().is_some() {
            return Err(malformed("it has more than one password; keep one of `:…@`, password_file and password_env"));
        }
        let tls = match parameters.take("tls").as_deref() {
            None => (scheme == "rediss").then_some(true),
            Some("on") => Some(true),
            Some("off") if scheme != "rediss" => Some(false),
            Some(_) => return Err(malformed("`tls` is either \"on\" or \"off\" (and never off for rediss:)")),
        };
        if hosts.is_empty() {
            return Err(incomplete(engine, text));
        }
        let hosts = hosts.split(',').map(|host| Host::parse(host, engine.port).map_err(malformed));
        let hosts = hosts.collect::<Result<Vec<_>, _>>()?;
        if hosts.len() > 1 && !engine.several_hosts {
            return Err(malformed("it names several hosts; this engine has one"));
        }
        let user = Some(user).filter(|user| !user.is_empty()).or_else(|| parameters.take("user"));
        Ok(Self { scheme, user, password, hosts, path: decode(path)?, tls, parameters })
    }
}

impl Host {
    fn parse(text: &str, default_port: u16) -> Result<Self, &'static str> {
        let (name, port) = match text.strip_prefix('[').map(|rest| rest.split_once(']')) {
            Some(None) => return Err("a `[` has no `]`; write an IPv6 address as \"[::1]:5432\""),
            Some(Some((name, after))) => (name, after.strip_prefix(':')),
            None => text.rsplit_once(':').map_or((text, None), |(name, port)| (name, Some(port))),
        };
        if name.is_empty() || (name.contains(':') && !text.starts_with('[')) {
            return Err("a host's name is empty or holds a colon; write an IPv6 address as \"[::1]:5432\"");
        }
        let port = match port {
            None => default_port,
            Some(port) => {
                let port = port.parse::<u16>().ok().filter(|port| *port > 0);
                port.ok_or("a port is not a number from 1 to 65535")?
            }
        };
        Ok(Self { name: name.to_owned(), port })
    }
}

/// What the schemes of the engines differ in.
pub(super) struct Engine {
    pub(super) schemes: &'static [&'static str],
    /// Without one in the URL; 0 if there is none.
    pub(super) port: u16,
    pub(super) several_hosts: bool,
    pub(super) example: &'static str,
}

fn incomplete(engine: &Engine, text: &str) -> Error {
    Error::Incomplete { text: redact(text), example: engine.example }
}

/// What stands behind the `?` of a URL, decoded.
#[derive(Clone, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Parameters(BTreeMap<String, String>);

impl Parameters {
    pub(super) fn parse(query: &str) -> Result<Self, String> {
        let mut parameters = BTreeMap::new();
        for pair in query.split('&').filter(|pair| !pair.is_empty()) {
            let (name, value) = pair.split_once('=').unwrap_or((pair, ""));
            let (name, value) = (percent::decode(name)?, percent::decode(value)?);
            if secret::is_secret(&name) {
                return Err(format!("it holds a secret as {name:?}; use password_file or password_env"));
            }
            if parameters.insert(name.clone(), value).is_some() {
                return Err(format!("it has the parameter {name:?} twice; keep one"));
            }
        }
        Ok(Self(parameters))
    }

    /// The value of the parameter called `name`.
    pub fn find(&self, name: &str) -> Option<&str> {
        self.0.get(name).map(String::as_str)
    }

    /// The file that the parameter called `name` names.
    pub fn path(&self, name: &str) -> Option<PathBuf> {
        self.find(name).map(PathBuf::from)
    }

    /// All of them, in the order of their names.
    pub fn iter(&self) -> impl Iterator<Item = (&str, &str)> {
        self.0.iter().map(|(name, value)| (name.as_str(), value.as_str()))
    }

    /// Refuses every parameter that is not among those `known`.
    ///
    /// # Errors
    ///
    /// [`StoreError::Configuration`] of the store called `store`, which names the parameter and the known ones.
    pub fn check(&self, store: &str, known: &[&str]) -> Result<(), StoreError> {
        let Some(unknown) = self.0.keys().find(|name| !known.contains(&name.as_str())) else { return Ok(()) };
        let known =
            if known.is_empty() { "it has none".to_owned() } else { format!("there are: {}", known.join(", ")) };
        let reason = format!("its URL has no parameter {unknown:?}; {known}");
        Err(StoreError::Configuration { store: store.to_owned(), reason })
    }

    fn take(&mut self, name: &str) -> Option<String> {
        self.0.remove(name)
    }
}

impl fmt::Display for Remote {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}://", self.scheme)?;
        let inline = matches!(self.password, Password::Inline(_));
        if self.user.is_some() || inline {
            let user = self.user.as_deref().unwrap_or_default();
            write!(f, "{}{}@", Encoded { text: user, kept: "" }, if inline { ":***" } else { "" })?;
        }
        for (n, host) in self.hosts.iter().enumerate() {
            let comma = if n > 0 { "," } else { "" };
            write!(f, "{comma}{host}")?;
        }
        if !self.path.is_empty() {
            write!(f, "/{}", Encoded { text: &self.path, kept: "/:" })?;
        }
        let mut shown = self.parameters.clone();
        match &self.password {
            Password::File(path) => drop(shown.0.insert("password_file".to_owned(), path.display().to_string())),
            Password::Env(name) => drop(shown.0.insert("password_env".to_owned(), name.clone())),
            Password::None | Password::Inline(_) => {}
        }
        if let Some(tls) = self.tls.filter(|_| self.scheme != "rediss") {
            shown.0.insert("tls".to_owned(), if tls { "on" } else { "off" }.to_owned());
        }
        shown.fmt(f)
    }
}

impl fmt::Display for Host {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match (self.name.contains(':'), self.port) {
            (true, port) => write!(f, "[{}]:{port}", self.name),
            (false, 0) => f.write_str(&self.name),
            (false, port) => write!(f, "{}:{port}", self.name),
        }
    }
}

/// As a query, with its `?`; nothing if there are none.
impl fmt::Display for Parameters {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (n, (name, value)) in self.iter().enumerate() {
            let [name, value] = [name, value].map(|text| Encoded { text, kept: "/:," });
            write!(f, "{}{name}={value}", if n > 0 { '&' } else { '?' })?;
        }
        Ok(())
    }
}
