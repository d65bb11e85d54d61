//! Which request gets which answer.

use greenroom::door::{Problem, Visit};
use http::header::CONTENT_TYPE;
use http::{Request, Response, StatusCode};
use http_body_util::Full;
use hyper::body::Incoming;
use tonic::Status;
use tonic::body::Body;
use tonic_health::pb::health_server::HealthServer;
use tower_service::Service;

use crate::actors::Actors;
use crate::health::Health;
use crate::typed;
use crate::v1::actors_server::ActorsServer;
use crate::{Grpc, answer, status};

/// Answers one request.
pub(crate) async fn answer(visit: Visit, door: Grpc, request: Request<Incoming>) -> Response<Body> {
    let _working = visit.begin();
    if !is_grpc(&request) {
        let mut answer = Response::new(Body::empty());
        *answer.status_mut() = StatusCode::UNSUPPORTED_MEDIA_TYPE;
        return answer;
    }
    let service = request.uri().path().trim_start_matches('/').split('/').next().unwrap_or_default().to_owned();
    let answered = match service.as_str() {
        "greenroom.v1.Actors" => {
            let mut actors = ActorsServer::new(Actors::new(visit.clone())).max_decoding_message_size(usize::MAX);
            whole(&visit, request, async |request| actors.call(request).await).await
        }
        "grpc.health.v1.Health" => {
            let mut health = HealthServer::new(Health::new(visit.clone()));
            whole(&visit, request, async |request| health.call(request).await).await
        }
        "grpc.reflection.v1.ServerReflection" | "grpc.reflection.v1alpha.ServerReflection" => {
            door.reflection.answer(&visit, service.ends_with("v1alpha.ServerReflection"), request).await
        }
        _ if door.services.has(&service) => {
            let path = request.uri().path().to_owned();
            match door.services.find(&path) {
                Some(method) => {
                    let called = async |request| Ok::<_, Status>(typed::answer(&visit, method, request).await);
                    whole(&visit, request, called).await
                }
                None => Ok(Status::unimplemented(format!("{service} has no method of the path {path}")).into_http()),
            }
        }
        _ => {
            let known =
                "this door has greenroom.v1.Actors, grpc.health.v1.Health and grpc.reflection.v1.ServerReflection";
            Ok(Status::unimplemented(format!("there is no such service; {known}")).into_http())
        }
    };
    answer::finished(answered.unwrap_or_else(|problem| status::of(&problem).into_http()))
}

fn is_grpc(request: &Request<Incoming>) -> bool {
    let said = request.headers().get(CONTENT_TYPE).map(http::HeaderValue::as_bytes);
    said.and_then(|said| said.strip_prefix(b"application/grpc")).is_some_and(|rest| !rest.starts_with(b"-web"))
}

/// Answers a request of one message, which is read within the node's bounds first.
async fn whole<E>(
    visit: &Visit,
    request: Request<Incoming>,
    answer: impl AsyncFnOnce(Request<Full<bytes::Bytes>>) -> Result<Response<Body>, E>,
) -> Result<Response<Body>, Problem> {
    let (head, body) = request.into_parts();
    let received = visit.receive(body).await?;
    let message = bytes::Bytes::copy_from_slice(received.bytes());
    let answered = answer(Request::from_parts(head, Full::new(message))).await;
    Ok(answered.unwrap_or_else(|_| Status::internal("the service failed").into_http()))
}
