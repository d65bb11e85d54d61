//! How the instances of a versioned state agree on one sequence of updates: the trait, for protocols of users' own.
//!
//! A [`ConsistencyProtocol`] is a machine for one instance: [`Event`]s and the time in, [`Action`]s out. What goes around it
//! carries out its accesses to the store, its messages to instances in other clusters, and its timers. The box has three:
//!
//! | name | where the latest version is | paper |
//! |---|---|---|
//! | `bcas` | in the kind's store, as one record that is written on a condition | Geo §3.4 |
//! | `log` | in the kind's journal, as a log of all updates, with snapshots | |
//! | `vlb` | in the memory of the leader: volatile | Geo §3.5 |
//!
//! A kind says which: `#[actor(protocol = "log")]`; a node's configuration can say it instead, under `kinds.NAME.protocol`.
//! One of your own gets its name by [`Builder::protocol`](crate::Builder::protocol).

use std::time::Duration;

use bytes::Bytes;
use greenroom_store::journal::Limits;

use super::Rejected;
pub use super::elsewhere::{Around, Delivery};
pub use super::values::{OutputValue, StateValue, Types, UpdateValue};

pub use greenroom_protocols::bcas::{Applied, Change, Etag, Session, Version, Waiter, Written};
pub use greenroom_protocols::gsi::ClusterId;
pub use greenroom_store::Entry;
pub use greenroom_world::Timestamp;

/// One instance's part in keeping a versioned state.
///
/// What it must hold: every confirmed update is applied exactly once, in one order that all instances see, and each of them
/// sees a prefix of it. It is called under a lock: it computes, and waits for nothing.
pub trait ConsistencyProtocol: Send + 'static {
    /// Takes `event` in at `now`, appending what must happen to `out`, in order. Never fails.
    fn handle(&mut self, now: Now, event: Event, out: &mut Vec<Action>);

    /// The last state known to be in the one sequence, and its place there.
    fn confirmed(&self) -> (StateValue, Version);

    /// The confirmed state with this instance's own pending updates on top.
    fn tentative(&self) -> StateValue;

    /// How many of this instance's updates are not confirmed.
    fn pending(&self) -> usize;

    /// When [`handle`](Self::handle) next wants a [`Event::Tick`].
    fn deadline(&self) -> Option<Timestamp>;

    /// Whether the actor activates only once the latest version is here.
    fn loads(&self) -> bool {
        true
    }

    /// The largest update that can be kept and sent, in bytes; `None` if updates need not become bytes.
    fn update_bytes_max(&self) -> Option<usize> {
        None
    }

    /// How many confirmed updates are kept, as they may have to be confirmed anew ([`Event::Doubtful`]): they take the room of
    /// updates that wait.
    fn kept(&self) -> usize {
        0
    }
}

/// The time, by both clocks.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Now {
    /// The node's monotonic clock: what deadlines are judged by.
    pub clock: Timestamp,
    /// Time since 1970 by the machine's wall clock: for people.
    pub wall: Duration,
}

/// What a new instance is told.
#[derive(Clone, Debug)]
pub struct Place {
    /// This instance as a writer; no other one, earlier or later, has the same.
    pub session: Session,
    /// The epoch of its actor's activation, which rises with each.
    pub epoch: u64,
    /// How its values become bytes.
    pub types: Types,
    /// Who else there is.
    pub around: Around,
    /// What its store takes at once, if it is a journal.
    pub journal: Option<Limits>,
    /// Updates between two snapshots of a log.
    pub snapshot_every: u64,
    /// Time before the store is tried again after a failure.
    pub retry_after: Duration,
}

/// What has happened to an instance.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub enum Event {
    /// The user has enqueued this; sequence numbers begin with 1.
    Enqueue(u64, Change<UpdateValue>),
    /// Say [`Action::Done`] when all that is enqueued is confirmed.
    Confirm(Waiter),
    /// Say [`Action::Done`] when the latest version of after this request is here, and all that is enqueued is confirmed.
    Refresh(Waiter),
    /// The one access to the store that is under way has come to this.
    Answered(Answer),
    /// The instance of another cluster has sent this. It is as hostile as anything from outside.
    Received {
        /// The cluster.
        from: ClusterId,
        /// The message.
        message: Bytes,
    },
    /// What was sent to this cluster has found no instance there.
    Unreached(ClusterId),
    /// This cluster is reached again, which was not for a while: what was sent to it is lost, and it may have said what was not
    /// heard here.
    Reached(ClusterId),
    /// The clusters have changed: this is around now.
    Around(Around),
    /// Whether another cluster may have an instance of the actor, of which there should be one only, from here on.
    Doubtful(bool),
    /// Another cluster's instance stays, in one of these clusters. What only this one has is to be confirmed there: then it ends.
    Yields(Vec<ClusterId>),
    /// The deadline came.
    Tick,
    /// The activation ends, and this is the last that the protocol hears: what it sends now still leaves.
    Ends,
}

/// What must be done for an instance.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub enum Action {
    /// Access the store, then say [`Event::Answered`]. There is one access at a time.
    Access(Access),
    /// Send this to the instance in another cluster; it may get lost, come late, twice, or in another order.
    Send {
        /// The cluster.
        to: ClusterId,
        /// What becomes of it if its actor is not active there.
        delivery: Delivery,
        /// The message.
        message: Bytes,
    },
    /// The own update of this sequence number is confirmed, and has come to this.
    Outcome(u64, Applied<OutputValue, Rejected>),
    /// What this one waited for has come.
    Done(Waiter),
    /// This, for people, keeps the others waiting.
    Trouble(String),
    /// This, for people, has happened, and should not have.
    Warning(String),
}

/// An access to the store.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub enum Access {
    /// Read the record.
    Read,
    /// Write the record if its tag is still this (none: if there is no record), and append to the logs in the same commit.
    Write {
        /// The tag that must be there.
        expect: Option<Etag>,
        /// The record.
        record: Bytes,
        /// What to append where.
        appends: Vec<(Log, Bytes)>,
    },
    /// Read entries from this position on.
    Entries {
        /// Of which log.
        log: Log,
        /// From where.
        from: u64,
        /// How many at most.
        limit: usize,
    },
    /// Ask for the position that the next entry will get.
    End(Log),
}

/// A log that belongs to a state.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Log {
    /// Its updates.
    Updates,
    /// Its snapshots.
    Snapshots,
}

/// What an access has come to.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub enum Answer {
    /// The record and its tag, or none.
    Record(Option<(Bytes, Etag)>),
    /// The write ended.
    Written(Written),
    /// These entries.
    Entries(Vec<Entry>),
    /// The position that the next entry will get.
    End(u64),
    /// Nothing could be read.
    Failed,
}

/// Makes the protocol of a new instance.
pub(crate) type Make = Box<dyn Fn(Place) -> Box<dyn ConsistencyProtocol> + Send + Sync>;
