//! The model: the nodes of one range, a membership that only makes views, and a network that forgets nothing.

use std::collections::{BTreeMap, BTreeSet};
use std::hash::Hash;
use std::sync::Arc;

use greenroom_protocols::checks::Checks;
use greenroom_protocols::directory::{
    Acceptance, Action, Decision, Epoch, Event, Grant, HostedActors, Move, Placed, Range, RangeId, Released, Report,
    Resolution,
};
use greenroom_protocols::node::{Member, NodeId, Status, View};
use greenroom_protocols::time::Timestamp;
use stateright::{Model, Property};

pub(super) type Key = u8;

/// One change of the membership table.
#[derive(Clone, Copy, Debug)]
pub(super) enum Change {
    Join(u64),
    Die(u64),
    /// It says that it is about to leave.
    Drain(u64),
}

/// A small instance: who is there at first, what changes, and how much may happen.
#[derive(Clone)]
pub(super) struct Cluster {
    pub(super) range: RangeId,
    pub(super) nodes: u64,
    pub(super) first: Vec<u64>,
    pub(super) script: Vec<Change>,
    pub(super) keys: Key,
    pub(super) grants_max: usize,
    pub(super) releases_max: usize,
    pub(super) asks_max: usize,
    pub(super) moves_max: usize,
    pub(super) checks: Checks,
}

#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub(super) struct State {
    pub(super) now: u64,
    pub(super) changed: usize,
    pub(super) truth: Arc<View>,
    pub(super) nodes: BTreeMap<NodeId, Node>,
    pub(super) network: BTreeSet<Message>,
    pub(super) granted: usize,
    pub(super) released: usize,
    pub(super) asked: usize,
    pub(super) moved: usize,
    /// States that have left their activations.
    pub(super) departed: BTreeSet<(Key, Epoch)>,
    /// Who held a state was granted its actor, and took the grant for an old one.
    pub(super) is_spurned: bool,
    /// Every activation that has begun: the epoch that its state came from, if it was moved, and whether it was released.
    pub(super) born: BTreeMap<(Key, Epoch), Life>,
}

#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub(super) struct Life {
    pub(super) host: NodeId,
    pub(super) from: Option<Epoch>,
    pub(super) released: bool,
    pub(super) times: u8,
}

#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub(super) struct Node {
    pub(super) range: Range<Key>,
    pub(super) active: BTreeMap<Key, Epoch>,
    /// Activations that have ended here and whose states are on their way; the owner has not decided.
    pub(super) leaving: BTreeMap<Key, Epoch>,
    /// States that came from elsewhere, likewise.
    pub(super) carried: BTreeMap<Key, Placed>,
    /// The range's floor when a state of these began to be held here.
    pub(super) since: BTreeMap<Key, Epoch>,
}

impl Node {
    /// What it reports: also what is undecided.
    fn listed(
        active: &BTreeMap<Key, Epoch>,
        leaving: &BTreeMap<Key, Epoch>,
        carried: &BTreeMap<Key, Placed>,
    ) -> HostedActors<Key> {
        HostedActors {
            activations: active.iter().chain(leaving).map(|(key, epoch)| (*key, *epoch)).collect(),
            in_transit: carried.iter().map(|(key, from)| (*key, *from)).collect(),
        }
    }
}

#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub(super) enum Message {
    Call(Grant, Key),
    Report(NodeId, Report<Key>),
    Released(NodeId, Released<Key>),
    Deactivate(NodeId, Key, Epoch),
    Carry(NodeId, Key, Placed),
    Ask(NodeId, Move<Key>),
    Decided(Move<Key>, Grant),
    /// The state that the asker holds is void, says this owner in this version of its view.
    Void(Move<Key>, NodeId, u64),
}

#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub(super) enum Step {
    Change,
    LeaseEnds,
    See(NodeId),
    Resolve(NodeId, Key, NodeId),
    Deliver(Message),
    Release(NodeId, Key),
    Ask(NodeId, NodeId),
    /// An activation of this node ends, and its state sets out for that one.
    Depart(NodeId, Key, NodeId),
    /// Who holds a state asks for the actor.
    Claim(NodeId, Key),
}

impl Cluster {
    fn at(&self, state: &State) -> Timestamp {
        Timestamp::from_nanos(state.now)
    }

    fn change(&self, view: &View, change: Change, now: u64) -> View {
        let mut next = view.clone();
        next.version += 1;
        match change {
            Change::Join(node) => {
                next.next_node = next.next_node.max(node + 1);
                next.members.insert(NodeId(node), Member { status: Status::Active, ..Member::default() });
            }
            Change::Drain(node) => {
                next.members.get_mut(&NodeId(node)).expect("the script drains members").draining = true;
            }
            Change::Die(node) => {
                next.members.get_mut(&NodeId(node)).expect("the script kills members").status = Status::Dead;
                next.freed.insert(NodeId(node), Timestamp::from_nanos(now + 1));
            }
        }
        next
    }

    /// Hands `event` to a node and puts what it sends on the network.
    fn handle(&self, state: &mut State, node: NodeId, event: Event<Key>) {
        let now = self.at(state);
        let mut out = Vec::new();
        let Node { range, active, leaving, carried, .. } =
            state.nodes.get_mut(&node).expect("only known nodes are addressed");
        range.handle(now, event, || Node::listed(active, leaving, carried), &mut out);
        for action in out {
            match action {
                Action::Report { to, report } => _ = state.network.insert(Message::Report(to, report)),
                Action::Deactivate { node, key, epoch } => {
                    state.network.insert(Message::Deactivate(node, key, epoch));
                }
                Action::AskReport { .. } | Action::Ready => {}
            }
        }
    }

    fn release(&self, state: &mut State, node: NodeId, key: Key, epoch: Epoch) {
        let range = &mut state.nodes.get_mut(&node).expect("only known nodes release").range;
        let released = range.release(key, epoch);
        if let Some(life) = state.born.get_mut(&(key, epoch)) {
            life.released = true;
        }
        if let Some(owner) = range.owner() {
            state.network.insert(Message::Released(owner, released));
        }
    }

    fn deliver(&self, state: &mut State, message: Message) {
        match message {
            Message::Call(grant, key) => {
                let host = state.nodes.get_mut(&grant.placed.node).expect("grants name known nodes");
                let undecided = host.leaving.contains_key(&key) || host.carried.contains_key(&key);
                if !host.active.contains_key(&key) && !undecided {
                    match host.range.accept(&grant) {
                        Acceptance::Accepted => {
                            host.active.insert(key, grant.placed.epoch);
                            Self::born(state, grant.placed.node, key, grant.placed.epoch, None);
                        }
                        Acceptance::Stale => self.release(state, grant.placed.node, key, grant.placed.epoch),
                        _ => {}
                    }
                }
            }
            Message::Report(to, report) => self.handle(state, to, Event::Report(report)),
            Message::Released(to, released) => self.handle(state, to, Event::Released(released)),
            Message::Deactivate(node, key, epoch) => {
                let Node { active, leaving, since, .. } =
                    state.nodes.get_mut(&node).expect("only known nodes are told");
                if leaving.get(&key) == Some(&epoch) {
                    since.remove(&key);
                }
                let active = active.extract_if(.., |known, at| (*known, *at) == (key, epoch)).count();
                let leaving = leaving.extract_if(.., |known, at| (*known, *at) == (key, epoch)).count();
                if active + leaving > 0 {
                    self.release(state, node, key, epoch);
                }
            }
            Message::Carry(to, key, from) => {
                let node = state.nodes.get_mut(&to).expect("states go to known nodes");
                if !node.active.contains_key(&key) && !node.leaving.contains_key(&key) {
                    let newest = node
                        .carried
                        .get(&key)
                        .map_or(from, |known| if known.epoch < from.epoch { from } else { *known });
                    if node.carried.insert(key, newest) != Some(newest) {
                        node.since.insert(key, node.range.floor());
                    }
                }
            }
            Message::Ask(to, wish) => {
                let now = self.at(state);
                let range = &mut state.nodes.get_mut(&to).expect("owners are known").range;
                match range.decide(now, &wish) {
                    Decision::Granted(grant) => _ = state.network.insert(Message::Decided(wish, grant)),
                    Decision::Void => {
                        let version = range.version();
                        state.network.insert(Message::Void(wish, to, version));
                    }
                    Decision::Wait | Decision::NotOwner(_) => {}
                }
            }
            Message::Decided(wish, grant) => self.decided(state, &wish, Some(grant)),
            Message::Void(wish, by, version) if state.nodes[&wish.to].range.heeds(by, version) => {
                self.decided(state, &wish, None);
            }
            Message::Void(..) => {}
        }
    }

    /// The asker hears what the owner has decided.
    fn decided(&self, state: &mut State, wish: &Move<Key>, granted: Option<Grant>) {
        let Move { key, from, to } = *wish;
        let node = state.nodes.get_mut(&to).expect("only known nodes ask");
        let holds = if from.node == to {
            node.leaving.get(&key) == Some(&from.epoch)
        } else {
            node.carried.get(&key) == Some(&from) && !node.active.contains_key(&key)
        };
        if !holds {
            return;
        }
        let since = node.since[&key];
        let accepted = granted.map(|grant| (grant.placed.epoch, node.range.accept_held(since, &grant)));
        match accepted {
            Some((epoch, Acceptance::Accepted)) => {
                node.leaving.remove(&key);
                node.carried.remove(&key);
                node.since.remove(&key);
                node.active.insert(key, epoch);
                Self::born(state, to, key, epoch, Some(from.epoch));
            }
            Some((epoch, Acceptance::Stale)) if !state.born.contains_key(&(key, epoch)) => state.is_spurned = true,
            None => {
                node.carried.remove(&key);
                node.since.remove(&key);
                if node.leaving.remove(&key).is_some() {
                    self.release(state, to, key, from.epoch);
                }
            }
            // Asks again when it has caught up.
            Some(_) => {}
        }
    }

    fn born(state: &mut State, host: NodeId, key: Key, epoch: Epoch, from: Option<Epoch>) {
        let life = state.born.entry((key, epoch)).or_insert(Life { host, from, released: false, times: 0 });
        life.times += 1;
    }

    fn open(state: &State, node: NodeId) -> bool {
        state.truth.lease_over(node).is_none_or(|over| over > Timestamp::from_nanos(state.now))
    }
}

impl Model for Cluster {
    type State = State;
    type Action = Step;

    fn init_states(&self) -> Vec<State> {
        let mut truth = View::default();
        for node in &self.first {
            truth = self.change(&truth, Change::Join(*node), 0);
        }
        let truth = Arc::new(truth);
        let nodes = (1..=self.nodes)
            .map(|id| {
                (
                    NodeId(id),
                    Node {
                        range: Range::with_checks(NodeId(id), self.range, self.checks),
                        active: BTreeMap::new(),
                        leaving: BTreeMap::new(),
                        carried: BTreeMap::new(),
                        since: BTreeMap::new(),
                    },
                )
            })
            .collect();
        let mut state = State {
            now: 0,
            changed: 0,
            truth,
            nodes,
            network: BTreeSet::new(),
            granted: 0,
            released: 0,
            asked: 0,
            moved: 0,
            departed: BTreeSet::new(),
            is_spurned: false,
            born: BTreeMap::new(),
        };
        for node in &self.first {
            let view = Arc::clone(&state.truth);
            self.handle(&mut state, NodeId(*node), Event::View(view));
        }
        for message in std::mem::take(&mut state.network) {
            self.deliver(&mut state, message);
        }
        vec![state]
    }

    fn actions(&self, state: &State, steps: &mut Vec<Step>) {
        let now = self.at(state);
        if state.changed < self.script.len() {
            steps.push(Step::Change);
        }
        if state.truth.freed.values().any(|over| *over > now) {
            steps.push(Step::LeaseEnds);
        }
        for (id, node) in &state.nodes {
            if !Self::open(state, *id) || !state.truth.members.contains_key(id) {
                continue;
            }
            if node.range.version() < state.truth.version {
                steps.push(Step::See(*id));
            }
            for key in 0..self.keys {
                match node.range.resolve(now, &key) {
                    Resolution::Absent if state.granted < self.grants_max => {
                        steps.extend(state.nodes.keys().map(|host| Step::Resolve(*id, key, *host)));
                    }
                    Resolution::At(_) => steps.push(Step::Resolve(*id, key, *id)),
                    _ => {}
                }
            }
            if state.released < self.releases_max {
                steps.extend(node.active.keys().map(|key| Step::Release(*id, *key)));
            }
            if state.moved < self.moves_max {
                let elsewhere = || state.nodes.keys().filter(|to| *to != id);
                steps.extend(node.active.keys().flat_map(|key| elsewhere().map(|to| Step::Depart(*id, *key, *to))));
            }
            steps.extend(node.leaving.keys().chain(node.carried.keys()).map(|key| Step::Claim(*id, *key)));
            if state.asked < self.asks_max && node.range.deadline().is_some() {
                steps.extend(state.nodes.keys().filter(|host| *host != id).map(|host| Step::Ask(*id, *host)));
            }
        }
        steps.extend(state.network.iter().cloned().map(Step::Deliver));
    }

    fn next_state(&self, last: &State, step: Step) -> Option<State> {
        let mut state = last.clone();
        match step {
            Step::Change => {
                state.truth = Arc::new(self.change(&state.truth, self.script[state.changed], state.now));
                state.changed += 1;
            }
            Step::LeaseEnds => state.now += 1,
            Step::See(node) => self.handle(&mut state, node, Event::View(Arc::clone(&last.truth))),
            Step::Resolve(node, key, host) => {
                let now = self.at(&state);
                let range = &mut state.nodes.get_mut(&node)?.range;
                let known = range.resolve(now, &key);
                let resolution = if known == Resolution::Absent { range.grant(now, key, host) } else { known };
                let Resolution::At(grant) = resolution else { return None };
                state.granted += usize::from(known == Resolution::Absent);
                state.network.insert(Message::Call(grant, key));
            }
            Step::Deliver(message) => self.deliver(&mut state, message),
            Step::Release(node, key) => {
                let epoch = state.nodes.get_mut(&node)?.active.remove(&key)?;
                state.released += 1;
                self.release(&mut state, node, key, epoch);
            }
            Step::Depart(node, key, to) => {
                let here = state.nodes.get_mut(&node)?;
                let epoch = here.active.remove(&key)?;
                here.leaving.insert(key, epoch);
                state.departed.insert((key, epoch));
                here.since.insert(key, here.range.floor());
                state.moved += 1;
                state.network.insert(Message::Carry(to, key, Placed { node, epoch }));
            }
            Step::Claim(node, key) => {
                let here = &state.nodes[&node];
                let own = here.leaving.get(&key).map(|epoch| Placed { node, epoch: *epoch });
                let from = own.or_else(|| here.carried.get(&key).copied())?;
                let owner = here.range.owner()?;
                state.network.insert(Message::Ask(owner, Move { key, from, to: node }));
            }
            Step::Ask(from, host) => {
                state.asked += 1;
                let view = state.nodes[&from].range.version();
                self.handle(&mut state, host, Event::Asked { from, view });
            }
        }
        (state != *last).then_some(state)
    }

    fn properties(&self) -> Vec<Property<Self>> {
        vec![
            Property::always(
                "no two nodes whose lease is open host the same actor",
                |cluster: &Self, state: &State| {
                    (0..cluster.keys).all(|key| {
                        let hosts = state
                            .nodes
                            .iter()
                            .filter(|(id, node)| node.active.contains_key(&key) && Self::open(state, **id));
                        hosts.count() <= 1
                    })
                },
            ),
            Property::always("an epoch is one activation", |_, state: &State| {
                state.born.values().all(|life| life.times == 1)
            }),
            Property::always("a moved actor goes on from its last state", |_, state: &State| {
                state.born.iter().all(|((key, epoch), life)| {
                    let Some(from) = life.from else { return true };
                    // Between its departure and its arrival nothing has run, but for what has gone meanwhile, or died.
                    state.born.iter().all(|((other, between), other_life)| {
                        other != key
                            || *between <= from
                            || *between >= *epoch
                            || other_life.released
                            || !Self::open(state, other_life.host)
                    })
                })
            }),
            Property::always("a state that left is somewhere while nobody died", |_, state: &State| {
                let nobody_died = state.truth.members.values().all(|member| member.status != Status::Dead);
                !nobody_died
                    || state.departed.iter().all(|(key, epoch)| {
                        let arrived =
                            || state.born.iter().any(|((other, _), life)| other == key && life.from == Some(*epoch));
                        let is_held = |node: &Node| {
                            node.leaving.get(key) == Some(epoch)
                                || node.carried.get(key).is_some_and(|from| from.epoch == *epoch)
                        };
                        state.nodes.values().any(is_held) || arrived()
                    })
            }),
            Property::always("what is held is not given up for another actor's end", |_, state: &State| {
                !state.is_spurned
            }),
            Property::sometimes("an actor arrives elsewhere", |_, state: &State| {
                state
                    .nodes
                    .values()
                    .any(|node| node.active.iter().any(|(key, epoch)| state.born[&(*key, *epoch)].from.is_some()))
            }),
            Property::sometimes("a released actor is activated again", |_, state: &State| {
                state.released > 0 && state.nodes.values().any(|node| !node.active.is_empty())
            }),
            Property::sometimes("all changes are seen and an actor is placed after them", |_, state: &State| {
                state.changed > 0
                    && state.nodes.iter().any(|(id, node)| {
                        let version = node.range.version();
                        version == state.truth.version
                            && Self::open(state, *id)
                            && node.active.values().any(|epoch| epoch.0 >> 32 == version)
                    })
            }),
        ]
    }
}
