//! What has happened at a node: its last events, for who asks what changed just before.

mod gathered;
mod happened;

use std::borrow::Cow;
use std::collections::VecDeque;
use std::sync::{Mutex, MutexGuard, PoisonError};

use greenroom_protocols::reminders::Wall;
use serde::{Deserialize, Serialize};

use self::gathered::{Gathering, Minutes};
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
    /// Those that are called so.
    pub(crate) event: Option<String>,
}

/// The last events of a node. What is only good to know has room of its own, so that a thousand restarts do not push out that a node
/// has died. So have the moves of the optimiser, which are told once a minute as one event, and each for itself to who asks for moves.
#[derive(Default)]
pub(crate) struct Events(Mutex<Kept>);

#[derive(Default)]
struct Kept {
    last: u64,
    hints: VecDeque<Event>,
    others: VecDeque<Event>,
    /// What the optimiser has moved.
    moves: VecDeque<Event>,
    gathering: Option<Gathering>,
    /// How many actors have moved, whoever has moved them.
    minutes: Minutes,
}

impl Events {
    fn note(&self, at: Wall, happened: Happened, by: Option<String>) {
        self.kept().note(at.0, happened, by);
    }

    /// The optimiser has moved an actor.
    fn optimised(&self, at: Wall, actor: String, moved: Moved) {
        let mut kept = self.kept();
        kept.tell_moves(at.0);
        kept.gathering.get_or_insert_with(|| Gathering::new(at.0)).add(&moved);
        let event = kept.event(at.0, Happened::Moved { actor, moved }, None);
        push(&mut kept.moves, event, MOVES_LEN_MAX);
    }

    /// Tells what the optimiser has moved, if it is time to.
    pub(crate) fn tell_moves(&self, at: Wall) {
        self.kept().tell_moves(at.0);
    }

    fn kept(&self) -> MutexGuard<'_, Kept> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Those that are wanted, the last ones first, at most so many; and how many more there are.
    pub(crate) fn last(&self, wanted: &Wanted, len_max: usize) -> (Vec<Event>, usize) {
        let kept = self.kept();
        let moves = kept.moves.iter().filter(|_| wanted.wants_moves());
        let all = kept.hints.iter().chain(&kept.others).chain(moves);
        let mut found: Vec<&Event> = all.filter(|event| wanted.takes(event)).collect();
        found.sort_by_key(|event| std::cmp::Reverse(event.number));
        let left_out = found.len().saturating_sub(len_max);
        (found.into_iter().take(len_max).cloned().collect(), left_out)
    }

    /// The last moves of actors, at most so many and the last one first: when, and of which actor.
    pub(crate) fn last_moves(&self, len_max: usize) -> Vec<(u64, String, Moved)> {
        let kept = self.kept();
        let moved =
            |event: &Event| Some((event.number, (event.at, event.subject.actor.clone()?, event.moved.clone()?)));
        let last = |ring: &VecDeque<Event>| ring.iter().rev().filter_map(moved).take(len_max).collect::<Vec<_>>();
        let mut moves = last(&kept.moves);
        moves.extend(last(&kept.hints));
        moves.sort_by_key(|(number, _)| std::cmp::Reverse(*number));
        moves.into_iter().take(len_max).map(|(_, moved)| moved).collect()
    }

    /// How many actors have moved in each of the last `n` minutes, this one first; of the last hour.
    pub(crate) fn moves_by_minute(&self, n: usize, now: Wall) -> Vec<u32> {
        self.kept().minutes.last(n, now.0)
    }
}

impl Kept {
    fn note(&mut self, at: u64, happened: Happened, by: Option<String>) {
        let event = self.event(at, happened, by);
        match event.level {
            Level::Hint => push(&mut self.hints, event, HINTS_LEN_MAX),
            _ => push(&mut self.others, event, OTHERS_LEN_MAX),
        }
    }

    fn event(&mut self, at: u64, happened: Happened, mut by: Option<String>) -> Event {
        let moved = happened.moved();
        if moved.is_some() {
            self.minutes.count(at);
        }
        let Said { event, level, mut subject, mut text } = happened.said();
        cut(&mut text);
        subject.actor.iter_mut().for_each(cut);
        by.iter_mut().for_each(cut);
        self.last += 1;
        Event { number: self.last, at, level, event, subject, text, by, moved }
    }

    fn tell_moves(&mut self, at: u64) {
        if let Some(gathering) = self.gathering.take_if(|gathering| gathering.is_due(at)) {
            self.note(at, gathering.happened(), None);
        }
    }
}

/// Takes one in, and lets the first go if there are as many as may be.
fn push(ring: &mut VecDeque<Event>, event: Event, len_max: usize) {
    if ring.len() >= len_max {
        ring.pop_front();
    }
    ring.push_back(event);
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
            && self.event.as_ref().is_none_or(|name| *name == event.event)
    }

    /// Whether they want what the optimiser moves, one by one: by what moves are called, or of an actor that they name.
    fn wants_moves(&self) -> bool {
        self.event.is_some() || self.subject.as_ref().is_some_and(|name| name.contains('/'))
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

    /// Remembers that the optimiser has moved an actor.
    pub(crate) fn optimised(&self, actor: String, moved: Moved) {
        self.events().optimised(self.wall(), actor, moved);
    }
}

/// Events that end with what a program's error says.
const ERRORS: [&str; 3] = ["restarted", "failed", "parked"];
/// Events that are kept: of those that are only good to know, of the others, and moves of the optimiser.
const HINTS_LEN_MAX: usize = 2048;
const OTHERS_LEN_MAX: usize = 1024;
const MOVES_LEN_MAX: usize = 1024;
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
    fn what_the_optimiser_moves_is_one_event_a_minute_and_each_move_to_who_asks_for_moves() {
        let events = Events::default();
        let moved = |key: usize| match moved(key) {
            Happened::Moved { actor, moved } => (actor, moved),
            _ => unreachable!("it is a move"),
        };
        events.note(Wall(0), Happened::Restarted { actor: "room/x".to_owned(), why: "it failed".to_owned() }, None);
        for key in 0..9_000 {
            let (actor, mut moved) = moved(key);
            moved.shards = (key % 3 == 0).then_some([0, 1]);
            events.optimised(Wall(key as u64 * 10), actor, moved);
        }
        events.tell_moves(Wall(119_999));
        let texts = |wanted: Wanted| events.last(&wanted, 10).0.into_iter().map(|event| event.text).collect::<Vec<_>>();
        let first = "the optimiser has moved 6000 actors within a minute: 4000 to b, 2000 between threads of this node";
        assert_eq!(texts(all()), [first, "room/x has failed and is restarted: it failed"], "the second minute goes on");
        events.tell_moves(Wall(120_000));
        assert!(texts(all())[0].starts_with("the optimiser has moved 3000 actors"), "{:?}", texts(all()));
        assert_eq!(texts(Wanted { event: Some("moved".to_owned()), ..all() }).len(), 10, "one by one");
        let of_one = Wanted { subject: Some("room/8999".to_owned()), ..all() };
        assert_eq!(texts(of_one), ["room/8999 has moved from a to b: it talks with actors there"]);
        assert_eq!(events.moves_by_minute(3, Wall(120_000)), [0, 3_000, 6_000]);
        let last: Vec<_> = events.last_moves(2).into_iter().map(|(_, actor, _)| actor).collect();
        assert_eq!(last, ["room/8999", "room/8998"]);
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
