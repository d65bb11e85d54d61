//! The machine: one node's part in the membership.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use super::plan::{Namesake, Planner};
use super::sightings::Sightings;
use super::table::{Etag, LeaseRecord, Table};
use super::{Action, Config, Event, OpId, StopReason};
use crate::node::{Member, NodeId, Status, View};
use crate::time::Timestamp;

/// One node's part in the membership; see the [module](super).
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub struct Membership {
    config: Config,
    member: Member,
    me: Option<NodeId>,
    stopped: bool,
    /// About to leave: the table is to say so.
    draining: bool,
    /// Leaving since then.
    leaving: Option<Timestamp>,
    ops: u64,
    table: Option<(Table, Etag)>,
    access: Option<Access>,
    want_read: bool,
    next_poll: Timestamp,
    lease: Lease,
    sightings: Sightings,
    suspected: BTreeMap<NodeId, Timestamp>,
    reached: BTreeSet<NodeId>,
    fence: Option<Timestamp>,
    published: Option<Arc<View>>,
}

/// The one access to the table that is under way.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
struct Access {
    op: OpId,
    started: Timestamp,
    /// When the last renewal that had succeeded before this access began was itself begun.
    covers: Option<Timestamp>,
    /// What is being written, and the id that it gives us; nothing for a read.
    write: Option<(Table, Option<NodeId>)>,
}

/// Our own lease record.
#[derive(Clone, PartialEq, Eq, Hash, Debug, Default)]
struct Lease {
    /// The counter and etag that we last knew to be stored.
    stored: Option<(u64, Etag)>,
    /// The highest counter that we tried to write.
    tried: u64,
    renewing: Option<(OpId, Timestamp)>,
    /// When the last renewal that succeeded began.
    renewed: Option<Timestamp>,
    next: Timestamp,
}

impl Membership {
    /// A node that wants to join as `member`; the first [`Event::Tick`] sets it going.
    pub fn new(config: Config, member: Member) -> Self {
        Self {
            config,
            member,
            me: None,
            stopped: false,
            draining: false,
            leaving: None,
            ops: 0,
            table: None,
            access: None,
            want_read: true,
            next_poll: Timestamp::default(),
            lease: Lease::default(),
            sightings: Sightings::default(),
            suspected: BTreeMap::new(),
            reached: BTreeSet::new(),
            fence: None,
            published: None,
        }
    }

    /// Our id, once the table has given us one.
    pub fn me(&self) -> Option<NodeId> {
        self.me
    }

    /// The fence last set: no turn may start at or after it. `None` before the first.
    pub fn fence(&self) -> Option<Timestamp> {
        self.fence
    }

    /// The view last published.
    pub fn view(&self) -> Option<&Arc<View>> {
        self.published.as_ref()
    }

    /// When activations on `node` may be replaced; `None` while it may live.
    pub fn lease_over(&self, node: NodeId) -> Option<Timestamp> {
        self.published.as_ref()?.lease_over(node)
    }

    /// While joining: the active members that have not yet reached us.
    pub fn awaited(&self) -> Vec<NodeId> {
        let Some((table, _)) = &self.table else { return Vec::new() };
        let joining = self.me.is_none_or(|me| table.status(me) == Some(Status::Joining));
        table.active().filter(|node| joining && !self.reached.contains(node)).collect()
    }

    /// Applies `event` at `now`, appending what must happen to `out`, in order. Never fails.
    pub fn handle(&mut self, now: Timestamp, event: Event, out: &mut Vec<Action>) {
        if self.stopped {
            return;
        }
        self.check_fence(now, out);
        match event {
            Event::Tick => {}
            Event::TableRead { op, table, leases } => self.table_read(now, op, table, &leases, out),
            Event::Written { op, etag } => self.written(now, op, etag, out),
            Event::Conflict { op } => {
                if self.finished(op) {
                    self.want_read = true;
                }
            }
            Event::StoreFailed { op } => {
                if self.finished(op) {
                    self.want_read = false;
                    self.next_poll = now + self.config.retry_after;
                    self.lease.next = self.lease.next.min(now + self.config.retry_after);
                }
            }
            Event::JoinProbeAnswered { node, reachable } => {
                if reachable && self.me.is_some() {
                    self.want_read |= self.reached.insert(node) && self.awaited().is_empty();
                }
            }
            Event::Suspected { node } => {
                self.suspected.insert(node, now);
                self.want_read = true;
            }
            Event::HeardVersion(version) => {
                self.want_read |= self.table.as_ref().is_none_or(|(table, _)| table.version < version);
            }
            Event::Drain => {
                self.want_read |= !std::mem::replace(&mut self.draining, true);
            }
            Event::Kinds(kinds) => {
                self.want_read |= self.member.kinds != kinds;
                self.member.kinds = kinds;
            }
            Event::Leave => self.leave(now, out),
        }
        self.drive(now, out);
        self.check_invariants(now);
    }

    /// What holds between two events, whatever the store and other nodes say.
    fn check_invariants(&self, now: Timestamp) {
        if self.stopped {
            return;
        }
        let open = self.fence.is_none_or(|fence| now < fence);
        assert!(open || self.leaving.is_some(), "a node goes on after its fence has passed");
        assert_ne!(self.status(), Some(Status::Dead), "a node goes on that has read itself dead");
        assert!(self.access.is_some() || now < self.next_poll, "nobody will look at the table again");
        let (known, told) = (self.table.as_ref().map(|(table, _)| table.version), self.published.as_ref());
        assert_eq!(known, told.map(|view| view.version), "what is published is not the table that is known");
    }

    /// When `handle` next wants a `Tick`; `None` once stopped.
    pub fn deadline(&self) -> Option<Timestamp> {
        if self.stopped {
            return None;
        }
        let timeout = self.config.store_timeout;
        let table = match &self.access {
            Some(access) => access.started + timeout,
            None => self.next_poll,
        };
        let lease = match self.lease.renewing {
            Some((_, started)) => started + timeout,
            None if self.renews() => self.lease.next,
            None => Timestamp::NEVER,
        };
        let fence = self.fence.filter(|_| self.leaving.is_none()).unwrap_or(Timestamp::NEVER);
        let leave = self.leaving.map_or(Timestamp::NEVER, |since| since + timeout * LEAVE_TRIES);
        Some(table.min(lease).min(fence).min(leave))
    }

    fn table_read(
        &mut self,
        now: Timestamp,
        op: OpId,
        table: Option<(Table, Etag)>,
        leases: &BTreeMap<NodeId, (LeaseRecord, Etag)>,
        out: &mut Vec<Action>,
    ) {
        let Some(access) = self.access.take_if(|a| a.op == op && a.write.is_none()) else { return };
        let known = self.table.as_ref().map_or(0, |(table, _)| table.version);
        let Some((table, etag)) = table else {
            self.plan(now, out);
            return;
        };
        if table.version < known {
            return;
        }
        if let Some((record, etag)) = self.me.and_then(|me| leases.get(&me)) {
            let stored = self.lease.stored.as_ref().map_or(0, |(counter, _)| *counter);
            if record.counter > stored && self.lease.renewing.is_none() {
                self.lease.stored = Some((record.counter, etag.clone()));
                // A renewal landed and its answer was lost: half of the lease may be over.
                self.lease.next = now;
            }
        }
        self.sightings.observe(now, access.started, &table, Some(leases), &self.config);
        self.table = Some((table, etag));
        self.settle(now, access.covers, out);
        self.plan(now, out);
    }

    fn written(&mut self, now: Timestamp, op: OpId, etag: Etag, out: &mut Vec<Action>) {
        if let Some((_, started)) = self.lease.renewing.take_if(|(renewal, _)| *renewal == op) {
            self.lease.stored = Some((self.lease.tried, etag));
            self.lease.renewed = Some(started);
            self.want_read = true;
            if !self.config.checks.fresh_read && self.status() == Some(Status::Active) {
                self.grant(now, started, out);
            }
            return;
        }
        let Some(access) = self.access.take_if(|a| a.op == op && a.write.is_some()) else { return };
        let Some((table, id)) = access.write else { return };
        let known = self.table.as_ref().map_or(0, |(table, _)| table.version);
        assert_eq!(table.version, known.wrapping_add(1), "the table was written over another one than the known one");
        let gone = self.table.iter().flat_map(|(old, _)| old.rows.keys()).filter(|id| !table.rows.contains_key(id));
        out.extend(gone.map(|node| Action::DeleteLease { node: *node }));
        self.me = id.or(self.me);
        self.sightings.observe(now, access.started, &table, None, &self.config);
        self.table = Some((table, etag));
        self.want_read = true;
        self.settle(now, access.covers, out);
    }

    /// Takes in what the table just seen says of us; `covers` began the renewal that its access vouches for.
    fn settle(&mut self, now: Timestamp, covers: Option<Timestamp>, out: &mut Vec<Action>) {
        if self.me.is_some() {
            match self.status() {
                Some(Status::Joining) => {}
                Some(Status::Active) => match (self.config.lease, covers) {
                    (None, _) => self.set_fence(Timestamp::NEVER, out),
                    (Some(_), Some(began)) => self.grant(now, began, out),
                    (Some(_), None) => {}
                },
                Some(Status::Dead) | None => {
                    let left = self.leaving.is_some();
                    self.stop(if left { StopReason::Left } else { StopReason::DeclaredDead }, out);
                    return;
                }
            }
        }
        let Some((table, _)) = &self.table else { return };
        let live = |node: &NodeId| table.status(*node).is_some_and(|status| status != Status::Dead);
        self.suspected.retain(|node, _| live(node));
        self.reached.retain(live);
        let view = View { freed: self.sightings.freed().clone(), ..table.view() };
        if self.published.as_deref() != Some(&view) {
            let view = Arc::new(view);
            self.published = Some(Arc::clone(&view));
            out.push(Action::Publish(view));
        }
    }

    /// Grants the fence of a renewal that began at `began`, unless it is over already.
    fn grant(&mut self, now: Timestamp, began: Timestamp, out: &mut Vec<Action>) {
        assert!(began <= now, "a renewal vouches for what came before it");
        if let Some(lease) = self.config.lease {
            let until = began + lease.length;
            if until > now {
                self.set_fence(until, out);
            }
        }
    }

    fn set_fence(&mut self, until: Timestamp, out: &mut Vec<Action>) {
        if self.leaving.is_none() && self.fence.is_none_or(|fence| fence < until) {
            self.fence = Some(until);
            out.push(Action::SetFence { until });
        }
    }

    /// Writes what the table just seen calls for, if anything.
    fn plan(&mut self, now: Timestamp, out: &mut Vec<Action>) {
        if self.stopped {
            return;
        }
        let empty = Table::default();
        let (table, expect) = match &self.table {
            Some((table, etag)) => (table, Some(etag.clone())),
            None => (&empty, None),
        };
        let planner = Planner { now, config: &self.config, sightings: &self.sightings, suspected: &self.suspected };
        let write = match (self.me, self.status()) {
            (None, _) if self.leaving.is_some() => return self.stop(StopReason::Left, out),
            (None, _) => match planner.allocate(table, &self.member) {
                Ok((next, node)) => Some((next, Some(node))),
                Err(Namesake::Lives(node)) => return self.stop(StopReason::NameTaken(node), out),
                Err(Namesake::MayLive { until }) => {
                    self.next_poll = self.next_poll.min(until);
                    None
                }
            },
            (Some(me), _) if self.leaving.is_some() => Some((planner.leave(table, me), None)),
            (Some(me), Some(Status::Joining)) => {
                let unasked = table.active().filter(|node| !self.reached.contains(node));
                out.extend(unasked.map(|node| Action::ProbeForJoin {
                    node,
                    address: table.rows[&node].member.address.clone(),
                    joiner: me,
                }));
                let renewed = self.lease.renewed.is_some();
                planner.join(table, me, &self.reached, renewed).map(|next| (next, None))
            }
            (Some(me), _) => planner.tend(table, me, &self.member.kinds, self.draining).map(|next| (next, None)),
        };
        if let Some((next, id)) = write {
            assert_eq!(next.version, table.version.wrapping_add(1), "a write takes the table's version on by one");
            debug_assert!(next.keeps_the_dead_of(table), "a dead row comes back to life");
            let op = self.op();
            self.access =
                Some(Access { op, started: now, covers: self.lease.renewed, write: Some((next.clone(), id)) });
            out.push(Action::WriteTable { op, table: next, expect });
        }
    }

    fn leave(&mut self, now: Timestamp, out: &mut Vec<Action>) {
        if self.leaving.is_none() {
            self.leaving = Some(now);
            self.fence = Some(Timestamp::default());
            out.push(Action::SetFence { until: Timestamp::default() });
            self.want_read = true;
        }
    }

    fn check_fence(&mut self, now: Timestamp, out: &mut Vec<Action>) {
        match self.leaving {
            Some(since) if since + self.config.store_timeout * LEAVE_TRIES <= now => self.stop(StopReason::Left, out),
            None if self.fence.is_some_and(|fence| fence <= now) => self.stop(StopReason::LeaseRanOut, out),
            _ => {}
        }
    }

    fn stop(&mut self, reason: StopReason, out: &mut Vec<Action>) {
        if !self.stopped {
            self.stopped = true;
            out.push(Action::Stop(reason));
        }
    }

    /// Starts what is due: at most one access to the table and one renewal at a time.
    fn drive(&mut self, now: Timestamp, out: &mut Vec<Action>) {
        if self.stopped {
            return;
        }
        let timeout = self.config.store_timeout;
        if self.access.take_if(|a| a.started + timeout <= now).is_some() {
            self.want_read = true;
        }
        if self.lease.renewing.take_if(|(_, started)| *started + timeout <= now).is_some() {
            self.want_read = true;
        }
        if self.renews() && self.lease.renewing.is_none() && self.lease.next <= now {
            self.renew(now, out);
        }
        if self.access.is_none() && (self.want_read || self.next_poll <= now) {
            let op = self.op();
            self.want_read = false;
            self.next_poll = now + self.config.poll_every;
            self.access = Some(Access { op, started: now, covers: self.lease.renewed, write: None });
            out.push(Action::ReadTable { op });
        }
    }

    fn renew(&mut self, now: Timestamp, out: &mut Vec<Action>) {
        let (Some(node), Some(lease)) = (self.me, self.config.lease) else { return };
        let op = self.op();
        let stored = self.lease.stored.clone();
        self.lease.tried = self.lease.tried.max(stored.as_ref().map_or(0, |(counter, _)| *counter)) + 1;
        self.lease.renewing = Some((op, now));
        self.lease.next = now + lease.renew_every;
        let record = LeaseRecord { node, counter: self.lease.tried };
        out.push(Action::RenewLease { op, record, expect: stored.map(|(_, etag)| etag) });
    }

    /// Whether `op` was under way; it no longer is.
    fn finished(&mut self, op: OpId) -> bool {
        let access = self.access.take_if(|a| a.op == op).is_some();
        access || self.lease.renewing.take_if(|(renewal, _)| *renewal == op).is_some()
    }

    fn renews(&self) -> bool {
        self.me.is_some() && self.config.lease.is_some() && self.leaving.is_none()
    }

    fn status(&self) -> Option<Status> {
        self.table.as_ref()?.0.status(self.me?)
    }

    fn op(&mut self) -> OpId {
        self.ops += 1;
        OpId(self.ops)
    }
}

/// Store time-outs after which a node that leaves goes without having written so.
const LEAVE_TRIES: u32 = 3;
