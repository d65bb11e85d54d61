//! The ways of one sender's messages to one actor, checked exhaustively on a small instance, and shown to overtake each other
//! without each of their rules.
//!
//! A sender, the owner of the actor's part of the directory, and the actor: at a third node, at the owner, or at the sender's own.
//! What is between two of them comes in order; answers and news come at any time after they left, and marks may get lost.

use std::collections::{BTreeSet, VecDeque};

use greenroom_protocols::courses::{Courses, Host, Next};
use greenroom_protocols::node::NodeId;
use greenroom_protocols::time::Timestamp;
use stateright::{Checker, HasDiscoveries, Model, Property};

const OWNER: NodeId = NodeId(2);
const HOST: NodeId = NodeId(3);
const ACTOR: u64 = 7;
const NOW: Timestamp = Timestamp::from_nanos(1);

#[derive(Clone, Copy)]
struct Rules {
    /// News of a better way are not enough to take it.
    news_wait: bool,
    /// The answer to a message says nothing of those that were sent after it.
    only_the_last: bool,
    /// Nothing goes while a mark is under way.
    holds: bool,
    /// A mark behind which something went says nothing.
    given_up: bool,
    /// What is at the sender's own node is no exception.
    here_too: bool,
    /// News of a way that is not taken any more change nothing.
    old_news: bool,
}

const ALL: Rules =
    Rules { news_wait: true, only_the_last: true, holds: true, given_up: true, here_too: true, old_news: true };

#[derive(Clone)]
struct Small {
    rules: Rules,
    at: Host,
    messages: u8,
}

#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
enum Item {
    Message(u8, bool),
    Mark(u8),
}

#[derive(Clone, Debug)]
struct State {
    courses: Courses<()>,
    sent: u8,
    marks: u8,
    held: VecDeque<(u8, bool)>,
    /// From the sender to the owner, from there to the actor, and from the sender to the actor.
    lanes: [VecDeque<Item>; 3],
    heard: u8,
    /// Calls and marks that will be answered.
    answers: BTreeSet<(bool, u8)>,
    /// Marks that the sender waits for.
    waits: BTreeSet<u8>,
    news: bool,
    wrong: bool,
}

#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
enum Step {
    Send {
        awaited: bool,
    },
    Arrive(usize),
    News,
    Answer(bool, u8),
    /// A mark's time is up.
    Late(u8),
    /// There is no more room for what is held.
    Full,
}

impl State {
    /// What tells it from others: with one actor, the table has one order.
    fn seen(&self) -> String {
        format!("{self:?}")
    }

    fn hear(&mut self, item: Item) {
        match item {
            Item::Message(number, awaited) => {
                self.wrong |= number != self.heard + 1;
                self.heard = number;
                if awaited {
                    self.answers.insert((false, number));
                }
            }
            Item::Mark(mark) => drop(self.answers.insert((true, mark))),
        }
    }

    fn send(&mut self, small: &Small, number: u8, awaited: bool) {
        // The directory of the sender's node knows the actor as soon as it is there.
        let known_here = small.at == Host::Here && self.heard > 0;
        if known_here && !(small.rules.here_too && self.courses.is_round(ACTOR)) {
            return self.hear(Item::Message(number, awaited));
        }
        let (lane, to) = match self.courses.next(ACTOR) {
            Next::Held if small.rules.holds => return self.held.push_back((number, awaited)),
            Next::Held => (2, HOST),
            Next::Straight(host) => (if host == OWNER { 0 } else { 2 }, host),
            Next::Round(owner) => (0, owner),
            Next::Unknown | Next::Asks => {
                self.courses.goes_round(ACTOR, OWNER, NOW, ());
                (0, OWNER)
            }
        };
        self.lanes[lane].push_back(Item::Message(number, awaited));
        if awaited {
            self.courses.called(ACTOR, to, u64::from(number));
        }
    }

    fn let_go(&mut self, small: &Small) {
        for (number, awaited) in std::mem::take(&mut self.held) {
            self.send(small, number, awaited);
        }
    }

    fn learn(&mut self, small: &Small, call: Option<u8>) {
        let wanted = match call {
            Some(call) => self.courses.answered(ACTOR, small.at, u64::from(call), NOW),
            None => {
                if !small.rules.old_news {
                    self.courses.doubt(ACTOR);
                }
                self.courses.passed_on(ACTOR, OWNER)
            }
        };
        let wanted = wanted.map(|(by, ())| by);
        let Some(by) = wanted else { return };
        let enough = match call {
            None => !small.rules.news_wait,
            Some(_) => !small.rules.only_the_last,
        };
        if enough {
            self.courses.forget(ACTOR);
            let _ = self.courses.answered(ACTOR, small.at, 0, NOW);
            return;
        }
        assert_eq!(by, OWNER);
        self.marks += 1;
        self.courses.marked(ACTOR, mark_call(self.marks));
        self.waits.insert(self.marks);
        self.lanes[0].push_back(Item::Mark(self.marks));
    }
}

/// Marks and messages are calls of one table.
fn mark_call(mark: u8) -> u64 {
    100 + u64::from(mark)
}

impl PartialEq for State {
    fn eq(&self, other: &Self) -> bool {
        self.seen() == other.seen()
    }
}

impl std::hash::Hash for State {
    fn hash<H: std::hash::Hasher>(&self, hasher: &mut H) {
        self.seen().hash(hasher);
    }
}

impl Model for Small {
    type State = State;
    type Action = Step;

    fn init_states(&self) -> Vec<State> {
        vec![State {
            courses: Courses::new(1),
            sent: 0,
            marks: 0,
            held: VecDeque::new(),
            lanes: Default::default(),
            heard: 0,
            answers: BTreeSet::new(),
            waits: BTreeSet::new(),
            news: false,
            wrong: false,
        }]
    }

    fn actions(&self, state: &State, out: &mut Vec<Step>) {
        if state.sent < self.messages {
            out.extend([Step::Send { awaited: false }, Step::Send { awaited: true }]);
        }
        out.extend((0..3).filter(|lane| !state.lanes[*lane].is_empty()).map(Step::Arrive));
        if state.news {
            out.push(Step::News);
        }
        out.extend(state.answers.iter().map(|(is_mark, number)| Step::Answer(*is_mark, *number)));
        out.extend(state.waits.iter().copied().map(Step::Late));
        if !state.held.is_empty() {
            out.push(Step::Full);
        }
    }

    fn next_state(&self, last: &State, step: Step) -> Option<State> {
        let mut state = last.clone();
        match step {
            Step::Send { awaited } => {
                state.sent += 1;
                state.send(self, state.sent, awaited);
            }
            Step::Arrive(0) if self.at != Host::There(OWNER) => {
                let item = state.lanes[0].pop_front()?;
                state.news |= matches!(item, Item::Message(_, false));
                state.lanes[1].push_back(item);
            }
            Step::Arrive(lane) => {
                let item = state.lanes[lane].pop_front()?;
                state.hear(item);
            }
            Step::News => {
                state.news = false;
                state.learn(self, None);
            }
            Step::Answer(is_mark, number) => {
                state.answers.remove(&(is_mark, number));
                if !is_mark {
                    state.learn(self, Some(number));
                } else if state.waits.remove(&number) {
                    if !self.rules.given_up {
                        state.courses.marked(ACTOR, mark_call(number));
                    }
                    state.courses.mark_ended(ACTOR, mark_call(number), Some(self.at), NOW);
                    state.let_go(self);
                }
            }
            Step::Late(mark) => {
                state.waits.remove(&mark);
                state.courses.mark_ended(ACTOR, mark_call(mark), None, NOW);
                state.let_go(self);
            }
            Step::Full => {
                state.courses.give_up(ACTOR);
                state.let_go(self);
            }
        }
        Some(state)
    }

    fn properties(&self) -> Vec<Property<Self>> {
        vec![
            Property::always("none overtakes another", |_, state: &State| !state.wrong),
            Property::always("nothing is held for nothing", |_, state: &State| {
                state.held.is_empty() || !state.waits.is_empty()
            }),
            Property::sometimes("what follows goes straight", |small: &Small, state: &State| {
                let mut courses = state.courses.clone();
                match small.at {
                    Host::There(host) => courses.next(ACTOR) == Next::Straight(host),
                    Host::Here => state.heard > 0 && courses.next(ACTOR) == Next::Asks,
                }
            }),
        ]
    }
}

const SMALL: Small = Small { rules: ALL, at: Host::There(HOST), messages: 4 };

#[track_caller]
fn exhaust(small: Small) {
    let checker = small.checker().threads(2).finish_when(HasDiscoveries::AnyFailures).spawn_bfs().join();
    println!("{} states", checker.unique_state_count());
    checker.assert_properties();
    assert!(checker.is_done(), "not all states were looked at");
}

#[track_caller]
fn breaks(rules: Rules, at: Host) {
    let small = Small { rules, at, ..SMALL };
    let checker = small.checker().threads(2).finish_when(HasDiscoveries::AnyFailures).spawn_bfs().join();
    assert!(
        checker.discovery("none overtakes another").is_some(),
        "nothing breaks in {} states",
        checker.unique_state_count()
    );
}

#[test]
fn what_is_sent_first_arrives_first_wherever_the_actor_is() {
    exhaust(SMALL);
    exhaust(Small { at: Host::There(OWNER), ..SMALL });
    exhaust(Small { at: Host::Here, ..SMALL });
}

#[test]
fn who_took_a_better_way_at_once_would_overtake_himself() {
    breaks(Rules { news_wait: false, ..ALL }, SMALL.at);
}

#[test]
fn who_trusted_the_answer_to_an_earlier_message_would_overtake_himself() {
    breaks(Rules { only_the_last: false, ..ALL }, SMALL.at);
}

#[test]
fn what_is_not_held_would_overtake_the_mark() {
    breaks(Rules { holds: false, ..ALL }, SMALL.at);
}

#[test]
fn a_mark_that_was_given_up_would_say_too_much() {
    breaks(Rules { given_up: false, ..ALL }, SMALL.at);
}

#[test]
fn who_listened_to_old_news_would_overtake_himself() {
    breaks(Rules { old_news: false, ..ALL }, SMALL.at);
}

#[test]
fn what_finds_the_actor_at_home_would_overtake_what_comes_back() {
    breaks(Rules { here_too: false, ..ALL }, Host::Here);
}
