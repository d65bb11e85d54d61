//! What a state that is a log of its updates is in its journal: a head under the state's key, one entry an update in the log of its
//! updates, and snapshots in a log of their own. Each is a format byte, the length of a head (u32 LE), the head, and a payload.

use std::collections::BTreeMap;
use std::time::Duration;

use bytes::{BufMut, Bytes, BytesMut};
use greenroom_protocols::bcas::{Added, Change, Record, Session, Version};
use greenroom_protocols::gsi::ClusterId;
use greenroom_protocols::update_log;
use greenroom_protocols::update_log::Logged;
use greenroom_wire::codec::{self, Codec};
use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};

use super::protocol::{Entry, StateValue, Types};
use super::record;

/// Where a log stands, and whose updates are in it.
pub(super) struct Head {
    pub(super) version: Version,
    pub(super) entries: u64,
    pub(super) sessions: BTreeMap<Session, u64>,
    pub(super) salt: (Session, u64),
}

impl Head {
    /// The record of this head and the state that its log leads to. Who writes a log writes for itself alone, and forgets whom it follows.
    pub(super) fn record(self, state: Logged<StateValue>) -> Record<Logged<StateValue>> {
        let Self { version, sessions, salt, .. } = self;
        Record { version, state, sessions, salt, floors: BTreeMap::new() }
    }
}

#[derive(Serialize, Deserialize)]
struct SavedHead {
    incarnation: u64,
    number: u64,
    entries: u64,
    /// Cluster, session and last sequence number.
    sessions: Vec<(u16, u64, u64)>,
    /// Cluster, session and attempt of the write.
    salt: (u16, u64, u64),
}

#[derive(Serialize, Deserialize)]
struct SavedEntry {
    incarnation: u64,
    number: u64,
    /// When it was written, by the writer's wall clock, in milliseconds since 1970.
    written_ms: u64,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    rejected: Option<String>,
}

#[derive(Serialize, Deserialize)]
struct SavedSnapshot {
    incarnation: u64,
    number: u64,
    entries: u64,
}

/// What is under a state's key.
pub(super) enum Found {
    Head(Head),
    /// A record of a state without a log.
    Plain,
}

/// An entry, and what is told of it.
pub(super) struct Told {
    pub(super) entry: update_log::Entry<StateValue>,
    pub(super) written: Duration,
    pub(super) rejected: Option<String>,
}

/// An entry whose update's type is not known.
pub(super) struct Raw<'a> {
    pub(super) version: Version,
    pub(super) written: Duration,
    pub(super) rejected: Option<String>,
    /// `None` for a clearing.
    pub(super) update: Option<&'a [u8]>,
}

pub(super) fn seal_head(head: &Head) -> Result<Bytes, String> {
    let saved = SavedHead {
        incarnation: head.version.incarnation,
        number: head.version.number,
        entries: head.entries,
        sessions: head.sessions.iter().map(|(session, last)| (session.cluster.0, session.epoch, *last)).collect(),
        salt: (head.salt.0.cluster.0, head.salt.0.epoch, head.salt.1),
    };
    join(HEAD, &saved, &[])
}

pub(super) fn open_head(bytes: &[u8]) -> Result<Found, String> {
    if bytes.first() == Some(&record::FORMAT) {
        return Ok(Found::Plain);
    }
    let (saved, _): (SavedHead, _) = split(HEAD, "head of a log", bytes)?;
    let session = |cluster, epoch| Session { cluster: ClusterId(cluster), epoch };
    Ok(Found::Head(Head {
        version: Version { incarnation: saved.incarnation, number: saved.number },
        entries: saved.entries,
        sessions: saved.sessions.into_iter().map(|(cluster, epoch, last)| (session(cluster, epoch), last)).collect(),
        salt: (session(saved.salt.0, saved.salt.1), saved.salt.2),
    }))
}

pub(super) fn seal_entry(added: &Added<Logged<StateValue>>, wall: Duration) -> Result<Bytes, String> {
    let saved = SavedEntry {
        incarnation: added.version.incarnation,
        number: added.version.number,
        written_ms: u64::try_from(wall.as_millis()).unwrap_or(u64::MAX),
        rejected: added.rejected.as_ref().map(ToString::to_string),
    };
    match &added.change {
        Change::Update(update) => join(ENTRY, &saved, &update.encode()?),
        Change::Clear => join(ENTRY, &saved, &[]),
    }
}

pub(super) fn open_raw(value: &[u8]) -> Result<Raw<'_>, String> {
    let (saved, update): (SavedEntry, _) = split(ENTRY, "entry of a log", value)?;
    Ok(Raw {
        version: Version { incarnation: saved.incarnation, number: saved.number },
        written: Duration::from_millis(saved.written_ms),
        rejected: saved.rejected,
        update: (!update.is_empty()).then_some(update),
    })
}

pub(super) fn open_entry(types: Types, entry: &Entry) -> Result<Told, String> {
    let raw = open_raw(&entry.value)?;
    let change = match raw.update {
        Some(update) => Change::Update(types.decode_update(update)?),
        None => Change::Clear,
    };
    let (version, rejected) = (raw.version, raw.rejected.is_some());
    let told = update_log::Entry { position: entry.position, version, change, rejected };
    Ok(Told { entry: told, written: raw.written, rejected: raw.rejected })
}

pub(super) fn seal_snapshot(types: Types, state: &Logged<StateValue>, version: Version) -> Result<Bytes, String> {
    let saved = SavedSnapshot { incarnation: version.incarnation, number: version.number, entries: state.entries };
    join(SNAPSHOT, &saved, &types.encode_state(&state.state)?)
}

pub(super) fn open_snapshot(types: Types, value: &[u8]) -> Result<(Logged<StateValue>, Version), String> {
    let (entries, version, state) = open_raw_snapshot(value)?;
    Ok((Logged { state: (types.decode_state)(state)?, entries }, version))
}

/// Of a snapshot whose state's type is not known: its last entry's position, its version, and the state's payload.
pub(super) fn open_raw_snapshot(value: &[u8]) -> Result<(u64, Version, &[u8]), String> {
    let (saved, state): (SavedSnapshot, _) = split(SNAPSHOT, "snapshot", value)?;
    Ok((saved.entries, Version { incarnation: saved.incarnation, number: saved.number }, state))
}

fn join<T: Serialize>(format: u8, head: &T, payload: &[u8]) -> Result<Bytes, String> {
    let mut bytes = BytesMut::new();
    bytes.put_u8(format);
    bytes.put_u32_le(0);
    codec::encode(Codec::MessagePack, 1, head, &mut bytes).map_err(|error| error.to_string())?;
    let len = u32::try_from(bytes.len() - HEAD_AT).map_err(|_| "its head is too long".to_owned())?;
    bytes[1..HEAD_AT].copy_from_slice(&len.to_le_bytes());
    bytes.put_slice(payload);
    Ok(bytes.freeze())
}

fn split<'a, T: DeserializeOwned>(format: u8, what: &str, bytes: &'a [u8]) -> Result<(T, &'a [u8]), String> {
    let short = || format!("the {what} ends early; it was not written by Greenroom");
    let (&found, rest) = bytes.split_first().ok_or_else(short)?;
    if found != format {
        return Err(format!(
            "the {what} has format {found}, not {format}; is it another actor's, or newer than this program?"
        ));
    }
    let (len, rest) = rest.split_first_chunk::<4>().ok_or_else(short)?;
    let (head, payload) = rest.split_at_checked(u32::from_le_bytes(*len) as usize).ok_or_else(short)?;
    Ok((codec::decode(head).map_err(|error| error.to_string())?, payload))
}

/// Tells heads of logs from other records.
pub(super) const HEAD: u8 = 3;
const ENTRY: u8 = 1;
const SNAPSHOT: u8 = 1;
const HEAD_AT: usize = 1 + 4;
