//! What a part of the shard holds back by itself, until it is chosen.

use std::fmt;
use std::rc::Rc;
use std::sync::Arc;
use std::time::Duration;

use greenroom_protocols::delivery::Delivery;
use greenroom_world::Timestamp;

use super::{Held, Kind, Party, Shard, What, mix};
use crate::actor::key::ActorId;

/// Something that a part of the shard does when it is chosen.
#[derive(Clone)]
pub(crate) struct Deed {
    /// `Kind::Start` if it begins a turn, for which its actor must be free.
    pub(crate) kind: Kind,
    /// Whom it touches, and who made it.
    pub(crate) at: ActorId,
    pub(crate) by: Party,
    /// The method whose turn it begins; none of a commit.
    pub(crate) method: Option<Arc<str>>,
    /// How often it comes, and whether in its order.
    pub(crate) delivery: Delivery,
    pub(crate) perform: Rc<dyn Fn(&Shard)>,
}

impl fmt::Display for Deed {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.method {
            Some(method) => write!(f, "{}.{method}<{}", self.at, self.by),
            None => write!(f, "commit {}", self.at),
        }
    }
}

/// A part of the shard that has actors of its own on a stage.
pub(crate) trait Player {
    /// Takes in what has come of the step that was done.
    fn settle(&self, shard: &Shard);

    /// Hears that nodes are gone, with the actors that were there; their activations are, too.
    fn crashed(&self, shard: &Shard, is_there: &dyn Fn(&ActorId) -> bool);

    /// When something is due by itself.
    fn next_due(&self, shard: &Shard) -> Option<Timestamp>;

    /// Lets come what is due now.
    fn pass_time(&self, shard: &Shard);

    /// The hashes of the actors that have something due by the wall clock.
    fn timed(&self) -> Vec<u64>;

    /// Hears that wall clocks are `ahead`, by which something of those actors is due that are meant by their hashes.
    fn went_ahead(&self, shard: &Shard, is_meant: &dyn Fn(u64) -> bool, ahead: Duration);

    /// Forgets all.
    fn forget(&self);
}

/// In whose name something is done that no turn and no client does, and how much of that there was.
pub(super) struct Acting {
    pub(super) party: Party,
    pub(super) number: u64,
    pub(super) made: u64,
}

impl Shard {
    /// Lets a part of the shard have actors of its own on the stage, from its first message on.
    pub(crate) fn join_in(&self, player: &Rc<impl Player + 'static>) {
        self.rehearsal.player.borrow_mut().get_or_insert_with(|| player.clone());
    }

    pub(super) fn player(&self) -> Option<Rc<dyn Player>> {
        self.rehearsal.player.borrow().clone()
    }

    /// Holds a deed back; `number` tells it from others. It touches one whose hash is the first, and was made by the second.
    pub(crate) fn hold_deed(&self, number: u64, (at, by): (u64, u64), deed: Deed) {
        let is_ordered = deed.kind == Kind::Start && deed.delivery == Delivery::ExactlyOnce;
        let queue = if is_ordered { mix(by, at) | 1 } else { 0 };
        self.rehearsal.hold(number, (at, by, queue), What::Deed(deed));
    }

    /// Lets a deed that waits come twice; `false` if it is none.
    pub(super) fn repeat(&self, number: u64) -> bool {
        let again = {
            let held = self.rehearsal.held.borrow();
            held.iter().find(|held| held.number == number).and_then(|held| match &held.what {
                What::Deed(deed) => Some(deed.clone()),
                _ => None,
            })
        };
        let Some(deed) = again else { return false };
        let touches = (deed.at.stable_hash(), deed.by.hash());
        self.hold_deed(mix(number, self.rehearsal.step.get()), touches, deed);
        true
    }

    /// Lets a deed come before all others that its maker has for whom it touches.
    pub(crate) fn put_first(&self, number: u64) {
        let mut held = self.rehearsal.held.borrow_mut();
        if let Some(at) = held.iter().position(|held| held.number == number) {
            let first = held.remove(at);
            held.insert(0, first);
        }
    }

    /// Lets no deed of this kind come any more that touches the actor with this hash.
    pub(crate) fn drop_deeds(&self, kind: Kind, at: u64) {
        let is_other = |held: &Held| !matches!(&held.what, What::Deed(deed) if deed.kind == kind && held.at == at);
        self.rehearsal.held.borrow_mut().retain(is_other);
    }

    /// Lets no turn of the actor with this hash begin, or lets them again.
    pub(crate) fn occupy(&self, actor: u64, is_taken: bool) {
        let mut occupied = self.rehearsal.occupied.borrow_mut();
        occupied.retain(|known| *known != actor);
        if is_taken {
            occupied.push(actor);
        }
    }

    /// Does something in the name of an actor that runs no turn.
    pub(crate) fn act_as<T>(&self, actor: &ActorId, number: u64, act: impl FnOnce() -> T) -> T {
        let acting = Acting { party: Party::Actor(actor.clone()), number, made: 0 };
        let before = self.rehearsal.acting.replace(Some(acting));
        let done = act();
        self.rehearsal.acting.replace(before);
        done
    }

    /// The number of the step that is being done.
    pub(crate) fn step_number(&self) -> u64 {
        self.rehearsal.step.get()
    }

    /// Tells whoever explores that something has gone wrong that must not.
    pub(crate) fn violate(&self, what: String) {
        self.rehearsal.panics.borrow_mut().push(what);
    }

    /// Whether no turn of the actor may begin, as a part of the shard has it.
    pub(super) fn is_occupied(&self, hash: u64) -> bool {
        self.rehearsal.occupied.borrow().contains(&hash)
    }
}
