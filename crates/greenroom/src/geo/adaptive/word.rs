//! What clusters say to each other of adaptive actors.

use std::collections::BTreeMap;

use bytes::{Bytes, BytesMut};
use greenroom_protocols::adaptive::{Epoch, Known, Operations};
use greenroom_protocols::gsi::ClusterId;
use greenroom_wire::EncodeError;
use greenroom_wire::codec::{self, Codec, DecodeError};
use serde::{Deserialize, Serialize};

/// One word, about one actor.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub(super) enum Word {
    /// To who decides: what an instance has counted, and the mode that is known there.
    Counted { known: Known, by: BTreeMap<ClusterId, Operations> },
    /// To all nodes of a cluster: the mode.
    Mode(Known),
    /// To who decides: the home is ready.
    Ready(Epoch),
    /// To the instance: confirm what you have, take in the latest version, then say [`Word::Refreshed`] to my cluster.
    Refresh(u64),
    /// To who switches: what this request wanted is done.
    Refreshed(u64),
}

impl Word {
    pub(super) fn encode(&self) -> Result<Bytes, EncodeError> {
        let mut out = BytesMut::with_capacity(128);
        codec::encode(Codec::MessagePack, FORMAT_VERSION, self, &mut out)?;
        Ok(out.freeze())
    }

    /// Reads one.
    ///
    /// # Errors
    /// The sender is at fault.
    pub(super) fn decode(payload: &[u8]) -> Result<Self, DecodeError> {
        codec::decode(payload)
    }
}

/// Version of these words.
const FORMAT_VERSION: u8 = 1;

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use greenroom_protocols::adaptive::{Mode, Trips, Why};

    use super::*;

    #[test]
    fn words_keep_their_form() {
        let operations = Operations { reads: 1, updates: 2, confirms: 3, refreshes: 4 };
        let counted = BTreeMap::from([(ClusterId(9), operations)]);
        let why = Why {
            counted: counted.clone(),
            single: Trips(5),
            per_cluster: Trips(6),
            elsewhere: None,
            at: Duration::new(7, 8),
        };
        let epoch = Epoch { number: 2, by: 3 };
        let known = Known { epoch, mode: Mode::Single { home: Some(ClusterId(9)) }, why: Some(why) };
        let words = [
            Word::Counted { known: Known { mode: Mode::PerCluster, why: None, ..known.clone() }, by: counted },
            Word::Mode(known),
            Word::Ready(epoch),
            Word::Refresh(1),
            Word::Refreshed(1),
        ];
        let mut all = Vec::new();
        for word in words {
            let bytes = word.encode().unwrap();
            assert_eq!(Word::decode(&bytes).unwrap(), word);
            for end in 0..bytes.len() {
                assert!(Word::decode(&bytes[..end]).is_err(), "{end} of {word:?}");
            }
            all.extend_from_slice(&bytes);
        }
        assert_eq!(all.escape_ascii().to_string(), GOLDEN);
    }

    const GOLDEN: &str = "\\x01\\x01\\x81\\xa7Counted\\x82\\xa5known\\x83\\xa5epoch\\x82\\xa6number\\x02\\xa2by\\x03\\xa4mode\\xaaP\
        erCluster\\xa3why\\xc0\\xa2by\\x81\\t\\x84\\xa5reads\\x01\\xa7updates\\x02\\xa8confirms\\x03\\xa9refreshe\
        s\\x04\\x01\\x01\\x81\\xa4Mode\\x83\\xa5epoch\\x82\\xa6number\\x02\\xa2by\\x03\\xa4mode\\x81\\xa6Single\
        \\x81\\xa4home\\t\\xa3why\\x84\\xa7counted\\x81\\t\\x84\\xa5reads\\x01\\xa7updates\\x02\\xa8confirms\\x03\
        \\xa9refreshes\\x04\\xa6single\\x05\\xabper_cluster\\x06\\xa2at\\x82\\xa4secs\\x07\\xa5nanos\\x08\\x01\
        \\x01\\x81\\xa5Ready\\x82\\xa6number\\x02\\xa2by\\x03\\x01\\x01\\x81\\xa7Refresh\\x01\\x01\\x01\\x81\\xa9\
        Refreshed\\x01";
}
