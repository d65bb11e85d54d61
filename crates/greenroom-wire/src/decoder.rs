//! Splits a byte stream into frames.

use bytes::{Buf, BytesMut};

use crate::error::FrameError;
use crate::frame::{self, Frame};
use crate::limit::{HELLO_LEN_MAX, Limits};
use crate::varint::LENGTH_LEN;
use crate::view::FrameView;

/// One connection's reader: insists on a Hello first, then gives frame after frame.
#[derive(Clone, Debug, Default)]
pub struct Decoder {
    limits: Limits,
    greeted: bool,
    failed: Option<FrameError>,
}

impl Decoder {
    /// A reader of a new connection.
    pub fn new(limits: Limits) -> Self {
        Self { limits, greeted: false, failed: None }
    }

    /// Takes the next whole frame off the front of `buf`, as slices of it; `None` while there is none. The bytes of a
    /// frame stay allocated until all slices of its buffer are dropped.
    ///
    /// # Errors
    /// [`FrameError`]; from then on always the same one.
    pub fn decode(&mut self, buf: &mut BytesMut) -> Result<Option<Frame>, FrameError> {
        let Some(len) = self.whole(buf)? else { return Ok(None) };
        let mut body = buf.split_to(len).freeze();
        let frame_type = body[LENGTH_LEN];
        body.advance(LENGTH_LEN + 1);
        self.greet(frame_type)?;
        Frame::share(frame_type, body).map(Some).map_err(|error| self.fail(error))
    }

    /// Reads the whole frames that `bytes` begin with, borrowed: no reference counts, the cheapest way for who handles
    /// frames at once. Afterwards take [`Views::consumed`] bytes off the front of the buffer.
    pub fn views<'d, 'a>(&'d mut self, bytes: &'a [u8]) -> Views<'d, 'a> {
        Views { decoder: self, bytes, consumed: 0 }
    }

    /// Bytes of the frame that `bytes` begin with, once they are all there.
    #[inline]
    fn whole(&mut self, bytes: &[u8]) -> Result<Option<usize>, FrameError> {
        if let Some(error) = &self.failed {
            return Err(error.clone());
        }
        let Some(&len) = bytes.first_chunk::<LENGTH_LEN>() else { return Ok(None) };
        let len = u32::from_le_bytes(len);
        let max = if self.greeted { self.limits.frame_len_max } else { self.limits.frame_len_max.min(HELLO_LEN_MAX) };
        if len > max {
            return Err(self.fail(FrameError::FrameTooLong { len, max }));
        }
        if len == 0 {
            return Err(self.fail(FrameError::Empty));
        }
        let whole = LENGTH_LEN + len as usize;
        if !self.greeted {
            // A stranger's first bytes are judged before the rest of them is waited for.
            match bytes.get(LENGTH_LEN) {
                // A node that cannot talk to a stranger at all says goodbye at once.
                Some(&frame::HELLO | &frame::GOODBYE) | None => {}
                Some(&found) => return Err(self.fail(FrameError::HelloExpected { found })),
            }
        }
        Ok(if bytes.len() < whole { None } else { Some(whole) })
    }

    /// Holds the connection to one Hello.
    #[inline]
    fn greet(&mut self, frame_type: u8) -> Result<(), FrameError> {
        if frame_type == frame::HELLO {
            if self.greeted {
                return Err(self.fail(FrameError::HelloRepeated));
            }
            self.greeted = true;
        }
        Ok(())
    }

    #[cold]
    fn fail(&mut self, error: FrameError) -> FrameError {
        self.failed = Some(error.clone());
        error
    }
}

/// The frames at the front of a buffer: see [`Decoder::views`].
#[derive(Debug)]
pub struct Views<'d, 'a> {
    decoder: &'d mut Decoder,
    bytes: &'a [u8],
    consumed: usize,
}

impl<'a> Views<'_, 'a> {
    /// The next frame; `None` when what is left is not a whole one.
    ///
    /// # Errors
    /// [`FrameError`]; from then on always the same one, also from the decoder.
    #[inline]
    #[expect(clippy::should_implement_trait, reason = "an iterator would give Option<Result>, which cannot be `?`ed")]
    pub fn next(&mut self) -> Result<Option<FrameView<'a>>, FrameError> {
        let rest = &self.bytes[self.consumed..];
        let Some(len) = self.decoder.whole(rest)? else { return Ok(None) };
        let frame_type = rest[LENGTH_LEN];
        self.decoder.greet(frame_type)?;
        let view =
            FrameView::parse(frame_type, &rest[LENGTH_LEN + 1..len]).map_err(|error| self.decoder.fail(error))?;
        self.consumed += len;
        Ok(Some(view))
    }

    /// Bytes of the frames given so far.
    #[inline]
    pub fn consumed(&self) -> usize {
        self.consumed
    }
}
