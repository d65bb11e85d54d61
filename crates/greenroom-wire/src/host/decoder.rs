//! Splits the bytes of one lane into frames.

use crate::error::FrameError;
use crate::limit::HELLO_LEN_MAX;
use crate::varint::LENGTH_LEN;

use super::frame_type;

/// A frame of one direction: [`FromHost`](super::FromHost) or [`FromNode`](super::FromNode).
pub trait LaneFrame<'a>: Sized {
    /// The types that may begin a lane.
    const FIRST: &'static [u8];

    /// Reads a frame's body.
    ///
    /// # Errors
    /// [`FrameError`].
    fn parse(frame_type: u8, body: &'a [u8]) -> Result<Self, FrameError>;
}

/// One lane's reader of one direction: insists on a greeting first, then gives frame after frame.
///
/// A lane on which a node speaks without a greeting of its own, a user lane, is read by [`Decoder::joined`].
#[derive(Clone, Debug)]
pub struct Decoder {
    frame_len_max: u32,
    greeted: bool,
    failed: Option<FrameError>,
}

impl Decoder {
    /// A reader of a new lane. Before the greeting no frame may have more than 64 KiB.
    pub fn new(frame_len_max: u32) -> Self {
        Self { frame_len_max, greeted: false, failed: None }
    }

    /// A host's reader of what comes on a user lane, where the node does not greet.
    pub fn joined(frame_len_max: u32) -> Self {
        Self { greeted: true, ..Self::new(frame_len_max) }
    }

    /// From now on, what the Welcome says is in force.
    pub fn set_frame_len_max(&mut self, frame_len_max: u32) {
        self.frame_len_max = frame_len_max;
    }

    /// Takes the next whole frame off the front of `rest`; `None` while there is none. Nothing is copied, and nothing is
    /// allocated by a length that bytes only declare.
    ///
    /// # Errors
    /// [`FrameError`]; from then on always the same one, for the lane has lost its frame boundaries.
    #[inline]
    pub fn next<'a, F: LaneFrame<'a>>(&mut self, rest: &mut &'a [u8]) -> Result<Option<F>, FrameError> {
        let Some(len) = self.whole(rest, F::FIRST)? else { return Ok(None) };
        let (frame, behind) = rest.split_at(len);
        let frame_type = frame[LENGTH_LEN];
        if frame_type == frame_type::GREETING || frame_type == frame_type::JOIN {
            if self.greeted {
                return Err(self.fail(FrameError::HelloRepeated));
            }
            self.greeted = true;
        }
        let parsed = F::parse(frame_type, &frame[LENGTH_LEN + 1..]).map_err(|error| self.fail(error))?;
        *rest = behind;
        Ok(Some(parsed))
    }

    /// Bytes of the frame that `bytes` begin with, once they are all there.
    #[inline]
    fn whole(&mut self, bytes: &[u8], first: &[u8]) -> Result<Option<usize>, FrameError> {
        if let Some(error) = &self.failed {
            return Err(error.clone());
        }
        let Some(&len) = bytes.first_chunk::<LENGTH_LEN>() else { return Ok(None) };
        let len = u32::from_le_bytes(len);
        let max = if self.greeted { self.frame_len_max } else { self.frame_len_max.min(HELLO_LEN_MAX) };
        if len > max {
            return Err(self.fail(FrameError::FrameTooLong { len, max }));
        }
        if len == 0 {
            return Err(self.fail(FrameError::Empty));
        }
        if !self.greeted
            && let Some(&found) = bytes.get(LENGTH_LEN)
            && !first.contains(&found)
        {
            // A stranger's first bytes are judged before the rest of them is waited for.
            return Err(self.fail(FrameError::HelloExpected { found }));
        }
        let whole = LENGTH_LEN + len as usize;
        Ok((bytes.len() >= whole).then_some(whole))
    }

    #[cold]
    fn fail(&mut self, error: FrameError) -> FrameError {
        self.failed = Some(error.clone());
        error
    }
}
