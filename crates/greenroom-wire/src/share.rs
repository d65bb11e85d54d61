//! Frames as slices of shared bytes.

use bytes::{Buf, Bytes};

use crate::chain::Chain;
use crate::error::FrameError;
use crate::extension::Extension;
use crate::frame::{self, Call, Cancel, Control, Define, Frame, Reply, StreamEnd, StreamItem, Unknown};
use crate::text::Text;
use crate::view::{CallView, CancelView, FrameView, ReplyView};

impl Frame {
    /// Reads a frame of `frame_type`, which is all of `body`.
    #[inline]
    pub(crate) fn share(frame_type: u8, body: Bytes) -> Result<Self, FrameError> {
        match frame_type {
            frame::CALL => Call::share(body).map(Self::Call),
            frame::REPLY => Reply::share(body).map(Self::Reply),
            _ => Self::share_rare(frame_type, body),
        }
    }

    fn share_rare(frame_type: u8, body: Bytes) -> Result<Self, FrameError> {
        Ok(match FrameView::parse(frame_type, &body)? {
            FrameView::Call(_) => Self::Call(Call::share(body)?),
            FrameView::Reply(_) => Self::Reply(Reply::share(body)?),
            FrameView::Control { channel, payload } => {
                Self::Control(Control { channel, payload: tail(payload.len(), body) })
            }
            FrameView::Hello(hello) => Self::Hello(hello),
            FrameView::Define { route, kind, method } => {
                Self::Define(Define { route, kind: Text::within(&body, kind), method: Text::within(&body, method) })
            }
            FrameView::Cancel(CancelView { id, origin, left, kind, key }) => {
                let (kind, key) = (Text::within(&body, kind), Text::within(&body, key));
                Self::Cancel(Cancel { id, origin, left, kind, key })
            }
            FrameView::Ping(nonce) => Self::Ping(nonce),
            FrameView::Pong(nonce) => Self::Pong(nonce),
            FrameView::Goodbye(reason) => Self::Goodbye(Text::within(&body, reason)),
            FrameView::StreamItem { consumer, number, payload } => {
                Self::StreamItem(StreamItem { consumer, number, payload: tail(payload.len(), body) })
            }
            FrameView::StreamCredit(credit) => Self::StreamCredit(credit),
            FrameView::StreamEnd { consumer, number, status, payload } => {
                Self::StreamEnd(StreamEnd { consumer, number, status, payload: tail(payload.len(), body) })
            }
            FrameView::Credit(credit) => Self::Credit(credit),
            FrameView::Letter(_) => Self::Letter(body),
            FrameView::StateLetter(_) => Self::StateLetter(body),
            FrameView::Unknown { .. } => Self::Unknown(Unknown { frame_type, body }),
        })
    }
}

impl Call {
    #[inline(always)]
    fn share(body: Bytes) -> Result<Self, FrameError> {
        let CallView { header, chain, payload } = CallView::parse(&body)?;
        Ok(Self {
            id: header.id,
            origin: header.origin,
            hops: header.hops,
            route: header.route,
            key: Text::within(&body, header.key),
            deadline: header.deadline,
            grant: header.grant,
            chain: Chain::within(&body, chain),
            extension: Extension::within(&body, header.extension),
            payload: tail(payload.len(), body),
        })
    }
}

impl Reply {
    #[inline(always)]
    fn share(body: Bytes) -> Result<Self, FrameError> {
        let ReplyView { id, status, payload } = ReplyView::parse(&body)?;
        Ok(Self { id, status, payload: tail(payload.len(), body) })
    }
}

/// The last `len` bytes: the frame's own reference moves to its payload, which saves counting another.
#[inline]
fn tail(len: usize, mut body: Bytes) -> Bytes {
    body.advance(body.len() - len);
    body
}
