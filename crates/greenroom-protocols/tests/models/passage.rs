//! Passages between shards, checked exhaustively on a small instance, and shown to break without each of their rules.
//!
//! Three shards with an inbox each, into which the others put in order what they have for it, at any time after they had it; a
//! directory behind a lock; and one actor that goes from shard to shard. Each shard sends it numbered messages, by a reference
//! that knows where it was and by fresh ones. Somebody orders something of the activation that the directory names.

use std::collections::{BTreeMap, BTreeSet, VecDeque};

use greenroom_protocols::passage::Entrance;
use stateright::{Checker, HasDiscoveries, Model, Property};

const SHARDS: u8 = 3;

/// Where an activation is, or was: a slot is never used twice.
type Route = (u8, u8);
/// Who sent a message, and which of his it is.
type Message = (u8, u8);

#[derive(Clone, Copy)]
struct Rules {
    /// What comes before the actor waits for it (S1).
    holds: bool,
    /// A passing actor has no slot in the directory (S2).
    no_slot: bool,
    /// What follows an actor always fits (S3).
    fits: bool,
    /// An order for the old slot follows the actor (S5).
    orders_follow: bool,
    /// Messages that come directly wait for the words of all shards.
    waits: bool,
    /// Who has said his word uses the old slot no more.
    cuts: bool,
}

const ALL: Rules = Rules { holds: true, no_slot: true, fits: true, orders_follow: true, waits: true, cuts: true };

#[derive(Clone)]
struct Small {
    rules: Rules,
    /// Messages of each shard.
    messages: [u8; SHARDS as usize],
    /// Where the actor goes.
    passages: &'static [u8],
    orders: u8,
    /// Messages that an inbox has room for; more only of those that follow an actor.
    room: usize,
}

#[derive(Clone, PartialEq, Eq, Hash, Debug)]
enum Item {
    /// For the activation in a slot, by a reference that knew it.
    Sent(u8, Message),
    /// For the actor, wherever that is.
    Parcel(Message),
    Handed(Message),
    /// For the actor, which passes, by who has cut.
    Ahead(Route, Message),
    Enter(Actor, Route),
    Moved(Route, u8),
    /// The word of a shard, to be passed on.
    Word(u8, u8),
    Through(u8),
    Order(u8),
    Followed,
}

/// The last number of each shard.
#[derive(Clone, PartialEq, Eq, Hash, Debug, Default)]
struct Actor(BTreeMap<u8, u8>);

/// The actor that comes, and, once it is here, its slot and whence it has come.
type Coming = (Entrance<u8, Message>, Option<(u8, Route)>);

#[derive(Clone, PartialEq, Eq, Hash, Debug, Default)]
struct Shard {
    inbox: VecDeque<Item>,
    outboxes: BTreeMap<u8, VecDeque<Item>>,
    active: BTreeMap<u8, Actor>,
    cuts: BTreeSet<Route>,
    left: BTreeSet<u8>,
    entrance: Option<Coming>,
    said: u8,
    /// Where its reference last found the actor.
    known: Option<Route>,
}

#[derive(Clone, PartialEq, Eq, Hash, Debug)]
struct State {
    shards: Vec<Shard>,
    /// The directory: the actor's shard, its slot, and whence it goes.
    at: (u8, Option<u8>, Option<Route>),
    slots: u8,
    passed: usize,
    orders: u8,
    heard: u8,
    wrong: Option<&'static str>,
}

#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
enum Step {
    Send { by: u8, fresh: bool },
    HandOver { from: u8, to: u8 },
    Take(u8),
    Pass,
    Order,
}

impl State {
    fn shard(&mut self, shard: u8) -> &mut Shard {
        &mut self.shards[usize::from(shard)]
    }

    fn post(&mut self, from: u8, to: u8, item: Item) {
        self.shard(from).outboxes.entry(to).or_default().push_back(item);
    }

    fn deliver(&mut self, shard: u8, slot: u8, (by, number): Message) {
        let Some(actor) = self.shard(shard).active.get_mut(&slot) else {
            self.wrong = Some("a message came to nobody");
            return;
        };
        let last = actor.0.insert(by, number).unwrap_or_default();
        if number != last + 1 {
            self.wrong = Some("a message is lost, doubled or out of order");
        }
    }

    /// Lets `shard` send a message to the slot that the reference of its sender knows.
    fn send(&mut self, shard: u8, message: Message, handed: bool, rules: Rules) {
        let known = self.shard(message.0).known;
        match known {
            Some((at, slot)) if at == shard && self.shard(shard).active.contains_key(&slot) => {
                self.deliver(shard, slot, message);
            }
            Some(route) if route.0 != shard && !(rules.cuts && self.shard(shard).cuts.contains(&route)) => {
                self.post(shard, route.0, Item::Sent(route.1, message));
            }
            _ => {
                self.shard(message.0).known = None;
                self.find(shard, message, handed, rules);
            }
        }
    }

    /// Lets the directory say where a message goes that `shard` has.
    fn find(&mut self, shard: u8, message: Message, handed: bool, rules: Rules) {
        match self.at {
            (to, None, Some(passage)) => {
                if passage.0 == shard {
                    return self.post(shard, to, Item::Handed(message));
                }
                self.cut(shard, passage, to);
                if to != shard {
                    return self.post(shard, to, Item::Ahead(passage, message));
                }
                let here = self.shard(shard).entrance.as_ref().and_then(|(_, here)| *here);
                match here {
                    Some((slot, _)) if handed => self.deliver(shard, slot, message),
                    None if !rules.holds => self.wrong = Some("the actor is made a second time"),
                    _ => {
                        let (entrance, _) = self.shard(shard).entrance.get_or_insert_default();
                        entrance.hold(message).expect("there is room for a few");
                    }
                }
            }
            (at, Some(slot), _) => {
                self.shard(message.0).known = Some((at, slot));
                match at == shard {
                    true => self.deliver(shard, slot, message),
                    false => self.post(shard, at, Item::Parcel(message)),
                }
            }
            (_, None, None) => self.wrong = Some("the actor is nowhere"),
        }
    }

    fn cut(&mut self, shard: u8, passage: Route, to: u8) {
        if passage.0 != shard && self.shard(shard).cuts.insert(passage) {
            self.post(shard, passage.0, Item::Word(shard, to));
        }
    }

    fn pass(&mut self, to: u8, rules: Rules) {
        let (from, Some(slot), _) = self.at else { return };
        self.passed += 1;
        self.at = (to, (!rules.no_slot).then_some(slot), Some((from, slot)));
        let shard = self.shard(from);
        shard.left.insert(slot);
        let actor = shard.active.remove(&slot).expect("it is where the directory says");
        self.post(from, to, Item::Enter(actor, (from, slot)));
        for other in (0..SHARDS).filter(|other| *other != from && *other != to) {
            self.post(from, other, Item::Moved((from, slot), to));
        }
    }

    fn take(&mut self, shard: u8, item: Item, rules: Rules) {
        match item {
            Item::Sent(slot, message) => match self.shard(shard).active.contains_key(&slot) {
                true => self.deliver(shard, slot, message),
                false => self.send(shard, message, false, rules),
            },
            Item::Parcel(message) => self.send(shard, message, false, rules),
            Item::Handed(message) => self.send(shard, message, true, rules),
            Item::Ahead(passage, message) => {
                self.cut(shard, passage, shard);
                self.send(shard, message, false, rules);
            }
            Item::Enter(actor, passage) => {
                self.slots += 1;
                let slot = self.slots;
                self.shard(shard).active.insert(slot, actor);
                let (entrance, here) = self.shard(shard).entrance.get_or_insert_default();
                entrance.enter();
                *here = Some((slot, passage));
                self.cut(shard, passage, shard);
                self.open(shard, rules);
            }
            Item::Moved(passage, to) => self.cut(shard, passage, to),
            Item::Word(by, to) => self.post(shard, to, Item::Through(by)),
            Item::Through(by) => {
                if let Some((entrance, _)) = &mut self.shard(shard).entrance {
                    entrance.through(by);
                }
                self.open(shard, rules);
            }
            Item::Order(slot) => {
                if self.shard(shard).active.contains_key(&slot) {
                    self.heard += 1;
                } else if rules.orders_follow && self.shard(shard).left.contains(&slot) {
                    let to = self.at.0;
                    self.post(shard, to, Item::Followed);
                }
            }
            Item::Followed => {
                if self.shard(shard).active.is_empty() {
                    let to = self.at.0;
                    self.post(shard, to, Item::Followed);
                } else {
                    self.heard += 1;
                }
            }
        }
    }

    fn open(&mut self, shard: u8, rules: Rules) {
        let others = if rules.waits { usize::from(SHARDS) - 1 } else { 0 };
        let opens = self.shard(shard).entrance.as_ref().is_some_and(|(entrance, _)| entrance.is_open(others));
        if !opens {
            return;
        }
        let Some((mut entrance, Some((slot, _)))) = self.shard(shard).entrance.take() else { return };
        while let Some(message) = entrance.take() {
            self.deliver(shard, slot, message);
        }
        self.at = (shard, Some(slot), None);
    }

    /// Messages in an inbox, which they fill.
    fn messages_at(&self, shard: u8) -> usize {
        let is_message =
            |item: &&Item| matches!(item, Item::Sent(..) | Item::Parcel(_) | Item::Ahead(..) | Item::Handed(_));
        self.shards[usize::from(shard)].inbox.iter().filter(is_message).count()
    }

    /// Whether nothing is under way.
    fn is_quiet(&self) -> bool {
        let idle = |shard: &Shard| shard.inbox.is_empty() && shard.outboxes.values().all(VecDeque::is_empty);
        self.shards.iter().all(idle)
    }
}

impl Model for Small {
    type State = State;
    type Action = Step;

    fn init_states(&self) -> Vec<State> {
        let mut shards = vec![Shard::default(); usize::from(SHARDS)];
        shards[0].active.insert(0, Actor::default());
        shards.iter_mut().for_each(|shard| shard.known = Some((0, 0)));
        vec![State { shards, at: (0, Some(0), None), slots: 0, passed: 0, orders: 0, heard: 0, wrong: None }]
    }

    fn actions(&self, state: &State, out: &mut Vec<Step>) {
        for by in 0..SHARDS {
            let shard = &state.shards[usize::from(by)];
            if shard.said < self.messages[usize::from(by)] {
                out.extend([Step::Send { by, fresh: false }, Step::Send { by, fresh: true }]);
            }
            if !shard.inbox.is_empty() {
                out.push(Step::Take(by));
            }
            // Who is refused at once would hear of it: here he waits for room.
            let ready = shard.outboxes.iter().filter(|(to, items)| match items.front() {
                Some(Item::Sent(..) | Item::Parcel(_) | Item::Ahead(..)) => state.messages_at(**to) < self.room,
                first => first.is_some(),
            });
            out.extend(ready.map(|(to, _)| Step::HandOver { from: by, to: *to }));
        }
        if self.passages.get(state.passed).is_some_and(|to| *to != state.at.0) && state.at.1.is_some() {
            out.push(Step::Pass);
        }
        if state.orders < self.orders {
            out.push(Step::Order);
        }
    }

    fn next_state(&self, last: &State, step: Step) -> Option<State> {
        let mut state = last.clone();
        match step {
            Step::Send { by, fresh } => {
                let shard = state.shard(by);
                shard.said += 1;
                let message = (by, shard.said);
                match fresh {
                    true => state.find(by, message, false, self.rules),
                    false => state.send(by, message, false, self.rules),
                }
            }
            Step::HandOver { from, to } => {
                let item = state.shard(from).outboxes.get_mut(&to)?.pop_front()?;
                if matches!(item, Item::Handed(_)) && !self.rules.fits && state.messages_at(to) >= self.room {
                    state.wrong = Some("a message is refused");
                }
                state.shard(to).inbox.push_back(item);
            }
            Step::Take(shard) => {
                let item = state.shard(shard).inbox.pop_front()?;
                state.take(shard, item, self.rules);
            }
            Step::Pass => state.pass(self.passages[state.passed], self.rules),
            Step::Order => {
                state.orders += 1;
                let (shard, slot) = match state.at {
                    (shard, Some(slot), _) => (shard, slot),
                    (_, None, passage) => passage?,
                };
                state.shard(shard).inbox.push_back(Item::Order(slot));
            }
        }
        Some(state)
    }

    fn properties(&self) -> Vec<Property<Self>> {
        vec![
            Property::always("all is well", |_, state: &State| state.wrong.is_none()),
            Property::always("all has come in the end", |_, state: &State| {
                let said = state.shards.iter().map(|shard| u32::from(shard.said)).sum::<u32>();
                let actors = state.shards.iter().flat_map(|shard| shard.active.values());
                let heard = actors.flat_map(|actor| actor.0.values()).map(|last| u32::from(*last)).sum::<u32>();
                !state.is_quiet() || (said == heard && state.orders == state.heard)
            }),
            Property::always("it can be reached in the end", |_, state: &State| {
                !state.is_quiet()
                    || state.at.1.is_some_and(|slot| state.shards[usize::from(state.at.0)].active.contains_key(&slot))
            }),
        ]
    }
}

const SMALL: Small = Small { rules: ALL, messages: [0, 1, 2], passages: &[1], orders: 0, room: usize::MAX };

#[track_caller]
fn exhaust(small: Small) {
    let checker = small.checker().threads(2).finish_when(HasDiscoveries::AnyFailures).spawn_bfs().join();
    println!("{} states", checker.unique_state_count());
    checker.assert_properties();
    assert!(checker.is_done(), "not all states were looked at");
}

#[track_caller]
fn breaks(small: Small) {
    let checker = small.checker().threads(2).finish_when(HasDiscoveries::AnyFailures).spawn_bfs().join();
    assert!(!checker.discoveries().is_empty(), "nothing breaks in {} states", checker.unique_state_count());
}

#[test]
fn an_actor_that_passes_is_one_and_hears_all_in_order() {
    exhaust(SMALL);
}

#[test]
fn it_may_go_on_and_come_back() {
    exhaust(Small { messages: [0, 1, 2], passages: &[1, 2], ..SMALL });
    exhaust(Small { messages: [1, 1, 1], passages: &[1, 0], ..SMALL });
}

#[test]
fn orders_reach_it_wherever_it_is() {
    exhaust(Small { messages: [0, 0, 1], orders: 2, passages: &[1, 2], ..SMALL });
}

#[test]
fn what_overtakes_an_actor_would_make_it_a_second_time() {
    breaks(Small { rules: Rules { holds: false, ..ALL }, ..SMALL });
}

#[test]
fn who_finds_the_old_slot_in_the_directory_would_find_nobody() {
    breaks(Small { rules: Rules { no_slot: false, ..ALL }, ..SMALL });
}

#[test]
fn what_follows_an_actor_would_be_refused_by_a_full_inbox() {
    let narrow = Small { messages: [0, 0, 2], room: 1, ..SMALL };
    exhaust(narrow.clone());
    breaks(Small { rules: Rules { fits: false, ..ALL }, ..narrow });
}

#[test]
fn an_order_for_the_old_slot_would_be_lost() {
    breaks(Small { rules: Rules { orders_follow: false, ..ALL }, orders: 1, ..SMALL });
}

#[test]
fn what_comes_directly_would_overtake_what_comes_by_the_old_shard() {
    breaks(Small { rules: Rules { waits: false, ..ALL }, ..SMALL });
}

#[test]
fn who_used_the_old_slot_after_his_word_would_overtake_himself() {
    breaks(Small { rules: Rules { cuts: false, ..ALL }, ..SMALL });
}
