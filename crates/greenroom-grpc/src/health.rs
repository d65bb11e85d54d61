//! gRPC's own question how a server is: SERVING while the node takes calls, NOT_SERVING from when it drains.

use std::pin::Pin;

use futures_util::{Stream, stream};
use greenroom::door::Visit;
use tonic::{Request, Response, Status};
use tonic_health::pb::health_check_response::ServingStatus;
use tonic_health::pb::{HealthCheckRequest, HealthCheckResponse, health_server};

use crate::status;

/// The service, for one client. Everybody may ask.
pub(crate) struct Health {
    visit: Visit,
}

impl Health {
    pub(crate) fn new(visit: Visit) -> Self {
        Self { visit }
    }
}

#[tonic::async_trait]
impl health_server::Health for Health {
    async fn check(&self, request: Request<HealthCheckRequest>) -> Result<Response<HealthCheckResponse>, Status> {
        match is_known(&request.get_ref().service) {
            true => Ok(Response::new(said(now(&self.visit)))),
            false => Err(Status::not_found("there is no such service; ask for \"\" or \"greenroom.v1.Actors\"")),
        }
    }

    type WatchStream = Pin<Box<dyn Stream<Item = Result<HealthCheckResponse, Status>> + Send>>;

    /// Says how the node is, and again each time that it has changed.
    async fn watch(&self, request: Request<HealthCheckRequest>) -> Result<Response<Self::WatchStream>, Status> {
        let permit = self.visit.stream_permit().map_err(|problem| status::of(&problem))?;
        let working = self.visit.begin();
        let known = is_known(&request.get_ref().service);
        let state = (self.visit.clone(), None, (permit, working));
        Ok(Response::new(Box::pin(stream::unfold(state, move |(visit, before, kept)| async move {
            let mut closing = false;
            loop {
                let next = if known { now(&visit) } else { ServingStatus::ServiceUnknown };
                // The last word is said also where the node has closed meanwhile.
                if before != Some(next) {
                    return Some((Ok(said(next)), (visit, Some(next), kept)));
                }
                if closing {
                    return None;
                }
                tokio::select! {
                    () = visit.readiness() => {}
                    () = visit.closing() => closing = true,
                }
            }
        }))))
    }
}

fn now(visit: &Visit) -> ServingStatus {
    if visit.not_ready().is_none() { ServingStatus::Serving } else { ServingStatus::NotServing }
}

fn said(status: ServingStatus) -> HealthCheckResponse {
    HealthCheckResponse { status: status.into() }
}

/// Whether the service is this door's: it is as the whole is.
fn is_known(service: &str) -> bool {
    service.is_empty() || service == "greenroom.v1.Actors"
}
