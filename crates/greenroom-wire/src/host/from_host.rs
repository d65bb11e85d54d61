//! What hosts say to nodes.

use std::time::Duration;

use bytes::BytesMut;

use crate::error::{EncodeError, FrameError};
use crate::extension::ExtensionView;
use crate::frame::Status;
use crate::limit::{EXTENSION_LEN_MAX, KEY_LEN_MAX, NAME_LEN_MAX, REASON_LEN_MAX};
use crate::reader::Reader;

use super::decoder::LaneFrame;
use super::limit::DESCRIPTION_LEN_MAX;
use super::writer::{Writer, frame};
use super::{Closing, Fields, Hello, Join, Operation, frame_type};

/// A frame that a host sends; it borrows what it was read from.
#[derive(Clone, PartialEq, Debug)]
#[non_exhaustive]
pub enum FromHost<'a> {
    /// The first frame of a control lane.
    Hello(Hello),
    /// The description of an offer whose digest the node does not know.
    Describe {
        /// The kind.
        kind: &'a str,
        /// The offer's version.
        version: u16,
        /// The document.
        json: &'a [u8],
    },
    /// Asks for a lease that counts from when this was sent.
    Alive {
        /// Rises with each.
        number: u64,
    },
    /// Takes no new seats any more, and wants its seats to be left one by one.
    Drain,
    /// The last frame of a lane.
    Goodbye {
        /// Why.
        code: Closing,
        /// The same for people.
        reason: &'a str,
    },
    /// The host has dropped all seats of a lane: the answer to a LaneLost, once each. Unasked it says nothing, for which of two lanes
    /// it means nobody could tell.
    LaneDropped {
        /// The lane's shard.
        shard: u32,
    },
    /// The first frame of a user lane.
    Join(Join),
    /// A seat is ready, or could not be made.
    Activated {
        /// The seat.
        seat: u64,
        /// How its making went.
        status: Status,
        /// The error, by status.
        payload: &'a [u8],
    },
    /// The host has dropped a seat: nothing of it runs any more.
    Released {
        /// The seat.
        seat: u64,
        /// How its end went.
        status: Status,
        /// What the actor carries to its next seat, if it was asked for that; else empty, or the error by status.
        payload: &'a [u8],
    },
    /// A turn has ended.
    TurnEnd(TurnEnd<'a>),
    /// Gives a (kind, method) that the host calls its number on this lane.
    Define {
        /// The number: the lane's next unused one, from 0.
        route: u32,
        /// The kind.
        kind: &'a str,
        /// The method.
        method: &'a str,
        /// The version of the interface that the host speaks.
        version: u16,
    },
    /// Calls an actor.
    Call(Call<'a>),
    /// Nobody waits for a request any more.
    CancelCall {
        /// The request.
        request: u64,
    },
    /// Asks the node for what is no call.
    Ask(Ask<'a>),
    /// An item of a stream that the host produces.
    StreamItem {
        /// The stream: a number of the host's.
        stream: u64,
        /// Items before this one.
        number: u64,
        /// The item.
        payload: &'a [u8],
    },
    /// Room at the host for items of a stream that it consumes.
    StreamCredit {
        /// The stream: the number that the host opened it under.
        stream: u64,
        /// Items that may be under way at once; 0 gives the stream up.
        window: u32,
        /// Items that the host has taken since the beginning.
        consumed: u64,
    },
    /// The end of a stream that the host produces.
    StreamEnd {
        /// The stream.
        stream: u64,
        /// Items that it had.
        number: u64,
        /// How it ended.
        status: Status,
        /// The error, by status.
        payload: &'a [u8],
    },
    /// A frame of a later version: to be skipped.
    Unknown {
        /// The type.
        frame_type: u8,
    },
}

/// The end of a turn, and all that it has done, in one frame.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct TurnEnd<'a> {
    /// The turn.
    pub turn: u64,
    /// How it went; [`ABANDONED`](super::ABANDONED) if it was dropped.
    pub status: Status,
    /// What is to be written of the actor's state before the reply leaves.
    pub changes: Option<Fields<'a>>,
    /// The state that a state machine is in from now on.
    pub jump: Option<&'a str>,
    /// Whether the actor has ended for good.
    pub is_halt: bool,
    /// The stream that the reply begins: a number of the host's.
    pub stream: Option<u64>,
    /// The reply, or the error by status.
    pub payload: &'a [u8],
}

/// A call of a host.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct Call<'a> {
    /// Its number; 0 if nobody waits for a reply.
    pub request: u64,
    /// The turn that makes it, whose chain, principal, context and limit it has; 0 if none does.
    pub turn: u64,
    /// The (kind, method), as defined on this lane.
    pub route: u32,
    /// The actor's key.
    pub key: &'a str,
    /// What is left of its time; `None` if it is bounded by the turn's, or the node's default, alone. In whole µs, at least one.
    pub left: Option<Duration>,
    /// What only some calls carry; of a turn's call only what the node lets the host say.
    pub extension: ExtensionView<'a>,
    /// The arguments.
    pub payload: &'a [u8],
}

/// A wish of a host that is no call.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Ask<'a> {
    /// Its number; 0 if nobody waits for the answer.
    pub request: u64,
    /// The turn that asks; 0 if none does.
    pub turn: u64,
    /// The seat that it is about; 0 if it is about none.
    pub seat: u64,
    /// What is asked.
    pub operation: Operation,
    /// A map of the operation's parameters, as a payload.
    pub payload: &'a [u8],
}

impl FromHost<'_> {
    /// Appends the frame to `batch`, which stays as it was on an error.
    ///
    /// # Errors
    /// [`EncodeError`] if it is over a bound.
    #[inline]
    pub fn write(&self, batch: &mut BytesMut, frame_len_max: u32) -> Result<(), EncodeError> {
        frame(batch, frame_len_max, self.frame_type(), |out| self.put(out))
    }

    fn frame_type(&self) -> u8 {
        match self {
            Self::Hello(_) => frame_type::GREETING,
            Self::Describe { .. } => frame_type::DESCRIBE,
            Self::Alive { .. } => frame_type::ALIVE,
            Self::Drain => frame_type::DRAIN,
            Self::Goodbye { .. } => frame_type::GOODBYE,
            Self::LaneDropped { .. } => frame_type::LANE_DROPPED,
            Self::Join(_) => frame_type::JOIN,
            Self::Activated { .. } => frame_type::ACTIVATED,
            Self::Released { .. } => frame_type::RELEASED,
            Self::TurnEnd(_) => frame_type::TURN_END,
            Self::Define { .. } => frame_type::DEFINE,
            Self::Call(_) => frame_type::CALL,
            Self::CancelCall { .. } => frame_type::CANCEL_CALL,
            Self::Ask(_) => frame_type::ASK,
            Self::StreamItem { .. } => frame_type::STREAM_ITEM,
            Self::StreamCredit { .. } => frame_type::STREAM_CREDIT,
            Self::StreamEnd { .. } => frame_type::STREAM_END,
            Self::Unknown { frame_type } => *frame_type,
        }
    }

    fn put(&self, out: &mut Writer<'_>) -> Result<(), EncodeError> {
        match self {
            Self::Hello(hello) => hello.write(out.batch)?,
            Self::Describe { kind, version, json } => {
                out.text("kind", kind, NAME_LEN_MAX)?.varint((*version).into());
                described(json.len())?;
                out.rest(json);
            }
            Self::Alive { number } => {
                out.varint(*number);
            }
            Self::Drain | Self::Unknown { .. } => {}
            Self::Goodbye { code, reason } => goodbye(out, *code, reason)?,
            Self::LaneDropped { shard } => {
                out.varint((*shard).into());
            }
            Self::Join(join) => join.write(out.batch)?,
            Self::Activated { seat, status, payload } | Self::Released { seat, status, payload } => {
                out.varint(*seat).u8(status.to_byte()).rest(payload);
            }
            Self::TurnEnd(end) => end.put(out)?,
            Self::Define { route, kind, method, version } => {
                out.varint((*route).into()).text("kind", kind, NAME_LEN_MAX)?;
                out.text("method", method, NAME_LEN_MAX)?.varint((*version).into());
            }
            Self::Call(call) => call.put(out)?,
            Self::CancelCall { request } => {
                out.varint(*request);
            }
            Self::Ask(Ask { request, turn, seat, operation, payload }) => {
                out.varint(*request).varint(*turn).varint(*seat).u8(operation.to_byte()).rest(payload);
            }
            Self::StreamItem { stream, number, payload } => {
                out.varint(*stream).varint(*number).rest(payload);
            }
            Self::StreamCredit { stream, window, consumed } => {
                out.varint(*stream).varint((*window).into()).varint(*consumed);
            }
            Self::StreamEnd { stream, number, status, payload } => {
                out.varint(*stream).varint(*number).u8(status.to_byte()).rest(payload);
            }
        }
        Ok(())
    }
}

impl<'a> LaneFrame<'a> for FromHost<'a> {
    const FIRST: &'static [u8] = &[frame_type::GREETING, frame_type::JOIN];

    #[inline]
    fn parse(frame_type: u8, body: &'a [u8]) -> Result<Self, FrameError> {
        let mut reader = Reader::new(body);
        Ok(match frame_type {
            frame_type::TURN_END => Self::TurnEnd(TurnEnd::parse(reader)?),
            frame_type::CALL => Self::Call(Call::parse(reader)?),
            frame_type::ASK => Self::Ask(Ask {
                request: reader.u64("ask request")?,
                turn: reader.u64("ask turn")?,
                seat: reader.u64("ask seat")?,
                operation: Operation::from_byte(reader.u8("ask operation")?),
                payload: reader.rest(),
            }),
            frame_type::GREETING => Self::Hello(Hello::parse(body)?),
            frame_type::DESCRIBE => {
                let kind = reader.text("described kind", NAME_LEN_MAX)?;
                let version = reader.u16("described version")?;
                let json = reader.rest();
                if json.len() > DESCRIPTION_LEN_MAX {
                    let (value, max) = (json.len() as u64, DESCRIPTION_LEN_MAX as u64);
                    return Err(FrameError::OutOfBounds { field: "description", value, max });
                }
                Self::Describe { kind, version, json }
            }
            frame_type::ALIVE => Self::Alive { number: reader.u64("alive number")? },
            frame_type::DRAIN => Self::Drain,
            frame_type::GOODBYE => Self::Goodbye {
                code: Closing::from_byte(reader.u8("goodbye code")?),
                reason: reader.text("goodbye reason", REASON_LEN_MAX)?,
            },
            frame_type::LANE_DROPPED => Self::LaneDropped { shard: reader.u32("dropped shard")? },
            frame_type::JOIN => Self::Join(Join::parse(body)?),
            frame_type::ACTIVATED => Self::Activated {
                seat: reader.u64("activated seat")?,
                status: Status::from_byte(reader.u8("activated status")?),
                payload: reader.rest(),
            },
            frame_type::RELEASED => Self::Released {
                seat: reader.u64("released seat")?,
                status: Status::from_byte(reader.u8("released status")?),
                payload: reader.rest(),
            },
            frame_type::DEFINE => Self::Define {
                route: reader.u32("define route")?,
                kind: reader.text("define kind", NAME_LEN_MAX)?,
                method: reader.text("define method", NAME_LEN_MAX)?,
                version: reader.u16("define version")?,
            },
            frame_type::CANCEL_CALL => Self::CancelCall { request: reader.u64("cancelled request")? },
            frame_type::STREAM_ITEM => Self::StreamItem {
                stream: reader.u64("stream item stream")?,
                number: reader.u64("stream item number")?,
                payload: reader.rest(),
            },
            frame_type::STREAM_CREDIT => Self::StreamCredit {
                stream: reader.u64("stream credit stream")?,
                window: reader.u32("stream credit window")?,
                consumed: reader.u64("stream credit consumed")?,
            },
            frame_type::STREAM_END => Self::StreamEnd {
                stream: reader.u64("stream end stream")?,
                number: reader.u64("stream end number")?,
                status: Status::from_byte(reader.u8("stream end status")?),
                payload: reader.rest(),
            },
            _ => Self::Unknown { frame_type },
        })
    }
}

impl<'a> TurnEnd<'a> {
    fn put(&self, out: &mut Writer<'_>) -> Result<(), EncodeError> {
        let flags = [self.changes.is_some(), self.jump.is_some(), self.is_halt, self.stream.is_some()];
        out.varint(self.turn).u8(self.status.to_byte()).u8(bits(flags));
        if let Some(changes) = &self.changes {
            changes.put(out);
        }
        if let Some(state) = self.jump {
            out.text("state", state, NAME_LEN_MAX)?;
        }
        if let Some(stream) = self.stream {
            out.varint(stream);
        }
        out.rest(self.payload);
        Ok(())
    }

    fn parse(mut reader: Reader<'a>) -> Result<Self, FrameError> {
        let turn = reader.u64("turn end turn")?;
        let status = Status::from_byte(reader.u8("turn end status")?);
        let [has_changes, has_jump, is_halt, has_stream] = flags(reader.u8("turn end flags")?)?;
        Ok(Self {
            turn,
            status,
            changes: if has_changes { Some(Fields::read(&mut reader)?) } else { None },
            jump: if has_jump { Some(reader.text("turn end state", NAME_LEN_MAX)?) } else { None },
            is_halt,
            stream: if has_stream { Some(reader.u64("turn end stream")?) } else { None },
            payload: reader.rest(),
        })
    }
}

impl<'a> Call<'a> {
    fn put(&self, out: &mut Writer<'_>) -> Result<(), EncodeError> {
        out.varint(self.request).varint(self.turn).varint(self.route.into()).text("key", self.key, KEY_LEN_MAX)?;
        out.varint(micros(self.left)).bytes("extension", self.extension.as_bytes(), EXTENSION_LEN_MAX)?;
        out.rest(self.payload);
        Ok(())
    }

    fn parse(mut reader: Reader<'a>) -> Result<Self, FrameError> {
        Ok(Self {
            request: reader.u64("call request")?,
            turn: reader.u64("call turn")?,
            route: reader.u32("call route")?,
            key: reader.text("call key", KEY_LEN_MAX)?,
            left: left(reader.u64("call time")?),
            extension: ExtensionView::parse(reader.bytes("call extension", EXTENSION_LEN_MAX)?)?,
            payload: reader.rest(),
        })
    }
}

/// Writes a Goodbye; its reason is cut to 1,024 bytes.
pub(super) fn goodbye(out: &mut Writer<'_>, code: Closing, reason: &str) -> Result<(), EncodeError> {
    let reason = &reason[..reason.floor_char_boundary(REASON_LEN_MAX)];
    out.u8(code.to_byte()).text("reason", reason, REASON_LEN_MAX)?;
    Ok(())
}

/// A byte of flags, of which the first is the lowest bit.
pub(super) fn bits<const N: usize>(flags: [bool; N]) -> u8 {
    flags.iter().rev().fold(0, |bits, flag| bits << 1 | u8::from(*flag))
}

/// The flags of a byte that may have no others.
pub(super) fn flags<const N: usize>(byte: u8) -> Result<[bool; N], FrameError> {
    if byte >> N != 0 {
        return Err(FrameError::UnknownFlags { flags: byte });
    }
    Ok(std::array::from_fn(|at| byte >> at & 1 == 1))
}

/// Time left in whole µs, of which 0 says that there is no limit.
pub(super) fn micros(left: Option<Duration>) -> u64 {
    left.map_or(0, |left| u64::try_from(left.as_micros()).unwrap_or(u64::MAX).max(1))
}

pub(super) fn left(micros: u64) -> Option<Duration> {
    (micros != 0).then_some(Duration::from_micros(micros))
}

fn described(len: usize) -> Result<(), EncodeError> {
    let max = DESCRIPTION_LEN_MAX;
    if len > max { Err(EncodeError::TextTooLong { field: "description", len, max }) } else { Ok(()) }
}
