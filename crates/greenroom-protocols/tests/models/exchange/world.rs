//! The world around the machines: nodes, actors, orders under way, messages, and time in whole units.

use std::borrow::Cow;
use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use greenroom_protocols::directory::Epoch;
use greenroom_protocols::exchange::{
    Action, Actor, Checks, Config, Edge, Event, Exchange, ExchangeId, Load, Measured, Message, OrderEnd, Roster,
    Survey, Tolerance,
};
use greenroom_protocols::node::NodeId;
use greenroom_protocols::time::Timestamp;
use stateright::{Model, Property};

/// What is tried, and how much of it.
#[derive(Clone, Debug)]
pub(super) struct World {
    /// Where each actor is at first. Those from 100 on cannot move.
    pub(super) actors: Vec<(u64, u64)>,
    /// Who talks to whom.
    pub(super) edges: Vec<(u64, u64, u32)>,
    /// Offers in all.
    pub(super) offers_max: u64,
    /// Units of time that pass.
    pub(super) time_max: u64,
    /// Messages that come twice.
    pub(super) repeats_max: usize,
    /// Nodes that crash.
    pub(super) crashes_max: usize,
    /// Actors that end, and are activated on another node.
    pub(super) elsewhere_max: usize,
    /// How many more activations than the mean a node may have, and two nodes may differ by.
    pub(super) delta: u64,
    /// How many moves a node may be ahead.
    pub(super) credit: usize,
    /// Whether nodes send back what was not promised to them and has no room.
    pub(super) declines: bool,
    pub(super) checks: Checks,
}

#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub(super) struct State {
    pub(super) now: u64,
    pub(super) nodes: BTreeMap<NodeId, Exchange>,
    pub(super) actors: BTreeMap<u64, (NodeId, Epoch)>,
    network: BTreeSet<(NodeId, NodeId, Message)>,
    pub(super) orders: BTreeSet<Order>,
    /// Actors that have left, and have not come.
    pub(super) flights: BTreeSet<(NodeId, Order)>,
    /// The two of each exchange.
    pairs: BTreeMap<ExchangeId, (NodeId, NodeId)>,
    offers: u64,
    repeats: usize,
    crashes: usize,
    elsewhere: usize,
    pub(super) moved: usize,
    /// Whether an order has ended otherwise than it was chosen.
    failed: bool,
    /// The most that each node may have.
    room: BTreeMap<NodeId, u64>,
    broken: Option<&'static str>,
}

#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub(super) struct Order {
    by: NodeId,
    hash: u64,
    epoch: Epoch,
    to: NodeId,
    until: Timestamp,
    x: ExchangeId,
}

#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub(super) enum Step {
    /// A unit of time passes, and all deadlines are kept.
    Pass,
    /// A node looks for somebody to exchange with.
    Visit(NodeId),
    Deliver(NodeId, NodeId, Message),
    /// It comes now, and once more later.
    Repeat(NodeId, NodeId, Message),
    /// The actor's turn ends.
    Begin(Order),
    Land(NodeId, Order),
    Crash(NodeId),
    Elsewhere(u64, NodeId),
}

impl World {
    pub(super) fn config(&self) -> Config {
        Config {
            round: Duration::ZERO,
            again: Duration::ZERO,
            jitter: Duration::ZERO,
            visits: 2,
            answer_within: UNIT,
            send_for: UNIT * 2,
            lock_slack: UNIT,
            wait_beyond: UNIT,
            quiet: Duration::ZERO,
            skip_first: Duration::ZERO,
            skip_max: Duration::ZERO,
            credit: self.credit,
            tolerance: Tolerance { count_min: self.delta, count_percent: 0, ..Tolerance::default() },
            checks: self.checks,
            ..Config::default()
        }
    }

    fn event(&self, state: &mut State, node: NodeId, event: Event) {
        let Some(mut machine) = state.nodes.remove(&node) else { return };
        let mut out = Vec::new();
        let here = Here { world: self, state, node };
        machine.handle(Timestamp::from_nanos(state.now), event, &here, &mut out);
        state.nodes.insert(node, machine);
        for action in out {
            match action {
                Action::Send { to, message } => {
                    if let Message::Offer(offer) = &message {
                        state.offers += 1;
                        state.pairs.insert(offer.x, (node, to));
                    }
                    state.network.insert((node, to, message));
                }
                Action::Move { hash, epoch, to, until, x } => {
                    state.orders.insert(Order { by: node, hash, epoch, to, until, x });
                }
                Action::Clear { .. } | Action::Ended { .. } => {}
            }
        }
    }

    fn begin(&self, state: &mut State, order: Order) {
        let Order { by, hash, epoch, until, x, .. } = order;
        state.orders.remove(&order);
        let place = state.actors.get(&hash).copied();
        let there = if self.checks.epochs { place == Some((by, epoch)) } else { place.is_some() };
        let flies = state.flights.iter().any(|(_, other)| other.hash == hash);
        if let Some((from, _)) = place.filter(|_| there && !flies && state.now <= until.as_nanos()) {
            let (one, other) = state.pairs[&x];
            if (from, order.to) != (one, other) && (from, order.to) != (other, one) {
                state.broken = Some(BETWEEN);
            }
            state.flights.insert((from, order));
        } else {
            state.failed = true;
            self.event(state, by, Event::Settled { x, hash, end: OrderEnd::Withdrawn });
        }
    }

    fn land(&self, state: &mut State, from: NodeId, order: Order) {
        let Order { by, hash, to, x, .. } = order;
        state.flights.remove(&(from, order));
        let here = Here { world: self, state, node: to };
        let target = state.nodes.get(&to);
        let takes = target.is_some_and(|target| !self.declines || target.admits(from, x, hash, 0, &here));
        let mut end = OrderEnd::Back;
        if takes {
            end = OrderEnd::Moved;
            let before = self.cut(state);
            let epoch = state.actors.get(&hash).map_or(Epoch(0), |(_, epoch)| *epoch);
            state.actors.insert(hash, (to, Epoch(epoch.0 + 1)));
            state.moved += 1;
            if self.cut(state) >= before && !state.failed {
                state.broken = Some(LOWER);
            }
            self.event(state, to, Event::Arrived { x, hash });
        } else {
            state.failed = true;
        }
        self.event(state, by, Event::Settled { x, hash, end });
    }

    fn cut(&self, state: &State) -> u32 {
        let at = |hash: &u64| state.actors.get(hash).map(|(node, _)| *node);
        self.edges.iter().filter(|(one, other, _)| at(one) != at(other)).map(|(_, _, flow)| flow).sum()
    }

    fn count(state: &State, node: NodeId) -> u64 {
        state.actors.values().filter(|(at, _)| *at == node).count() as u64
    }

    /// What each node may have: as much as it had, or the mean and δ.
    fn widen(&self, state: &mut State) {
        let mean = (state.actors.len() as u64).div_ceil(state.nodes.len().max(1) as u64);
        for node in state.nodes.keys() {
            let room = state.room.entry(*node).or_default();
            *room = (mean + self.delta).max(*room);
        }
    }
}

impl Model for World {
    type State = State;
    type Action = Step;

    fn init_states(&self) -> Vec<State> {
        let nodes: BTreeSet<NodeId> = (1..=3).map(NodeId).collect();
        let start = Timestamp::default();
        let mut state = State {
            now: 0,
            nodes: nodes.iter().map(|node| (*node, Exchange::new(*node, self.config(), start))).collect(),
            actors: self.actors.iter().map(|(hash, node)| (*hash, (NodeId(*node), Epoch(1)))).collect(),
            network: BTreeSet::new(),
            orders: BTreeSet::new(),
            flights: BTreeSet::new(),
            pairs: BTreeMap::new(),
            offers: 0,
            repeats: 0,
            crashes: 0,
            elsewhere: 0,
            moved: 0,
            failed: false,
            room: BTreeMap::new(),
            broken: None,
        };
        state.room = nodes.iter().map(|node| (*node, Self::count(&state, *node))).collect();
        self.widen(&mut state);
        for node in &nodes {
            self.event(&mut state, *node, Event::Partners { view: 1, may: nodes.clone() });
        }
        vec![state]
    }

    fn actions(&self, state: &State, steps: &mut Vec<Step>) {
        if state.now < self.time_max && state.flights.is_empty() {
            steps.push(Step::Pass);
        }
        if state.offers < self.offers_max {
            steps.extend(state.nodes.keys().copied().map(Step::Visit));
        }
        for (from, to, message) in &state.network {
            steps.push(Step::Deliver(*from, *to, message.clone()));
            if state.repeats < self.repeats_max {
                steps.push(Step::Repeat(*from, *to, message.clone()));
            }
        }
        steps.extend(state.orders.iter().cloned().map(Step::Begin));
        steps.extend(state.flights.iter().cloned().map(|(from, order)| Step::Land(from, order)));
        if state.crashes < self.crashes_max {
            steps.extend(state.nodes.keys().copied().map(Step::Crash));
        }
        if state.elsewhere < self.elsewhere_max {
            let stays = state.actors.keys().filter(|hash| !state.flights.iter().any(|(_, order)| order.hash == **hash));
            let moves = stays.flat_map(|hash| state.nodes.keys().map(|node| Step::Elsewhere(*hash, *node)));
            steps.extend(moves);
        }
    }

    fn next_state(&self, last: &State, step: Step) -> Option<State> {
        let mut state = last.clone();
        match step {
            Step::Pass => {
                state.now += 1;
                // Whatever a node hears keeps its deadlines; and by this it does not look for somebody to exchange with.
                for node in last.nodes.keys() {
                    self.event(&mut state, *node, Event::Partners { view: 1, may: (1..=3).map(NodeId).collect() });
                }
            }
            Step::Visit(node) => {
                self.event(&mut state, node, Event::Tick { random: 0 });
                if state.offers == last.offers {
                    return None;
                }
            }
            Step::Deliver(from, to, message) => {
                state.network.remove(&(from, to, message.clone()));
                self.event(&mut state, to, Event::Received { from, message });
            }
            Step::Repeat(from, to, message) => {
                state.repeats += 1;
                self.event(&mut state, to, Event::Received { from, message });
            }
            Step::Begin(order) => self.begin(&mut state, order),
            Step::Land(from, order) => self.land(&mut state, from, order),
            Step::Crash(node) => {
                state.crashes += 1;
                state.nodes.remove(&node);
                state.actors.retain(|_, (at, _)| *at != node);
                state.orders.retain(|order| order.by != node);
                state.flights.retain(|(from, _)| *from != node);
                state.network.retain(|(_, to, _)| *to != node);
                self.widen(&mut state);
            }
            Step::Elsewhere(hash, node) => {
                let (at, epoch) = state.actors.get_mut(&hash).filter(|(at, _)| *at != node)?;
                (*at, *epoch) = (node, Epoch(epoch.0 + 1));
                (state.elsewhere, state.failed) = (state.elsewhere + 1, true);
                let count = Self::count(&state, node);
                let room = state.room.entry(node).or_default();
                *room = count.max(*room);
            }
        }
        (state != *last).then_some(state)
    }

    fn properties(&self) -> Vec<Property<Self>> {
        vec![
            Property::always(ALONE, |_, state: &State| {
                let orders = state.orders.iter().filter(|order| order.until.as_nanos() >= state.now);
                let orders = orders.map(|order| (order.by, order.hash, order.epoch, order.to));
                let mut promised: BTreeMap<(NodeId, u64, Epoch), NodeId> = BTreeMap::new();
                let mut alone = true;
                for (by, hash, epoch, to) in orders {
                    alone &= *promised.entry((by, hash, epoch)).or_insert(to) == to;
                }
                for (by, machine) in &state.nodes {
                    for (hash, to) in machine.promises() {
                        let Some((_, epoch)) = state.actors.get(&hash).filter(|(at, _)| at == by) else { continue };
                        alone &= *promised.entry((*by, hash, *epoch)).or_insert(to) == to;
                    }
                }
                alone
            }),
            Property::always(BETWEEN, |_, state: &State| state.broken != Some(BETWEEN)),
            Property::always(LOWER, |world: &Self, state: &State| {
                state.broken != Some(LOWER) || world.credit > 1 || world.crashes_max > 0 || world.checks.newcomers
            }),
            Property::always(LOCKS, |world: &Self, state: &State| {
                // What a lock may last: the answer, the sending, the slack, and the wait beyond it.
                let Config { answer_within, send_for, lock_slack, wait_beyond, .. } = world.config();
                let longest = (answer_within + send_for + lock_slack + wait_beyond).as_nanos() as u64;
                let mut locks = state.nodes.values().flat_map(Exchange::locks);
                locks.all(|(_, _, begun)| state.now < begun.as_nanos() + longest)
            }),
            Property::always(BALANCE, |world: &Self, state: &State| {
                let credit = world.credit as u64;
                let fits = |node: &NodeId| Self::count(state, *node) <= state.room[node] + credit;
                state.nodes.keys().all(fits) || world.elsewhere_max > 0
            }),
            Property::always(REST, |world: &Self, state: &State| {
                let rests = state.nodes.values().all(Exchange::is_idle) && state.orders.is_empty();
                let fits = |node: &NodeId| Self::count(state, *node) <= state.room[node];
                let rests = rests && state.flights.is_empty() && !state.failed;
                !rests || world.credit > 1 || state.nodes.keys().all(fits)
            }),
            Property::sometimes(MOVED, |_, state: &State| {
                state.moved > 0 && state.nodes.values().all(Exchange::is_idle)
            }),
        ]
    }
}

struct Here<'a> {
    world: &'a World,
    state: &'a State,
    node: NodeId,
}

impl Here<'_> {
    fn load(&self, node: NodeId) -> Measured {
        let load = Load { busy: 0, cores: 1, activations: World::count(self.state, node) };
        let now = Timestamp::from_nanos(self.state.now);
        Measured { load, since: now, counted: now }
    }

    fn actor(&self, hash: u64, epoch: Epoch) -> Actor {
        let mut actor = Actor { hash, epoch, ready: true, cost: 1, ..Actor::default() };
        let mut toward: BTreeMap<NodeId, u32> = BTreeMap::new();
        for (one, other, flow) in &self.world.edges {
            let partner = match (*one == hash, *other == hash) {
                (true, _) => *other,
                (_, true) => *one,
                _ => continue,
            };
            let Some((at, _)) = self.state.actors.get(&partner) else { continue };
            actor.flow += flow;
            if *at == self.node {
                actor.here += flow;
            } else {
                *toward.entry(*at).or_default() += flow;
            }
            actor.edges.push(Edge { partner, at: *at, flow: *flow });
        }
        actor.toward = toward.into_iter().collect();
        actor
    }
}

impl Roster for Here<'_> {
    fn survey(&self) -> Cow<'_, Survey> {
        let here = self.state.actors.iter().filter(|(hash, (at, _))| *at == self.node && **hash < 100);
        let flies = |hash: u64| self.state.flights.iter().any(|(_, order)| order.hash == hash);
        let here = here.filter(|(hash, _)| !flies(**hash));
        Cow::Owned(Survey {
            load: self.load(self.node),
            others: self.state.nodes.keys().map(|node| (*node, self.load(*node))).collect(),
            actors: here.map(|(hash, (_, epoch))| self.actor(*hash, *epoch)).collect(),
            ..Survey::default()
        })
    }

    fn hosts(&self, hash: u64) -> bool {
        self.state.actors.get(&hash).is_some_and(|(at, _)| *at == self.node)
    }
}

pub(super) const ALONE: &str = "no actor is promised to two nodes";
pub(super) const BETWEEN: &str = "an exchange's moves stay between its two";
pub(super) const LOWER: &str = "each move lowers the flow between nodes";
pub(super) const LOCKS: &str = "every lock ends";
pub(super) const BALANCE: &str = "no node gets more than the mean, δ and the credit";
pub(super) const REST: &str = "at rest no node has more than it had, or than the mean and δ";
pub(super) const MOVED: &str = "actors move";

const UNIT: Duration = Duration::from_nanos(1);
