//! An activation whose turns hosts run, and the turns.

use std::collections::{BTreeSet, VecDeque};

use crate::time::Timestamp;

use super::{Activation, Cookie, KindName, Seat, SessionId, TurnNumber};

#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub(super) struct Place {
    pub(super) kind: KindName,
    /// The version that its first caller speaks.
    pub(super) wanted: u16,
    /// It waits for a host however long: its actor is reliable.
    pub(super) is_patient: bool,
    /// The newest version that it has had a seat of.
    pub(super) version: u16,
    pub(super) stage: Stage,
    /// Hosts that were lost while they made it, one after the other.
    pub(super) lost_making: u32,
    /// Its last host was lost while it made it.
    pub(super) was_lost_making: bool,
    /// Turns that wait for a seat, or for it to be left.
    pub(super) waiting: VecDeque<Cookie>,
    /// Turns that were sent, or wait for room at its host.
    pub(super) sent: BTreeSet<Cookie>,
    /// It is to be made, whether or not a turn waits for that.
    pub(super) is_wanted: bool,
    /// It is to have no seat any more: whether its turns are abandoned.
    pub(super) leave: Option<bool>,
    /// It is to leave its seat with what it holds, and whoever wants that is told when it has.
    pub(super) is_carrying: bool,
    /// A newer version serves the same callers.
    pub(super) is_outdated: bool,
}

#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub(super) enum Stage {
    /// Without a seat, and nothing waits for one.
    Idle,
    /// Without a seat, until a host comes or it is given up.
    Waiting {
        until: Timestamp,
    },
    Making(At),
    Ready(At),
    Ending(At),
    /// Its host is lost, and may still act.
    Held(At),
}

/// A seat.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub(super) struct At {
    pub(super) session: SessionId,
    pub(super) seat: Seat,
}

/// A turn that has begun, as the node sees it.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub(super) struct Run {
    pub(super) activation: Activation,
    pub(super) runs_again: bool,
    pub(super) len: u64,
    /// Where it was sent.
    pub(super) sent: Option<(SessionId, TurnNumber)>,
    /// Requests of its that are open.
    pub(super) requests: u32,
}

impl Place {
    pub(super) fn new(kind: KindName, wanted: u16, is_patient: bool) -> Self {
        Self {
            kind,
            wanted,
            is_patient,
            version: 0,
            stage: Stage::Idle,
            lost_making: 0,
            was_lost_making: false,
            is_wanted: true,
            waiting: VecDeque::new(),
            sent: BTreeSet::new(),
            leave: None,
            is_carrying: false,
            is_outdated: false,
        }
    }

    /// True if as many hosts were lost while they made it as may be.
    pub(super) fn is_given_up(&self) -> bool {
        self.lost_making >= LOST_MAKING_MAX
    }

    /// Until when it waits for a host, where who is not patient waits until `end`.
    pub(super) fn patience(&self, end: Timestamp) -> Timestamp {
        if self.is_patient { Timestamp::NEVER } else { end }
    }

    pub(super) fn at(&self) -> Option<At> {
        match self.stage {
            Stage::Idle | Stage::Waiting { .. } => None,
            Stage::Making(at) | Stage::Ready(at) | Stage::Ending(at) | Stage::Held(at) => Some(at),
        }
    }
}

/// Hosts that may be lost while they make an activation, before it counts as one that cannot be made.
const LOST_MAKING_MAX: u32 = 3;
