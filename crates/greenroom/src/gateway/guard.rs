//! Who comes to a door, and what they may ask for.

use std::io;
use std::net::IpAddr;
use std::sync::{Mutex, PoisonError};
use std::time::{Duration, Instant};

use greenroom_security::access::{Access, Denied};
use greenroom_security::door::{self, DoorCertificates};
use greenroom_security::principal::{ADMIN, METRICS, OPERATOR, Principal, VIEWER};
use greenroom_security::rules::{self, Target};
use greenroom_security::watched::{Look, Watched};
use greenroom_store::url::Secret;
use hyper::header::{AUTHORIZATION, HeaderMap};
use hyper::{Method, Request};
use serde::Serialize;
use tokio::io::AsyncWriteExt;
use tokio_rustls::server::TlsStream;

use super::admin::Needs;
use super::client_stream::ClientStream;
use super::fetch;
use super::hidden::Hidden;
use super::path::Path;
use super::problem::Problem;
use super::topic;
use crate::here::Here;
use crate::node::Config;
use crate::node::config::{ConsoleMode, is_loopback};
use crate::node::error::Error;
use crate::observe::events::Happened;

/// What the doors ask of those who come.
#[derive(Default)]
pub(super) struct Guard {
    tls: Option<Watched<DoorCertificates>>,
    access: Access,
    cluster: String,
    /// Whether somebody on this machine passes requests on for others.
    proxied: bool,
    /// What the pages may do.
    console: ConsoleMode,
    hidden: Hidden,
    /// When the keys of each fetched issuer may be fetched again.
    pauses: Vec<Mutex<Option<Instant>>>,
}

/// Who is at the other end of a connection.
#[derive(Clone, Debug)]
pub(super) struct Visitor {
    /// Whether it is on this machine.
    local: bool,
    /// The client that its certificate names.
    client: Option<String>,
}

/// A connection as its client wants it.
pub(super) enum Entered {
    Plain(ClientStream),
    Secure(Box<TlsStream<ClientStream>>),
}

/// Whom a path is for.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum For<'a> {
    Everybody,
    /// Everybody with credentials, where there are such.
    Known,
    Metrics,
    Viewers,
    Operators,
    Admins,
    /// Everybody with credentials; where there are none, this machine.
    Hosts,
    Callers(Target<'a>),
}

impl Guard {
    /// Reads what `config` says of certificates, credentials and rules.
    pub(super) fn open(config: &Config) -> Result<Self, Error> {
        let tls = config.door_tls().map(|files| DoorCertificates::watch(&files)).transpose()?;
        let access = Access::open(&config.auth, &config.allow)?;
        let pauses = config.auth.jwt.iter().map(|_| Mutex::default()).collect();
        let (cluster, proxied, hidden) = (config.cluster.clone(), config.http_proxied, Hidden::new(&config.hide_keys));
        let alone = !proxied && !access.is_configured() && config.http.as_deref().is_some_and(is_loopback);
        let console = config.console.unwrap_or(if alone { ConsoleMode::Change } else { ConsoleMode::Look });
        Ok(Self { tls, access, cluster, proxied, console, hidden, pauses })
    }

    /// Lets a connection in that is to speak `protocol` (its name in ALPN), inside of TLS if the doors have certificates.
    pub(super) async fn enter(&self, mut stream: ClientStream, protocol: &[u8]) -> io::Result<(Entered, Visitor)> {
        let local = !self.proxied && stream.socket().peer_addr().is_ok_and(|from| is_local(from.ip()));
        let Some(tls) = &self.tls else { return Ok((Entered::Plain(stream), Visitor { local, client: None })) };
        let mut first = [0; 1];
        if stream.socket().peek(&mut first).await? == 1 && !door::is_tls(first[0]) {
            stream.write_all(HTTPS_WANTED).await?;
            stream.shutdown().await?;
            return Err(io::Error::other("a client speaks plain HTTP to a door that speaks HTTPS"));
        }
        let (stream, client) = tls.current().accept(stream, &self.cluster, protocol).await?;
        Ok((Entered::Secure(Box::new(stream)), Visitor { local, client }))
    }

    /// Lets `request` for `path` in; on whose behalf it then is.
    ///
    /// # Errors
    /// The problem that the client is told.
    pub(super) async fn admit<B>(&self, path: &Path, request: &Request<B>) -> Result<Option<Principal>, Problem> {
        let visitor = request.extensions().get::<Visitor>();
        self.look_at(whom_for(path, request.method()), request.headers(), visitor).await
    }

    /// Whether who has shown this may make a call; on whose behalf it then is.
    ///
    /// # Errors
    /// The problem that the client is told.
    pub(super) async fn check(
        &self,
        target: Target<'_>,
        headers: &HeaderMap,
        visitor: Option<&Visitor>,
    ) -> Result<Option<Principal>, Problem> {
        self.look_at(For::Callers(target), headers, visitor).await
    }

    /// Whether who has shown this may know what there is to call.
    ///
    /// # Errors
    /// The problem that the client is told.
    pub(super) async fn check_known(
        &self,
        headers: &HeaderMap,
        visitor: &Visitor,
    ) -> Result<Option<Principal>, Problem> {
        self.look_at(For::Known, headers, Some(visitor)).await
    }

    /// Whether who has shown this may come as a host; who it then is.
    ///
    /// # Errors
    /// The problem that the client is told.
    pub(super) async fn check_host(
        &self,
        headers: &HeaderMap,
        visitor: Option<&Visitor>,
    ) -> Result<Option<Principal>, Problem> {
        self.look_at(For::Hosts, headers, visitor).await
    }

    /// Whether rules let `who` make this call.
    ///
    /// # Errors
    /// The problem that the client is told.
    pub(super) fn check_rules(&self, who: &Principal, target: Target<'_>) -> Result<(), Problem> {
        self.permit(For::Callers(target), Some(who))
    }

    /// Whether who has shown this may look at the pages, with values and errors' texts if `values`.
    ///
    /// # Errors
    /// The problem that the client is told.
    pub(super) async fn check_pages(
        &self,
        values: bool,
        headers: &HeaderMap,
        visitor: Option<&Visitor>,
    ) -> Result<(), Problem> {
        let whom = if values { For::Operators } else { For::Viewers };
        self.look_at(whom, headers, visitor).await.map(drop)
    }

    /// What the pages may do.
    pub(super) fn console(&self) -> ConsoleMode {
        self.console
    }

    /// The kinds whose keys viewers do not see.
    pub(super) fn hidden(&self) -> &Hidden {
        &self.hidden
    }

    /// What is told to who sees values, or else does not and so no hidden keys.
    pub(super) fn shown(&self, mut told: serde_json::Value, values: bool) -> serde_json::Value {
        if !values {
            self.hidden.hide(&mut told);
        }
        told
    }

    /// Whether the door asks nobody for anything.
    pub(super) fn is_open(&self) -> bool {
        !self.access.is_configured()
    }

    /// Whether somebody may come with a bearer token.
    pub(super) fn takes_tokens(&self) -> bool {
        self.access.takes_tokens()
    }

    /// Whether somebody may come with a client's certificate.
    pub(super) fn takes_certificates(&self) -> bool {
        self.access.takes_certificates()
    }

    async fn look_at(
        &self,
        whom: For<'_>,
        headers: &HeaderMap,
        visitor: Option<&Visitor>,
    ) -> Result<Option<Principal>, Problem> {
        if whom == For::Everybody {
            return Ok(None);
        }
        if self.is_open() {
            // Nobody can show who they are: then the machine itself must be trusted.
            if headers.contains_key(AUTHORIZATION) {
                return Err(Problem::unauthenticated(Some("this node has no `auth`, so that it knows no credentials")));
            }
            let local = visitor.is_some_and(|visitor| visitor.local) && !is_passed_on(headers);
            let trusted = local || matches!(whom, For::Everybody | For::Known | For::Metrics | For::Callers(_));
            return if trusted { Ok(None) } else { Err(Problem::not_local()) };
        }
        let principal = self.identify(headers, visitor).await?;
        self.permit(whom, principal.as_ref())?;
        Ok(principal)
    }

    /// Whose credentials came with the request; `None` if none did.
    async fn identify(&self, headers: &HeaderMap, visitor: Option<&Visitor>) -> Result<Option<Principal>, Problem> {
        let mut fields = headers.get_all(AUTHORIZATION).iter();
        let unauthenticated = |denied: Denied| Problem::unauthenticated(Some(denied.why));
        let (Some(field), None) = (fields.next(), fields.next()) else {
            if headers.contains_key(AUTHORIZATION) {
                return Err(Problem::unauthenticated(Some("the request has several headers Authorization")));
            }
            let client = visitor.and_then(|visitor| visitor.client.as_deref());
            return client.map(|name| self.access.client(name)).transpose().map_err(unauthenticated);
        };
        let wrong = || Problem::unauthenticated(Some("the header Authorization is not `Bearer` and a token"));
        let (scheme, token) = field.to_str().ok().and_then(|text| text.split_once(' ')).ok_or_else(wrong)?;
        if !scheme.eq_ignore_ascii_case("bearer") || token.trim().is_empty() {
            return Err(wrong());
        }
        let token = Secret::new(token.trim());
        match self.access.owner(&token) {
            Err(Denied { fetch: Some(index), .. }) if self.fetch(index).await => {
                self.access.owner(&token).map(Some).map_err(unauthenticated)
            }
            owner => owner.map(Some).map_err(unauthenticated),
        }
    }

    fn permit(&self, whom: For<'_>, who: Option<&Principal>) -> Result<(), Problem> {
        let one_of = |roles: &[&str]| {
            let wanted = roles.iter().map(|role| format!("{role:?}")).collect::<Vec<_>>().join(" or ");
            (has_one_of(who, roles), format!("it takes the role {wanted}"))
        };
        let (allowed, wanted) = match whom {
            For::Everybody => (true, String::new()),
            // What each may offer, `hosts.allow` says.
            For::Known | For::Hosts => (who.is_some(), String::new()),
            For::Metrics => one_of(&[METRICS, ADMIN]),
            For::Viewers => one_of(&[VIEWER, OPERATOR, ADMIN]),
            For::Operators => one_of(&[OPERATOR, ADMIN]),
            For::Admins => one_of(&[ADMIN]),
            For::Callers(target) => {
                let wanted = || who.map(|who| format!("a rule such as {} would", rules::missing(who, target)));
                match self.access.rules().allow(who, target) {
                    true => (true, String::new()),
                    false => (false, wanted().unwrap_or_default()),
                }
            }
        };
        match who {
            _ if allowed => Ok(()),
            None => Err(Problem::unauthenticated(None)),
            Some(who) if who.issuer().is_some() => {
                let given = "; a JWT's roles count if its issuer may give them (`may_give`)";
                Err(Problem::forbidden(who.name(), &format!("{wanted}{given}")))
            }
            Some(who) => Err(Problem::forbidden(who.name(), &wanted)),
        }
    }

    /// Fetches an issuer's keys, unless that was done a moment ago. Whether there may be new ones.
    async fn fetch(&self, index: usize) -> bool {
        let now = Instant::now();
        {
            let Some(pause) = self.pauses.get(index) else { return false };
            let mut until = pause.lock().unwrap_or_else(PoisonError::into_inner);
            if until.is_some_and(|until| now < until) {
                return false;
            }
            *until = Some(now + FETCH_PAUSE);
        }
        let Some((_, issuer)) = self.access.fetched().find(|(number, _)| *number == index) else { return false };
        let fetched = match fetch::get(&issuer.keys, issuer.ca.as_deref()).await {
            Ok(content) => self.access.take_keys(index, &content).map_err(|error| error.to_string()),
            Err(error) => Err(error),
        };
        if let Err(error) = &fetched {
            tracing::error!(issuer = issuer.issuer, url = issuer.keys, error, "an issuer's keys could not be fetched");
        }
        fetched.is_ok()
    }

    /// Looks after files and keys until it is dropped.
    pub(super) async fn look_after(&self, node: &Here) {
        let every = node.config().reload_every;
        let mut fetch_at = Instant::now();
        loop {
            let tls = self.tls.iter().map(|tls| ("the door's certificate", tls.look()));
            for (what, look) in tls.chain(self.access.look()) {
                match look {
                    Look::Unchanged => {}
                    Look::Renewed => {
                        tracing::info!("{what}: read again, and in force");
                        node.happened(Happened::Renewed { what: what.to_string() });
                    }
                    Look::Kept(error) => {
                        tracing::error!(%error, "{what}: changed, but cannot be used; the old stay in force");
                        node.happened(Happened::NotRenewed { what: what.to_string(), why: error.to_string() });
                    }
                }
            }
            if fetch_at <= Instant::now() {
                fetch_at = Instant::now() + FETCH_EVERY;
                for (index, _) in self.access.fetched() {
                    self.fetch(index).await;
                }
            }
            tokio::time::sleep(every.max(LOOK_MIN)).await;
        }
    }
}

/// What somebody may do with a node's pages and the figures behind them.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize)]
pub(super) struct Rights {
    /// Look at what nodes say of themselves.
    look: bool,
    /// See stored values and what errors say.
    pub(super) values: bool,
    /// Drain nodes, move actors, see to reminders and parked messages.
    operate: bool,
    /// Change anything, the list of clusters too.
    change: bool,
}

impl Guard {
    /// What who sends `request` may do; `request` was let in, and on whose behalf is noted in it.
    pub(super) fn rights<B>(&self, request: &Request<B>) -> Rights {
        if self.is_open() {
            let local = request.extensions().get::<Visitor>().is_some_and(|visitor| visitor.local);
            let all = local && !is_passed_on(request.headers());
            return Rights { look: all, values: all, operate: all, change: all };
        }
        let who = request.extensions().get::<Principal>();
        let operate = has_one_of(who, &[OPERATOR, ADMIN]);
        Rights {
            look: has_one_of(who, &[VIEWER, OPERATOR, ADMIN]),
            values: operate,
            operate,
            change: has_one_of(who, &[ADMIN]),
        }
    }
}

fn has_one_of(who: Option<&Principal>, roles: &[&str]) -> bool {
    who.is_some_and(|who| roles.iter().any(|role| who.has_role(role)))
}

/// Whom `path` is for: each path is named, so that a new one is for nobody by oversight.
fn whom_for<'a>(path: &'a Path, method: &Method) -> For<'a> {
    match path {
        Path::Health | Path::Ready | Path::Problem(_) | Path::Console(_) | Path::Other => For::Everybody,
        Path::Root | Path::OpenApi => For::Known,
        Path::Host => For::Hosts,
        Path::Metrics => For::Metrics,
        Path::Call { kind, key, method } => For::Callers(Target { kind, key, method }),
        // A topic is an actor, and what is asked of it are calls.
        Path::Topic(name) if *method == Method::POST => For::Callers(topic::target(name, topic::PUBLISH)),
        Path::Topic(name) => For::Callers(topic::target(name, topic::SUBSCRIBE)),
        Path::Whoami => For::Known,
        Path::Status
        | Path::Live
        | Path::Tail
        | Path::Actors
        | Path::State
        | Path::Topics
        | Path::Support
        | Path::Kinds
        | Path::Kind(_)
        | Path::Overview
        | Path::Stage
        | Path::Methods
        | Path::Turns
        | Path::Events
        | Path::Findings
        | Path::Waits
        | Path::Pids
        | Path::Optimiser
        | Path::Moves
        | Path::Explain { .. }
        | Path::Inspect { .. } => For::Viewers,
        Path::StateOf(_) if matches!(*method, Method::GET | Method::HEAD) => For::Viewers,
        Path::StateOf(_) => For::Admins,
        Path::Admin(asked) => match asked.needs() {
            Needs::Look => For::Viewers,
            Needs::Operate => For::Operators,
            Needs::Change => For::Admins,
        },
    }
}

fn is_local(from: IpAddr) -> bool {
    from.to_canonical().is_loopback()
}

/// Whether the request says that a proxy has passed it on: then it is not from this machine, though the proxy is.
fn is_passed_on(headers: &HeaderMap) -> bool {
    ["forwarded", "x-forwarded-for", "x-real-ip", "via"].iter().any(|name| headers.contains_key(*name))
}

/// Time between two fetches of an issuer's keys that tokens with unknown keys bring about.
const FETCH_PAUSE: Duration = Duration::from_secs(30);
/// Time between two fetches of an issuer's keys: after so long, a key that it has withdrawn counts no more.
const FETCH_EVERY: Duration = Duration::from_secs(600);
/// Shortest time between two looks at files.
const LOOK_MIN: Duration = Duration::from_millis(10);
const HTTPS_WANTED: &[u8] = b"HTTP/1.1 400 Bad Request\r\ncontent-type: text/plain\r\nconnection: close\r\n\
    content-length: 47\r\n\r\nthis door speaks HTTPS: ask with https:// here\n";
