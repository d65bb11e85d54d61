//! What instances of a BCAS state in different clusters send each other.

use serde::{Deserialize, Serialize};

use super::sent::Sent;

/// A message from one instance to another.
#[derive(Serialize, Deserialize)]
pub(super) enum Message {
    /// This record was written, with this tag.
    Written {
        #[serde(with = "serde_bytes")]
        record: Vec<u8>,
        etag: String,
        /// What updates of the receiver's sessions have come to, by session and sequence number.
        #[serde(default)]
        outcomes: Vec<(u64, u64, Sent)>,
    },
    /// A record was written that is too large to be sent.
    Newer,
    /// Write this for the sender's session.
    Batch {
        epoch: u64,
        first: u64,
        changes: Vec<serde_bytes::ByteBuf>,
        /// The latest version that the sender had seen.
        #[serde(default, skip_serializing_if = "Seen::is_none")]
        seen: Seen,
    },
    /// Show me the record.
    Ask,
    /// These sessions of the sender's cluster have ended: it has seen them in the record, and is a later one.
    Ended { epochs: Vec<u64> },
}

/// Incarnation and number of a version; zeros for none.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default, Serialize, Deserialize)]
pub(super) struct Seen(pub(super) u64, pub(super) u64);

impl Seen {
    fn is_none(&self) -> bool {
        *self == Self::default()
    }
}

/// Changes in one message: as many as may wait.
pub(super) const BATCH_LEN_MAX: usize = super::super::instance::PENDING_MAX;

#[cfg(test)]
mod tests {
    use super::super::{open, seal};
    use super::*;

    #[test]
    fn messages_keep_their_form() {
        let outcomes = vec![(7, 1, Sent::Output(vec![9].into())), (7, 2, Sent::Rejected("no".to_owned()))];
        let written = Message::Written { record: vec![1, 2], etag: "e".to_owned(), outcomes };
        let batch = |seen| Message::Batch { epoch: 7, first: 3, changes: vec![vec![5].into()], seen };
        let (first, later) = (batch(Seen::default()), batch(Seen(1, 9)));
        let all = [
            (written, WRITTEN),
            (first, BATCH),
            (later, LATER),
            (Message::Newer, NEWER),
            (Message::Ask, ASK),
            (Message::Ended { epochs: vec![7, 9] }, ENDED),
        ];
        for (message, golden) in all {
            let bytes = seal(1, &message).unwrap();
            assert_eq!(bytes.escape_ascii().to_string(), golden.escape_ascii().to_string());
            assert!(open::<Message>(golden).is_ok());
            for end in 0..golden.len() {
                assert!(open::<Message>(&golden[..end]).is_err(), "{end}");
            }
        }
    }

    const WRITTEN: &[u8] = b"\x01\x01\x81\xa7Written\x83\xa6record\xc4\x02\x01\x02\xa4etag\xa1e\xa8outcomes\x92\
        \x93\x07\x01\x81\xa6Output\xc4\x01\t\x93\x07\x02\x81\xa8Rejected\xa2no";
    const BATCH: &[u8] = b"\x01\x01\x81\xa5Batch\x83\xa5epoch\x07\xa5first\x03\xa7changes\x91\xc4\x01\x05";
    const LATER: &[u8] =
        b"\x01\x01\x81\xa5Batch\x84\xa5epoch\x07\xa5first\x03\xa7changes\x91\xc4\x01\x05\xa4seen\x92\x01\t";
    const NEWER: &[u8] = b"\x01\x01\xa5Newer";
    const ENDED: &[u8] = b"\x01\x01\x81\xa5Ended\x81\xa6epochs\x92\x07\t";
    const ASK: &[u8] = b"\x01\x01\xa3Ask";
}
