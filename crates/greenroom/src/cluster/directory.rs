//! The directory on this node: its ranges, each with this node's activations of it behind one lock.

mod active;
mod border;
mod by_hash;
mod doubt;
mod entry;
mod memory;
mod moves;
mod passages;

use std::collections::{BTreeMap, VecDeque};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard};

use greenroom_protocols::checks::Checks;
use greenroom_protocols::directory::{
    self, Acceptance, Action, Epoch, Event, Grant, HostedActors, RANGES, Range, RangeId, Released, Resolution, range_of,
};
use greenroom_protocols::node::{NodeId, View};
use greenroom_world::Timestamp;

use self::active::Active;
use self::border::Beyond;
pub(crate) use self::border::Border;
pub(crate) use self::entry::Entry;
use self::memory::Memory;
pub(crate) use self::moves::{MoveEnd, MoveWord};
use super::placement;
use crate::actor::error::Refusal;
use crate::actor::key::ActorId;
use crate::cluster::Order;
use crate::here::Here;
use crate::here::location::{Asker, Location, Passage};
use crate::shard::{ShardId, Slot};

/// All ranges, as this node has them.
pub(crate) struct Directory {
    me: NodeId,
    ranges: Vec<Mutex<RangeHere>>,
    /// Who knows of other clusters, if there are any.
    border: Option<Arc<dyn Border>>,
    /// The version of the view that all ranges have taken in.
    viewed: AtomicU64,
}

/// A range, as this node has it.
pub(crate) struct RangeHere {
    pub(crate) machine: Range<Entry>,
    pub(crate) active: BTreeMap<Entry, Active>,
    /// The last activations that ended here: who is sent the actor's messages hears of it by them, at the latest.
    gone: VecDeque<(Entry, Epoch)>,
    /// Actors whose states have come from other nodes, and the shards that have these, until it is decided whose they are.
    carried: BTreeMap<Entry, (ShardId, directory::Placed)>,
    /// Where this range's actors went that moved last, if this node decided it.
    memory: Memory,
    /// Actors that go from one shard of this node to another, which has them under the epoch of their activation.
    passing: BTreeMap<Entry, Passage>,
    /// What the border keeps of this range's actors.
    pub(crate) beyond: Beyond,
    /// Activations that are the only ones over all clusters, and have not begun here yet.
    pub(crate) owned_early: VecDeque<(Entry, Epoch)>,
}

/// Where an actor is, for who only looks.
pub(crate) enum Whereabouts {
    /// On this node; without a slot while it is being made, or moves away.
    Here { shard: ShardId, slot: Option<Slot>, epoch: Epoch },
    /// That node has it, or knows.
    There(NodeId),
    /// It is not active.
    NotActive,
    /// Nobody can say yet.
    Unknown,
}

impl Directory {
    pub(crate) fn new(me: NodeId, checks: Checks, border: Option<Arc<dyn Border>>) -> Self {
        let range = |range| {
            let machine = Range::with_checks(me, RangeId(range), checks);
            Mutex::new(RangeHere {
                machine,
                active: BTreeMap::new(),
                gone: VecDeque::new(),
                memory: Memory::default(),
                carried: BTreeMap::new(),
                passing: BTreeMap::new(),
                beyond: Beyond::default(),
                owned_early: VecDeque::new(),
            })
        };
        Self { me, ranges: (0..RANGES).map(range).collect(), border, viewed: AtomicU64::new(0) }
    }

    pub(crate) fn me(&self) -> NodeId {
        self.me
    }

    /// The range of the actors of this hash, locked.
    pub(crate) fn range(&self, hash: u64) -> MutexGuard<'_, RangeHere> {
        lock(&self.ranges[usize::from(range_of(hash).0)])
    }

    /// All ranges, each locked as it comes.
    pub(crate) fn every(&self) -> impl Iterator<Item = MutexGuard<'_, RangeHere>> {
        self.ranges.iter().map(lock)
    }

    /// The version of the view that all ranges go by.
    pub(crate) fn viewed(&self) -> u64 {
        self.viewed.load(Ordering::Acquire)
    }

    /// The shard of this node that has the actor.
    pub(crate) fn home(&self, id: &ActorId, hash: u64) -> Option<ShardId> {
        self.range(hash).active.get(&Entry::hashed(id, hash)).map(Active::shard)
    }

    /// Where a message for `id` must go. `brought` is the directory's word that came with it.
    pub(crate) fn locate(
        &self,
        node: &Here,
        id: &ActorId,
        hash: u64,
        asker: Asker,
        brought: Option<Grant>,
    ) -> Result<Location, Refusal> {
        let entry = Entry::hashed(id, hash);
        let now = node.world().now();
        let border = self.border().filter(|border| border.is_single(id.kind));
        let must_ask = |range: &RangeHere| border.is_some_and(|border| !border.may_begin(range, &entry));
        let begins_here = || !node.is_handing_over() && node.kinds().serves(id.kind, asker.wanted);
        let mut range = self.range(hash);
        if let Some(active) = range.active.get(&entry) {
            return Ok(range.location(&entry, active));
        }
        if let Some((shard, _)) = range.carried.get(&entry).copied() {
            if let Some(grant) = brought.filter(|grant| grant.by == self.me) {
                self.take_back(&mut range, now, &entry, asker.from, &grant);
            }
            return Ok(Location::Moving { shard });
        }
        if let Some(grant) = brought {
            if grant.by == self.me {
                self.take_back(&mut range, now, &entry, asker.from, &grant);
            } else {
                match range.machine.accept(&grant) {
                    Acceptance::Accepted if !begins_here() => {
                        // It never begins here; the grant goes back.
                        let released = range.machine.release(entry, grant.placed.epoch);
                        node.order(Order::Released(grant.by, released));
                        return Ok(Location::There { node: grant.by, grant: Some(grant) });
                    }
                    Acceptance::Accepted => {
                        return Ok(range.begin(self.border(), node, entry, grant.placed.epoch, asker));
                    }
                    // It came by here, as its way there is cut.
                    Acceptance::NotMe if asker.from == grant.by && node.view().view.is_active(grant.placed.node) => {
                        return Ok(Location::There { node: grant.placed.node, grant: Some(grant) });
                    }
                    Acceptance::Stale | Acceptance::NotMe => {
                        return Ok(Location::There { node: grant.by, grant: Some(grant) });
                    }
                    Acceptance::Behind { view } => {
                        node.order(Order::Refresh(view));
                        return Ok(Location::Wait);
                    }
                    // Whom we know as the owner decides.
                    Acceptance::NotOwner { .. } => {}
                }
            }
        }
        let mut resolution = range.machine.resolve(now, &entry);
        for _ in 0..RESOLVE_TRIES {
            match resolution {
                Resolution::At(grant) if grant.placed.node == self.me => match range.machine.accept(&grant) {
                    Acceptance::Accepted if node.is_handing_over() => return Err(Refusal::Stopping),
                    Acceptance::Accepted if begins_here() => {
                        return Ok(range.begin(self.border(), node, entry, grant.placed.epoch, asker));
                    }
                    // Ours once, and released since, or nothing that the caller can speak to: its entry is to go.
                    _ => {
                        let released = range.machine.release(entry.clone(), grant.placed.epoch);
                        range.machine.handle(now, Event::Released(released), HostedActors::default, &mut Vec::new());
                        self.note_gone(now, &mut range, &entry);
                        resolution = range.machine.resolve(now, &entry);
                    }
                },
                Resolution::At(grant) => return Ok(Location::There { node: grant.placed.node, grant: Some(grant) }),
                Resolution::Absent if must_ask(&range) => return Ok(Location::Abroad),
                Resolution::Absent => {
                    let early =
                        self.border().and_then(|border| border.early_host(&range, now, &entry, node, asker.wanted));
                    let went_to = range.memory.went_to(hash, now);
                    drop(range);
                    let chosen = match early {
                        Some(host) => Some(host),
                        None => self.choose(node, (id, hash), asker, went_to)?,
                    };
                    let Some(chosen) = chosen else { return Ok(Location::Wait) };
                    range = self.range(hash);
                    if let Some(active) = range.active.get(&entry) {
                        return Ok(range.location(&entry, active));
                    }
                    if must_ask(&range) {
                        return Ok(Location::Abroad);
                    }
                    resolution = range.machine.grant(now, entry.clone(), chosen);
                    if let Resolution::At(grant) = &resolution {
                        self.note_granted(now, &mut range, &entry, (chosen, grant.placed.epoch));
                    }
                    if chosen != self.me {
                        node.loads().placed(chosen);
                    }
                }
                Resolution::Wait { .. } => return Ok(Location::Wait),
                Resolution::NotOwner(Some(owner)) => {
                    return Ok(Location::There { node: owner, grant: range.given_back(self.me, owner, &entry) });
                }
                Resolution::NotOwner(None) => return Err(Refusal::Recovering),
            }
        }
        Err(Refusal::Recovering)
    }

    /// The node for a new activation of an actor that moved to `went_to` not long ago; `None` if the caller may know a node that is not
    /// known here yet.
    pub(crate) fn choose(
        &self,
        node: &Here,
        (id, hash): (&ActorId, u64),
        asker: Asker,
        went_to: Option<NodeId>,
    ) -> Result<Option<NodeId>, Refusal> {
        let view = node.view();
        let chosen = match view.hosts(id.kind) {
            Some(hosts) => placement::choose(node, (id, hash), hosts, (asker.origin, asker.wanted), went_to),
            None => Err(node.unknown_kind(id.kind.name())),
        };
        match chosen {
            Err(Refusal::UnknownKind { .. } | Refusal::Version(_)) if view.is_behind(asker.origin) => {
                node.order(Order::Refresh(view.view.version + 1));
                Ok(None)
            }
            chosen => chosen.map(Some),
        }
    }

    /// Takes in what a message says of the directory that cannot go on yet.
    pub(crate) fn handed_back(&self, now: Timestamp, id: &ActorId, hash: u64, from: NodeId, grant: &Grant) {
        if grant.by == self.me {
            self.take_back(&mut self.range(hash), now, &Entry::hashed(id, hash), from, grant);
        }
    }

    /// Notes where the shard has put the activation that it was told to make.
    pub(crate) fn activated(&self, id: &ActorId, hash: u64, epoch: Epoch, slot: Slot) {
        if let Some(active) = self.range(hash).active.get_mut(&Entry::hashed(id, hash))
            && active.epoch == epoch
        {
            active.put(active.shard(), Some(slot));
        }
    }

    /// Takes an ended activation out; what the owner must be told, and the owner, if it is another node.
    pub(crate) fn release(&self, now: Timestamp, id: &ActorId, epoch: Epoch) -> Option<(NodeId, Released<Entry>)> {
        let hash = id.stable_hash();
        let entry = Entry::hashed(id, hash);
        let mut range = self.range(hash);
        if range.active.get(&entry).is_some_and(|active| active.epoch == epoch) {
            range.active.remove(&entry);
            range.passing.remove(&entry);
        }
        if range.gone.len() == GONE_MAX {
            range.gone.pop_front();
        }
        range.gone.push_back((entry.clone(), epoch));
        let released = range.machine.release(entry.clone(), epoch);
        match range.machine.owner() {
            Some(owner) if owner == self.me => {
                range.machine.handle(now, Event::Released(released), HostedActors::default, &mut Vec::new());
                self.note_gone(now, &mut range, &entry);
                None
            }
            owner => owner.map(|owner| (owner, released)),
        }
    }

    /// Where the actor is active on this node.
    pub(crate) fn slot_of(&self, key: &Entry) -> Option<(ShardId, Slot)> {
        let range = self.range(key.word);
        let active = range.active.get(key)?;
        range.slot_of(key, active)
    }

    /// Where `key` is, as far as this node knows; nothing is activated.
    pub(crate) fn whereabouts(&self, now: Timestamp, key: &Entry) -> Whereabouts {
        let range = self.range(key.word);
        if let Some(active) = range.active.get(key) {
            return Whereabouts::Here { shard: active.shard(), slot: active.slot(), epoch: active.epoch };
        }
        match range.machine.resolve(now, key) {
            Resolution::At(grant) if grant.placed.node != self.me => Whereabouts::There(grant.placed.node),
            Resolution::NotOwner(Some(owner)) if owner != self.me => Whereabouts::There(owner),
            Resolution::At(_) | Resolution::Absent => Whereabouts::NotActive,
            Resolution::NotOwner(_) | Resolution::Wait { .. } => Whereabouts::Unknown,
        }
    }

    /// The owner's word on where `key` is, if this node owns its range.
    pub(crate) fn resolve(&self, now: Timestamp, key: &Entry) -> Resolution {
        self.range(key.word).machine.resolve(now, key)
    }

    /// Takes in a view: what must be sent.
    pub(crate) fn view(&self, now: Timestamp, view: &Arc<View>) -> Vec<(RangeId, Action<Entry>)> {
        let all = self.all(now, |range, out| {
            let before = range.machine.tenure();
            let RangeHere { machine, active, carried, .. } = range;
            machine.handle(now, Event::View(view.clone()), || list(active, carried), out);
            if let Some(border) = self.border() {
                border.viewed(self, now, range, before, view);
            }
        });
        self.viewed.store(view.version, Ordering::Release);
        all
    }

    /// Ticks what is due: what must be sent.
    pub(crate) fn tick(&self, now: Timestamp) -> Vec<(RangeId, Action<Entry>)> {
        self.all(now, |range, out| {
            let RangeHere { machine, active, carried, .. } = range;
            if machine.deadline().is_some_and(|due| due <= now) {
                machine.handle(now, Event::Tick, || list(active, carried), out);
                if let Some(border) = self.border() {
                    border.recovered(now, range);
                }
            }
        })
    }

    /// When [`Directory::tick`] next has something to do.
    pub(crate) fn deadline(&self) -> Option<Timestamp> {
        self.ranges.iter().filter_map(|range| lock(range).machine.deadline()).min()
    }

    /// Takes in what another node said of one range: what must be sent.
    pub(crate) fn handle(&self, now: Timestamp, range: RangeId, event: Event<Entry>) -> Vec<(RangeId, Action<Entry>)> {
        let Some(here) = self.ranges.get(usize::from(range.0)) else { return Vec::new() };
        let mut here = lock(here);
        let released = match &event {
            Event::Released(released) => Some(released.key.clone()),
            _ => None,
        };
        let RangeHere { machine, active, carried, .. } = &mut *here;
        let mut out = Vec::new();
        machine.handle(now, event, || list(active, carried), &mut out);
        if let Some(border) = self.border() {
            border.acted(now, &mut here, &out);
            border.recovered(now, &mut here);
        }
        if let Some(key) = released {
            self.note_gone(now, &mut here, &key);
        }
        out.into_iter().map(|action| (range, action)).collect()
    }

    /// The activation of `key` with this epoch, if it is here.
    pub(crate) fn find(&self, key: &Entry, epoch: Epoch) -> Option<(ShardId, Slot)> {
        let range = self.range(key.word);
        let active = range.active.get(key).filter(|active| active.epoch == epoch)?;
        range.slot_of(key, active)
    }

    /// Whether the activation of `key` with this epoch is being made here, or its state has come and may become it.
    pub(crate) fn is_beginning(&self, key: &Entry, epoch: Epoch) -> bool {
        let range = self.range(key.word);
        range.active.get(key).is_some_and(|active| active.epoch == epoch) || range.carried.contains_key(key)
    }

    /// Actors that are active here, or are being activated.
    pub(crate) fn active(&self) -> usize {
        self.ranges.iter().map(|range| lock(range).active.len()).sum()
    }

    /// Actors that this node's ranges of the directory have an entry for.
    pub(crate) fn entries(&self) -> usize {
        self.ranges.iter().map(|range| lock(range).machine.entries()).sum()
    }

    /// A host hands our own grant back: it has released the activation, or refused it.
    fn take_back(&self, range: &mut RangeHere, now: Timestamp, entry: &Entry, from: NodeId, grant: &Grant) {
        let placed = directory::Placed { node: from, epoch: grant.placed.epoch };
        let released = Released { key: entry.clone(), placed };
        range.machine.handle(now, Event::Released(released), HostedActors::default, &mut Vec::new());
        self.note_gone(now, range, entry);
    }

    fn all(
        &self,
        now: Timestamp,
        mut each: impl FnMut(&mut RangeHere, &mut Vec<Action<Entry>>),
    ) -> Vec<(RangeId, Action<Entry>)> {
        let mut all = Vec::new();
        let mut out = Vec::new();
        for (index, range) in self.ranges.iter().enumerate() {
            let mut range = lock(range);
            each(&mut range, &mut out);
            if let Some(border) = self.border() {
                border.acted(now, &mut range, &out);
            }
            all.extend(out.drain(..).map(|action| (RangeId(index as u16), action)));
        }
        all
    }
}

impl RangeHere {
    fn location(&self, entry: &Entry, active: &Active) -> Location {
        let (epoch, shard, slot) = (active.epoch, active.shard(), active.slot());
        match self.passing.get(entry).filter(|_| slot.is_none()) {
            _ if active.is_moving() => Location::Moving { shard },
            Some(passage) => Location::Passing { to: shard, passage: *passage },
            None => Location::Here { shard, slot, epoch },
        }
    }

    /// Enters an activation that a shard of this node is about to make.
    fn begin(
        &mut self,
        border: Option<&dyn Border>,
        node: &Here,
        entry: Entry,
        epoch: Epoch,
        asker: Asker,
    ) -> Location {
        let shard = node.choose_shard(entry.kind().name(), asker.near, !asker.outside);
        let doubtful = border.is_some_and(|border| border.begins_doubtful(self, &entry, epoch));
        self.active.insert(entry, Active::new(epoch, shard, doubtful));
        Location::Here { shard, slot: None, epoch }
    }
}

impl RangeHere {
    /// The grant under which the actor was here of late, for its owner: a message must not overtake the news that it is gone.
    fn given_back(&self, me: NodeId, owner: NodeId, entry: &Entry) -> Option<Grant> {
        let (_, epoch) = self.gone.iter().rev().find(|(gone, _)| gone == entry)?;
        let placed = directory::Placed { node: me, epoch: *epoch };
        Some(Grant { placed, by: owner, view: self.machine.version() })
    }
}

/// A range in which nothing was found broken. One where a machine has panicked is used no more; the control plane, which
/// looks at all of them, then panics as well, and the node stops.
fn lock(range: &Mutex<RangeHere>) -> MutexGuard<'_, RangeHere> {
    range.lock().expect("a range of the directory is not as its machine left it")
}

fn list(
    active: &BTreeMap<Entry, Active>,
    carried: &BTreeMap<Entry, (ShardId, directory::Placed)>,
) -> HostedActors<Entry> {
    HostedActors {
        activations: active.iter().map(|(entry, active)| (entry.clone(), active.epoch)).collect(),
        in_transit: carried.iter().map(|(entry, (_, from))| (entry.clone(), *from)).collect(),
    }
}

/// Each try but the last has removed an obstacle.
const RESOLVE_TRIES: usize = 4;
/// Ended activations that a range remembers.
const GONE_MAX: usize = 64;
