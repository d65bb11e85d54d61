//! Where everything of a partition lies. A promise to journals: golden names in the tests.

use std::fmt::Write as _;

use greenroom_protocols::delivery::{Lane, PartitionId, Slot};
use greenroom_protocols::reminders::Wall;
use serde::Serialize;
use serde::de::DeserializeOwned;

/// The name of an actor, as the ledger needs it.
pub trait Name: Clone + Ord + Serialize + DeserializeOwned {
    /// The actor's kind: letters, digits, `_`, `-` and `.`.
    fn kind(&self) -> &str;

    /// The actor's key within the kind: any text.
    fn key(&self) -> &str;
}

/// Where a partition's records lie.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Place {
    prefix: String,
    partition: PartitionId,
}

impl Place {
    /// The place of `partition` of the cluster of this name.
    pub fn new(cluster: &str, partition: PartitionId) -> Self {
        Self { prefix: format!("reliable/{}/{:05}", escaped(cluster), partition.0), partition }
    }

    /// The partition.
    pub fn partition(&self) -> PartitionId {
        self.partition
    }

    pub(super) fn fence(&self) -> String {
        self.under("fence")
    }

    pub(super) fn receipts(&self, from: PartitionId) -> String {
        format!("{}{:05}", self.all_receipts(), from.0)
    }

    pub(super) fn all_receipts(&self) -> String {
        self.under("received/")
    }

    pub(super) fn present<A: Name>(&self, actor: &A) -> String {
        self.of("present", actor)
    }

    pub(super) fn tombstone<A: Name>(&self, actor: &A) -> String {
        self.of("halted", actor)
    }

    pub(super) fn tombstones(&self) -> String {
        self.under("halted/")
    }

    pub(super) fn all_deferred(&self) -> String {
        self.under("deferred/")
    }

    pub(super) fn deferred_of<A: Name>(&self, actor: &A) -> String {
        self.of("deferred", actor) + "/"
    }

    pub(super) fn deferred<A: Name>(&self, actor: &A, slot: Slot) -> String {
        self.deferred_of(actor) + &slot_name(slot)
    }

    pub(super) fn parked(&self) -> String {
        self.under("parked/")
    }

    pub(super) fn parked_at(&self, slot: Slot) -> String {
        self.parked() + &slot_name(slot)
    }

    /// The log of recorded answers.
    pub(super) fn answers(&self) -> String {
        self.under("answers")
    }

    /// The log of their bundles.
    pub(super) fn bundles(&self) -> String {
        self.under("bundles")
    }

    /// Where they lay before there was a log of them.
    pub(super) fn earlier_answers(&self) -> String {
        self.under("answer/")
    }

    pub(super) fn earlier_answer(&self, key: &str) -> String {
        self.earlier_answers() + &escaped(key)
    }

    pub(super) fn timers(&self) -> String {
        self.under("timer/")
    }

    /// Those that are due earlier come earlier.
    pub(super) fn timer(&self, due: Wall, slot: Slot) -> String {
        format!("{}{:016x}-{}", self.timers(), due.0, slot_name(slot))
    }

    pub(super) fn lanes(&self) -> String {
        self.under("lane/")
    }

    pub(super) fn lane_mark(&self, lane: Lane) -> String {
        self.lanes() + &lane_name(lane)
    }

    /// The log of a lane.
    pub(super) fn lane(&self, lane: Lane) -> String {
        format!("{}/out/{}", self.prefix, lane_name(lane))
    }

    pub(super) fn state_of<A: Name>(&self, actor: &A) -> String {
        self.of("state", actor) + "/"
    }

    pub(super) fn field<A: Name>(&self, actor: &A, field: &str, entry: &str) -> String {
        let mut name = self.state_of(actor) + field;
        if !entry.is_empty() {
            let _ = write!(name, "/{entry}");
        }
        name
    }

    fn under(&self, what: &str) -> String {
        format!("{}/{what}", self.prefix)
    }

    fn of<A: Name>(&self, what: &str, actor: &A) -> String {
        format!("{}/{what}/{}/{}", self.prefix, actor.kind(), escaped(actor.key()))
    }
}

/// A field's name and an entry's, from what follows the prefix of an actor's state.
pub(super) fn split_entry(rest: &str) -> (&str, &str) {
    rest.split_once('/').unwrap_or((rest, ""))
}

fn lane_name(lane: Lane) -> String {
    match lane {
        Lane::Counted(to) => format!("counted-{:05}", to.0),
        Lane::Loose(to) => format!("loose-{:05}", to.0),
        Lane::Outside(plug) => format!("outside-{plug:05}"),
    }
}

/// Later slots come later.
fn slot_name(slot: Slot) -> String {
    format!("{:016x}-{:016x}", slot.epoch.0, slot.serial)
}

/// The text without slashes, so that no name begins with another actor's.
fn escaped(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    for char in text.chars() {
        match char {
            '/' => out.push_str("%2F"),
            '%' => out.push_str("%25"),
            '\0' => out.push_str("%00"),
            other => out.push(other),
        }
    }
    out
}
