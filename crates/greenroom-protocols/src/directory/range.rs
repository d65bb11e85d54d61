//! One range on one node: the owner's side and the host's side together.

use super::host::{Acceptance, Host};
use super::owner::Owner;
use super::{Action, Decision, Epoch, Event, Grant, HostedActors, Move, Placed, RangeId, Released, Report, Resolution};
use crate::checks::Checks;
use crate::node::NodeId;
use crate::time::Timestamp;

/// One range on one node. Keep it and this node's activations of the range behind one mutex.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub struct Range<K> {
    me: NodeId,
    range: RangeId,
    owner: Owner<K>,
    host: Host,
}

impl<K: Ord + Clone> Range<K> {
    /// The range as node `me` holds it; it knows nothing before the first [`Event::View`].
    pub fn new(me: NodeId, range: RangeId) -> Self {
        Self::with_checks(me, range, Checks::default())
    }

    /// As [`Range::new`], without the safety checks that are off.
    #[doc(hidden)]
    pub fn with_checks(me: NodeId, range: RangeId, checks: Checks) -> Self {
        Self { me, range, owner: Owner::new(me, range, checks), host: Host::new(me, range, checks) }
    }

    /// Applies `event` at `now`, appending what must happen to `out`, in order. Never fails.
    ///
    /// `hosted` lists all that is here of the range; it is called only if a report is due.
    pub fn handle(
        &mut self,
        now: Timestamp,
        event: Event<K>,
        hosted: impl FnOnce() -> HostedActors<K>,
        out: &mut Vec<Action<K>>,
    ) {
        match event {
            Event::View(view) => {
                let report_to = self.host.view(view.clone());
                self.owner.view(now, view, out);
                if let Some(to) = report_to {
                    self.send_report(now, to, hosted(), out);
                }
            }
            Event::Asked { from, view } => {
                if self.host.answers(from, view) {
                    self.send_report(now, from, hosted(), out);
                }
            }
            Event::Report(report) => self.owner.report(now, report, out),
            Event::Released(released) => self.owner.released(&released),
            Event::Tick => self.owner.tick(now, out),
        }
        self.check_invariants();
    }

    /// What holds between two events.
    fn check_invariants(&self) {
        assert_eq!(self.host.tenure, self.owner.tenure, "the two sides of a range know different owners");
        assert!(self.owner.tenure.since <= self.host.version(), "a tenure begins with a view that is not here");
        assert!(
            self.owner.tenure.owner == Some(self.me) || self.owner.is_idle(),
            "entries are kept of another's range"
        );
    }

    /// When `handle` next wants a `Tick`; `None` unless this node owns the range and it is recovering.
    pub fn deadline(&self) -> Option<Timestamp> {
        self.owner.deadline()
    }

    /// The owner's word on where `key` is.
    pub fn resolve(&self, now: Timestamp, key: &K) -> Resolution {
        self.owner.resolve(now, key)
    }

    /// The owner grants `key` to `node`, unless it was placed meanwhile; see [`Owner::grant`].
    pub fn grant(&mut self, now: Timestamp, key: K, node: NodeId) -> Resolution {
        self.owner.grant(now, key, node)
    }

    /// The owner decides a move; see [`Owner::decide`].
    pub fn decide(&mut self, now: Timestamp, wish: &Move<K>) -> Decision {
        self.owner.decide(now, wish)
    }

    /// The owner hears that a move is over; see [`Owner::settled`].
    pub fn settled(&mut self, key: &K, placed: Placed) {
        self.owner.settled(key, placed);
    }

    /// Whether an actor that is not active here may be activated under `grant`; see [`Host::accept`].
    pub fn accept(&self, grant: &Grant) -> Acceptance {
        self.host.accept(grant)
    }

    /// Whether who holds what an actor was, since this was the floor, may activate it under `grant`; see [`Host::accept_held`].
    pub fn accept_held(&self, since: Epoch, grant: &Grant) -> Acceptance {
        self.host.accept_held(since, grant)
    }

    /// Returns true if a refusal of `by` from its version `view` still counts here; see [`Host::heeds`].
    pub fn heeds(&self, by: NodeId, view: u64) -> bool {
        self.host.heeds(by, view)
    }

    /// The highest epoch that was released here; see [`Host::floor`].
    pub fn floor(&self) -> Epoch {
        self.host.floor()
    }

    /// Ends the activation of `key` of this `epoch`, or refuses to begin it. Sends nothing itself: hand what it gives to the
    /// [owner](Range::owner), here by [`Event::Released`].
    ///
    /// The activation must be out of the list of activations, and its last turn ended.
    pub fn release(&mut self, key: K, epoch: Epoch) -> Released<K> {
        self.host.release(epoch);
        Released { key, placed: Placed { node: self.me, epoch } }
    }

    /// The owner of the range in this node's view.
    pub fn owner(&self) -> Option<NodeId> {
        self.host.owner()
    }

    /// Since which version of the view this node owns the range without a break, if it does.
    pub fn tenure(&self) -> Option<u64> {
        self.owner.owns_since()
    }

    /// The version of this node's view; 0 before the first.
    pub fn version(&self) -> u64 {
        self.host.version()
    }

    /// Number of actors that this node, as the owner, has an entry for.
    pub fn entries(&self) -> usize {
        self.owner.len()
    }

    fn send_report(&mut self, now: Timestamp, to: NodeId, hosted: HostedActors<K>, out: &mut Vec<Action<K>>) {
        let HostedActors { activations, in_transit } = hosted;
        let report = Report { from: self.me, range: self.range, view: self.host.version(), activations, in_transit };
        if to == self.me {
            self.owner.report(now, report, out);
        } else {
            out.push(Action::Report { to, report });
        }
    }
}
