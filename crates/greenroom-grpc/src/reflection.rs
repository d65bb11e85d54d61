//! Reflection: what the door's services and their messages are, for tools such as `grpcurl`.

use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll, ready};
use std::time::Duration;

use bytes::Bytes;
use greenroom::door::{Problem, Visit};
use http::{Request, Response};
use hyper::body::{Frame, Incoming};
use tokio::time::Sleep;
use tonic::Status;
use tonic::body::Body;
use tonic_reflection::server::{Builder, Error};
use tower_service::Service;

use crate::{DESCRIPTORS, NotServices};

/// Both versions of the service.
#[derive(Clone)]
pub(crate) struct Reflection {
    v1: Answering,
    v1alpha: Answering,
    /// What it shows beside what is built in.
    sets: Vec<Bytes>,
}

type Answering = Arc<dyn Fn(Request<Asking>) -> Answer + Send + Sync>;
type Answer = Pin<Box<dyn Future<Output = Response<Body>> + Send>>;

impl Default for Reflection {
    fn default() -> Self {
        Self::of(&[]).expect("descriptors that are built in can be read")
    }
}

impl Reflection {
    fn of(sets: &[Bytes]) -> Result<Self, Error> {
        let shown = || {
            let health = tonic_health::pb::FILE_DESCRIPTOR_SET;
            let built_in = Builder::configure()
                .register_encoded_file_descriptor_set(DESCRIPTORS)
                .register_encoded_file_descriptor_set(health);
            sets.iter().fold(built_in, |shown, set| shown.register_encoded_file_descriptor_set(set))
        };
        let (v1, v1alpha) = (answering(shown().build_v1()?), answering(shown().build_v1alpha()?));
        Ok(Self { v1, v1alpha, sets: sets.to_vec() })
    }

    /// Shows the services of another set, too.
    pub(crate) fn with(&self, set: &[u8]) -> Result<Self, NotServices> {
        let sets = [&self.sets[..], &[Bytes::copy_from_slice(set)]].concat();
        Self::of(&sets).map_err(|error| NotServices(format!("reflection cannot show them: {error}")))
    }

    /// Answers one conversation, with who has credentials, for a minute at most.
    pub(crate) async fn answer(
        &self,
        visit: &Visit,
        alpha: bool,
        request: Request<Incoming>,
    ) -> Result<Response<Body>, Problem> {
        visit.check_known(request.headers()).await?;
        let kept = (visit.stream_permit()?, visit.begin());
        let over = Box::pin(tokio::time::sleep(CONVERSATION_MAX));
        let asking = request.map(|body| Asking { body, over, _kept: Box::new(kept) });
        let answer = if alpha { &self.v1alpha } else { &self.v1 };
        Ok(answer(asking).await)
    }
}

fn answering<S>(service: S) -> Answering
where
    S: Service<Request<Asking>, Response = Response<Body>> + Clone + Send + Sync + 'static,
    S::Future: Send,
{
    Arc::new(move |request| {
        let asked = service.clone().call(request);
        Box::pin(async move { asked.await.unwrap_or_else(|_| Status::internal("reflection failed").into_http()) })
    })
}

/// What a client asks in one conversation: it ends after its time, whatever the client does.
struct Asking {
    body: Incoming,
    over: Pin<Box<Sleep>>,
    /// Its places among the node's streams and requests.
    _kept: Box<dyn Send + Sync>,
}

impl hyper::body::Body for Asking {
    type Data = Bytes;
    type Error = hyper::Error;

    fn poll_frame(self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Option<Result<Frame<Bytes>, hyper::Error>>> {
        let this = self.get_mut();
        if this.over.as_mut().poll(context).is_ready() {
            return Poll::Ready(None);
        }
        let frame = ready!(Pin::new(&mut this.body).poll_frame(context));
        Poll::Ready(frame)
    }
}

/// Time for one conversation.
const CONVERSATION_MAX: Duration = Duration::from_secs(60);
