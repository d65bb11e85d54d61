//! Turns as they end, as events on one connection.
//!
//! The nodes are asked when the client has taken what there was: who takes little is told how many were not shown, and costs no memory.

use std::collections::VecDeque;
use std::sync::Arc;
use std::time::Duration;

use futures_util::stream;
use hyper::Request;
use serde_json::{Value, json};
use tokio::time::Instant;

use super::answer::Answer;
use super::body::RequestBody;
use super::connections::Seat;
use super::events::{self, Event};
use super::guard::Visitor;
use super::pass::Pass;
use super::problem::Problem;
use super::{Door, asked};
use crate::here::tail::{Meant, Outcome};
use crate::observe::following::{Following, Round};
use crate::observe::look::Whom;

/// Answers with the turns that are asked for as `?kind=room&outcome=failed`, as they end; with what errors say if the client may see it.
///
/// # Errors
/// Something else is asked for, or the client takes no events.
pub(super) fn answer(door: &Arc<Door>, seat: &Arc<Seat>, request: &Request<RequestBody>) -> Result<Answer, Problem> {
    if !events::wanted(request.headers()) {
        return Err(Problem::only_events());
    }
    let (meant, whom) = wanted(request.uri().query())?;
    let values = door.guard.rights(request).values;
    if !values && meant.key.is_some() {
        door.guard.hidden().check(meant.kind.as_deref())?;
    }
    let pass = Pass::to_pages(door, request.headers(), request.extensions().get::<Visitor>(), values);
    let following = Following::new(door.node.world().random(), meant, whom);
    let (due, told, said) = (Instant::now(), Told::default(), VecDeque::new());
    let telling = Telling { door: door.clone(), following, values, due, told, said };
    let source = stream::unfold(telling, |mut telling| async move {
        let event = telling.event().await;
        Some((Ok(event), telling))
    });
    events::answer(door, seat.clone(), pass, String::new(), Box::pin(source))
}

struct Telling {
    door: Arc<Door>,
    following: Following,
    values: bool,
    /// When the nodes are asked next.
    due: Instant,
    told: Told,
    /// What the client has not taken yet.
    said: VecDeque<Event>,
}

/// Whom the client knows to be followed, and who is silent.
#[derive(PartialEq, Default)]
struct Told {
    nodes: Vec<String>,
    silent: Vec<(String, String)>,
}

impl Telling {
    /// The next event, once there is one.
    async fn event(&mut self) -> Event {
        loop {
            if let Some(event) = self.said.pop_front() {
                return event;
            }
            tokio::time::sleep_until(self.due).await;
            self.due = Instant::now() + EVERY;
            let round = self.following.round(&self.door.node, ROUND_MAX).await;
            self.take(round);
        }
    }

    fn take(&mut self, Round { turns, missed, nodes, silent }: Round) {
        let now = Told { nodes, silent };
        if now != self.told {
            let silent: Value = now.silent.iter().map(|(node, why)| json!({ "node": node, "why": why })).collect();
            self.said.push_back(event("following", &json!({ "nodes": now.nodes, "silent": silent })));
            self.told = now;
        }
        for (node, mut turn) in turns {
            if !self.values {
                turn.keep_error_to_itself();
            }
            self.said.push_back(event("turn", &self.door.guard.shown(turn.told(&node), self.values)));
        }
        if missed > 0 {
            self.said.push_back(event("missed", &json!({ "count": missed })));
        }
    }
}

fn event(name: &'static str, data: &Value) -> Event {
    Event { id: None, name: Some(name.into()), data: data.to_string().into() }
}

/// Reads `?kind=room&key=lobby&method=post&outcome=failed&over=10ms`, of which each may be left out.
fn wanted(query: Option<&str>) -> Result<(Meant, Whom), Problem> {
    let mut meant = Meant::default();
    let whom = asked::read(query, UNCLEAR, |name, value| {
        match name {
            "kind" => meant.kind = Some(value),
            "key" => meant.key = Some(value),
            "method" => meant.method = Some(value),
            "outcome" => meant.outcome = Some(Outcome::ALL.into_iter().find(|outcome| outcome.name() == value)?),
            "over" => meant.over_micros = u64::try_from(crate::duration::parse(&value)?.as_micros()).ok()?,
            _ => return None,
        }
        Some(())
    })?;
    Ok((meant, whom))
}

/// How often the nodes are asked.
const EVERY: Duration = Duration::from_millis(500);
/// Turns that are told each time: two hundred a second.
const ROUND_MAX: usize = 100;
const UNCLEAR: &str = "write which turns are wanted as `?kind=chat_room&key=lobby&method=post&outcome=failed&over=10ms`, each of which may be left out; \
    an outcome is ok, failed, error, broken, refused or late; with `&nodes=a,b` if not those of all nodes";

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_not_understood_is_refused_and_not_passed_over() {
        let (meant, whom) = wanted(Some("kind=room&key=a%26b&outcome=late&over=10ms")).expect("clear");
        assert_eq!(
            (meant.key.as_deref(), meant.outcome, meant.over_micros),
            (Some("a&b"), Some(Outcome::Late), 10_000)
        );
        assert_eq!(whom, Whom::All);
        for wrong in ["outcome=bad", "over=long", "kin=room", "kind"] {
            assert!(wanted(Some(wrong)).is_err(), "{wrong}");
        }
    }
}
