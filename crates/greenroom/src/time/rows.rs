//! What reminders are in a store: a record each, and a hint each that brings it up.

use std::sync::Arc;

use bytes::{Bytes, BytesMut};
use greenroom_protocols::directory::{RangeId, range_of};
use greenroom_protocols::reminders::{Etag, Found, Hint, HintName, Position, Record, TickAttempt, Tombstone, Wall};
use greenroom_store::{Item, Version, Versioned};
use greenroom_wire::codec::{self, Codec, Payload};
use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};

use super::schedule::{Planned, Task};
use crate::actor::key::{ActorId, stable_hash};

/// Whose reminder, and which.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Debug, Serialize, Deserialize)]
pub(crate) struct ReminderId {
    pub(crate) kind: String,
    pub(crate) key: String,
    pub(crate) name: String,
}

/// A record as it is stored.
#[derive(Serialize, Deserialize)]
struct Stored {
    id: ReminderId,
    registration: u64,
    due: Wall,
    wake: Wall,
    nonce: u64,
    tag: String,
    /// `None` for a tombstone.
    #[serde(default)]
    task: Option<Arc<Task>>,
    /// Only for a tick whose turns may take down their process.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    attempt: Option<TickAttempt>,
}

/// A hint as it is stored.
#[derive(Serialize, Deserialize)]
struct StoredHint {
    of: ReminderId,
    #[serde(default)]
    expected: Option<String>,
}

/// The keys of one cluster's reminders.
#[derive(Clone, Debug)]
pub(crate) struct Keys {
    root: String,
}

impl ReminderId {
    pub(crate) fn new(id: &ActorId, name: &str) -> Self {
        Self { kind: id.kind.name().to_owned(), key: id.key.to_string(), name: name.to_owned() }
    }

    fn hash(&self) -> u64 {
        stable_hash(&self.kind, &self.key)
    }

    pub(crate) fn range(&self) -> RangeId {
        range_of(self.hash())
    }

    pub(crate) fn is_of(&self, kind: &str, key: &str) -> bool {
        self.kind == kind && self.key == key
    }
}

impl Keys {
    pub(crate) fn new(cluster: &str) -> Self {
        Self { root: format!("reminders/{cluster}") }
    }

    /// There if the cluster has ever had a reminder.
    pub(crate) fn used(&self) -> String {
        format!("{}/used", self.root)
    }

    pub(crate) fn record(&self, id: &ReminderId) -> String {
        let ReminderId { kind, key, name } = id;
        format!("{}/of/{:016x}/{kind}/{name}/{key}", self.root, id.hash())
    }

    /// What the records of one actor begin with; those of actors with the same hash may, too.
    pub(crate) fn records_of(&self, kind: &str, key: &str) -> String {
        format!("{}/of/{:016x}/{kind}/", self.root, stable_hash(kind, key))
    }

    /// What all records begin with.
    pub(crate) fn records(&self) -> String {
        format!("{}/of/", self.root)
    }

    /// What the hints of a range begin with.
    pub(crate) fn hints(&self, range: RangeId) -> String {
        format!("{}/due/{:02x}/", self.root, range.0)
    }

    /// Hints lie in the order of their positions.
    pub(crate) fn hint(&self, range: RangeId, at: Position) -> String {
        format!("{}{:012x}-{:016x}", self.hints(range), at.wake.0, at.nonce)
    }

    fn position(&self, range: RangeId, key: &str) -> Option<Position> {
        let (wake, nonce) = key.strip_prefix(&self.hints(range))?.split_once('-')?;
        let wake = Wall(u64::from_str_radix(wake, 16).ok()?);
        Some(Position { wake, nonce: u64::from_str_radix(nonce, 16).ok()? })
    }

    /// A row of a scan as a hint; `None` if it is none.
    pub(crate) fn read_hint(&self, range: RangeId, item: &Item) -> Option<(Position, Etag, Hint<ReminderId>)> {
        let at = self.position(range, &item.key)?;
        let StoredHint { of, expected } = read(&item.versioned.value).ok()?;
        Some((at, tag(&item.versioned.version), Hint { of, expected: expected.map(Etag) }))
    }
}

/// The latest time at which a reminder can be due: the last one that a hint's key can hold is that of parked reminders.
pub(crate) const WALL_MAX: Wall = Wall(Wall::PARKED.0 - 1);

pub(crate) fn tag(version: &Version) -> Etag {
    Etag(version.as_str().to_owned())
}

pub(crate) fn version(tag: &Etag) -> Version {
    Version::new(tag.0.as_str())
}

pub(crate) fn write_hint(hint: &Hint<ReminderId>) -> Bytes {
    let expected = hint.expected.as_ref().map(|tag| tag.0.clone());
    write(&StoredHint { of: hint.of.clone(), expected })
}

pub(crate) fn write_record(id: &ReminderId, record: &Record<Planned>) -> Bytes {
    let Record { registration, due, hint, plan, attempt } = record;
    write(&Stored {
        id: id.clone(),
        registration: *registration,
        due: *due,
        wake: hint.at.wake,
        nonce: hint.at.nonce,
        tag: hint.tag.0.clone(),
        task: plan.as_ref().ok().map(|planned| planned.0.clone()),
        attempt: *attempt,
    })
}

/// A row as a record.
///
/// # Errors
/// What is wrong with it.
pub(crate) fn read_record(row: &Versioned) -> Result<(ReminderId, Found<Planned>), String> {
    let Stored { id, registration, due, wake, nonce, tag: hint, task, attempt } = read(&row.value)?;
    let hint = HintName { at: Position { wake, nonce }, tag: Etag(hint) };
    let plan = task.map(Planned).ok_or(Tombstone);
    let record = Record { registration, due, hint, plan, attempt };
    Ok((id, Found { record, tag: tag(&row.version) }))
}

/// A value with its codec and the version of its type.
fn write(value: &impl Serialize) -> Bytes {
    let mut row = BytesMut::new();
    // Plain data always encodes.
    let _ = codec::encode(Codec::MessagePack, FORMAT, value, &mut row);
    row.freeze()
}

fn read<T: DeserializeOwned>(row: &[u8]) -> Result<T, String> {
    let Payload { type_version, .. } = codec::parse(row).map_err(|error| error.to_string())?;
    if type_version > FORMAT {
        return Err(format!(
            "it has format {type_version}, this program knows up to {FORMAT}; run a program that is as new as the row"
        ));
    }
    codec::decode(row).map_err(|error| error.to_string())
}

const FORMAT: u8 = 1;

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::super::schedule::Schedule;
    use super::*;

    fn id() -> ReminderId {
        ReminderId { kind: "room".into(), key: "a/b".into(), name: "daily".into() }
    }

    fn record(plan: Result<Planned, Tombstone>) -> Record<Planned> {
        let hint = HintName { at: Position { wake: Wall(10_000), nonce: 7 }, tag: Etag("3".into()) };
        Record { registration: 9, due: Wall(9_000), hint, plan, attempt: None }
    }

    fn planned() -> Planned {
        let schedule = Schedule::Every(Duration::from_millis(1_500));
        Planned(Arc::new(Task { method: "tick".into(), arguments: vec![1, 1, 0x80], schedule }))
    }

    fn hex(bytes: &[u8]) -> String {
        bytes.iter().map(|byte| format!("{byte:02x}")).collect()
    }

    #[test]
    fn rows_have_these_bytes() {
        let row = write_record(&id(), &record(Ok(planned())));
        assert_eq!(hex(&row), GOLDEN_RECORD);
        let attempt = Some(TickAttempt { deaths: 2, is_running: true });
        assert_eq!(hex(&write_record(&id(), &Record { attempt, ..record(Ok(planned())) })), golden_suspect());
        assert_eq!(hex(&write_hint(&Hint { of: id(), expected: Some(Etag("3".into())) })), GOLDEN_HINT);
    }

    #[test]
    fn rows_survive_being_stored() {
        let attempt = Some(TickAttempt { deaths: 1, is_running: false });
        for (plan, attempt) in [(Ok(planned()), None), (Err(Tombstone), None), (Ok(planned()), attempt)] {
            let record = Record { attempt, ..record(plan) };
            let row = Versioned { value: write_record(&id(), &record), version: Version::new("4") };
            assert_eq!(read_record(&row), Ok((id(), Found { record, tag: Etag("4".into()) })));
        }
        let keys = Keys::new("c");
        let at = Position { wake: Wall(10_000), nonce: 7 };
        let hint = Hint { of: id(), expected: None };
        let versioned = Versioned { value: write_hint(&hint), version: Version::new("5") };
        let item = Item { key: keys.hint(RangeId(3), at), versioned };
        assert_eq!(keys.read_hint(RangeId(3), &item), Some((at, Etag("5".into()), hint)));
    }

    #[test]
    fn a_row_of_a_newer_program_is_refused_by_name() {
        let mut row = write_record(&id(), &record(Err(Tombstone))).to_vec();
        row[1] = FORMAT + 1;
        let row = Versioned { value: row.into(), version: Version::new("4") };
        assert!(read_record(&row).unwrap_err().contains("as new as the row"));
    }

    #[test]
    fn hints_lie_in_the_order_of_time() {
        let keys = Keys::new("c");
        let key = |wake| keys.hint(RangeId(1), Position { wake: Wall(wake), nonce: 0 });
        assert!(key(9) < key(10) && key(0xFFFF) < key(0x1_0000) && key(0x1_0000) < key(WALL_MAX.0));
        assert_eq!(keys.hints(RangeId(10)), "reminders/c/due/0a/");
    }

    /// The record of a tick with an attempt: one field more, at the end.
    fn golden_suspect() -> String {
        GOLDEN_RECORD.replacen("87", "88", 1) + "a7617474656d707482a664656174687302aa69735f72756e6e696e67c3"
    }

    const GOLDEN_RECORD: &str = "\
        010187a2696483a46b696e64a4726f6f6da36b6579a3612f62a46e616d65a56461696c79ac726567697374726174696f6e09\
        a3647565cd2328a477616b65cd2710a56e6f6e636507a3746167a133a47461736b83a66d6574686f64a47469636ba9617267\
        756d656e7473c403010180a87363686564756c6581a5457665727982a47365637301a56e616e6f73ce1dcd6500";
    const GOLDEN_HINT: &str =
        "010182a26f6683a46b696e64a4726f6f6da36b6579a3612f62a46e616d65a56461696c79a86578706563746564a133";
}
