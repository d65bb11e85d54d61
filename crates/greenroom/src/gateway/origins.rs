//! Web pages of other sites that may call actors from their visitors' browsers, by what browsers call their origins (CORS).
//!
//! They may call, follow topics and read the description of what can be called, with the credentials that they give
//! themselves; the pages about the node are never theirs.

use greenroom_security::rules;
use hyper::header::{
    ACCESS_CONTROL_ALLOW_HEADERS, ACCESS_CONTROL_ALLOW_METHODS, ACCESS_CONTROL_ALLOW_ORIGIN,
    ACCESS_CONTROL_EXPOSE_HEADERS, ACCESS_CONTROL_MAX_AGE, ACCESS_CONTROL_REQUEST_METHOD, HOST, HeaderMap, HeaderValue,
    ORIGIN, VARY,
};
use hyper::{Method, Request, Response, StatusCode, Uri};

use super::answer::{Answer, AnswerBody};
use super::path::Path;
use super::problem::Problem;
use crate::node::Config;
use crate::node::error::Error;

/// The origins of those pages, in lower case; a `*` at the beginning of a host is any text.
#[derive(Default)]
pub(super) struct Origins(Vec<String>);

impl Origins {
    /// Those that `config` names.
    ///
    /// # Errors
    /// [`Error::Config`]: one of `http_origins` is no origin, or is everybody's.
    pub(super) fn of(config: &Config) -> Result<Self, Error> {
        let read = |origin: &String| match read(origin) {
            Some(origin) => Ok(origin),
            None => Err(Error::Config {
                path: "http_origins".to_owned(),
                reason: format!(
                    "{origin:?} is no origin; write scheme and host, and the port if it is not the scheme's own, without a \
                     path: \"https://app.example.org\", \"http://localhost:5173\" or \"https://*.example.org\""
                ),
            }),
        };
        config.http_origins.iter().map(read).collect::<Result<_, _>>().map(Self)
    }

    /// Lets a request pass, unless it is of another site's page that may not call actors here.
    ///
    /// # Errors
    /// The problem that the page's browser is told.
    pub(super) fn check(&self, headers: &HeaderMap) -> Result<(), Problem> {
        if is_of_own_site(headers) || self.named(headers).is_some() { Ok(()) } else { Err(Problem::other_site(REMEDY)) }
    }

    /// The origin of the page that a request comes from, if it may read what it asks for though it is another site's.
    pub(super) fn reader<B>(&self, request: &Request<B>) -> Option<HeaderValue> {
        self.named(request.headers()).filter(|_| is_open(request.uri())).cloned()
    }

    /// The answer to a browser that asks whether the page's request may come.
    pub(super) fn preflight<B>(&self, request: &Request<B>) -> Option<Answer> {
        let asks = request.method() == Method::OPTIONS && request.headers().contains_key(ACCESS_CONTROL_REQUEST_METHOD);
        if !asks || self.reader(request).is_none() {
            return None;
        }
        let mut answer = Response::new(AnswerBody::whole(Default::default()));
        *answer.status_mut() = StatusCode::NO_CONTENT;
        let headers = answer.headers_mut();
        headers.insert(ACCESS_CONTROL_ALLOW_METHODS, HeaderValue::from_static("GET, POST"));
        headers.insert(ACCESS_CONTROL_ALLOW_HEADERS, HeaderValue::from_static(SENT));
        headers.insert(ACCESS_CONTROL_MAX_AGE, HeaderValue::from_static("600"));
        Some(answer)
    }

    fn named<'a>(&self, headers: &'a HeaderMap) -> Option<&'a HeaderValue> {
        if self.0.is_empty() {
            return None;
        }
        let mut origins = headers.get_all(ORIGIN).iter();
        let (Some(origin), None) = (origins.next(), origins.next()) else { return None };
        let said = origin.to_str().ok()?.to_ascii_lowercase();
        self.0.iter().any(|known| rules::matches(known, &said)).then_some(origin)
    }
}

/// Lets the browser show an answer to the page of this origin.
pub(super) fn show(answer: &mut Answer, origin: HeaderValue) {
    let headers = answer.headers_mut();
    headers.insert(ACCESS_CONTROL_ALLOW_ORIGIN, origin);
    headers.insert(ACCESS_CONTROL_EXPOSE_HEADERS, HeaderValue::from_static("allow, retry-after"));
    headers.insert(VARY, HeaderValue::from_static("origin"));
}

/// Pages of other sites must not see or change what is this site's own through their visitors' browsers.
pub(super) fn refuse_other_sites(headers: &HeaderMap) -> Result<(), Problem> {
    if is_of_own_site(headers) { Ok(()) } else { Err(Problem::other_site("")) }
}

/// Whether no browser sends it for another site's page. They say where a page is from.
fn is_of_own_site(headers: &HeaderMap) -> bool {
    // Where a page only gets, browsers do not say its origin, but whether it is this one's.
    let from = headers.get("sec-fetch-site").map(HeaderValue::as_bytes);
    if from.is_some_and(|from| !matches!(from, b"same-origin" | b"none")) {
        return false;
    }
    let Some(origin) = headers.get(ORIGIN) else { return true };
    let origin = origin.as_bytes();
    let site = origin.strip_prefix(b"http://").or_else(|| origin.strip_prefix(b"https://"));
    matches!((site, headers.get(HOST)), (Some(site), Some(host)) if site.eq_ignore_ascii_case(host.as_bytes()))
}

/// Whether it is among what pages of other sites may be let to.
fn is_open(uri: &Uri) -> bool {
    matches!(Path::read(uri.path()), Ok(Path::Call { .. } | Path::Topic(_) | Path::OpenApi))
}

/// An origin as browsers say it; `None` for what none has.
fn read(text: &str) -> Option<String> {
    let origin = text.to_ascii_lowercase();
    let (scheme, own_port) =
        [("https://", ":443"), ("http://", ":80")].into_iter().find(|(scheme, _)| origin.starts_with(scheme))?;
    let authority = &origin[scheme.len()..];
    // Some text at the beginning of a name, up to a dot: with more, it would be everybody's.
    let host = authority.strip_prefix("*.").unwrap_or(authority);
    let fits = |byte: u8| byte.is_ascii_alphanumeric() || b"-._:[]".contains(&byte);
    let uri = host.bytes().all(fits).then(|| format!("{scheme}{host}").parse::<Uri>().ok()).flatten()?;
    let is_whole = uri.host().is_some_and(|name| name.len() == host.len()) || uri.port_u16().is_some();
    (is_whole && !authority.ends_with(own_port)).then_some(origin)
}

const REMEDY: &str = "; if it may, name its origin in `http_origins` (--http-origin) in the node's configuration";
/// The headers that a page may send.
const SENT: &str = "authorization, content-type, accept, idempotency-key, greenroom-timeout, last-event-id, traceparent, \
    tracestate, baggage";

#[cfg(test)]
mod tests {
    use super::*;

    fn origins(named: &[&str]) -> Result<Origins, Error> {
        Origins::of(&Config {
            http_origins: named.iter().map(|name| (*name).to_owned()).collect(),
            ..Config::default()
        })
    }

    #[test]
    fn an_origin_is_written_as_browsers_say_it() {
        for right in [
            "https://app.example.org",
            "HTTPS://App.example.org",
            "http://localhost:5173",
            "http://[::1]:5173",
            "https://*.example.org",
            "http://10.0.0.7",
        ] {
            assert!(origins(&[right]).is_ok(), "{right}");
        }
        for wrong in [
            "",
            "*",
            "null",
            "app.example.org",
            "https://",
            "https://*",
            "https://*.",
            "https://*example.org",
            "https://a.*.org",
            "https://app.example.org/",
            "https://app.example.org/page",
            "https://app.example.org:443",
            "http://app.example.org:80",
            "https://app.example.org:port",
            "https://a@b",
            "https://a b",
            "file://a",
        ] {
            let error = origins(&[wrong]).map(drop).expect_err(wrong).to_string();
            assert!(error.contains("http_origins") && error.contains("no origin"), "{wrong}: {error}");
        }
    }

    #[test]
    fn only_whole_origins_are_named() {
        let origins = origins(&["https://app.example.org", "https://*.games.example.org"]).unwrap();
        for (origin, named) in [
            ("https://app.example.org", true),
            ("https://APP.example.org", true),
            ("https://a.games.example.org", true),
            ("http://app.example.org", false),
            ("https://app.example.org:8443", false),
            ("https://app.example.org.evil.example", false),
            ("https://games.example.org", false),
            ("https://evilgames.example.org", false),
            ("null", false),
        ] {
            let request = Request::builder().uri("/notes/a/all").header(ORIGIN, origin).body(()).unwrap();
            assert_eq!(origins.reader(&request).is_some(), named, "{origin}");
        }
    }
}
