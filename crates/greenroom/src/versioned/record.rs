//! What a versioned state is in the store: a format byte, the length of the head (u32 LE), the head, the state. Head and state
//! are payloads with their codec and type version.

use bytes::{BufMut, Bytes, BytesMut};
use greenroom_protocols::bcas::{Record, Session, Version};
use greenroom_protocols::gsi::ClusterId;
use greenroom_wire::codec::{self, Codec};
use serde::{Deserialize, Serialize};

use super::log_record;
use super::protocol::{StateValue, Types};

/// Where the state stands, and whose updates are in it.
#[derive(Serialize, Deserialize)]
struct Head {
    incarnation: u64,
    number: u64,
    /// Cluster, session and last sequence number.
    sessions: Vec<(u16, u64, u64)>,
    /// Cluster, session and attempt of the write.
    salt: (u16, u64, u64),
    /// Cluster, and incarnation and number of the version at which sessions of it were last collected.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    floors: Vec<(u16, u64, u64)>,
}

/// The record's bytes.
pub(super) fn seal(types: Types, record: &Record<StateValue>) -> Result<Bytes, String> {
    let Record { version, state, sessions, salt, floors } = record;
    let head = Head {
        incarnation: version.incarnation,
        number: version.number,
        sessions: sessions.iter().map(|(session, last)| (session.cluster.0, session.epoch, *last)).collect(),
        salt: (salt.0.cluster.0, salt.0.epoch, salt.1),
        floors: floors.iter().map(|(cluster, floor)| (cluster.0, floor.incarnation, floor.number)).collect(),
    };
    let mut bytes = BytesMut::new();
    bytes.put_u8(FORMAT);
    bytes.put_u32_le(0);
    codec::encode(Codec::MessagePack, HEAD_VERSION, &head, &mut bytes).map_err(|error| error.to_string())?;
    let len = u32::try_from(bytes.len() - HEAD_AT).map_err(|_| "too many sessions".to_owned())?;
    bytes[1..HEAD_AT].copy_from_slice(&len.to_le_bytes());
    bytes.put_slice(&types.encode_state(state)?);
    Ok(bytes.freeze())
}

/// The record that `bytes` are, whatever version of the state's type wrote it.
pub(super) fn open(types: Types, bytes: &[u8]) -> Result<Record<StateValue>, String> {
    let short = || "the record ends early; it was not written by Greenroom".to_owned();
    let (&format, rest) = bytes.split_first().ok_or_else(short)?;
    if format == log_record::HEAD {
        return Err("the state is kept as a log of its updates; say protocol = \"log\" for its kind".to_owned());
    }
    if format != FORMAT {
        return Err(format!(
            "the record has format {format}, not {FORMAT} as versioned states have; was the field of another type, or is the record newer than this program?"
        ));
    }
    let (len, rest) = rest.split_first_chunk::<4>().ok_or_else(short)?;
    let (head, state) = rest.split_at_checked(u32::from_le_bytes(*len) as usize).ok_or_else(short)?;
    let head: Head = codec::decode(head).map_err(|error| error.to_string())?;
    let session = |cluster, epoch| Session { cluster: ClusterId(cluster), epoch };
    Ok(Record {
        version: Version { incarnation: head.incarnation, number: head.number },
        state: (types.decode_state)(state)?,
        sessions: head.sessions.into_iter().map(|(cluster, epoch, last)| (session(cluster, epoch), last)).collect(),
        salt: (session(head.salt.0, head.salt.1), head.salt.2),
        floors: head
            .floors
            .into_iter()
            .map(|(cluster, incarnation, number)| (ClusterId(cluster), Version { incarnation, number }))
            .collect(),
    })
}

/// The payload of the state in `bytes`; `None` if they are no record of a versioned state that is kept as a whole.
pub(crate) fn payload_of(bytes: &[u8]) -> Option<&[u8]> {
    let rest = bytes.strip_prefix(&[FORMAT])?;
    let (len, rest) = rest.split_first_chunk::<4>()?;
    rest.get(u32::from_le_bytes(*len) as usize..)
}

/// Tells these records from those of other states.
pub(super) const FORMAT: u8 = 2;
const HEAD_VERSION: u8 = 1;
const HEAD_AT: usize = 1 + 4;

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use greenroom_protocols::bcas::Versioned;

    use super::super::VersionedState;
    use super::super::values::UpdateValue;
    use super::*;

    #[derive(Clone, Default, Debug, PartialEq, Serialize, Deserialize)]
    struct Count {
        count: i64,
    }

    impl VersionedState for Count {
        type Update = i64;

        const VERSION: u8 = 3;

        fn apply(&mut self, update: &i64) {
            self.count += update;
        }
    }

    const GOLDEN: &[u8] = b"\x02/\0\0\0\x01\x01\x84\xabincarnation\x02\xa6number\x05\xa8sessions\x91\x93\x01\x07\x04\
        \xa4salt\x93\x01\x07\x06\x01\x03\x81\xa5count\t";

    const FORGETFUL: &[u8] =
        b"\x02?\0\0\0\x01\x01\x85\xabincarnation\x02\xa6number\x05\xa8sessions\x92\x93\x01\x07\x04\
        \x93\x03\t\x01\xa4salt\x93\x01\x07\x06\xa6floors\x91\x93\x03\x02\x04\
        \x01\x03\x81\xa5count\t";

    fn types() -> Types {
        Types::of::<Count>()
    }

    fn record() -> Record<StateValue> {
        let mut state = StateValue::default();
        state.apply(&UpdateValue::new::<Count>(9, 1)).unwrap();
        let session = Session { cluster: ClusterId(1), epoch: 7 };
        Record {
            version: Version { incarnation: 2, number: 5 },
            state,
            sessions: [(session, 4)].into(),
            salt: (session, 6),
            floors: BTreeMap::new(),
        }
    }

    /// One of which sessions were collected.
    fn forgetful() -> Record<StateValue> {
        let other = Session { cluster: ClusterId(3), epoch: 9 };
        let mut record = record();
        record.sessions.insert(other, 1);
        record.floors.insert(ClusterId(3), Version { incarnation: 2, number: 4 });
        record
    }

    #[test]
    fn a_record_has_these_bytes_and_is_read_from_them() {
        assert_eq!(seal(types(), &record()).unwrap().escape_ascii().to_string(), GOLDEN.escape_ascii().to_string());
        let found = open(types(), GOLDEN).unwrap();
        assert_eq!((found.version, found.sessions, found.salt), (record().version, record().sessions, record().salt));
        assert_eq!(*found.state.typed::<Count>(), Count { count: 9 });
    }

    #[test]
    fn a_record_of_several_sessions_tells_since_when_others_are_collected() {
        let bytes = seal(types(), &forgetful()).unwrap();
        assert_eq!(bytes.escape_ascii().to_string(), FORGETFUL.escape_ascii().to_string());
        assert_eq!(open(types(), FORGETFUL).unwrap().floors, forgetful().floors);
    }

    #[test]
    fn a_record_that_ends_early_or_is_of_a_later_type_is_refused() {
        for end in 0..GOLDEN.len() {
            assert!(open(types(), &GOLDEN[..end]).is_err(), "{end}");
        }
        let mut later = GOLDEN.to_vec();
        let at = later.len() - 9;
        later[at] = 4;
        assert!(open(types(), &later).unwrap_err().contains("version 4"));
    }
}
