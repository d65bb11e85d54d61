//! The thin loop around the pure machines: store results, messages and ticks in, actions out.

mod abroad;
mod life;
mod moves;
mod ranges;

use std::collections::BTreeMap;
use std::sync::Arc;

use bytes::Bytes;
use greenroom_protocols::directory::{self, Move, Placed, Released};
use greenroom_protocols::failure_detection::{self, FailureDetector};
use greenroom_protocols::membership::{self, Membership, StopReason};
use greenroom_protocols::node::{KindInfo, Member, NodeId, View};
use greenroom_world::{BoxFuture, Stage, Timestamp};
use tokio::sync::mpsc;

use self::ranges::ENTRIES_A_MESSAGE;
use super::control::{ControlMessage, Errand};
use super::directory::{Entry, MoveWord};
use super::mesh::{Inbound, Mesh};
use super::table::TableStore;
use super::view::ClusterView;
use crate::geo::word::News;
use crate::here::Here;
use crate::here::halt::Halt;
use crate::observe::events::Happened;
use crate::shard::{Item, Shard, ShardId};

/// What the rest of the node asks of its control plane.
pub(crate) enum Order {
    /// Somebody knows this version of the table.
    Refresh(u64),
    /// An activation has ended whose directory entry another node has.
    Released(NodeId, Released<Entry>),
    /// A store operation or a join probe has ended.
    Membership(membership::Event),
    /// This node has the state of an actor on the move: ask its owner.
    Claim(Move<Entry>),
    /// Tell the owner that a move is over.
    Settled(Entry, Placed),
    /// Let an actor go to a node, wherever it is.
    Migrate(Entry, NodeId),
    /// Let the cluster know that this node is about to leave.
    Drain,
    /// Let the cluster know that this node hosts these kinds from now on.
    Kinds(Vec<KindInfo>),
    /// Have a node hear this; it may be this one.
    Say(NodeId, ControlMessage),
    /// Tell all nodes what this one knows of the multi-cluster.
    Clusters(Box<News>),
    /// Tell the owners of ranges which activations here may not be the only ones over all clusters.
    Doubtful,
    /// Have the same part of another node hear this.
    Tell { to: NodeId, channel: u8, payload: Bytes },
    /// Leave the cluster.
    Leave,
}

/// Where orders go.
pub(crate) type Orders = mpsc::Sender<Order>;

/// The control plane of one node.
pub(super) struct Driver {
    node: Arc<Here>,
    store: TableStore,
    membership: Membership,
    /// Once the table has given us an id.
    joined: Option<Joined>,
    released: BTreeMap<NodeId, Vec<Released<Entry>>>,
}

/// What a node has once it has an id.
struct Joined {
    me: NodeId,
    mesh: Arc<Mesh>,
    detector: FailureDetector,
    /// Probes that we make for others: who asked, and for which of their probes.
    probing_for: BTreeMap<u64, (NodeId, u64)>,
    next_probe_for: u64,
}

impl Driver {
    pub(super) fn new(node: Arc<Here>, store: TableStore, config: membership::Config, member: Member) -> Self {
        Self { node, store, membership: Membership::new(config, member), joined: None, released: BTreeMap::new() }
    }

    /// Runs until the node stops.
    pub(super) async fn run(mut self, mut orders: mpsc::Receiver<Order>, mut inbound: mpsc::Receiver<Inbound>) {
        let world = self.node.world().clone();
        self.membership_event(membership::Event::Tick);
        let mut timer: Option<(Timestamp, BoxFuture<()>)> = None;
        while !self.node.is_stopped() {
            let deadline = self.deadline();
            if timer.as_ref().is_none_or(|(at, _)| *at != deadline) {
                timer = Some((deadline, world.sleep_until(deadline)));
            }
            let Some((_, sleep)) = &mut timer else { continue };
            tokio::select! {
                biased;
                order = orders.recv() => match order {
                    Some(order) => self.order(order),
                    None => return,
                },
                Some((from, message)) = inbound.recv() => self.message(from, message),
                () = sleep => {
                    timer = None;
                    self.tick();
                }
            }
            // What was released meanwhile goes out in one message a node.
            while let Ok(order) = orders.try_recv() {
                self.order(order);
            }
            self.send_released();
        }
    }

    fn deadline(&self) -> Timestamp {
        let membership = self.membership.deadline();
        let detector = self.joined.as_ref().and_then(|joined| joined.detector.deadline());
        let directory = self.node.directory().and_then(|directory| directory.deadline());
        [membership, detector, directory].into_iter().flatten().min().unwrap_or(Timestamp::NEVER)
    }

    fn tick(&mut self) {
        let now = self.node.world().now();
        if self.membership.deadline().is_some_and(|due| due <= now) {
            self.membership_event(membership::Event::Tick);
        }
        if self.joined.as_ref().and_then(|joined| joined.detector.deadline()).is_some_and(|due| due <= now) {
            self.detector_event(failure_detection::Event::Tick);
        }
        if let Some(directory) = self.node.directory() {
            let actions = directory.tick(now);
            self.directory_actions(actions);
        }
    }

    fn order(&mut self, order: Order) {
        match order {
            Order::Refresh(version) => self.membership_event(membership::Event::HeardVersion(version)),
            Order::Released(to, released) => self.released.entry(to).or_default().push(released),
            Order::Membership(event) => self.membership_event(event),
            Order::Claim(wish) => self.claim(wish),
            Order::Settled(key, placed) => self.settle(key, placed),
            Order::Migrate(key, to) => self.migrate(key, to, 0),
            Order::Drain => self.membership_event(membership::Event::Drain),
            Order::Kinds(kinds) => self.membership_event(membership::Event::Kinds(kinds)),
            Order::Say(to, message) if self.is_me(to) => self.message(to, message),
            Order::Say(to, message) => self.send(to, &message),
            Order::Clusters(news) => self.tell_clusters(&news),
            Order::Doubtful => self.tell_doubtful(),
            Order::Tell { to, channel, payload } => self.tell_part(to, channel, payload),
            Order::Leave => self.membership_event(membership::Event::Leave),
        }
    }

    fn send_released(&mut self) {
        for (to, released) in std::mem::take(&mut self.released) {
            for chunk in released.chunks(ENTRIES_A_MESSAGE) {
                self.send(to, &ControlMessage::Released { released: chunk.to_vec() });
            }
        }
    }

    // Membership.

    fn membership_event(&mut self, event: membership::Event) {
        let now = self.node.world().now();
        let mut actions = Vec::new();
        self.membership.handle(now, event, &mut actions);
        if let (None, Some(me)) = (&self.joined, self.membership.me()) {
            self.join(me);
        }
        for action in actions {
            self.membership_action(action);
        }
    }

    fn join(&mut self, me: NodeId) {
        self.node.set_me(me);
        let config = self.node.config();
        let world = self.node.world().clone();
        let mesh = Mesh::new(
            world.clone(),
            self.node.links().clone(),
            config.cluster.clone(),
            self.node.name().to_owned(),
            me,
        );
        let detection = failure_detection::Config { seed: world.random(), ..Default::default() };
        let detector = FailureDetector::new(detection, me);
        self.joined =
            Some(Joined { me, mesh, detector, probing_for: BTreeMap::new(), next_probe_for: PROBES_FOR_OTHERS });
    }

    fn membership_action(&mut self, action: membership::Action) {
        match action {
            membership::Action::SetFence { until } => self.node.set_fence(until),
            membership::Action::Publish(view) => self.publish(&view),
            membership::Action::Stop(reason) => {
                self.tell_stop(reason);
                let why = match reason {
                    StopReason::DeclaredDead => "the cluster has declared this node dead".into(),
                    StopReason::LeaseRanOut => "this node's lease could not be renewed in time".into(),
                    StopReason::Left => "this node has left the cluster".into(),
                    StopReason::NameTaken(node) => {
                        let address = self.node.member(node).map(|member| member.address);
                        Halt::NameTaken { address: address.unwrap_or_default() }
                    }
                };
                self.node.halt(why);
            }
            membership::Action::ProbeForJoin { node, address, .. } => {
                let ours = self.node.advertised().to_owned();
                if let Some(joined) = &self.joined {
                    joined.mesh.send(node, &address, &ControlMessage::JoinProbe { address: ours });
                }
            }
            store_action => {
                let (node, store) = (self.node.clone(), self.store.clone());
                self.node.world().spawn(
                    Stage::Control,
                    Box::pin(async move {
                        if let Some(event) = store.perform(store_action).await {
                            node.order(Order::Membership(event));
                        }
                    }),
                );
            }
        }
    }

    fn publish(&mut self, view: &Arc<View>) {
        let now = self.node.world().now();
        let before = self.node.view();
        let news = view.version > before.view.version;
        self.tell(&before.view, view);
        self.node.set_view(Arc::new(ClusterView::new(view.clone())));
        self.node.calendar().view(view);
        self.node.loads().retain(|node| view.is_active(node));
        if let Some(joined) = &self.joined {
            joined.mesh.retain(|node| view.members.contains_key(&node));
        }
        self.detector_event(failure_detection::Event::View(view.clone()));
        if let Some(directory) = self.node.directory() {
            let actions = directory.view(now, view);
            self.directory_actions(actions);
        }
        for port in self.node.shards() {
            let _ = port.push(Item::Run(Box::new(|shard| shard.drop_lanes_of_the_dead())));
        }
        if news {
            // Who reads the table at the next poll only would keep callers waiting for its report.
            for (peer, _) in view.active().filter(|(peer, _)| !self.is_me(*peer)) {
                self.send(peer, &ControlMessage::Table { version: view.version });
            }
        }
    }

    // Failure detection.

    fn detector_event(&mut self, event: failure_detection::Event) {
        let now = self.node.world().now();
        let Some(joined) = &mut self.joined else { return };
        let mut actions = Vec::new();
        joined.detector.handle(now, event, &mut actions);
        for action in actions {
            match action {
                failure_detection::Action::Probe { to, seq } => self.probe(to, seq),
                failure_detection::Action::ProbeVia { via, to, seq } => {
                    self.send(via, &ControlMessage::ProbeFor { node: to, seq });
                }
                failure_detection::Action::Suspect { node } => {
                    tracing::info!(%node, "a node is silent");
                    self.node.loads().silent(node, now);
                    if let Some(member) = self.node.member(node) {
                        self.node.happened(Happened::Suspected { node: member.name });
                    }
                    self.membership_event(membership::Event::Suspected { node });
                }
            }
        }
    }

    fn probe(&self, to: NodeId, seq: u64) {
        let (table, activations) = (self.node.view().view.version, self.node.activations());
        self.send(to, &ControlMessage::Probe { seq, table, activations });
    }

    fn on_shard(&self, id: Option<ShardId>, run: impl FnOnce(&Shard) + Send + 'static) {
        if let Some(port) = self.node.shards().iter().find(|port| Some(port.id) == id) {
            // A shard that has ended has nothing to do.
            let _ = port.push(Item::Run(Box::new(run)));
        }
    }

    // Other nodes.

    fn is_me(&self, node: NodeId) -> bool {
        self.joined.as_ref().is_some_and(|joined| joined.me == node)
    }

    fn send(&self, to: NodeId, message: &ControlMessage) {
        let Some(joined) = &self.joined else { return };
        let view = self.node.view();
        let detour = self.node.detour(to).zip(Errand::of(message));
        let (next, message) = match detour {
            Some((relay, errand)) => (relay, &ControlMessage::Pass { to, errand }),
            None => (to, message),
        };
        if let Some(member) = view.member(next) {
            joined.mesh.send(next, &member.address, message);
        }
    }

    fn tell_part(&self, to: NodeId, channel: u8, payload: Bytes) {
        if let (Some(joined), Some(member)) = (&self.joined, self.node.member(to)) {
            joined.mesh.send_on(to, &member.address, channel, payload);
        }
    }

    fn message(&mut self, from: NodeId, message: ControlMessage) {
        match message {
            ControlMessage::Probe { seq, table, activations } => {
                self.heard(from, table, activations);
                let (table, activations) = (self.node.view().view.version, self.node.activations());
                self.send(from, &ControlMessage::ProbeAnswer { seq, table, activations });
            }
            ControlMessage::ProbeAnswer { seq, table, activations } => {
                self.heard(from, table, activations);
                self.node.loads().answered(from);
                let asked = self.joined.as_mut().and_then(|joined| joined.probing_for.remove(&seq));
                match asked {
                    Some((asker, seq)) => self.send(asker, &ControlMessage::ProbedFor { node: from, seq }),
                    None => self.detector_event(failure_detection::Event::Answer { node: from, seq }),
                }
            }
            ControlMessage::ProbeFor { node, seq } => {
                let Some(joined) = &mut self.joined else { return };
                let ours = joined.next_probe_for;
                joined.next_probe_for += 1;
                joined.probing_for.insert(ours, (from, seq));
                while joined.probing_for.len() > PROBING_FOR_MAX {
                    joined.probing_for.pop_first();
                }
                self.probe(node, ours);
            }
            ControlMessage::ProbedFor { node, seq } => {
                self.node.loads().heard_of(node, self.node.world().now());
                // It may not watch us, and would send its messages the way that is cut.
                self.send(from, &ControlMessage::Pass { to: node, errand: Errand::Apart });
                self.detector_event(failure_detection::Event::Answer { node, seq });
            }
            ControlMessage::JoinProbe { address } => self.dial_back(from, address),
            ControlMessage::JoinProbeAnswer { reached } => {
                self.membership_event(membership::Event::JoinProbeAnswered { node: from, reachable: reached });
            }
            ControlMessage::Reports { reports, doubtful } => self.reports(from, reports, doubtful),
            ControlMessage::Clusters(news) => self.told_of_clusters(from, *news),
            ControlMessage::Owned { key, epoch, early, reload } => self.owned(&key, epoch, early, reload),
            ControlMessage::ReadEarly { key, token } => self.read_early(&key, token),
            ControlMessage::End { key, epoch, why } => self.end(&key, epoch, why),
            ControlMessage::AskReport { range, view } => {
                self.directory_event(range, directory::Event::Asked { from, view })
            }
            ControlMessage::Released { released } => self.released(from, released),
            ControlMessage::Table { version } => self.heard_version(from, version),
            ControlMessage::Claim { wish } => self.claimed(from, wish),
            ControlMessage::Decided { wish, decision, view } => {
                self.decided(wish, MoveWord::of(decision, from, view));
            }
            ControlMessage::Took { wish } => self.took(from, wish),
            ControlMessage::Declined { wish } => self.declined(wish),
            ControlMessage::Settled { key, placed } => self.settled(from, &key, placed),
            ControlMessage::Migrate { key, to, hops } => self.migrate(key, to, hops),
            ControlMessage::Drain => self.node.ask_to_drain(),
            ControlMessage::Deactivate { entry, epoch } => self.deactivate(&entry, epoch),
            ControlMessage::Pass { to, errand } => self.send(to, &ControlMessage::Passed { from, errand }),
            ControlMessage::Passed { from: sender, errand } => self.errand(from, sender, errand),
            ControlMessage::ReminderMade { range, wake, word } => self.node.calendar().told(from, range, wake, word),
            ControlMessage::ReminderKnown { range, word } => self.node.calendar().confirmed(range, word),
        }
    }

    /// Something that `sender` had `relay` hand to us.
    fn errand(&mut self, relay: NodeId, sender: NodeId, errand: Errand) {
        self.node.loads().heard_of(sender, self.node.world().now());
        match errand {
            Errand::Reports { reports, doubtful } => self.reports(sender, reports, doubtful),
            Errand::AskReport { range, view } => {
                self.directory_event_via(Some(relay), range, directory::Event::Asked { from: sender, view });
            }
            Errand::Released { released } => self.released(sender, released),
            Errand::Deactivate { entry, epoch } => self.deactivate(&entry, epoch),
            Errand::Apart => {}
        }
    }

    fn heard(&mut self, from: NodeId, table: u64, activations: u64) {
        self.node.loads().heard(from, activations);
        self.heard_version(from, table);
    }

    fn heard_version(&mut self, from: NodeId, table: u64) {
        self.node.loads().knows(from, table);
        if table > self.node.view().view.version {
            self.membership_event(membership::Event::HeardVersion(table));
        }
    }

    /// A joiner asks to be dialled: only what we can reach may become active.
    fn dial_back(&self, joiner: NodeId, address: String) {
        let Some(joined) = &self.joined else { return };
        let (mesh, world) = (joined.mesh.clone(), self.node.world().clone());
        let opening = mesh.open(joiner, address.clone());
        world.spawn(
            Stage::Control,
            Box::pin(async move {
                let reached = opening.await.is_ok();
                mesh.send(joiner, &address, &ControlMessage::JoinProbeAnswer { reached });
            }),
        );
    }
}

/// Probes made for others are numbered from here, so that their answers are told from those to our own.
const PROBES_FOR_OTHERS: u64 = 1 << 62;
/// Probes made for others whose answers are awaited.
const PROBING_FOR_MAX: usize = 1024;
