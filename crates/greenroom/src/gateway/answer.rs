//! The bodies of answers: whole, or events one after the other.

use std::convert::Infallible;
use std::pin::Pin;
use std::task::{Context, Poll};

use bytes::Bytes;
use http_body_util::Full;
use hyper::Response;
use hyper::body::{Body, Frame, SizeHint};

use super::events::Events;

/// An answer.
pub(super) type Answer = Response<AnswerBody>;

/// The body of an answer.
pub(super) enum AnswerBody {
    Whole(Full<Bytes>),
    Events(Box<Events>),
}

impl AnswerBody {
    pub(super) fn whole(body: Bytes) -> Self {
        Self::Whole(Full::new(body))
    }

    /// Whether it will be over by itself soon.
    pub(super) fn is_whole(&self) -> bool {
        matches!(self, Self::Whole(_))
    }
}

impl Body for AnswerBody {
    type Data = Bytes;
    type Error = Infallible;

    fn poll_frame(self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Option<Result<Frame<Bytes>, Infallible>>> {
        match self.get_mut() {
            Self::Whole(body) => Pin::new(body).poll_frame(context),
            Self::Events(events) => events.poll_bytes(context).map(|bytes| bytes.map(|bytes| Ok(Frame::data(bytes)))),
        }
    }

    fn is_end_stream(&self) -> bool {
        match self {
            Self::Whole(body) => body.is_end_stream(),
            Self::Events(_) => false,
        }
    }

    fn size_hint(&self) -> SizeHint {
        match self {
            Self::Whole(body) => body.size_hint(),
            Self::Events(_) => SizeHint::default(),
        }
    }
}
