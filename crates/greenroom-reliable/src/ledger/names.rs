//! Where everything of a partition lies. A promise to journals: golden names in the tests.

use greenroom_protocols::delivery::{Lane, PartitionId, Slot, WaitingPlace};
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
        let mut prefix = cluster_prefix(cluster);
        five_digits(partition.0, &mut prefix);
        Self { prefix, partition }
    }

    /// The partition.
    pub fn partition(&self) -> PartitionId {
        self.partition
    }

    pub(super) fn fence(&self) -> String {
        self.under("fence")
    }

    pub(super) fn receipts(&self, from: PartitionId) -> String {
        let mut name = self.all_receipts();
        five_digits(from.0, &mut name);
        name
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
        let mut name = self.earlier_answers();
        escape(key, &mut name);
        name
    }

    pub(super) fn attempts(&self) -> String {
        self.under("attempt/")
    }

    pub(super) fn attempt(&self, place: &WaitingPlace) -> String {
        let mut name = self.attempts();
        match place {
            WaitingPlace::Counted { from, life, number } => {
                name_lane(Lane::Counted(*from), &mut name);
                name.push_str(&format!("-{:016x}-{number:016x}", life.0));
            }
            WaitingPlace::Loose { from, life, number } => {
                name_lane(Lane::Loose(*from), &mut name);
                name.push_str(&format!("-{:016x}-{number:016x}", life.0));
            }
            WaitingPlace::Queue(slot) => name.push_str(&format!("queue-{}", slot_name(*slot))),
            WaitingPlace::Call(key) => {
                name.push_str("call-");
                escape(key, &mut name);
            }
        }
        name
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
        let mut name = self.lanes();
        name_lane(lane, &mut name);
        name
    }

    /// The log of a lane.
    pub(super) fn lane(&self, lane: Lane) -> String {
        let mut name = self.under("out/");
        name_lane(lane, &mut name);
        name
    }

    pub(super) fn state_of<A: Name>(&self, actor: &A) -> String {
        self.of("state", actor) + "/"
    }

    pub(super) fn field<A: Name>(&self, actor: &A, field: &str, entry: &str) -> String {
        let mut name = self.state_of(actor) + field;
        if !entry.is_empty() {
            name.push('/');
            name.push_str(entry);
        }
        name
    }

    fn under(&self, what: &str) -> String {
        let mut name = String::with_capacity(self.prefix.len() + what.len() + SPARE);
        name.push_str(&self.prefix);
        name.push('/');
        name.push_str(what);
        name
    }

    fn of<A: Name>(&self, what: &str, actor: &A) -> String {
        let (kind, key) = (actor.kind(), actor.key());
        let mut name = String::with_capacity(self.prefix.len() + what.len() + kind.len() + key.len() + SPARE);
        for part in [&self.prefix, "/", what, "/", kind, "/"] {
            name.push_str(part);
        }
        escape(key, &mut name);
        name
    }
}

/// The beginning of all names of a cluster's partitions.
pub(super) fn cluster_prefix(cluster: &str) -> String {
    let mut prefix = "reliable/".to_owned();
    escape(cluster, &mut prefix);
    prefix.push('/');
    prefix
}

/// A field's name and an entry's, from what follows the prefix of an actor's state.
pub(super) fn split_entry(rest: &str) -> (&str, &str) {
    rest.split_once('/').unwrap_or((rest, ""))
}

fn name_lane(lane: Lane, out: &mut String) {
    let (how, number) = match lane {
        Lane::Counted(to) => ("counted-", to.0),
        Lane::Loose(to) => ("loose-", to.0),
        Lane::Outside(plug) => ("outside-", plug),
    };
    out.push_str(how);
    five_digits(number, out);
}

/// Writes a number with five digits, or as many as it has. A commit has many names: formatting would take longer than all else of them.
fn five_digits(number: u32, out: &mut String) {
    if number > 99_999 {
        out.push_str(&number.to_string());
        return;
    }
    for power in [10_000, 1000, 100, 10, 1] {
        out.push(char::from(b'0' + (number / power % 10) as u8));
    }
}

/// Later slots come later.
fn slot_name(slot: Slot) -> String {
    format!("{:016x}-{:016x}", slot.epoch.0, slot.serial)
}

/// Writes the text without slashes, so that no name begins with another actor's.
fn escape(text: &str, out: &mut String) {
    let mut rest = text;
    while let Some(at) = rest.find(['/', '%', '\0']) {
        out.push_str(&rest[..at]);
        out.push_str(match rest.as_bytes()[at] {
            b'/' => "%2F",
            b'%' => "%25",
            _ => "%00",
        });
        rest = &rest[at + 1..];
    }
    out.push_str(rest);
}

/// Room behind a name for what is added to most of them.
const SPARE: usize = 24;
