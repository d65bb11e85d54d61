//! Which request gets which answer.

use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::{Duration, Instant};

use bytes::Bytes;
use greenroom_security::principal::Principal;
use hyper::header::{
    ALLOW, CACHE_CONTROL, CONNECTION, CONTENT_ENCODING, CONTENT_TYPE, HeaderMap, HeaderValue, ORIGIN, TRANSFER_ENCODING,
};
use hyper::{Method, Request, Response, StatusCode};

use super::answer::{Answer, AnswerBody};
use super::body::RequestBody;
use super::connections::Seat;
use super::origins::{self, refuse_other_sites};
use super::path::Path;
use super::problem::{self, Problem};
use super::{
    Door, HEAD_LEN_MAX, admin, call, console, events, happened, hosts, inspections, kinds, live, metrics, pages, state,
    status, tail, topic,
};
use crate::node::config::ConsoleMode;

/// Answers one request.
pub(super) async fn answer(door: &Arc<Door>, seat: &Arc<Seat>, request: Request<RequestBody>) -> Answer {
    let config = door.node.config();
    // The body gets a time of its own, and its problem document a little more to leave in.
    seat.waits(Instant::now() + config.http_body_timeout + GRACE);
    let _counted = door.node.count_request();
    let unread = request.body().unread();
    let reader = door.origins.reader(&request);
    let mut answer = match route(door, seat, request).await {
        Ok(answer) => answer,
        Err(problem) => problem.answer(),
    };
    if let Some(origin) = reader {
        origins::show(&mut answer, origin);
    }
    let upgraded = answer.status() == StatusCode::SWITCHING_PROTOCOLS;
    // Bytes of a body that nobody reads cannot be told from the next request.
    if (door.node.is_closing() || unread.load(Ordering::Relaxed)) && !upgraded {
        answer.headers_mut().insert(CONNECTION, HeaderValue::from_static("close"));
    }
    if answer.body().is_whole() && !upgraded {
        announce_idle_time(&mut answer, config.http_idle_timeout);
        seat.lies_idle(Instant::now() + config.http_idle_timeout + IDLE_GRACE);
    }
    door.count_answer(answer.status().as_u16());
    answer
}

async fn route(door: &Arc<Door>, seat: &Arc<Seat>, mut request: Request<RequestBody>) -> Result<Answer, Problem> {
    check_form(&request)?;
    door.hosts.check(&request)?;
    if let Some(answer) = door.origins.preflight(&request) {
        return Ok(answer);
    }
    let path = Path::read(request.uri().path()).map_err(|why| Problem::bad_request(&why))?;
    if path == Path::Root && door.guard.console() != ConsoleMode::Off && console::wants_page(request.headers()) {
        return Ok(console::there());
    }
    if let Some(principal) = door.guard.admit(&path, &request).await? {
        request.extensions_mut().insert(principal);
    }
    if let Path::Call { kind, key, method } = path {
        let watches = request.method() == Method::GET && events::wanted(request.headers());
        if request.method() != Method::POST && !watches {
            return Err(Problem::wrong_method("POST"));
        }
        door.origins.check(request.headers())?;
        if seat.is_reserved() {
            return Err(Problem::busy("the door serves as many connections as it may").closing());
        }
        return call::call(door, seat, call::Target { kind, key, method }, request).await;
    }
    if let Path::Admin(asked) = &path {
        refuse_other_sites(request.headers())?;
        if !matches!(*request.method(), Method::GET | Method::HEAD) {
            refuse_unnamed(door, request.headers())?;
        }
        let method = request.method().clone();
        let answer = admin::answer(door, asked, &method, door.guard.rights(&request).values).await?;
        if !matches!(method, Method::GET | Method::HEAD) {
            happened::changed(door, asked, &request);
        }
        return Ok(answer);
    }
    if let (Path::StateOf(of), &Method::PUT | &Method::DELETE) = (&path, request.method()) {
        refuse_other_sites(request.headers())?;
        refuse_unnamed(door, request.headers())?;
        return state::change(door, of, request).await;
    }
    if path == Path::Host {
        refuse_other_sites(request.headers())?;
        return hosts::open(door, request);
    }
    if let Path::Live | Path::Tail = path {
        refuse_other_sites(request.headers())?;
        if request.method() != Method::GET {
            return Err(Problem::wrong_method("GET"));
        }
        if seat.is_reserved() {
            return Err(Problem::busy("the door serves as many connections as it may").closing());
        }
        return match path {
            Path::Tail => tail::answer(door, seat, &request),
            _ => live::answer(door, seat, &request),
        };
    }
    if let Path::Topic(name) = path {
        door.origins.check(request.headers())?;
        if seat.is_reserved() {
            return Err(Problem::busy("the door serves as many connections as it may").closing());
        }
        return topic::answer(door, seat, name, request).await;
    }
    let answer = match path {
        Path::Admin(_) | Path::Other | Path::Host | Path::Live | Path::Tail | Path::Call { .. } | Path::Topic(_) => {
            return Err(Problem::no_such_path(request.uri().path()));
        }
        _ if !matches!(*request.method(), Method::GET | Method::HEAD) => {
            let allowed = if let Path::StateOf(_) = path { "GET, HEAD, PUT, DELETE" } else { "GET, HEAD" };
            return Err(Problem::wrong_method(allowed));
        }
        Path::Health => text(StatusCode::OK, "text/plain; charset=utf-8", "the process lives\n".to_owned()),
        Path::Ready => match status::not_ready(&door.node) {
            None => text(StatusCode::OK, "text/plain; charset=utf-8", "ready\n".to_owned()),
            Some(why) => return Err(Problem::not_ready(&why)),
        },
        Path::Console(_) if door.guard.console() == ConsoleMode::Off => return Err(Problem::console_off()),
        Path::Console(path) => console::page(&path)?,
        Path::Whoami => json(StatusCode::OK, &whoami(door, &request)),
        Path::Problem(name) => match problem::explain(&name) {
            Some(explanation) => text(StatusCode::OK, "text/plain; charset=utf-8", format!("{explanation}\n")),
            None => return Err(Problem::no_such_path(request.uri().path())),
        },
        path => inspected(door, path, &request).await?,
    };
    Ok(answer)
}

/// Says for how long the client may keep the connection for its next request, in whole seconds.
fn announce_idle_time(answer: &mut Answer, idle: Duration) {
    let stays = answer.headers().get(CONNECTION).is_none_or(|connection| connection != "close");
    if let (true, 1.., Ok(value)) = (stays, idle.as_secs(), format!("timeout={}", idle.as_secs()).try_into()) {
        answer.headers_mut().insert("keep-alive", value);
    }
}

/// Who sends this request, and what they may do.
fn whoami<B>(door: &Door, request: &Request<B>) -> serde_json::Value {
    let who = request.extensions().get::<Principal>();
    serde_json::json!({
        "name": who.map(Principal::name),
        "roles": who.map(|who| who.roles().collect::<Vec<_>>()).unwrap_or_default(),
        "may": door.guard.rights(request),
        "open": door.guard.is_open(),
        "console": door.guard.console().name(),
    })
}

/// What a browser asks to be changed must come from a page that says what for. Another site's page cannot: browsers let it
/// send a header of its own only where the door allows that beforehand, which it never does.
fn refuse_unnamed(door: &Door, headers: &HeaderMap) -> Result<(), Problem> {
    let browser = headers.contains_key(ORIGIN) || headers.contains_key("sec-fetch-site");
    let named = headers.get(CHANGE).is_some_and(|what| !what.is_empty());
    match door.guard.console() {
        console if browser && console != ConsoleMode::Change => Err(Problem::only_looks(console.name())),
        _ if browser && !named => Err(Problem::unnamed_change()),
        _ => Ok(()),
    }
}

pub(super) fn json(status: StatusCode, value: &serde_json::Value) -> Answer {
    bytes(status, "application/json", pretty(value))
}

/// Returns the text of `value` as people read it.
pub(super) fn pretty(value: &serde_json::Value) -> Bytes {
    // Writing a `Value` to memory cannot fail.
    let mut text = serde_json::to_string_pretty(value).unwrap_or_default();
    text.push('\n');
    text.into()
}

/// Refuses requests whose head or body is not as it is read here.
fn check_form<B>(request: &Request<B>) -> Result<(), Problem> {
    let headers = request.headers();
    let fields: usize = headers.iter().map(|(name, value)| name.as_str().len() + value.len() + FIELD_LEN).sum();
    // The library below counts what it has read in one go, which may be more.
    if request.method().as_str().len() + request.uri().to_string().len() + REQUEST_LINE_LEN + fields > HEAD_LEN_MAX {
        return Err(Problem::long_head(HEAD_LEN_MAX));
    }
    let is_all = |name, wanted: &str| {
        headers.get_all(name).iter().all(|value| value.as_bytes().eq_ignore_ascii_case(wanted.as_bytes()))
    };
    if !is_all(TRANSFER_ENCODING, "chunked") {
        return Err(Problem::encoded_transfer());
    }
    if !is_all(CONTENT_ENCODING, "identity") {
        return Err(Problem::encoded_body());
    }
    Ok(())
}

/// Asks of the kind that takes long to answer: it waits for the turn of its principal.
async fn inspected(door: &Arc<Door>, path: Path, request: &Request<RequestBody>) -> Result<Answer, Problem> {
    let principal = request.extensions().get::<Principal>().map_or("", Principal::name).to_owned();
    let values = door.guard.rights(request).values;
    let (inspected, query) = (door.clone(), request.uri().query().map(str::to_owned));
    let asked = request.uri().path().to_owned();
    let work = async move {
        let door = &*inspected;
        match path {
            Path::Root => Ok(json(StatusCode::OK, &status::hosted(door))),
            Path::Metrics => Ok(text(StatusCode::OK, "text/plain; version=0.0.4; charset=utf-8", metrics::write(door))),
            Path::OpenApi => Ok(bytes(StatusCode::OK, "application/json", kinds::openapi(door).text.clone())),
            path => match pages::said(door, &path, query.as_deref(), values).await? {
                Some(said) => Ok(json(StatusCode::OK, &said)),
                None => Err(Problem::no_such_path(&asked)),
            },
        }
    };
    inspections::inspect(door, &principal, work).await?
}

pub(super) fn text(status: StatusCode, content_type: &'static str, body: String) -> Answer {
    bytes(status, content_type, Bytes::from(body))
}

pub(super) fn bytes(status: StatusCode, content_type: &'static str, body: Bytes) -> Answer {
    let mut answer = Response::new(AnswerBody::whole(body));
    *answer.status_mut() = status;
    answer.headers_mut().insert(CONTENT_TYPE, HeaderValue::from_static(content_type));
    answer.headers_mut().insert(CACHE_CONTROL, HeaderValue::from_static("no-store"));
    answer
}

/// Says which HTTP methods there are.
pub(super) fn allow(answer: &mut Answer, methods: &'static str) {
    answer.headers_mut().insert(ALLOW, HeaderValue::from_static(methods));
}

/// Bytes of a header field beside its name and value.
const FIELD_LEN: usize = ": \r\n".len();
/// Bytes of a request's first line beside its method and target, and of the empty line.
const REQUEST_LINE_LEN: usize = "  HTTP/1.1\r\n\r\n".len();
/// The header in which a page says what it changes something for.
pub(super) const CHANGE: &str = "greenroom-change";
/// Time for which a connection stays open beyond what its client was told, so that a request on its way still arrives.
pub(super) const IDLE_GRACE: Duration = Duration::from_secs(5);
/// Time for the answer to a slow client to leave.
const GRACE: Duration = Duration::from_secs(2);
