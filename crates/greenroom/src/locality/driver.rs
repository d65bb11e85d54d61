//! The thin loop around a node's exchanges: messages, ends of moves and ticks in, orders out.

use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;

use greenroom_protocols::exchange::{
    Action, Config, Event, Exchange, ExchangeId, Load, Measured, Message, OrderEnd, Survey, Tolerance,
};
use greenroom_protocols::heavy_edges;
use greenroom_protocols::node::NodeId;
use greenroom_world::Timestamp;
use tokio::sync::mpsc;

use super::exchanges::{Happening, Machine};
use super::moved::MovedActor;
use super::survey::{Surveyor, Taken};
use super::word::{CHANNEL, Word};
use super::{Common, ask, orders};
use crate::here::Here;

/// Who drives a node's exchanges.
pub(super) struct Driver {
    here: Arc<Here>,
    common: Arc<Common>,
    /// What other nodes have said of themselves.
    others: BTreeMap<NodeId, Other>,
    load: Measured,
    /// What all shards had had to do at some times, in ns: the last ones, the oldest first.
    busy: VecDeque<(Timestamp, u64)>,
    standing_at: Timestamp,
    /// When the last survey was taken, and whether it has all that may move.
    surveyed: Option<(Timestamp, bool)>,
    /// How many the sets have that wished to go, by their members, and when that was: who goes as one of them may be the last one here.
    sets: BTreeMap<u64, (u16, Timestamp)>,
    /// The version of the view, and the nodes, that the machine was last told of.
    partners: Option<(u64, BTreeSet<NodeId>)>,
    /// The actors that are ordered to leave, for people.
    ordered: BTreeMap<(ExchangeId, u64), (NodeId, MovedActor)>,
}

/// What a node has said of itself.
#[derive(Clone, Copy)]
struct Other {
    takes_part: bool,
    load: Load,
    heard: Timestamp,
}

impl Other {
    /// Its load, measured as this node measures its own.
    fn measured(&self) -> Measured {
        Measured { load: self.load, since: self.heard - STANDING_EVERY * SPANS as u32, counted: self.heard }
    }
}

/// Drives the exchanges until the node stops.
pub(super) async fn drive(here: Arc<Here>, common: Arc<Common>, mut happenings: mpsc::Receiver<Happening>) {
    let world = here.world().clone();
    let mut driver = Driver {
        here,
        common,
        others: BTreeMap::new(),
        load: Measured { load: Load::default(), since: world.now(), counted: world.now() },
        busy: VecDeque::from([(world.now(), 0)]),
        standing_at: world.now() + STANDING_EVERY,
        surveyed: None,
        sets: BTreeMap::new(),
        partners: None,
        ordered: BTreeMap::new(),
    };
    while !driver.here.is_stopped() {
        let due = world.sleep_until(driver.due());
        tokio::select! {
            biased;
            happening = happenings.recv() => match happening {
                Some(happening) => driver.take(happening).await,
                None => return,
            },
            () = due => driver.tick().await,
        }
    }
}

impl Driver {
    fn due(&self) -> Timestamp {
        let exchange = self.common.exchanges.machine().exchange.as_ref().and_then(Exchange::deadline);
        exchange.map_or(self.standing_at, |due| due.min(self.standing_at))
    }

    fn now(&self) -> Timestamp {
        self.here.world().now()
    }

    async fn take(&mut self, happening: Happening) {
        match happening {
            Happening::Changed => self.meet(),
            Happening::Told { from, payload } => match Word::decode(&payload) {
                Ok(Word::Standing { takes_part, load }) => {
                    self.others.insert(from, Other { takes_part, load, heard: self.now() });
                    self.meet();
                }
                Ok(Word::Exchange(message)) => {
                    if matches!(message, Message::Offer(_) | Message::Accept(_)) {
                        self.look().await;
                    }
                    self.event(Event::Received { from, message });
                }
                Err(error) => tracing::debug!(%from, %error, "what an optimiser said cannot be read"),
            },
            Happening::Settled { x, hash, end, partners } => {
                self.settled(x, hash, end, &partners);
                self.event(Event::Settled { x, hash, end });
            }
            Happening::Arrived { x, hash, from, partners } => {
                self.common.exchanges.counts.arrived.fetch_add(1, Ordering::Relaxed);
                self.moved(hash, (from, self.here.me()), &partners);
                self.event(Event::Arrived { x, hash });
            }
        }
    }

    async fn tick(&mut self) {
        if self.standing_at <= self.now() {
            self.tell_standing();
            self.meet();
        }
        let due = |exchange: &Exchange| exchange.deadline().is_some_and(|due| due <= self.now());
        let (is_due, is_idle) = {
            let machine = self.common.exchanges.machine();
            let exchange = machine.exchange.as_ref();
            (exchange.is_some_and(due), exchange.is_some_and(Exchange::is_idle))
        };
        if is_due {
            if is_idle {
                self.look().await;
            }
            self.event(Event::Tick { random: self.here.world().random() });
        }
    }

    /// Measures what there is to do here, and tells the others of it.
    fn tell_standing(&mut self) {
        let now = self.now();
        let busy: u64 = self.here.gauges().iter().map(|gauges| gauges.busy_nanos()).sum();
        self.busy.push_back((now, busy));
        if self.busy.len() > SPANS + 1 {
            self.busy.pop_front();
        }
        let (since, before) = self.busy.front().copied().unwrap_or((now, busy));
        let passed = now.since(since).as_micros().max(1) as u64;
        let micros = (busy.saturating_sub(before) / 1000).saturating_mul(1_000_000) / passed;
        let cores = self.here.shards().len() as u32;
        let load = Load { busy: micros, cores, activations: self.here.activations() };
        (self.load, self.standing_at) = (Measured { load, since, counted: now }, now + STANDING_EVERY);
        let word = Word::Standing { takes_part: self.takes_part(), load }.encode();
        let me = self.here.me();
        for (node, _) in self.here.view().view.active().filter(|(node, _)| *node != me) {
            self.here.tell(node, CHANNEL, word.clone());
        }
    }

    fn takes_part(&self) -> bool {
        !self.common.exchanges.is_paused() && !self.here.is_handing_over() && !self.here.is_draining()
    }

    /// Tells the machine with whom it may exchange actors, if that has changed. Makes it as soon as the node has an id.
    fn meet(&mut self) {
        let now = self.now();
        let Some(_) = self.here.directory() else { return };
        let (me, view) = (self.here.me(), self.here.view());
        self.others.retain(|node, _| view.view.is_active(*node));
        let apart = self.here.loads().apart(now);
        let may = |node: NodeId| {
            let draining = view.member(node).is_none_or(|member| member.draining);
            let other = self.others.get(&node).filter(|other| other.takes_part && now.since(other.heard) < SILENT);
            node != me && other.is_some() && !draining && !apart.contains(&node)
        };
        let active = view.view.active().map(|(node, _)| node).filter(|node| self.takes_part() && may(*node));
        let partners = (view.view.version, active.collect::<BTreeSet<NodeId>>());
        if self.partners.as_ref() == Some(&partners) {
            return;
        }
        {
            let mut machine = self.common.exchanges.machine();
            machine.exchange.get_or_insert_with(|| Exchange::new(me, self.config(), now));
            machine.partners.clone_from(&partners.1);
        }
        let (view, may) = partners.clone();
        self.partners = Some(partners);
        self.event(Event::Partners { view, may });
    }

    fn config(&self) -> Config {
        let moves_per_s = self.here.config().optimiser.moves_per_s;
        Config { actors_per_s: u64::from(moves_per_s.max(1)), tolerance: Tolerance::default(), ..Config::default() }
    }

    /// Takes a survey of the node for the machine, unless there was one just now: that one holds still, without those that have gone and with
    /// those that have moved where they are now, but for how loaded nodes are. Who has come since is not in it, and has hardly been seen here yet.
    async fn look(&mut self) {
        let now = self.now();
        let others: BTreeMap<NodeId, Measured> =
            self.others.iter().map(|(node, other)| (*node, other.measured())).collect();
        let for_balance = self.relieves(&others);
        if self.surveyed.is_some_and(|(at, all)| now.since(at) < FRESH && (all || !for_balance)) {
            let Machine { survey, .. } = &mut *self.common.exchanges.machine();
            (survey.load, survey.others) = (self.load, others);
            return;
        }
        self.surveyed = Some((now, for_balance));
        let torn = ask(&self.here, |_, _, tables, _| tables.flows.is_torn().then_some(()));
        let shards = if for_balance || !torn.await.is_empty() {
            ask(&self.here, |_, _, tables, shard| Some(tables.copied(shard))).await
        } else {
            Vec::new()
        };
        let surveyor = Surveyor { here: &self.here, common: &self.common, for_balance };
        let survey = surveyor.survey(&shards, self.load, others);
        self.sets.retain(|_, (_, seen)| now.since(*seen) < SILENT);
        for set in survey.sets.iter().filter(|set| set.ready) {
            self.sets.extend(set.members.iter().map(|member| (*member, (set.members.len() as u16, now))));
        }
        self.common.exchanges.machine().survey = survey;
        tracing::trace!(took = ?self.now().since(now), "the optimiser has looked at this node's actors");
    }

    /// Whether some other node has so much less to do that balance may want any actor of this one.
    fn relieves(&self, others: &BTreeMap<NodeId, Measured>) -> bool {
        let loads = Survey { load: self.load, others: others.clone(), ..Survey::default() };
        let machine = self.common.exchanges.machine();
        machine.exchange.as_ref().is_some_and(|exchange| exchange.relieves(&loads))
    }

    fn event(&mut self, event: Event) {
        let (now, mut out) = (self.now(), Vec::new());
        {
            let Machine { exchange, survey, .. } = &mut *self.common.exchanges.machine();
            let Some(exchange) = exchange else { return };
            exchange.handle(now, event, &Taken { here: &self.here, survey }, &mut out);
        }
        for action in out {
            self.perform(action);
        }
    }

    fn perform(&mut self, action: Action) {
        match action {
            Action::Send { to, message } => self.here.tell(to, CHANNEL, Word::Exchange(message).encode()),
            Action::Move { hash, epoch, to, until, x } => {
                let (moved, set) = self.moved_actor(hash, to);
                match orders::order(&self.here, &self.common, (hash, epoch), (to, until, x), set) {
                    Some(id) => {
                        let moved = MovedActor { actor: id.to_string(), ..moved };
                        self.ordered.insert((x, hash), (to, moved));
                    }
                    None => {
                        let (end, partners) = (OrderEnd::Withdrawn, Vec::new());
                        self.common.exchanges.happens(Happening::Settled { x, hash, end, partners });
                    }
                }
            }
            Action::Clear { hash, toward, .. } => orders::clear(&self.here, &self.common, hash, toward),
            Action::Ended { x, with, moved, arrived, how } => {
                tracing::debug!(?x, %with, moved, arrived, ?how, "an exchange of actors is over");
                self.common.exchanges.counts.ended(how);
            }
        }
    }

    /// What people are told of an actor that goes, but who it is; and how many its set has, if it goes for that one's sake.
    fn moved_actor(&self, hash: u64, to: NodeId) -> (MovedActor, Option<u16>) {
        let name = |node: NodeId| self.here.member(node).map_or_else(|| node.to_string(), |member| member.name);
        let machine = self.common.exchanges.machine();
        let known = machine.survey.actors.iter().find(|known| known.hash == hash);
        let toward =
            known.and_then(|known| known.toward.iter().find(|(node, _)| *node == to)).map_or(0, |(_, flow)| *flow);
        let gain = i64::from(toward) - i64::from(known.map_or(0, |known| known.here));
        // Who has no third more of its messages there would not go alone.
        let alone = gain > 0 && 3 * gain >= i64::from(known.map_or(0, |known| known.flow));
        let set = self.sets.get(&hash).filter(|_| !alone).map(|(len, _)| *len);
        let why = match set {
            None if gain > 0 => "it talks with actors there",
            None => "its node has more to do",
            Some(_) => "it and those that it talks with do better there together",
        };
        let from = self.here.name().to_owned();
        let cost = known.map_or(0, |known| known.cost);
        let moved = MovedActor {
            number: 0,
            actor: String::new(),
            from,
            to: name(to),
            shards: None,
            at_s: 0.0,
            ago_s: 0.0,
            gain,
            cost,
            why,
        };
        (moved, set)
    }

    /// An actor has gone from one node to another: who talks with it is surveyed as one whose partner is there.
    fn moved(&self, hash: u64, way: (NodeId, NodeId), partners: &[(u64, f64)]) {
        let a_minute = |weight: f64| (heavy_edges::Edge { weight, ..Default::default() }.a_second() * 60.0) as u32;
        let partners: Vec<_> = partners.iter().map(|(partner, weight)| (*partner, a_minute(*weight))).collect();
        self.common.exchanges.machine().survey.moved(self.here.me(), hash, way, &partners);
    }

    /// An order has ended: those that the actor talks with know at once where it is.
    fn settled(&mut self, x: ExchangeId, hash: u64, end: OrderEnd, partners: &[(u64, f64)]) {
        let counts = &self.common.exchanges.counts;
        let count = match end {
            OrderEnd::Moved => &counts.moved,
            OrderEnd::Back => &counts.back,
            OrderEnd::Withdrawn => &counts.stayed,
        };
        count.fetch_add(1, Ordering::Relaxed);
        if end != OrderEnd::Withdrawn {
            self.common.exchanges.machine().survey.actors.retain(|actor| actor.hash != hash);
        }
        let Some((to, moved)) = self.ordered.remove(&(x, hash)) else { return };
        if end == OrderEnd::Moved {
            self.moved(hash, (self.here.me(), to), partners);
            self.common.moved.note(&self.here, moved, self.now());
        }
    }
}

/// How often a node says how loaded it is.
const STANDING_EVERY: Duration = Duration::from_secs(2);
/// Over so many times of that it measures what it has to do: nodes that share processors are busy now more and now less.
const SPANS: usize = 5;
/// Time for which a survey is taken for the latest: the offers of several nodes come close together.
const FRESH: Duration = Duration::from_secs(1);
/// Who has said nothing for so long takes part in nothing.
const SILENT: Duration = Duration::from_secs(10);
