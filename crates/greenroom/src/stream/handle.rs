//! A stream's name while nobody consumes it: what travels in its place.

use std::str::FromStr;

use greenroom_protocols::node::NodeId;
use greenroom_wire::CallId;
use serde::{Deserialize, Serialize};

/// Where a stream waits for its consumer. Its token is the producer's secret with whoever got the reply.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct Handle {
    pub(crate) node: NodeId,
    pub(crate) stream: CallId,
    pub(crate) token: u64,
}

/// How it is written: a field that no method's own reply has by accident, so that the HTTP door knows it when it sees it.
#[derive(Serialize, Deserialize)]
pub(crate) struct Written {
    #[serde(rename = "greenroom:stream")]
    pub(crate) stream: String,
}

impl From<&Handle> for Written {
    fn from(handle: &Handle) -> Self {
        let Handle { node, stream: CallId { shard, index, generation }, token } = handle;
        Self { stream: format!("{:x}.{shard:x}.{index:x}.{generation:x}.{token:016x}", node.0) }
    }
}

impl FromStr for Handle {
    type Err = &'static str;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        const WRONG: &str = "this is not the name of a stream; ask the method for a new one";
        let mut parts = text.split('.').map(|part| u64::from_str_radix(part, 16));
        let mut next = || parts.next().and_then(Result::ok).ok_or(WRONG);
        let (node, shard, index, generation, token) = (next()?, next()?, next()?, next()?, next()?);
        if parts.next().is_some() {
            return Err(WRONG);
        }
        let stream = CallId {
            shard: u16::try_from(shard).map_err(|_| WRONG)?,
            index: u32::try_from(index).map_err(|_| WRONG)?,
            generation: u32::try_from(generation).map_err(|_| WRONG)?,
        };
        Ok(Self { node: NodeId(node), stream, token })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_handle_survives_being_written() {
        let stream = CallId { shard: u16::MAX, index: u32::MAX, generation: 0 };
        let handle = Handle { node: NodeId(7), stream, token: u64::MAX };
        let written = Written::from(&handle).stream;
        assert_eq!(written, "7.ffff.ffffffff.0.ffffffffffffffff");
        assert_eq!(written.parse(), Ok(handle));
    }

    #[test]
    fn what_is_no_handle_is_refused() {
        for text in
            ["", "1.2.3.4", "1.2.3.4.5.6", "1.10000.3.4.5", "1.2.100000000.4.5", "g.1.1.1.1", "1..1.1.1", "-1.1.1.1.1"]
        {
            assert!(text.parse::<Handle>().is_err(), "{text:?}");
        }
    }
}
