//! What nodes say to hosts.

use std::time::Duration;

use bytes::BytesMut;

use crate::error::{EncodeError, FrameError};
use crate::extension::ExtensionView;
use crate::frame::Status;
use crate::limit::{EXTENSION_LEN_MAX, KEY_LEN_MAX, NAME_LEN_MAX, REASON_LEN_MAX};
use crate::reader::Reader;

use super::decoder::LaneFrame;
use super::from_host::{bits, flags, goodbye, left, micros};
use super::writer::{Writer, frame};
use super::{Closing, Fields, Leave, NodesMap, OfferStatus, Welcome, frame_type};

/// A frame that a node sends; it borrows what it was read from.
#[derive(Clone, PartialEq, Debug)]
#[non_exhaustive]
pub enum FromNode<'a> {
    /// The answer to a Hello.
    Welcome(Welcome),
    /// What became of an offer.
    Offered {
        /// Its index in the Hello.
        offer: u32,
        /// Its kind.
        kind: &'a str,
        /// What became of it.
        status: OfferStatus,
        /// Why it is refused; empty otherwise.
        reason: &'a str,
    },
    /// The answer to an Alive.
    Lease {
        /// The Alive's number.
        number: u64,
        /// How long the host may act, from when it sent the Alive, in milliseconds: it takes 0.99 of that.
        ms: u64,
    },
    /// The nodes of the cluster, for a host that wants a session with each.
    Nodes(NodesMap),
    /// The last frame of a lane.
    Goodbye {
        /// Why.
        code: Closing,
        /// The same for people.
        reason: &'a str,
    },
    /// A user lane has broken: the host is to drop all its seats, and to say so.
    LaneLost {
        /// The lane's shard.
        shard: u32,
    },
    /// Gives the host an actor.
    Activate(Activate<'a>),
    /// Takes an actor from the host.
    Deactivate {
        /// The seat.
        seat: u64,
        /// Why.
        why: Leave,
        /// Whether what the actor carries is to come back with Released.
        is_carry: bool,
        /// Whether turns that run are to be abandoned; otherwise there are none.
        is_abandon: bool,
    },
    /// Begins a turn.
    Turn(Turn<'a>),
    /// The caller of a turn has given up: the handler is told, and goes on.
    CancelTurn {
        /// The turn.
        turn: u64,
    },
    /// The answer to a Call or an Ask.
    Reply {
        /// The request.
        request: u64,
        /// How it went.
        status: Status,
        /// The result, or the error by status.
        payload: &'a [u8],
    },
    /// The refusal of an operation that awaits no Reply, for the host's log. A refusal that makes a reliable turn fail ends that turn
    /// instead.
    OperationRefused {
        /// The turn that asked, which may have ended; 0 outside of turns.
        turn: u64,
        /// The actor that asked, as `kind/key`; empty if the node does not know it any more.
        actor: &'a str,
        /// The refused operation.
        operation: &'a str,
        /// The reason and the remedy.
        reason: &'a str,
    },
    /// An item of a stream that the host consumes.
    StreamItem {
        /// The stream: the number that the host opened it under.
        stream: u64,
        /// Items before this one.
        number: u64,
        /// The item.
        payload: &'a [u8],
    },
    /// Room for items of a stream that the host produces.
    StreamCredit {
        /// The stream: the host's number.
        stream: u64,
        /// Items that may be under way at once; 0 gives the stream up.
        window: u32,
        /// Items that were taken since the beginning.
        consumed: u64,
    },
    /// The end of a stream that the host consumes.
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
    /// Room for calls.
    Credit {
        /// Bytes of Call, Ask and StreamItem frames, length fields included, that the host may have sent since the lane began,
        /// beyond the Welcome's window.
        granted: u64,
    },
    /// A frame of a later version: to be skipped.
    Unknown {
        /// The type.
        frame_type: u8,
    },
}

/// An actor for a host.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Activate<'a> {
    /// The seat: a number that was never used on this lane before.
    pub seat: u64,
    /// The kind, by the offer's index in the Hello.
    pub offer: u32,
    /// The activation's number among the actor's: it only rises.
    pub epoch: u64,
    /// The state that the state machine is in.
    pub state: Option<&'a str>,
    /// What the actor has brought from another seat, as a payload.
    pub carried: Option<&'a [u8]>,
    /// The actor's key.
    pub key: &'a str,
    /// What is stored of the actor.
    pub fields: Fields<'a>,
}

/// A turn.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct Turn<'a> {
    /// Its number: it rises on a lane.
    pub turn: u64,
    /// The seat.
    pub seat: u64,
    /// The method's index in the kind's description.
    pub method: u32,
    /// Whether somebody waits for the reply.
    pub is_awaited: bool,
    /// Whether it is a read, which may run beside others.
    pub is_read: bool,
    /// Whether a timer or a reminder has begun it.
    pub is_tick: bool,
    /// What is left of its time; `None` if there is no limit. In whole µs, at least one.
    pub left: Option<Duration>,
    /// What only some calls carry.
    pub extension: ExtensionView<'a>,
    /// The arguments.
    pub payload: &'a [u8],
}

impl FromNode<'_> {
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
            Self::Welcome(_) => frame_type::GREETING,
            Self::Offered { .. } => frame_type::OFFERED,
            Self::Lease { .. } => frame_type::LEASE,
            Self::Nodes(_) => frame_type::NODES,
            Self::Goodbye { .. } => frame_type::GOODBYE,
            Self::LaneLost { .. } => frame_type::LANE_LOST,
            Self::Activate(_) => frame_type::ACTIVATE,
            Self::Deactivate { .. } => frame_type::DEACTIVATE,
            Self::Turn(_) => frame_type::TURN,
            Self::CancelTurn { .. } => frame_type::CANCEL_TURN,
            Self::Reply { .. } => frame_type::REPLY,
            Self::OperationRefused { .. } => frame_type::OPERATION_REFUSED,
            Self::StreamItem { .. } => frame_type::STREAM_ITEM,
            Self::StreamCredit { .. } => frame_type::STREAM_CREDIT,
            Self::StreamEnd { .. } => frame_type::STREAM_END,
            Self::Credit { .. } => frame_type::CREDIT,
            Self::Unknown { frame_type } => *frame_type,
        }
    }

    fn put(&self, out: &mut Writer<'_>) -> Result<(), EncodeError> {
        match self {
            Self::Welcome(welcome) => welcome.write(out.batch)?,
            Self::Offered { offer, kind, status, reason } => {
                let reason = &reason[..reason.floor_char_boundary(REASON_LEN_MAX)];
                out.varint((*offer).into()).text("kind", kind, NAME_LEN_MAX)?;
                out.u8(status.to_byte()).text("reason", reason, REASON_LEN_MAX)?;
            }
            Self::Lease { number, ms } => {
                out.varint(*number).varint(*ms);
            }
            Self::Nodes(nodes) => nodes.write(out.batch)?,
            Self::Goodbye { code, reason } => goodbye(out, *code, reason)?,
            Self::LaneLost { shard } => {
                out.varint((*shard).into());
            }
            Self::Activate(activate) => activate.put(out)?,
            Self::Deactivate { seat, why, is_carry, is_abandon } => {
                out.varint(*seat).u8(why.to_byte()).u8(bits([*is_carry, *is_abandon]));
            }
            Self::Turn(turn) => turn.put(out)?,
            Self::CancelTurn { turn } => {
                out.varint(*turn);
            }
            Self::Reply { request, status, payload } => {
                out.varint(*request).u8(status.to_byte()).rest(payload);
            }
            Self::OperationRefused { turn, actor, operation, reason } => {
                out.varint(*turn);
                for (name, text) in [("actor", actor), ("operation", operation), ("reason", reason)] {
                    out.text(name, &text[..text.floor_char_boundary(REASON_LEN_MAX)], REASON_LEN_MAX)?;
                }
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
            Self::Credit { granted } => {
                out.varint(*granted);
            }
            Self::Unknown { .. } => {}
        }
        Ok(())
    }
}

impl<'a> LaneFrame<'a> for FromNode<'a> {
    const FIRST: &'static [u8] = &[frame_type::GREETING, frame_type::GOODBYE];

    #[inline]
    fn parse(frame_type: u8, body: &'a [u8]) -> Result<Self, FrameError> {
        let mut reader = Reader::new(body);
        Ok(match frame_type {
            frame_type::TURN => Self::Turn(Turn::parse(reader)?),
            frame_type::REPLY => Self::Reply {
                request: reader.u64("reply request")?,
                status: Status::from_byte(reader.u8("reply status")?),
                payload: reader.rest(),
            },
            frame_type::GREETING => Self::Welcome(Welcome::parse(body)?),
            frame_type::OFFERED => Self::Offered {
                offer: reader.u32("offered offer")?,
                kind: reader.text("offered kind", NAME_LEN_MAX)?,
                status: OfferStatus::from_byte(reader.u8("offered status")?),
                reason: reader.text("offered reason", REASON_LEN_MAX)?,
            },
            frame_type::LEASE => Self::Lease { number: reader.u64("lease number")?, ms: reader.u64("lease ms")? },
            frame_type::NODES => Self::Nodes(NodesMap::parse(body)?),
            frame_type::GOODBYE => Self::Goodbye {
                code: Closing::from_byte(reader.u8("goodbye code")?),
                reason: reader.text("goodbye reason", REASON_LEN_MAX)?,
            },
            frame_type::LANE_LOST => Self::LaneLost { shard: reader.u32("lost shard")? },
            frame_type::ACTIVATE => Self::Activate(Activate::parse(reader)?),
            frame_type::DEACTIVATE => {
                let seat = reader.u64("deactivated seat")?;
                let why = Leave::from_byte(reader.u8("deactivate why")?);
                let [is_carry, is_abandon] = flags(reader.u8("deactivate flags")?)?;
                Self::Deactivate { seat, why, is_carry, is_abandon }
            }
            frame_type::CANCEL_TURN => Self::CancelTurn { turn: reader.u64("cancelled turn")? },
            frame_type::OPERATION_REFUSED => Self::OperationRefused {
                turn: reader.u64("refused turn")?,
                actor: reader.text("refused actor", REASON_LEN_MAX)?,
                operation: reader.text("refused operation", REASON_LEN_MAX)?,
                reason: reader.text("refused reason", REASON_LEN_MAX)?,
            },
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
            frame_type::CREDIT => Self::Credit { granted: reader.u64("credit granted")? },
            _ => Self::Unknown { frame_type },
        })
    }
}

impl<'a> Activate<'a> {
    fn put(&self, out: &mut Writer<'_>) -> Result<(), EncodeError> {
        out.varint(self.seat).varint(self.offer.into()).varint(self.epoch);
        out.u8(bits([self.state.is_some(), self.carried.is_some()])).text("key", self.key, KEY_LEN_MAX)?;
        if let Some(state) = self.state {
            out.text("state", state, NAME_LEN_MAX)?;
        }
        if let Some(carried) = self.carried {
            out.bytes("carried", carried, usize::MAX)?;
        }
        self.fields.put(out);
        Ok(())
    }

    fn parse(mut reader: Reader<'a>) -> Result<Self, FrameError> {
        let (seat, offer) = (reader.u64("activate seat")?, reader.u32("activate offer")?);
        let epoch = reader.u64("activate epoch")?;
        let [has_state, has_carried] = flags(reader.u8("activate flags")?)?;
        Ok(Self {
            seat,
            offer,
            epoch,
            key: reader.text("activate key", KEY_LEN_MAX)?,
            state: if has_state { Some(reader.text("activate state", NAME_LEN_MAX)?) } else { None },
            carried: if has_carried { Some(reader.bytes("activate carried", usize::MAX)?) } else { None },
            fields: Fields::read(&mut reader)?,
        })
    }
}

impl<'a> Turn<'a> {
    #[inline]
    fn put(&self, out: &mut Writer<'_>) -> Result<(), EncodeError> {
        out.varint(self.turn).varint(self.seat).varint(self.method.into());
        out.u8(bits([self.is_awaited, self.is_read, self.is_tick])).varint(micros(self.left));
        out.bytes("extension", self.extension.as_bytes(), EXTENSION_LEN_MAX)?.rest(self.payload);
        Ok(())
    }

    #[inline]
    fn parse(mut reader: Reader<'a>) -> Result<Self, FrameError> {
        let (turn, seat) = (reader.u64("turn")?, reader.u64("turn seat")?);
        let method = reader.u32("turn method")?;
        let [is_awaited, is_read, is_tick] = flags(reader.u8("turn flags")?)?;
        Ok(Self {
            turn,
            seat,
            method,
            is_awaited,
            is_read,
            is_tick,
            left: left(reader.u64("turn time")?),
            extension: ExtensionView::parse(reader.bytes("turn extension", EXTENSION_LEN_MAX)?)?,
            payload: reader.rest(),
        })
    }
}
