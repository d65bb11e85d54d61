//! A few nodes with their actors, in one thread and in time that only tests pass.

use std::borrow::Cow;
use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use super::super::*;
use crate::mix::mix;

pub(super) struct World {
    pub(super) config: Config,
    pub(super) now: Timestamp,
    pub(super) nodes: BTreeMap<NodeId, Exchange>,
    pub(super) stage: Stage,
    /// What may become of a message: it comes after so long, and again if it is doubled.
    pub(super) fate: fn(NodeId, NodeId, &Message) -> Vec<Duration>,
    /// How long an order of this node waits for its actor's turn to end.
    pub(super) turn: fn(NodeId) -> Duration,
    /// Whether nodes send back what was not promised to them and has no room.
    pub(super) declines: bool,
    /// Actors that have gone and never come: somebody else has them by then.
    pub(super) unheard: BTreeSet<u64>,
    /// Every order, when it was given, and by whom.
    pub(super) orders: Vec<(Timestamp, NodeId, Action)>,
    /// Moves that were carried out.
    pub(super) moves: usize,
    pub(super) ended: Vec<(NodeId, NodeId, Outcome)>,
    pub(super) cleared: Vec<(NodeId, u64, NodeId)>,
    queue: BTreeMap<(Timestamp, u64), Happening>,
    happened: u64,
    dice: u64,
}

/// Who is where, and who talks to whom.
#[derive(Default)]
pub(super) struct Stage {
    pub(super) actors: BTreeMap<u64, Being>,
    pub(super) edges: BTreeMap<u64, Vec<(u64, u32)>>,
    pub(super) sets: Vec<Vec<u64>>,
    pub(super) dead: BTreeSet<NodeId>,
    /// Where an actor's partner is, as its node believes; else it knows.
    pub(super) believed: BTreeMap<(u64, u64), NodeId>,
    /// What nodes measured; else they know.
    pub(super) measured: BTreeMap<NodeId, Measured>,
    /// By how many hundredths a node's load is more than what its actors take.
    pub(super) noise: BTreeMap<NodeId, i64>,
    /// Nodes that do not host the actors' kind.
    pub(super) barred: BTreeSet<NodeId>,
    hosted: BTreeMap<NodeId, BTreeSet<u64>>,
}

#[derive(Clone, Copy, Debug)]
pub(super) struct Being {
    pub(super) node: NodeId,
    pub(super) epoch: Epoch,
    pub(super) cpu: u32,
    pub(super) anchor: bool,
}

enum Happening {
    Said(NodeId, NodeId, Message),
    /// An order's actor is at the end of its turn.
    Begins(NodeId, Action),
    /// What an order has sent comes to its target.
    Lands(NodeId, Action),
}

impl World {
    /// Nodes 1 to `nodes`, each knowing all.
    pub(super) fn new(nodes: u64, config: Config) -> Self {
        let mut world = Self {
            config,
            now: Timestamp::default(),
            nodes: BTreeMap::new(),
            stage: Stage::default(),
            fate: |_, _, _| vec![MILLI],
            turn: |_| MILLI,
            declines: true,
            unheard: BTreeSet::new(),
            orders: Vec::new(),
            moves: 0,
            ended: Vec::new(),
            cleared: Vec::new(),
            queue: BTreeMap::new(),
            happened: 0,
            dice: 7,
        };
        (1..=nodes).for_each(|node| world.join(node));
        world
    }

    /// Another node, which all exchange with at once.
    pub(super) fn join(&mut self, node: u64) {
        let id = NodeId(node);
        self.stage.hosted.insert(id, BTreeSet::new());
        self.nodes.insert(id, Exchange::new(id, self.config, self.now));
        let may: BTreeSet<NodeId> = self.nodes.keys().copied().collect();
        for node in may.clone() {
            self.event(node, Event::Partners { view: 1, may: may.clone() });
        }
    }

    pub(super) fn actor(&mut self, hash: u64, node: u64, cpu: u32) {
        let being = Being { node: NodeId(node), epoch: Epoch(1), cpu, anchor: false };
        self.stage.actors.insert(hash, being);
        self.stage.hosted.entry(NodeId(node)).or_default().insert(hash);
    }

    pub(super) fn anchor(&mut self, hash: u64, node: u64, cpu: u32) {
        self.actor(hash, node, cpu);
        self.stage.actors.get_mut(&hash).expect("it was just made").anchor = true;
    }

    /// Puts an actor somewhere, as another activation.
    pub(super) fn put(&mut self, hash: u64, node: u64) {
        self.stage.put(hash, NodeId(node));
    }

    pub(super) fn talk(&mut self, one: u64, other: u64, flow: u32) {
        self.stage.edges.entry(one).or_default().push((other, flow));
        self.stage.edges.entry(other).or_default().push((one, flow));
    }

    /// Goes to the moment at which nodes may take part, and have not yet: their rounds are due.
    pub(super) fn settle(&mut self) {
        self.pass(self.config.quiet - MILLI);
        self.now = self.now + MILLI;
    }

    /// Lets the node look for somebody to exchange with now.
    pub(super) fn tick(&mut self, node: u64) {
        self.dice = mix(self.dice);
        self.event(NodeId(node), Event::Tick { random: self.dice });
    }

    /// Passes time, with all that happens meanwhile.
    pub(super) fn pass(&mut self, time: Duration) {
        let until = self.now + time;
        loop {
            let due = |(node, machine): (&NodeId, &Exchange)| machine.deadline().map(|at| (at, *node));
            let alive = self.nodes.iter().filter(|(node, _)| !self.stage.dead.contains(node));
            let tick = alive.filter_map(due).min().filter(|(at, _)| *at <= until);
            let next = self.queue.first_key_value().map(|((at, _), _)| *at).filter(|at| *at <= until);
            match (tick, next) {
                (Some((at, node)), next) if next.is_none_or(|next| at <= next) => {
                    self.now = self.now.max(at);
                    self.tick(node.0);
                }
                (_, Some(at)) => {
                    self.now = self.now.max(at);
                    self.happen();
                }
                _ => break,
            }
        }
        self.now = until;
    }

    /// Passes seconds, and says how many moves there were.
    pub(super) fn seconds(&mut self, seconds: u64) -> usize {
        let before = self.moves;
        self.pass(Duration::from_secs(seconds));
        self.moves - before
    }

    fn happen(&mut self) {
        let Some((_, happening)) = self.queue.pop_first() else { return };
        match happening {
            Happening::Said(from, to, message) => {
                if !self.stage.dead.contains(&to) {
                    self.event(to, Event::Received { from, message });
                }
            }
            Happening::Begins(node, order) => {
                let Action::Move { hash, epoch, until, x, .. } = order else { return };
                if self.stage.dead.contains(&node) {
                    return;
                }
                let being = self.stage.actors[&hash];
                let by_epoch = being.node == node && being.epoch == epoch;
                if self.now <= until && (by_epoch || !self.config.checks.epochs) {
                    self.after(MILLI, Happening::Lands(node, order));
                } else {
                    self.event(node, Event::Settled { x, hash, end: OrderEnd::Withdrawn });
                }
            }
            Happening::Lands(node, order) => self.land(node, &order),
        }
    }

    fn land(&mut self, node: NodeId, order: &Action) {
        let Action::Move { hash, to, x, .. } = *order else { return };
        let cpu = self.stage.actors[&hash].cpu;
        let takes = !self.stage.dead.contains(&to)
            && (!self.declines
                || self.nodes[&to].admits(node, x, hash, cpu, &Here { stage: &self.stage, node: to, now: self.now }));
        if takes {
            self.moves += 1;
            self.stage.put(hash, to);
            if !self.unheard.contains(&hash) {
                self.event(to, Event::Arrived { x, hash });
            }
        }
        let end = if takes { OrderEnd::Moved } else { OrderEnd::Back };
        self.event(node, Event::Settled { x, hash, end });
    }

    fn after(&mut self, time: Duration, happening: Happening) {
        self.happened += 1;
        self.queue.insert((self.now + time, self.happened), happening);
    }

    /// Says something to a node, as if it came from another one.
    pub(super) fn say(&mut self, from: u64, to: u64, message: Message) {
        self.event(NodeId(to), Event::Received { from: NodeId(from), message });
    }

    pub(super) fn event(&mut self, node: NodeId, event: Event) {
        let Some(mut machine) = self.nodes.remove(&node) else { return };
        let mut out = Vec::new();
        machine.handle(self.now, event, &Here { stage: &self.stage, node, now: self.now }, &mut out);
        self.nodes.insert(node, machine);
        for action in out {
            match action {
                Action::Send { to, message } => {
                    for time in (self.fate)(node, to, &message) {
                        self.after(time, Happening::Said(node, to, message.clone()));
                    }
                }
                Action::Move { .. } => {
                    self.orders.push((self.now, node, action.clone()));
                    self.after((self.turn)(node), Happening::Begins(node, action));
                }
                Action::Clear { hash, toward, .. } => {
                    self.stage.believed.retain(|(one, _), at| *one != hash || *at != toward);
                    self.cleared.push((node, hash, toward));
                }
                Action::Ended { with, how, .. } => self.ended.push((node, with, how)),
            }
        }
    }

    /// What a node knows of itself.
    pub(super) fn here(&self, node: u64) -> Here<'_> {
        Here { stage: &self.stage, node: NodeId(node), now: self.now }
    }

    /// Whether no node is in an exchange.
    pub(super) fn rests(&self) -> bool {
        self.nodes.values().all(Exchange::is_idle)
    }

    /// Flow between nodes, a minute.
    pub(super) fn cut(&self) -> u64 {
        self.flow(|one, other| one != other)
    }

    /// The hundredths of all messages that go between nodes.
    pub(super) fn remote_percent(&self) -> u64 {
        self.cut() * 100 / self.flow(|_, _| true).max(1)
    }

    fn flow(&self, counts: impl Fn(NodeId, NodeId) -> bool) -> u64 {
        let at = |hash: &u64| self.stage.actors[hash].node;
        let ends = self.stage.edges.iter().flat_map(|(one, edges)| edges.iter().map(move |edge| (one, edge)));
        let counted = ends.filter(|(one, (other, _))| *one < other && counts(at(one), at(other)));
        counted.map(|(_, (_, flow))| u64::from(*flow)).sum()
    }

    pub(super) fn count(&self, node: u64) -> u64 {
        self.stage.hosted[&NodeId(node)].len() as u64
    }

    /// The part of a node's one core that its actors take, in hundredths.
    pub(super) fn points(&self, node: u64) -> u64 {
        self.stage.load(NodeId(node)).busy / 10_000
    }

    pub(super) fn place(&self, hash: u64) -> u64 {
        self.stage.actors[&hash].node.0
    }

    /// The nodes to which each actor is promised.
    pub(super) fn promised(&self, hash: u64) -> BTreeSet<NodeId> {
        let all = self.nodes.values().flat_map(Exchange::promises);
        all.filter(|(promised, _)| *promised == hash).map(|(_, node)| node).collect()
    }
}

impl Stage {
    fn put(&mut self, hash: u64, node: NodeId) {
        let being = self.actors.get_mut(&hash).expect("it is somewhere");
        self.hosted.get_mut(&being.node).expect("nodes are known").remove(&hash);
        (being.node, being.epoch) = (node, Epoch(being.epoch.0 + 1));
        self.hosted.get_mut(&node).expect("nodes are known").insert(hash);
    }

    pub(super) fn load(&self, node: NodeId) -> Load {
        let hosted = &self.hosted[&node];
        let busy: u64 = hosted.iter().map(|hash| u64::from(self.actors[hash].cpu)).sum();
        let noise = 100 + self.noise.get(&node).copied().unwrap_or(0);
        Load { busy: busy * noise as u64 / 100, cores: 1, activations: hosted.len() as u64 }
    }
}

pub(super) struct Here<'a> {
    stage: &'a Stage,
    node: NodeId,
    now: Timestamp,
}

impl Here<'_> {
    fn measured(&self, node: NodeId) -> Measured {
        let known = self.stage.measured.get(&node).copied();
        known.unwrap_or(Measured { load: self.stage.load(node), since: self.now, counted: self.now })
    }

    fn seen(&self, hash: u64) -> Actor {
        let Being { epoch, cpu, .. } = self.stage.actors[&hash];
        let mut toward: BTreeMap<NodeId, u32> = BTreeMap::new();
        let (mut here, mut flow, mut edges) = (0, 0, Vec::new());
        for (partner, weight) in self.stage.edges.get(&hash).into_iter().flatten() {
            let believed = self.stage.believed.get(&(hash, *partner));
            let at = believed.copied().unwrap_or(self.stage.actors[partner].node);
            flow += weight;
            if at == self.node {
                here += weight;
            } else {
                *toward.entry(at).or_default() += weight;
            }
            edges.push(Edge { partner: *partner, at, flow: *weight });
        }
        edges.sort_by_key(|edge| std::cmp::Reverse(edge.flow));
        let toward = toward.into_iter().collect();
        Actor { hash, epoch, kind: 0, flow, here, toward, ready: true, cost: 16, cpu, bytes: 512, edges }
    }
}

impl Roster for Here<'_> {
    fn survey(&self) -> Cow<'_, Survey> {
        let hosted = &self.stage.hosted[&self.node];
        let movable = hosted.iter().filter(|hash| !self.stage.actors[hash].anchor);
        let whole = |set: &&Vec<u64>| set.iter().all(|hash| hosted.contains(hash));
        Cow::Owned(Survey {
            load: self.measured(self.node),
            others: self.stage.hosted.keys().map(|node| (*node, self.measured(*node))).collect(),
            actors: movable.map(|hash| self.seen(*hash)).collect(),
            sets: self
                .stage
                .sets
                .iter()
                .filter(whole)
                .map(|members| Set { members: members.clone(), ready: true })
                .collect(),
            barred: self.stage.barred.iter().map(|node| (0, *node)).collect(),
        })
    }

    fn hosts(&self, hash: u64) -> bool {
        self.stage.hosted[&self.node].contains(&hash)
    }
}

/// All rules but those that `out` takes out.
pub(super) fn without(out: impl FnOnce(&mut Checks)) -> Config {
    let mut config = Config::default();
    out(&mut config.checks);
    config
}

pub(super) const MILLI: Duration = Duration::from_millis(1);
