//! What the pages about a cluster say, as JSON: to who asks once, and to who is told again and again.

use std::time::Duration;

use serde_json::Value;

use super::path::Path;
use super::problem::Problem;
use super::state::Of;
use super::{
    Door, actors, asked, findings, happened, inspect, kinds, methods, overview, stage, state, status, support, topics,
    turns,
};
use crate::blocking;
use crate::locality;
use crate::observe;
use crate::observe::look::Whom;

/// Whether there is a page at `path`.
pub(super) fn is_one(path: &Path) -> bool {
    use Path::{
        Actors, Events, Explain, Findings, Inspect, Kind, Kinds, Methods, Moves, Optimiser, Overview, Pids, Stage,
        Status, Topics, Turns, Waits,
    };
    let plain = matches!(
        path,
        Actors
            | Topics
            | Kinds
            | Status
            | Overview
            | Stage
            | Methods
            | Turns
            | Events
            | Findings
            | Waits
            | Pids
            | Optimiser
            | Moves
    );
    plain || matches!(path, Kind(_) | Explain { .. } | Inspect { .. })
}

/// What the page at `path` says, with values and errors' texts if `values`; nothing if it is no page.
///
/// # Errors
/// Something else is asked for than the page can tell.
pub(super) async fn said(
    door: &Door,
    path: &Path,
    query: Option<&str>,
    values: bool,
) -> Result<Option<Value>, Problem> {
    if let (Path::Explain { kind, .. } | Path::Inspect { kind, .. } | Path::StateOf(Of { kind, .. }), false) =
        (path, values)
    {
        door.guard.hidden().check(Some(kind))?;
    }
    if *path == Path::Support {
        return Ok(Some(support::document(door).await));
    }
    let told = tell(door, path, query, values).await?;
    Ok(told.map(|told| door.guard.shown(told, values)))
}

/// The same, with the keys of all kinds.
pub(super) async fn tell(
    door: &Door,
    path: &Path,
    query: Option<&str>,
    values: bool,
) -> Result<Option<Value>, Problem> {
    Ok(Some(match path {
        Path::Kinds => kinds::list(door),
        Path::Kind(kind) => kinds::one(door, kind)?,
        Path::Status => status::status(door),
        Path::Overview => {
            let (seconds, whom) = overview::wanted(query)?;
            observe::overview::overview(&door.node, seconds, &whom).await
        }
        Path::Stage => {
            let (top, whom) = stage::wanted(query)?;
            stage::list(door, top, &whom).await
        }
        Path::Methods => {
            let (kind, whom) = kind_of(query)?;
            methods::list(door, kind, &whom).await
        }
        Path::Turns => {
            let (wanted, whom) = turns::wanted(query)?;
            turns::list(door, wanted, &whom, values).await
        }
        Path::Actors => {
            let (wish, whom) = actors::wanted(query)?;
            if !values && actors::chooses_by_key(&wish) {
                door.guard.hidden().check(wish.kind.as_deref())?;
            }
            actors::list(door, wish, &whom).await
        }
        Path::Events => {
            let wanted = happened::wanted(query)?;
            let kind = wanted.0.subject.as_deref().and_then(|subject| subject.split_once('/'));
            if let (Some((kind, _)), false) = (kind, values) {
                door.guard.hidden().check(Some(kind))?;
            }
            happened::list(door, wanted, values).await
        }
        Path::Findings => {
            let whom = findings::wanted(query)?;
            findings::list(door, &whom).await
        }
        Path::Topics => {
            let (wanted, whom) = topics::wanted(query)?;
            topics::list(door, wanted, &whom).await
        }
        Path::State => {
            let listed = state::wanted(query)?;
            let kind = listed.after.as_ref().unwrap_or(&listed.prefix).split_once('/');
            if let (Some((kind, _)), false) = (kind, values) {
                door.guard.hidden().check(Some(kind))?;
            }
            state::list(door, &listed).await?
        }
        Path::StateOf(of) => state::show(door, of, values).await?,
        Path::Waits => {
            let over = over(query)?;
            let waits = crate::node::waits::waits(&door.node, over).await;
            serde_json::to_value(waits).unwrap_or_default()
        }
        Path::Pids => status::pids(door).await,
        Path::Optimiser => {
            let top = top(query)?;
            let advice = locality::advice(&door.node, top).await;
            let mut said = serde_json::to_value(advice).unwrap_or_default();
            said["pool"] = serde_json::to_value(blocking::status(&door.node)).unwrap_or_default();
            said
        }
        Path::Moves => serde_json::to_value(locality::moved(&door.node)).unwrap_or_default(),
        Path::Explain { kind, key } => inspect::explain(door, kind, key).await?,
        Path::Inspect { kind, key } => inspect::inspect(door, kind, key).await?,
        _ => return Ok(None),
    }))
}

/// What a request for `/-/waits` says of how long a turn must have run: `?over=500ms`.
fn over(query: Option<&str>) -> Result<Duration, Problem> {
    let Some(query) = query else { return Ok(OVER_DEFAULT) };
    let read = query.strip_prefix("over=").and_then(crate::duration::parse);
    read.ok_or_else(|| Problem::bad_request("write how long a turn must have run as `?over=500ms`, `?over=2s` or so"))
}

/// What a request for `/-/methods` says of whose it wants: `?kind=chat_room`.
fn kind_of(query: Option<&str>) -> Result<(Option<String>, Whom), Problem> {
    let mut kind = None;
    let unclear = "write which kind is wanted as `?kind=chat_room`, with `&nodes=a,b` if not of all nodes";
    let whom = asked::read(query, unclear, |name, value| (name == "kind").then(|| kind = Some(value)))?;
    Ok((kind, whom))
}

/// What a request for `/-/optimiser` says of how many wishes and edges it wants of each shard: `?top=50`.
fn top(query: Option<&str>) -> Result<usize, Problem> {
    let Some(query) = query else { return Ok(TOP_DEFAULT) };
    let read = query.strip_prefix("top=").and_then(|top| top.parse().ok()).filter(|top| *top <= TOP_MAX);
    read.ok_or_else(|| Problem::bad_request(&format!("write how many are wanted as `?top=50`, at most {TOP_MAX}")))
}

/// How long a turn must have run to be told of.
const OVER_DEFAULT: Duration = Duration::from_secs(1);
/// Wishes and edges that are shown of each shard.
const TOP_DEFAULT: usize = 50;
const TOP_MAX: usize = 1000;
