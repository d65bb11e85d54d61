//! Messages that wait for their turns, as operators see and drop them.

use std::collections::BTreeSet;

use greenroom_protocols::delivery::{Deferred, PartitionId, WaitingMessage, WaitingPlace};
use serde_json::{Value, json};
use tokio::sync::oneshot;

use super::admin::{method, slot_name};
use super::errands::{Desk, Done, Errand, subject};
use super::name::{Body, Happening, Letter, Machine, Named};

/// Wish of an operator about waiting messages, until the actors' own queues are read.
pub(super) struct WaitingWish {
    pub(super) kind: WaitingWishKind,
    pub(super) done: oneshot::Sender<Result<String, String>>,
}

/// What an operator wants of waiting messages.
pub(super) enum WaitingWishKind {
    /// List those of this actor, or of all.
    List(Option<Named>),
    /// Drop the one at the place of this name.
    Drop(String),
}

/// The name of a place, for people.
pub(super) fn place_name(place: &WaitingPlace) -> String {
    match place {
        WaitingPlace::Counted { from, number, .. } => format!("{COUNTED}{}-{number}", from.0),
        WaitingPlace::Loose { from, number, .. } => format!("{LOOSE}{}-{number}", from.0),
        WaitingPlace::Queue(slot) => format!("{QUEUE}{}", slot_name(*slot)),
        WaitingPlace::Call(key) => format!("{CALL}{key}"),
    }
}

/// True if a name is that of a place, and not of the slot of a parked message.
pub(super) fn is_place_name(name: &str) -> bool {
    [COUNTED, LOOSE, QUEUE, CALL].iter().any(|prefix| name.starts_with(prefix))
}

/// Reads the actors' own queues for a wish.
pub(super) fn read(desk: Desk, wish: WaitingWish) -> Errand {
    Box::pin(async move {
        let deferred = desk.ledger.deferred().await.map_err(|error| error.to_string());
        Done::Waiting { wish, deferred }
    })
}

/// Grants a wish. The event is for the machine.
///
/// # Errors
/// Why it cannot be granted, with the remedy.
pub(super) fn grant(
    machine: &Machine,
    partition: PartitionId,
    wish: &WaitingWishKind,
    deferred: Vec<Deferred<Named, Body>>,
) -> Result<(String, Option<Happening>), String> {
    match wish {
        WaitingWishKind::List(actor) => Ok((list(machine, partition, actor.as_ref(), deferred), None)),
        WaitingWishKind::Drop(name) => {
            let is_it = |place: &WaitingPlace| place_name(place) == *name;
            let mut waiting = machine.waiting(None).into_iter();
            let found =
                waiting.find_map(|waiting| waiting.place.filter(is_it).map(|place| (place, waiting.envelope, None)));
            let stored = || {
                let mut deferred = deferred.into_iter();
                let found = deferred.find(|deferred| is_it(&WaitingPlace::Queue(deferred.slot)))?;
                Some((WaitingPlace::Queue(found.slot), found.envelope.clone(), Some(found.envelope)))
            };
            let (place, letter, stored) = found.or_else(stored).ok_or_else(|| {
                format!("no message waits at {name:?}; `greenroom reliable waiting` lists those that do")
            })?;
            Ok((subject(&letter), Some(Happening::DropWaiting { actor: letter.to.clone(), place, stored })))
        }
    }
}

/// The messages that wait here, and those that have left from here for other partitions, as JSON.
fn list(
    machine: &Machine,
    partition: PartitionId,
    actor: Option<&Named>,
    deferred: Vec<Deferred<Named, Body>>,
) -> String {
    let waiting = machine.waiting(actor);
    let known: BTreeSet<&WaitingPlace> = waiting.iter().filter_map(|waiting| waiting.place.as_ref()).collect();
    let is_wanted = |letter: &Letter| actor.is_none_or(|actor| letter.to == *actor);
    let mut shown: Vec<Value> = waiting.iter().map(|waiting| here(partition, waiting)).collect();
    for Deferred { slot, envelope } in deferred {
        let place = WaitingPlace::Queue(slot);
        if is_wanted(&envelope) && !known.contains(&place) {
            shown.push(one(partition, Some(&place), &envelope, ("deferred", 0, 0)));
        }
    }
    for (to, place, envelope) in machine.sender().unacknowledged() {
        if is_wanted(envelope) {
            shown.push(one(to, Some(&place), envelope, ("sent", 0, 0)));
        }
    }
    let count = shown.len();
    shown.truncate(SHOWN_MAX);
    json!({ "count": count, "waiting": shown }).to_string()
}

fn here(partition: PartitionId, waiting: &WaitingMessage<Named, Body>) -> Value {
    let state = match (waiting.is_running, &waiting.place) {
        (true, _) => "running",
        (false, Some(WaitingPlace::Queue(_))) => "deferred",
        (false, _) => "waiting",
    };
    one(partition, waiting.place.as_ref(), &waiting.envelope, (state, waiting.attempts, waiting.deaths))
}

fn one(
    partition: PartitionId,
    place: Option<&WaitingPlace>,
    letter: &Letter,
    (state, attempts, deaths): (&str, u32, u32),
) -> Value {
    json!({
        "partition": partition.0,
        "place": place.map(place_name),
        "actor": letter.to.to_string(),
        "from": letter.from.as_ref().map(ToString::to_string),
        "method": method(letter),
        "state": state,
        "attempts": attempts,
        "deaths": deaths,
    })
}

const COUNTED: &str = "counted-";
const LOOSE: &str = "loose-";
const QUEUE: &str = "queue-";
const CALL: &str = "call-";
/// Most messages that one partition shows.
const SHOWN_MAX: usize = 1000;
