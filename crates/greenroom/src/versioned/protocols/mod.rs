//! The protocols in the box: the pure machines, their records and messages.

pub(super) mod bcas;
mod bcas_message;
pub(super) mod log;
mod sent;
pub(super) mod vlb;
mod vlb_message;

use std::collections::BTreeMap;

use bytes::{Bytes, BytesMut};
use greenroom_wire::codec::{self, Codec};
use serde::Serialize;
use serde::de::DeserializeOwned;

use super::elsewhere::Around;
use super::protocol::{Action, Make, Types, UpdateValue};
use crate::node::config::PROTOCOL_DEFAULT;
use greenroom_protocols::bcas::{Change, Trouble};

/// The name of the protocol that wants a journal.
pub(crate) const LOG: &str = "log";

/// Those in the box, by name.
pub(crate) fn all() -> BTreeMap<String, Make> {
    let bcas: Make = Box::new(|place| Box::new(bcas::Bcas::new(place)));
    let vlb: Make = Box::new(|place| Box::new(vlb::Vlb::new(place)));
    let log: Make = Box::new(|place| Box::new(log::UpdateLog::new(place)));
    [(PROTOCOL_DEFAULT.to_owned(), bcas), ("vlb".to_owned(), vlb), (LOG.to_owned(), log)].into()
}

/// Whether instances of this protocol begin by reading the record in the store, as far as that is known.
pub(crate) fn reads_store(protocol: &str) -> bool {
    protocol == PROTOCOL_DEFAULT || protocol == LOG
}

/// Why instances of this protocol in several clusters do not find each other in a store, if they do not.
pub(super) fn unshared(protocol: &str, around: &Around, is_shared: bool) -> Option<String> {
    (reads_store(protocol) && !around.others.is_empty() && !is_shared).then(|| {
        format!(
            "protocol {protocol:?} keeps the state of all clusters in one store, and the store of its kind is this node's memory, which \
             the others do not see; name one that all clusters reach, or say protocol = \"vlb\" for a state in memory"
        )
    })
}

/// What is wrong with a store, for people.
fn told_of(trouble: Trouble) -> Action {
    match trouble {
        Trouble::WentBack { .. } => Action::Warning(trouble.to_string()),
        Trouble::Refused => Action::Trouble(trouble.to_string()),
    }
}

/// The bytes of a change; empty for [`Change::Clear`], as no payload is.
fn seal_change(change: &Change<UpdateValue>) -> Result<Bytes, String> {
    match change {
        Change::Update(update) => update.encode(),
        Change::Clear => Ok(Bytes::new()),
    }
}

fn open_change(types: Types, bytes: &[u8]) -> Result<Change<UpdateValue>, String> {
    if bytes.is_empty() { Ok(Change::Clear) } else { types.decode_update(bytes).map(Change::Update) }
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

#[cfg(test)]
mod tests {
    use greenroom_protocols::gsi::ClusterId;

    use super::*;

    #[test]
    fn clusters_do_not_share_a_state_in_one_nodes_memory() {
        let alone = Around::default();
        let among = Around { others: vec![ClusterId(2)], ..Around::default() };
        assert_eq!(unshared("bcas", &alone, false), None);
        assert_eq!(unshared("bcas", &among, true), None);
        assert_eq!(unshared("vlb", &among, false), None);
        let said = unshared("log", &among, false).expect("nobody else sees it");
        assert!(said.contains("name one that all clusters reach"), "{said}");
    }
}
