//! Frames that borrow the buffer they were read into: no reference counts, for who handles them at once.

use std::time::Duration;

use crate::chain::ChainView;
use crate::encoder::CallHeader;
use crate::error::FrameError;
use crate::extension::ExtensionView;
use crate::frame::{self, CallId, Credit, Grant, Status, StreamCredit, flag};
use crate::hello::Hello;
use crate::limit::{CHAIN_LEN_MAX, EXTENSION_LEN_MAX, KEY_LEN_MAX, NAME_LEN_MAX, REASON_LEN_MAX};
use crate::reader::Reader;
use crate::varint::LENGTH_LEN;

/// One frame, borrowed: the fields mean what those of [`Frame`](crate::Frame) do.
#[derive(Clone, PartialEq, Debug)]
#[non_exhaustive]
pub enum FrameView<'a> {
    /// The first frame of each side.
    Hello(Hello),
    /// Gives a (kind, method) its number.
    Define {
        /// The number.
        route: u16,
        /// The actor's kind.
        kind: &'a str,
        /// The method of the kind.
        method: &'a str,
    },
    /// Asks an actor for a turn.
    Call(CallView<'a>),
    /// Answers a call.
    Reply(ReplyView<'a>),
    /// A message of a cluster protocol.
    Control {
        /// The protocol.
        channel: u8,
        /// Its message.
        payload: &'a [u8],
    },
    /// Asks for a Pong with the same nonce.
    Ping(u64),
    /// Answers a Ping.
    Pong(u64),
    /// The last frame: why the sender closes.
    Goodbye(&'a str),
    /// Nobody waits for a call any more.
    Cancel(CancelView<'a>),
    /// An item of a stream of replies.
    StreamItem {
        /// Where the consumer waits.
        consumer: CallId,
        /// Items before this one.
        number: u64,
        /// The item.
        payload: &'a [u8],
    },
    /// Room at the consumer of a stream of replies.
    StreamCredit(StreamCredit),
    /// The end of a stream of replies.
    StreamEnd {
        /// Where the consumer waits.
        consumer: CallId,
        /// Items that the stream had.
        number: u64,
        /// How it ended.
        status: Status,
        /// The error, by status.
        payload: &'a [u8],
    },
    /// How much the other side may send, and when this was said.
    Credit(Credit),
    /// What a cluster says to another about one actor.
    Letter(&'a [u8]),
    /// What an instance of a versioned state says to the one in another cluster.
    StateLetter(&'a [u8]),
    /// A frame of a later version: to be ignored.
    Unknown {
        /// The type.
        frame_type: u8,
        /// The body.
        body: &'a [u8],
    },
}

/// A call, borrowed.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct CallView<'a> {
    /// All but what varies in size.
    pub header: CallHeader<'a>,
    /// The actors that wait for this call.
    pub chain: ChainView<'a>,
    /// The arguments.
    pub payload: &'a [u8],
}

/// The end of a caller's wait, borrowed: the fields mean what those of [`Cancel`](crate::Cancel) do.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct CancelView<'a> {
    /// The call.
    pub id: CallId,
    /// The node that made the call, if it is not the sender.
    pub origin: Option<u64>,
    /// What was left of the call's time.
    pub left: Duration,
    /// The called actor's kind.
    pub kind: &'a str,
    /// The called actor's key.
    pub key: &'a str,
}

/// A reply, borrowed.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct ReplyView<'a> {
    /// The call that is answered.
    pub id: CallId,
    /// How it went.
    pub status: Status,
    /// The result or the error, by status.
    pub payload: &'a [u8],
}

impl<'a> FrameView<'a> {
    /// Reads a frame: what follows the length field.
    #[inline]
    pub(crate) fn parse(frame_type: u8, body: &'a [u8]) -> Result<Self, FrameError> {
        match frame_type {
            frame::CALL => CallView::parse(body).map(Self::Call),
            frame::REPLY => ReplyView::parse(body).map(Self::Reply),
            frame::STREAM_ITEM => {
                let mut reader = Reader::new(body);
                let consumer = CallId::parse(&mut reader)?;
                let number = reader.u64("stream item number")?;
                Ok(Self::StreamItem { consumer, number, payload: reader.rest() })
            }
            _ => Self::parse_rare(frame_type, body),
        }
    }

    /// Reads the whole frame that `bytes` begin with, for who has written it.
    ///
    /// # Errors
    /// [`FrameError`].
    pub fn read(bytes: &'a [u8]) -> Result<Self, FrameError> {
        let len = frame::frame_len(bytes).and_then(|len| usize::try_from(len).ok());
        match len.and_then(|len| bytes.get(LENGTH_LEN..len)) {
            Some([frame_type, body @ ..]) => Self::parse(*frame_type, body),
            _ => Err(FrameError::Empty),
        }
    }

    fn parse_rare(frame_type: u8, body: &'a [u8]) -> Result<Self, FrameError> {
        let mut reader = Reader::new(body);
        Ok(match frame_type {
            frame::HELLO => Self::Hello(Hello::parse(body)?),
            frame::DEFINE => Self::Define {
                route: reader.u16("define route")?,
                kind: reader.text("define kind", NAME_LEN_MAX)?,
                method: reader.text("define method", NAME_LEN_MAX)?,
            },
            frame::CONTROL => Self::Control { channel: reader.u8("control channel")?, payload: reader.rest() },
            frame::PING => Self::Ping(u64::from_le_bytes(reader.array("ping nonce")?)),
            frame::PONG => Self::Pong(u64::from_le_bytes(reader.array("pong nonce")?)),
            frame::CANCEL => Self::Cancel(CancelView {
                id: CallId::parse(&mut reader)?,
                origin: Some(reader.u64("cancel origin")?).filter(|origin| *origin != 0),
                left: Duration::from_micros(reader.u64("cancel time")?),
                kind: reader.text("cancel kind", NAME_LEN_MAX)?,
                key: reader.text("cancel key", KEY_LEN_MAX)?,
            }),
            frame::GOODBYE => Self::Goodbye(reader.text("goodbye reason", REASON_LEN_MAX)?),
            frame::STREAM_CREDIT => Self::StreamCredit(StreamCredit {
                stream: CallId::parse(&mut reader)?,
                token: u64::from_le_bytes(reader.array("stream token")?),
                consumer: CallId::parse(&mut reader)?,
                codec: reader.u8("stream codec")?,
                window: reader.u32("stream window")?,
                consumed: reader.u64("stream consumed")?,
            }),
            frame::STREAM_END => Self::StreamEnd {
                consumer: CallId::parse(&mut reader)?,
                number: reader.u64("stream length")?,
                status: Status::from_byte(reader.u8("stream status")?),
                payload: reader.rest(),
            },
            frame::CREDIT => {
                Self::Credit(Credit { granted: reader.u64("credit granted")?, clock: reader.u64("credit clock")? })
            }
            frame::LETTER => Self::Letter(body),
            frame::STATE_LETTER => Self::StateLetter(body),
            _ => Self::Unknown { frame_type, body },
        })
    }
}

impl<'a> CallView<'a> {
    #[inline(always)]
    pub(crate) fn parse(body: &'a [u8]) -> Result<Self, FrameError> {
        let mut reader = Reader::new(body);
        let flags = reader.u8("call flags")?;
        if flags & flag::FREE != 0 {
            return Err(FrameError::UnknownFlags { flags });
        }
        let id = if flags & flag::ID != 0 { Some(CallId::parse(&mut reader)?) } else { None };
        let origin = if flags & flag::ORIGIN != 0 { Some(reader.u64("call origin")?) } else { None };
        let hops = if flags & flag::HOPS != 0 { reader.u8("call hops")? } else { 0 };
        let route = reader.u16("call route")?;
        let key = reader.text("call key", KEY_LEN_MAX)?;
        let deadline =
            if flags & flag::DEADLINE != 0 { Some(Duration::from_micros(reader.u64("call deadline")?)) } else { None };
        let grant = if flags & flag::GRANT != 0 { Some(Grant::parse(&mut reader)?) } else { None };
        let chain = if flags & flag::CHAIN != 0 {
            ChainView::parse(reader.bytes("call chain", CHAIN_LEN_MAX)?)?
        } else {
            ChainView::EMPTY
        };
        let extension = if flags & flag::EXTENSION != 0 {
            ExtensionView::parse(reader.bytes("call extension", EXTENSION_LEN_MAX)?)?
        } else {
            ExtensionView::EMPTY
        };
        let header = CallHeader { id, origin, hops, route, key, deadline, grant, extension };
        Ok(Self { header, chain, payload: reader.rest() })
    }
}

impl<'a> ReplyView<'a> {
    #[inline(always)]
    pub(crate) fn parse(body: &'a [u8]) -> Result<Self, FrameError> {
        let mut reader = Reader::new(body);
        let id = CallId::parse(&mut reader)?;
        let status = Status::from_byte(reader.u8("reply status")?);
        Ok(Self { id, status, payload: reader.rest() })
    }
}

impl CallId {
    #[inline(always)]
    fn parse(reader: &mut Reader<'_>) -> Result<Self, FrameError> {
        Ok(Self {
            shard: reader.u16("call id shard")?,
            index: reader.u32("call id index")?,
            generation: reader.u32("call id generation")?,
        })
    }
}

impl Grant {
    fn parse(reader: &mut Reader<'_>) -> Result<Self, FrameError> {
        Ok(Self {
            epoch: reader.u64("grant epoch")?,
            view: reader.u64("grant view")?,
            grantor: reader.u64("grant grantor")?,
        })
    }
}
