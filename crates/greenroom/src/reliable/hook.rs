//! An outlet that posts outputs to a URL.

use std::time::Duration;

use bytes::Bytes;
use futures_util::future::BoxFuture;
use greenroom_security::door;
use greenroom_store::{Outlet, Output, Undelivered};
use http_body_util::Full;
use hyper::header::{CONTENT_TYPE, HOST};
use hyper::rt::{Read, Write};
use hyper::{Request, StatusCode, Uri};
use hyper_util::rt::TokioIo;
use tokio::net::TcpStream;
use tokio::sync::Semaphore;

/// Posts each output as JSON, with its key as `Idempotency-Key`. A status of 2xx says that it is there.
#[derive(Debug)]
pub(crate) struct Hook {
    uri: Uri,
    host: String,
    seats: Semaphore,
}

impl Hook {
    /// A hook at `url`.
    ///
    /// # Errors
    /// Why it is none.
    pub(crate) fn new(url: &str) -> Result<Self, String> {
        let uri: Uri = url.parse().map_err(|error| format!("it is no URL: {error}"))?;
        let host = uri.host().ok_or("it names no host")?.to_owned();
        Ok(Self { uri, host, seats: Semaphore::new(IN_FLIGHT_MAX) })
    }

    async fn post(&self, output: Output) -> Result<(), Undelivered> {
        let said = |error: &dyn std::fmt::Display| Undelivered::Unavailable(error.to_string());
        let _seat = self.seats.acquire().await.map_err(|error| said(&error))?;
        let secure = self.uri.scheme_str() == Some("https");
        let port = self.uri.port_u16().unwrap_or(if secure { 443 } else { 80 });
        let bare = self.host.trim_matches(['[', ']']);
        let stream = TcpStream::connect((bare, port)).await.map_err(|error| said(&error))?;
        let path = self.uri.path_and_query().map_or("/", |path| path.as_str());
        let authority = self.uri.authority().map_or(self.host.as_str(), |authority| authority.as_str());
        let request = Request::post(path).header(HOST, authority).header(CONTENT_TYPE, "application/json");
        let request = request.header("idempotency-key", &output.key).header("greenroom-actor", header(&output.from));
        let request = request.body(Full::new(output.body)).map_err(|error| said(&error))?;
        if !secure {
            return exchange(TokioIo::new(stream), request).await;
        }
        let config = door::client_config(None).map_err(|error| said(&error))?;
        let stream = door::connect(stream, bare, config).await.map_err(|error| said(&error))?;
        exchange(TokioIo::new(stream), request).await
    }
}

impl Outlet for Hook {
    fn deliver(&self, output: Output) -> BoxFuture<'_, Result<(), Undelivered>> {
        Box::pin(async move {
            let posted = tokio::time::timeout(PATIENCE, self.post(output)).await;
            let silent = |_| Err(Undelivered::Unavailable(format!("no answer within {} s", PATIENCE.as_secs())));
            posted.unwrap_or_else(silent)
        })
    }
}

async fn exchange<S>(stream: S, request: Request<Full<Bytes>>) -> Result<(), Undelivered>
where
    S: Read + Write + Unpin + Send + 'static,
{
    let said = |error: hyper::Error| Undelivered::Unavailable(error.to_string());
    let (mut sender, connection) = hyper::client::conn::http1::handshake(stream).await.map_err(said)?;
    let asking = async {
        let status = sender.send_request(request).await.map_err(said)?.status();
        if status.is_success() { Ok(()) } else { Err(refusal(status)) }
    };
    // The connection is driven only as long as it is asked.
    let (mut connection, mut asking) = (std::pin::pin!(connection), std::pin::pin!(asking));
    tokio::select! {
        biased;
        answer = asking.as_mut() => answer,
        ended = connection.as_mut() => match ended {
            Ok(()) => asking.await,
            Err(error) => Err(said(error)),
        },
    }
}

/// What an answer other than 2xx means: 4xx says that the request is at fault, but for those that say "later".
fn refusal(status: StatusCode) -> Undelivered {
    let said = format!("the answer is {status}");
    let later = [StatusCode::REQUEST_TIMEOUT, StatusCode::TOO_EARLY, StatusCode::TOO_MANY_REQUESTS];
    match status.is_client_error() && !later.contains(&status) {
        true => Undelivered::Refused(said),
        false => Undelivered::Unavailable(said),
    }
}

/// A text as a header may have it.
fn header(text: &str) -> String {
    text.chars().map(|char| if char.is_ascii_graphic() || char == ' ' { char } else { '?' }).collect()
}

/// Time for an answer.
const PATIENCE: Duration = Duration::from_secs(10);
/// Posts on their way at once.
const IN_FLIGHT_MAX: usize = 64;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_says_that_the_request_is_at_fault_is_a_refusal_and_what_says_later_is_none() {
        let refuses = |status: u16| {
            let status = StatusCode::from_u16(status).expect("it is a status");
            matches!(refusal(status), Undelivered::Refused(_))
        };
        assert!([400, 401, 404, 409, 413, 422].into_iter().all(refuses));
        assert!(![301, 408, 425, 429, 500, 502, 503, 504].into_iter().any(refuses));
    }
}
