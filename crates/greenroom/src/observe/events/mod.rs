//! What has happened at a node: its last events, for who asks what changed just before.

mod happened;

use std::borrow::Cow;
use std::collections::VecDeque;
use std::sync::{Mutex, PoisonError};

use greenroom_protocols::reminders::Wall;
use serde::{Deserialize, Serialize};

pub(crate) use self::happened::Happened;
use self::happened::{Said, cut};
use super::level::Level;
use super::subject::Subject;
use crate::here::Here;

/// Something that has happened at a node, as the node saw it.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
#[non_exhaustive]
pub struct Event {
    /// The events of a node are numbered from 1, since it started.
    pub number: u64,
    /// When, in Unix milliseconds.
    pub at: u64,
    /// How much it matters.
    pub level: Level,
    /// What it is, in one word, as `joined` or `long-turn`.
    pub event: Cow<'static, str>,
    /// What it is about.
    pub subject: Subject,
    /// The same in words; at most 256 bytes.
    pub text: String,
    /// The name of the person who has done it, if it was one: the principal of the request, or `anybody on this machine`.
    pub by: Option<String>,
    /// Whence an actor has gone where, if it has.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub moved: Option<Moved>,
}

/// How an actor has moved.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
#[non_exhaustive]
pub struct Moved {
    /// The name of the node that it left.
    pub from: String,
    /// The name of the node that it went to.
    pub to: String,
    /// From which shard to which, if it stayed on its node.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub shards: Option<[u16; 2]>,
    /// Why, in words.
    pub why: String,
}

impl Event {
    /// The same without what a program's error says.
    pub(crate) fn keep_error_to_itself(&mut self) {
        // Such a text ends with the error, after the first colon.
        if ERRORS.contains(&&*self.event)
            && let Some((before, _)) = self.text.split_once(": ")
        {
            self.text.truncate(before.len());
        }
    }
}

/// Which events are asked for.
#[derive(Clone, PartialEq, Debug, Default, Serialize, Deserialize)]
#[serde(default)]
pub(crate) struct Wanted {
    /// From this Unix millisecond on.
    pub(crate) since: Option<u64>,
    /// Before that one.
    pub(crate) until: Option<u64>,
    /// Those that matter so much, or more.
    pub(crate) level: Option<Level>,
    /// Those about what has this name.
    pub(crate) subject: Option<String>,
}

/// The last events of a node. What is only good to know has room of its own, so that a thousand moves of actors do not push
/// out that a node has died.
#[derive(Default)]
pub(crate) struct Events(Mutex<Kept>);

#[derive(Default)]
struct Kept {
    last: u64,
    hints: VecDeque<Event>,
    others: VecDeque<Event>,
}

impl Events {
    fn note(&self, at: Wall, happened: Happened, by: Option<String>) {
        let moved = happened.moved();
        let Said { event, level, mut subject, mut text } = happened.said();
        cut(&mut text);
        subject.actor.iter_mut().for_each(cut);
        let mut by = by;
        by.iter_mut().for_each(cut);
        let mut kept = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        kept.last += 1;
        let event = Event { number: kept.last, at: at.0, level, event, subject, text, by, moved };
        let (ring, len_max) = match level {
            Level::Hint => (&mut kept.hints, HINTS_LEN_MAX),
            _ => (&mut kept.others, OTHERS_LEN_MAX),
        };
        if ring.len() >= len_max {
            ring.pop_front();
        }
        ring.push_back(event);
    }

    /// Those that are wanted, the last ones first, at most so many; and how many more there are.
    pub(crate) fn last(&self, wanted: &Wanted, len_max: usize) -> (Vec<Event>, usize) {
        let kept = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let all = kept.hints.iter().chain(&kept.others);
        let mut found: Vec<&Event> = all.filter(|event| wanted.takes(event)).collect();
        found.sort_by_key(|event| std::cmp::Reverse(event.number));
        let left_out = found.len().saturating_sub(len_max);
        (found.into_iter().take(len_max).cloned().collect(), left_out)
    }

    /// Shows each move that is kept, the last one first: when, and of which actor.
    pub(crate) fn each_move(&self, mut show: impl FnMut(u64, &str, &Moved)) {
        let kept = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        for event in kept.hints.iter().rev() {
            if let (Some(actor), Some(moved)) = (&event.subject.actor, &event.moved) {
                show(event.at, actor, moved);
            }
        }
    }
}

/// What a node says of its events.
#[derive(Clone, PartialEq, Debug, Default, Serialize, Deserialize)]
#[serde(default)]
pub(crate) struct EventsWord {
    /// The last ones first.
    pub(crate) events: Vec<Event>,
    /// How many more there are of those wanted.
    pub(crate) left_out: u64,
}

impl EventsWord {
    /// What `node` says, with at most so many.
    pub(crate) fn of(node: &Here, wanted: &Wanted, limit: u32) -> Self {
        let (events, left_out) = node.events().last(wanted, (limit as usize).min(TOLD_LEN_MAX));
        Self { events, left_out: left_out as u64 }
    }

    /// What several nodes say, each event with its node: the last ones first, at most so many; and how many more there are.
    pub(crate) fn together<'a>(
        said: impl IntoIterator<Item = (&'a str, &'a Self)>,
        limit: usize,
    ) -> (Vec<(&'a str, &'a Event)>, u64) {
        let (mut all, mut left_out) = (Vec::new(), 0_u64);
        for (node, word) in said {
            all.extend(word.events.iter().map(|event| (node, event)));
            left_out = left_out.saturating_add(word.left_out);
        }
        all.sort_by_key(|(node, event)| (std::cmp::Reverse((event.at, event.number)), *node));
        left_out = left_out.saturating_add(all.len().saturating_sub(limit) as u64);
        all.truncate(limit);
        (all, left_out)
    }
}

impl Wanted {
    fn takes(&self, event: &Event) -> bool {
        self.since.is_none_or(|since| event.at >= since)
            && self.until.is_none_or(|until| event.at < until)
            && self.level.is_none_or(|level| event.level >= level)
            && self.subject.as_ref().is_none_or(|name| event.subject.names(name))
    }
}

impl Here {
    /// Remembers that this has happened.
    pub(crate) fn happened(&self, happened: Happened) {
        self.events().note(self.wall(), happened, None);
    }

    /// The same of what somebody has done.
    pub(crate) fn happened_by(&self, who: String, happened: Happened) {
        self.events().note(self.wall(), happened, Some(who));
    }
}

/// Events that end with what a program's error says.
const ERRORS: [&str; 3] = ["restarted", "failed", "parked"];
/// Events that are kept, of those that are only good to know, and of the others.
const HINTS_LEN_MAX: usize = 3072;
const OTHERS_LEN_MAX: usize = 1024;
/// Events that are told at once: they fit into one answer between nodes.
pub(crate) const TOLD_LEN_MAX: usize = 1000;

#[cfg(test)]
mod tests {
    use super::*;

    fn moved(key: usize) -> Happened {
        let [from, to, why] = ["a", "b", "it talks with actors there"].map(str::to_owned);
        Happened::Moved { actor: format!("room/{key}"), moved: Moved { from, to, shards: None, why } }
    }

    fn died(node: &str) -> Happened {
        Happened::Died { node: node.to_owned(), why: "its lease ran out".to_owned() }
    }

    fn all() -> Wanted {
        Wanted::default()
    }

    #[test]
    fn a_flood_of_moves_does_not_push_out_that_a_node_has_died() {
        let events = Events::default();
        events.note(Wall(1), died("b"), None);
        (0..10_000).for_each(|key| events.note(Wall(2), moved(key), None));
        let (last, left_out) = events.last(&all(), 1);
        assert_eq!(
            (&*last[0].text, left_out),
            ("room/9999 has moved from a to b: it talks with actors there", HINTS_LEN_MAX)
        );
        let (grave, _) = events.last(&Wanted { level: Some(Level::Warn), ..all() }, 10);
        assert_eq!(grave.iter().map(|event| &*event.text).collect::<Vec<_>>(), ["b is dead: its lease ran out"]);
        (0..10_000).for_each(|_| events.note(Wall(3), died("c"), None));
        assert_eq!(events.last(&all(), usize::MAX).0.len(), HINTS_LEN_MAX + OTHERS_LEN_MAX);
    }

    #[test]
    fn events_are_found_by_time_level_and_what_they_are_about() {
        let events = Events::default();
        for (at, happened) in
            [(1, died("b")), (2, moved(7)), (3, Happened::Joined { node: "b".to_owned() }), (4, died("c"))]
        {
            events.note(Wall(at), happened, None);
        }
        let numbers = |wanted: Wanted| events.last(&wanted, 10).0.iter().map(|event| event.number).collect::<Vec<_>>();
        assert_eq!(numbers(all()), [4, 3, 2, 1], "the last first");
        assert_eq!(numbers(Wanted { since: Some(2), until: Some(4), ..all() }), [3, 2]);
        assert_eq!(numbers(Wanted { level: Some(Level::Bad), ..all() }), [4, 1]);
        for (name, found) in [("b", vec![3, 1]), ("room/7", vec![2]), ("room", vec![2]), ("7", vec![])] {
            assert_eq!(numbers(Wanted { subject: Some(name.to_owned()), ..all() }), found, "{name}");
        }
    }

    #[test]
    fn events_of_several_nodes_stand_in_one_order_and_what_is_cut_off_is_counted() {
        let word = |times: &[u64]| {
            let events = Events::default();
            times.iter().for_each(|at| events.note(Wall(*at), died("c"), None));
            EventsWord { events: events.last(&all(), 10).0, left_out: 2 }
        };
        let (a, b) = (word(&[1, 3, 5]), word(&[2, 4]));
        let (told, left_out) = EventsWord::together([("a", &a), ("b", &b)], 4);
        let told: Vec<_> = told.iter().map(|(node, event)| (*node, event.at)).collect();
        assert_eq!((told, left_out), (vec![("a", 5), ("b", 4), ("a", 3), ("b", 2)], 5));
    }

    #[test]
    fn what_others_say_is_cut() {
        let events = Events::default();
        let why = "é".repeat(4_000);
        let by = Some(why.clone());
        events.note(Wall(1), Happened::Failed { actor: format!("room/{why}"), why }, by);
        let (last, _) = events.last(&all(), 1);
        let Event { text, subject, by, .. } = &last[0];
        for said in [Some(text), subject.actor.as_ref(), by.as_ref()] {
            let said = said.expect("it was said");
            assert!(said.len() <= happened::TEXT_LEN_MAX && said.ends_with('…'), "{} bytes", said.len());
        }
    }
}
