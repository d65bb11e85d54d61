//! Pages that are told again each second, as events on one connection.
//!
//! A page is made when the client has taken the last one. Who takes little is told less often, never what is old, and costs no memory.

use std::sync::Arc;
use std::time::Duration;

use futures_util::stream;
use greenroom_security::principal::Principal;
use hyper::Request;
use serde_json::json;
use tokio::time::Instant;

use super::answer::Answer;
use super::body::RequestBody;
use super::connections::Seat;
use super::events::{self, Event};
use super::guard::Visitor;
use super::pass::Pass;
use super::path::{Path, decode};
use super::problem::Problem;
use super::{Door, inspections, pages};

/// Answers with the pages that are asked for as `?views=overview,methods%3Fkind%3Droom`.
///
/// # Errors
/// They cannot be told, or the client takes no events.
pub(super) fn answer(door: &Arc<Door>, seat: &Arc<Seat>, request: &Request<RequestBody>) -> Result<Answer, Problem> {
    if !events::wanted(request.headers()) {
        return Err(Problem::only_events());
    }
    let views = views(request.uri().query())?;
    let values = door.guard.rights(request).values;
    let pass = Pass::to_pages(door, request.headers(), request.extensions().get::<Visitor>(), values);
    let principal = request.extensions().get::<Principal>().map_or("", Principal::name).to_owned();
    let telling =
        Telling { door: door.clone(), principal, views, values, next: 0, rounds: Rounds { due: Instant::now() } };
    let source = stream::unfold(telling, |mut telling| async move {
        let event = telling.event().await;
        Some((Ok(event), telling))
    });
    events::answer(door, seat.clone(), pass, String::new(), Box::pin(source))
}

/// A page that is told.
#[derive(PartialEq, Debug)]
struct View {
    /// As the client calls it.
    name: String,
    path: Path,
    query: Option<String>,
}

struct Telling {
    door: Arc<Door>,
    /// The principal that the views are told, and whose budget they use.
    principal: String,
    views: Vec<View>,
    values: bool,
    /// Which view is told next.
    next: usize,
    rounds: Rounds,
}

impl Telling {
    /// The next event, once it is time.
    async fn event(&mut self) -> Event {
        if self.next == 0 {
            tokio::time::sleep_until(self.rounds.due).await;
            let missed = self.rounds.begin(Instant::now());
            if missed > 0 {
                return event("gap".to_owned(), &json!({ "missed": missed }));
            }
        }
        let view = &self.views[self.next];
        self.next = (self.next + 1) % self.views.len();
        let (door, path, query, values) = (self.door.clone(), view.path.clone(), view.query.clone(), self.values);
        let look = async move { pages::said(&door, &path, query.as_deref(), values).await };
        match inspections::inspect(&self.door, &self.principal, look).await.flatten() {
            Ok(said) => event(view.name.clone(), &said.unwrap_or_default()),
            Err(problem) => event("problem".to_owned(), &json!({ "view": view.name, "problem": problem.document() })),
        }
    }
}

fn event(name: String, data: &serde_json::Value) -> Event {
    Event { id: None, name: Some(name.into()), data: data.to_string().into() }
}

/// When the views are told.
struct Rounds {
    due: Instant,
}

impl Rounds {
    /// Whether a round may begin, which is due: if the client was told nothing for longer, how many it has missed, and it may at the next call.
    fn begin(&mut self, now: Instant) -> u64 {
        let late = now.saturating_duration_since(self.due);
        let missed = (late.as_millis() / EVERY.as_millis()) as u64;
        self.due = if missed > 0 { now } else { self.due + EVERY };
        missed
    }
}

fn views(query: Option<&str>) -> Result<Vec<View>, Problem> {
    let listed = query.and_then(|query| query.strip_prefix("views=")).ok_or_else(|| Problem::bad_request(UNCLEAR))?;
    let views = listed.split(',').map(view).collect::<Result<Vec<_>, _>>()?;
    if views.len() > VIEWS_MAX { Err(Problem::bad_request(UNCLEAR)) } else { Ok(views) }
}

fn view(name: &str) -> Result<View, Problem> {
    // Commas stand between views, and what is percent-encoded in a view's own path stands there twice.
    let name = decode(name).map_err(|why| Problem::bad_request(&why))?;
    let (path, query) = match name.split_once('?') {
        Some((path, query)) => (path, Some(query.to_owned())),
        None => (&*name, None),
    };
    let path = Path::read(&format!("/-/{path}")).map_err(|why| Problem::bad_request(&why))?;
    if !pages::is_one(&path) || name.contains(char::is_control) {
        return Err(Problem::bad_request(UNCLEAR));
    }
    Ok(View { name, path, query })
}

/// How often the views are told.
const EVERY: Duration = Duration::from_secs(1);
/// Views of one client.
const VIEWS_MAX: usize = 8;
const UNCLEAR: &str = "write which pages are wanted as `?views=overview,inspect/room/lobby`, at most 8 of those that can be had by GET below `/-/`: \
    overview, stage, findings, events, actors, topics, methods, turns, kinds, waits, status, pids, optimiser and inspect, with what they take behind a `?` as `%3F`";

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_client_that_takes_little_is_told_how_much_it_has_missed_and_then_what_is_so_now() {
        let begun = Instant::now();
        let at = |millis: u64| begun + Duration::from_millis(millis);
        let mut rounds = Rounds { due: begun };
        assert_eq!((rounds.begin(at(0)), rounds.due), (0, at(1_000)));
        assert_eq!((rounds.begin(at(1_900)), rounds.due), (0, at(2_000)), "late, and the next when it was due");
        assert_eq!((rounds.begin(at(7_500)), rounds.due), (5, at(7_500)), "five are missed");
        assert_eq!((rounds.begin(at(7_600)), rounds.due), (0, at(8_500)));
    }

    #[test]
    fn views_are_pages_and_nothing_that_is_called_or_changed() {
        let named =
            |query: &str| views(Some(query)).map(|views| views.into_iter().map(|view| view.name).collect::<Vec<_>>());
        let all = named("views=overview%3Fseconds%3D60,inspect/room/a%252Fb,kinds").unwrap();
        assert_eq!(all, ["overview?seconds=60", "inspect/room/a%2Fb", "kinds"]);
        let [View { path, query, .. }] = &views(Some("views=events%3Flevel%3Dbad")).unwrap()[..] else { panic!() };
        assert_eq!((path, query.as_deref()), (&Path::Events, Some("level=bad")));
        for wrong in
            ["", "views=", "views=drain/a", "views=live", "views=metrics", "views=overview%0Aevent", "view=overview"]
        {
            assert!(named(wrong).is_err(), "{wrong}");
        }
        assert!(named(&format!("views={}", ["kinds"; 9].join(","))).is_err());
    }
}
