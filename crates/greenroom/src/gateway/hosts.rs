//! Hosts that come by the door: the connection becomes one of their lanes.

use std::io;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};

use bytes::Bytes;
use greenroom_security::principal::Principal;
use greenroom_security::rules::Target;
use greenroom_wire::host::UPGRADE as PROTOCOL;
use greenroom_world::Stream;
use hyper::header::{CONNECTION, HeaderValue, UPGRADE};
use hyper::upgrade::Upgraded;
use hyper::{Method, Request, Response, StatusCode};
use hyper_util::rt::TokioIo;
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};

use super::Door;
use super::answer::{Answer, AnswerBody};
use super::body::RequestBody;
use super::guard::Visitor;
use super::pass::Pass;
use super::problem::Problem;
use crate::actor::error::Refusal;
use crate::hosts;

/// Lets a host in that has been admitted. From then on its connection is none of the door's.
///
/// # Errors
/// The request does not ask for the host protocol.
pub(super) fn open(door: &Arc<Door>, mut request: Request<RequestBody>) -> Result<Answer, Problem> {
    let wanted = request.headers().get(UPGRADE).map(HeaderValue::as_bytes);
    if *request.method() != Method::GET || wanted.is_none_or(|wanted| !wanted.eq_ignore_ascii_case(PROTOCOL.as_bytes()))
    {
        return Err(Problem::bad_request(&format!("hosts come in here: ask with `Upgrade: {PROTOCOL}`")));
    }
    let principal = request.extensions().get::<Principal>();
    let from = principal.map_or_else(|| "the door".to_owned(), |who| format!("the door, as {}", who.name()));
    let visa = principal.map(|principal| {
        let pass = Pass::to_host(door, request.headers(), request.extensions().get::<Visitor>(), principal.clone());
        Arc::new(Known { pass, principal: principal.clone() }) as Arc<dyn hosts::Visa>
    });
    let upgrading = hyper::upgrade::on(&mut request);
    let node = door.node.clone();
    tokio::spawn(async move {
        match upgrading.await {
            Ok(upgraded) => {
                let stream = Box::new(DoorLane(TokioIo::new(upgraded)));
                hosts::attend(&node, stream, hosts::Peer::by_door(visa, from)).await;
            }
            Err(error) => tracing::debug!(%error, "a host's lane was not opened"),
        }
    });
    let mut answer = Response::new(AnswerBody::whole(Bytes::new()));
    *answer.status_mut() = StatusCode::SWITCHING_PROTOCOLS;
    answer.headers_mut().insert(CONNECTION, HeaderValue::from_static("upgrade"));
    answer.headers_mut().insert(UPGRADE, HeaderValue::from_static(PROTOCOL));
    Ok(answer)
}

/// Who has shown credentials, and comes as a host.
struct Known {
    pass: Pass,
    principal: Principal,
}

impl hosts::Visa for Known {
    fn principal(&self) -> &Principal {
        &self.principal
    }

    fn check(&self, kind: &str, key: &str, method: &str) -> Result<(), Refusal> {
        let permitted = self.pass.permits(&self.principal, Target { kind, key, method });
        permitted.map_err(|problem| Refusal::Denied { message: problem.detail().to_owned() })
    }

    fn withdrawn(&self) -> Pin<Box<dyn Future<Output = String> + Send + '_>> {
        Box::pin(async { self.pass.withdrawn("").await.detail().to_owned() })
    }
}

/// A connection that was the door's. Its reactor stays that of the door's thread, also for a shard that reads it.
struct DoorLane(TokioIo<Upgraded>);

impl Stream for DoorLane {
    fn rebind(self: Box<Self>) -> io::Result<Box<dyn Stream>> {
        Ok(self)
    }
}

impl AsyncRead for DoorLane {
    fn poll_read(mut self: Pin<&mut Self>, cx: &mut Context<'_>, buf: &mut ReadBuf<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.0).poll_read(cx, buf)
    }
}

impl AsyncWrite for DoorLane {
    fn poll_write(mut self: Pin<&mut Self>, cx: &mut Context<'_>, buf: &[u8]) -> Poll<io::Result<usize>> {
        Pin::new(&mut self.0).poll_write(cx, buf)
    }

    fn poll_flush(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.0).poll_flush(cx)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.0).poll_shutdown(cx)
    }
}
