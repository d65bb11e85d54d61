//! The HTTP client of the exporters: blocking, on their own threads.

use std::time::Duration;

use async_trait::async_trait;
use opentelemetry_http::{Bytes, HttpClient, HttpError, Request, Response};

#[derive(Clone, Debug)]
pub(crate) struct Client(ureq::Agent);

impl Client {
    pub(crate) fn new(timeout: Duration) -> Self {
        let config = ureq::Agent::config_builder().timeout_global(Some(timeout)).http_status_as_error(false);
        // A collector is near by; a proxy of the environment's is for what is not.
        Self(config.proxy(None).build().into())
    }
}

#[async_trait]
impl HttpClient for Client {
    async fn send_bytes(&self, request: Request<Bytes>) -> Result<Response<Bytes>, HttpError> {
        let (head, body) = request.into_parts();
        let answer = self.0.run(Request::from_parts(head, &body[..]))?;
        let (head, mut body) = answer.into_parts();
        let body = body.with_config().limit(ANSWER_LEN_MAX).read_to_vec()?;
        Ok(Response::from_parts(head, body.into()))
    }
}

/// Longest answer of a collector that is read.
const ANSWER_LEN_MAX: u64 = 1 << 20;
