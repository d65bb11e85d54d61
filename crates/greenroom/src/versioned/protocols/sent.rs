//! What an update came to, as bytes.

use serde::{Deserialize, Serialize};

use super::super::Rejected;
use super::super::instance::Outcome;
use super::super::protocol::{Applied, Types};

/// An outcome as bytes.
#[derive(Serialize, Deserialize)]
pub(super) enum Sent {
    Output(serde_bytes::ByteBuf),
    Rejected(String),
    Confirmed,
}

impl Sent {
    pub(super) fn seal(types: Types, outcome: Outcome) -> Result<Self, String> {
        Ok(match outcome {
            Applied::Output(output) => Self::Output((types.encode_output)(&output)?.to_vec().into()),
            Applied::Confirmed => Self::Confirmed,
            Applied::Rejected(why) => Self::Rejected(why.to_string()),
        })
    }

    pub(super) fn open(self, types: Types) -> Result<Outcome, String> {
        Ok(match self {
            Self::Output(output) => Applied::Output((types.decode_output)(&output)?),
            Self::Rejected(why) => Applied::Rejected(Rejected::new(why)),
            Self::Confirmed => Applied::Confirmed,
        })
    }
}
