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
    Batch { epoch: u64, first: u64, changes: Vec<serde_bytes::ByteBuf> },
    /// Show me the record.
    Ask,
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
        let batch = Message::Batch { epoch: 7, first: 3, changes: vec![vec![5].into()] };
        for (message, golden) in [(written, WRITTEN), (batch, BATCH), (Message::Newer, NEWER), (Message::Ask, ASK)] {
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
    const NEWER: &[u8] = b"\x01\x01\xa5Newer";
    const ASK: &[u8] = b"\x01\x01\xa3Ask";
}
