//! Which request gets which answer.

use std::sync::Arc;
use std::time::{Duration, Instant};

use bytes::Bytes;
use greenroom_security::principal::Principal;
use hyper::body::Incoming;
use hyper::header::{ALLOW, CACHE_CONTROL, CONNECTION, CONTENT_TYPE, HeaderMap, HeaderValue, ORIGIN};
use hyper::{Method, Request, Response, StatusCode};

use super::answer::{Answer, AnswerBody};
use super::connections::Seat;
use super::origins::{self, refuse_other_sites};
use super::path::Path;
use super::problem::{self, Problem};
use super::{
    Door, admin, call, console, events, happened, hosts, kinds, live, metrics, pages, state, status, tail, topic,
};
use crate::node::config::ConsoleMode;

/// Answers one request.
pub(super) async fn answer(door: &Arc<Door>, seat: &Arc<Seat>, request: Request<Incoming>) -> Answer {
    // The body gets a time of its own, and its problem document a little more to leave in.
    seat.waits(Instant::now() + door.patience() + GRACE);
    let _counted = door.node.count_request();
    let reader = door.origins.reader(&request);
    let mut answer = match route(door, seat, request).await {
        Ok(answer) => answer,
        Err(problem) => problem.answer(),
    };
    if let Some(origin) = reader {
        origins::show(&mut answer, origin);
    }
    let upgraded = answer.status() == StatusCode::SWITCHING_PROTOCOLS;
    if door.node.is_closing() && !upgraded {
        answer.headers_mut().insert(CONNECTION, HeaderValue::from_static("close"));
    }
    if answer.body().is_whole() && !upgraded {
        seat.waits(Instant::now() + door.patience());
    }
    door.count_answer(answer.status().as_u16());
    answer
}

async fn route(door: &Arc<Door>, seat: &Arc<Seat>, mut request: Request<Incoming>) -> Result<Answer, Problem> {
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
        Path::Root => json(StatusCode::OK, &status::hosted(door)),
        Path::Health => text(StatusCode::OK, "text/plain; charset=utf-8", "the process lives\n".to_owned()),
        Path::Ready => match status::not_ready(&door.node) {
            None => text(StatusCode::OK, "text/plain; charset=utf-8", "ready\n".to_owned()),
            Some(why) => return Err(Problem::not_ready(&why)),
        },
        Path::Metrics => text(StatusCode::OK, "text/plain; version=0.0.4; charset=utf-8", metrics::write(door)),
        Path::OpenApi => json(StatusCode::OK, &kinds::openapi(door)),
        Path::Console(_) if door.guard.console() == ConsoleMode::Off => return Err(Problem::console_off()),
        Path::Console(path) => console::page(&path)?,
        Path::Whoami => json(StatusCode::OK, &whoami(door, &request)),
        Path::Problem(name) => match problem::explain(&name) {
            Some(explanation) => text(StatusCode::OK, "text/plain; charset=utf-8", format!("{explanation}\n")),
            None => return Err(Problem::no_such_path(request.uri().path())),
        },
        path => {
            let values = door.guard.rights(&request).values;
            match pages::said(door, &path, request.uri().query(), values).await? {
                Some(said) => json(StatusCode::OK, &said),
                None => return Err(Problem::no_such_path(request.uri().path())),
            }
        }
    };
    Ok(answer)
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
    // Writing a `Value` to memory cannot fail.
    let mut body = serde_json::to_string_pretty(value).unwrap_or_default();
    body.push('\n');
    text(status, "application/json", body)
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

/// The header in which a page says what it changes something for.
pub(super) const CHANGE: &str = "greenroom-change";
/// Time for the answer to a slow client to leave.
const GRACE: Duration = Duration::from_secs(2);
