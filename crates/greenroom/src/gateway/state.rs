//! What actors have stored: listed, shown, and changed by people.

use std::sync::Arc;
use std::time::Duration;

use greenroom_store::{Applied, Store, StoreError, Version, Versioned};
use greenroom_wire::limit::NAME_LEN_MAX;
use hyper::header::{HeaderMap, IF_MATCH, IF_NONE_MATCH};
use hyper::{Method, Request, StatusCode};
use serde_json::{Value, json};

use super::answer::Answer;
use super::body::RequestBody;
use super::problem::Problem;
use super::{Door, arguments, asked, body, happened, service};
use crate::actor::key::{Kind, check};
use crate::cluster::ending;
use crate::observe::subject::Subject;
use crate::observe::whereabouts::{Active, find};
use crate::state::shown;
use crate::versioned;

/// A state of one actor.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(super) struct Of {
    pub(super) kind: String,
    /// Its field, or `self` for an actor that is persistent as a whole.
    pub(super) field: String,
    pub(super) key: String,
}

/// What is asked of the list.
#[derive(Debug)]
pub(super) struct Listed {
    store: String,
    /// What the names begin with: a kind, `/`, a field, `/`, and a key.
    pub(super) prefix: String,
    pub(super) after: Option<String>,
    limit: usize,
}

/// Reads `?prefix=account/self/&store=&after=&limit=100`, of which each may be left out.
///
/// # Errors
/// Something else is asked for.
pub(super) fn wanted(query: Option<&str>) -> Result<Listed, Problem> {
    let mut listed = Listed { store: String::new(), prefix: String::new(), after: None, limit: LIMIT_DEFAULT };
    asked::read(query, UNCLEAR, |name, value| {
        match name {
            "store" => listed.store = value,
            "prefix" => listed.prefix = value,
            "after" => listed.after = Some(value),
            "limit" => listed.limit = value.parse().ok().filter(|limit| (1..=LIMIT_MAX).contains(limit))?,
            _ => return None,
        }
        Some(())
    })?;
    Ok(listed)
}

/// The states of a store whose names begin so, with their sizes and versions.
pub(super) async fn list(door: &Door, listed: &Listed) -> Result<Value, Problem> {
    let node = &door.node;
    let store = node.stores().find(&listed.store).ok_or_else(|| no_store(door, &listed.store))?;
    let root = node.stores().root(&listed.store).await.map_err(|why| Problem::bad_request(&why))?;
    let prefix = format!("{root}{}", listed.prefix);
    let after = listed.after.as_ref().map(|after| format!("{root}{after}"));
    let page = store.scan(&prefix, after.as_deref(), listed.limit, node.config().store_timeout).await;
    let page = page.map_err(|error| failed(&error))?;
    let keys = page.items.into_iter().filter_map(|item| {
        let (kind, rest) = item.key.strip_prefix(&root)?.split_once('/')?;
        // Names without a namespace begin like those with one.
        let (field, key) = rest.split_once('/').filter(|_| !kind.starts_with('@'))?;
        let Versioned { value, version } = item.versioned;
        Some(json!({ "kind": kind, "field": field, "actor": format!("{kind}/{key}"), "bytes": value.len(), "version": version.as_str() }))
    });
    let next = page.next.as_deref().and_then(|next| next.strip_prefix(&root));
    let stores: Vec<&str> = node.stores().names().collect();
    Ok(
        json!({ "node": node.name(), "store": listed.store, "stores": stores, "keys": keys.collect::<Vec<_>>(), "next": next }),
    )
}

/// One state: who wrote it, and what it is if `values`.
pub(super) async fn show(door: &Door, of: &Of, values: bool) -> Result<Value, Problem> {
    let found = read(door, of).await?.ok_or_else(|| Problem::no_such_state(&of.name()))?;
    let record = &found.value;
    let (wrote, payload) = match shown::opened(record) {
        Ok((wrote, payload)) => (Some(wrote), Ok(payload)),
        Err(why) => (None, versioned::payload_of(record).ok_or(why)),
    };
    let value = payload.and_then(shown::as_json);
    let active = find(&door.node, &of.kind, &of.key).await;
    let mut told = json!({
        "actor": of.actor(), "kind": of.kind, "field": of.field, "version": found.version.as_str(), "bytes": record.len(),
        "writer": wrote.map(|wrote| json!({ "epoch": wrote.epoch, "number": format!("{:016x}", wrote.writer), "sequence": wrote.sequence })),
        "type_version": value.as_ref().ok().map(|(version, _)| version),
        "active_on": if let Active::On(node) = &active { json!(node) } else { Value::Null },
    });
    if values {
        told["raw"] = record.iter().map(|byte| format!("{byte:02x}")).collect::<String>().into();
        match value {
            Ok((_, value)) => told["value"] = value,
            Err(why) => told["unread"] = why.into(),
        }
    }
    Ok(told)
}

/// Writes or removes one, if it is still as the client has seen it and its actor is not active.
///
/// # Errors
/// Why it is as it was; or that nobody knows.
pub(super) async fn change(door: &Door, of: &Of, request: Request<RequestBody>) -> Result<Answer, Problem> {
    let expected = expected(request.headers())?;
    let ends = match request.uri().query() {
        None => false,
        Some("deactivate=true") => true,
        Some(_) => {
            return Err(Problem::bad_request("`?deactivate=true` ends the actor first; there is nothing else to say"));
        }
    };
    let (head, body) = request.into_parts();
    let removes = head.method == Method::DELETE;
    let (store, name) = place_of(door, of).await?;
    let payload = if removes { None } else { Some(written(door, of, body).await?) };
    settle(door, of, ends).await?;
    let timeout = door.node.config().store_timeout;
    let done = match (payload, expected) {
        (None, None) => {
            return Err(Problem::bad_request(
                "what is removed is removed as it was seen: say which version with `If-Match`",
            ));
        }
        (None, Some(expected)) => store.delete(&name, &expected, timeout).await.map(|()| None),
        (Some(payload), None) => store.create(&name, record(door, 0, &payload), timeout).await.map(Some),
        (Some(payload), Some(expected)) => {
            let found = read(door, of).await?.filter(|found| found.version == expected);
            let found = found.ok_or_else(|| Problem::changed_meanwhile(&name))?;
            // Of the epoch that is there: an activation that comes meanwhile goes on with what it finds.
            let epoch = shown::opened(&found.value).map_or(0, |(wrote, _)| wrote.epoch);
            store.replace(&name, record(door, epoch, &payload), &expected, timeout).await.map(Some)
        }
    };
    let version =
        done.map_err(|error| if error.is_conflict() { Problem::changed_meanwhile(&name) } else { failed(&error) })?;
    let what = if removes { "removed" } else { "written" };
    let told = format!("the state {} of {} is {what}", of.field, of.actor());
    happened::noted(door, (told, Subject::actor(of.actor())), &Request::from_parts(head, ()));
    Ok(service::json(StatusCode::OK, &json!({ "version": version.as_ref().map(Version::as_str) })))
}

/// Ends the actor, wherever it is active.
///
/// # Errors
/// Nobody can say where it is.
pub(super) async fn deactivate(door: &Door, kind: &str, key: &str) -> Result<Value, Problem> {
    check(key)?;
    if kind.len() > NAME_LEN_MAX || Kind::known(kind).is_none() {
        return Err(door.node.unknown_kind(&kind.chars().take(NAME_LEN_MAX).collect::<String>()).into());
    }
    door.node.kinds().check_external(kind)?;
    let on = match find(&door.node, kind, key).await {
        Active::On(name) => Some(name),
        Active::Nowhere => None,
        Active::Unknown(why) => {
            return Err(Problem::busy(&format!("nobody can say where {kind}/{key} is active: {why}")));
        }
    };
    if let Some(node) = on.as_deref().and_then(|name| door.node.view().view.by_name(name)) {
        ending::end(&door.node, node, kind, key);
    }
    Ok(json!({ "actor": format!("{kind}/{key}"), "was_on": on }))
}

/// Sees that the actor is not active, and ends it first if `ends`.
async fn settle(door: &Door, of: &Of, ends: bool) -> Result<(), Problem> {
    let until = tokio::time::Instant::now() + SETTLED_WITHIN;
    loop {
        match find(&door.node, &of.kind, &of.key).await {
            Active::Nowhere => return Ok(()),
            Active::On(node) if !ends => return Err(Problem::still_active(&of.actor(), &node)),
            Active::On(node) if tokio::time::Instant::now() >= until => {
                return Err(Problem::still_active(&of.actor(), &node));
            }
            Active::Unknown(why) if !ends || tokio::time::Instant::now() >= until => {
                return Err(Problem::busy(&format!("nobody can say whether {} is active: {why}", of.actor())));
            }
            Active::On(_) => drop(deactivate(door, &of.kind, &of.key).await?),
            Active::Unknown(_) => {}
        }
        tokio::time::sleep(SETTLED_LOOK).await;
    }
}

/// The payload of what the client has sent as JSON, as the kind's type writes it.
async fn written(door: &Door, of: &Of, body: RequestBody) -> Result<bytes::Bytes, Problem> {
    let node = &door.node;
    let kind = Kind::known(&of.kind).and_then(|kind| Some((kind, node.kinds().find(kind)?)));
    let Some((kind, entry)) = kind else {
        let why =
            format!("this node does not host {:?}, so it knows no type of its states; ask one that does", of.kind);
        return Err(Problem::bad_request(&why));
    };
    let json = body::read(door, &[], body).await?;
    let in_force = node.in_force(kind, &of.field);
    match entry.written(&of.field, arguments::without_mark(&json.bytes), in_force) {
        Some(written) => {
            written.map_err(|why| Problem::bad_request(&format!("this is no {} of {}: {why}", of.field, of.kind)))
        }
        None => {
            let plain = entry.states().into_iter().filter(|(_, versioned)| !versioned).map(|(name, _)| name);
            let plain: Vec<_> = plain.collect();
            let why = format!(
                "{} has no state {:?} that is written as a whole; there are: {}",
                of.kind,
                of.field,
                plain.join(", ")
            );
            Err(Problem::bad_request(&why))
        }
    }
}

fn record(door: &Door, epoch: u64, payload: &[u8]) -> bytes::Bytes {
    shown::sealed(epoch, door.node.world().random() | 1, payload)
}

async fn read(door: &Door, of: &Of) -> Result<Option<Versioned>, Problem> {
    let (store, name) = place_of(door, of).await?;
    store.read(&name, door.node.config().store_timeout).await.map_err(|error| failed(&error))
}

/// The store that a state is in, as far as this node knows, and its name there.
async fn place_of(door: &Door, of: &Of) -> Result<(Arc<dyn Store>, String), Problem> {
    let (node, kind) = (&door.node, &*of.kind);
    let known = (kind.len() <= NAME_LEN_MAX).then(|| Kind::known(kind)).flatten();
    let named = known.and_then(|kind| node.kinds().find(kind)).map_or("", |entry| entry.options().store);
    let store = node.stores().find(named).cloned().ok_or_else(|| no_store(door, named))?;
    let root = node.stores().root(named).await.map_err(|why| Problem::bad_request(&why))?;
    Ok((store, format!("{root}{}/{}/{}", of.kind, of.field, of.key)))
}

/// The version that the client has seen; `None` if it has seen that nothing is there.
fn expected(headers: &HeaderMap) -> Result<Option<Version>, Problem> {
    let said = |name| {
        headers
            .get(name)
            .and_then(|value: &hyper::header::HeaderValue| value.to_str().ok())
            .map(|value| value.trim_matches('"'))
    };
    match (said(IF_MATCH), said(IF_NONE_MATCH)) {
        (Some(version), None) if version != "*" => Ok(Some(Version::new(version))),
        (None, Some("*")) => Ok(None),
        _ => Err(Problem::bad_request(UNCONDITIONAL)),
    }
}

fn no_store(door: &Door, name: &str) -> Problem {
    let names: Vec<&str> = door.node.stores().names().collect();
    Problem::bad_request(&format!(
        "this node has no store called {name:?}; besides the one without a name there are: {}",
        names.join(", ")
    ))
}

fn failed(error: &StoreError) -> Problem {
    match error.applied() {
        Applied::Maybe => Problem::unknown_outcome(&format!("{error}; look again")),
        _ => Problem::busy(&format!("the store does not do it: {error}")),
    }
}

impl Of {
    fn actor(&self) -> String {
        format!("{}/{}", self.kind, self.key)
    }

    /// Its name for people, without its namespace.
    fn name(&self) -> String {
        format!("state/{}/{}/{}", self.kind, self.field, self.key)
    }
}

const LIMIT_DEFAULT: usize = 100;
const LIMIT_MAX: usize = 500;
/// Time for an actor to end that is told to.
const SETTLED_WITHIN: Duration = Duration::from_secs(5);
const SETTLED_LOOK: Duration = Duration::from_millis(20);
const UNCLEAR: &str = "write which states are wanted as `?prefix=KIND/FIELD/KEY`, with `&store=NAME`, `&limit=100` (at most 500) and `&after=` the last page's `next`";
const UNCONDITIONAL: &str = "a state is changed as it was seen: say which version with `If-Match: VERSION`, or `If-None-Match: *` for one that is not there";
