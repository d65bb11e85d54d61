//! The protocols in the box: the pure machines, their records and messages.

pub(super) mod bcas;
pub(super) mod log;
pub(super) mod vlb;

use std::collections::BTreeMap;

use bytes::{Bytes, BytesMut};
use greenroom_wire::codec::{self, Codec};
use serde::Serialize;
use serde::de::DeserializeOwned;

use super::protocol::{Make, Types, UpdateValue};
use greenroom_protocols::bcas::Change;

/// The name of the protocol of kinds that say nothing.
pub(crate) const DEFAULT: &str = "bcas";

/// The name of the protocol that wants a journal.
pub(crate) const LOG: &str = "log";

/// Those in the box, by name.
pub(crate) fn all() -> BTreeMap<String, Make> {
    let bcas: Make = Box::new(|place| Box::new(bcas::Bcas::new(place)));
    let vlb: Make = Box::new(|place| Box::new(vlb::Vlb::new(place)));
    let log: Make = Box::new(|place| Box::new(log::UpdateLog::new(place)));
    [(DEFAULT.to_owned(), bcas), ("vlb".to_owned(), vlb), (LOG.to_owned(), log)].into()
}

/// The bytes of a change; empty for [`Change::Clear`], as no payload is.
fn seal_change(change: &Change<UpdateValue>) -> Result<Bytes, String> {
    match change {
        Change::Update(update) => update.encode(),
        Change::Clear => Ok(Bytes::new()),
    }
}

fn open_change(types: Types, bytes: &[u8]) -> Result<Change<UpdateValue>, String> {
    if bytes.is_empty() { Ok(Change::Clear) } else { (types.decode_update)(bytes).map(Change::Update) }
}

/// The bytes of a head or a message.
fn seal<T: Serialize>(version: u8, value: &T) -> Result<Bytes, String> {
    let mut out = BytesMut::new();
    codec::encode(Codec::MessagePack, version, value, &mut out).map_err(|error| error.to_string())?;
    Ok(out.freeze())
}

fn open<T: DeserializeOwned>(bytes: &[u8]) -> Result<T, String> {
    codec::decode(bytes).map_err(|error| error.to_string())
}

/// The largest update that is kept or sent as bytes.
const UPDATE_BYTES_MAX: usize = 1 << 20;
