//! States on their way between nodes, as bytes.

use bytes::BytesMut;
use greenroom_protocols::directory::{Epoch, Placed};

use crate::actor::key::{ActorId, check};
use crate::shard::trips::STATE_LEN_MAX;

/// A state on its way: the epoch, the lengths of kind and key, these, and the state.
pub(super) struct Carried<'a> {
    pub(super) kind: &'a str,
    pub(super) key: &'a str,
    pub(super) epoch: Epoch,
    pub(super) state: &'a [u8],
}

impl<'a> Carried<'a> {
    pub(super) fn read(payload: &'a [u8]) -> Option<Self> {
        let (epoch, rest) = payload.split_first_chunk::<8>()?;
        let (kind_len, rest) = rest.split_first_chunk::<2>()?;
        let (key_len, rest) = rest.split_first_chunk::<2>()?;
        let (kind, rest) = rest.split_at_checked(u16::from_le_bytes(*kind_len).into())?;
        let (key, state) = rest.split_at_checked(u16::from_le_bytes(*key_len).into())?;
        let (kind, key) = (std::str::from_utf8(kind).ok()?, std::str::from_utf8(key).ok()?);
        let fits = check(key).is_ok() && state.len() <= STATE_LEN_MAX;
        fits.then_some(Self { kind, key, epoch: Epoch(u64::from_le_bytes(*epoch)), state })
    }

    /// Writes what [`Carried::read`] reads.
    pub(super) fn write(id: &ActorId, from: Placed, state: &[u8], out: &mut BytesMut) {
        let kind = id.kind.name();
        out.extend_from_slice(&from.epoch.0.to_le_bytes());
        // Names and keys are bounded far below this where they come in.
        out.extend_from_slice(&(kind.len() as u16).to_le_bytes());
        out.extend_from_slice(&(id.key.len() as u16).to_le_bytes());
        out.extend_from_slice(kind.as_bytes());
        out.extend_from_slice(id.key.as_str().as_bytes());
        out.extend_from_slice(state);
    }
}

#[cfg(test)]
mod tests {
    use greenroom_protocols::node::NodeId;

    use super::*;
    use crate::actor::key::Kind;

    fn written(key: &str, state: &[u8]) -> BytesMut {
        let id = ActorId::unchecked(Kind::intern("diary"), key);
        let mut out = BytesMut::new();
        Carried::write(&id, Placed { node: NodeId(7), epoch: Epoch(9) }, state, &mut out);
        out
    }

    #[test]
    fn what_is_written_is_read() {
        let bytes = written("x", b"state");
        let read = Carried::read(&bytes).expect("it is whole");
        assert_eq!((read.kind, read.key, read.epoch, read.state), ("diary", "x", Epoch(9), &b"state"[..]));
    }

    #[test]
    fn what_is_cut_or_too_long_is_not_read() {
        let bytes = written("x", b"");
        assert!((0..bytes.len()).all(|len| Carried::read(&bytes[..len]).is_none()));
        assert!(Carried::read(&written("", b"state")).is_none());
        assert!(Carried::read(&written("x", &vec![0; STATE_LEN_MAX + 1])).is_none());
    }
}
