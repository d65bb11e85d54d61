//! Fetches an issuer's keys.

use std::path::Path;
use std::time::Duration;

use bytes::Bytes;
use greenroom_security::door;
use http_body_util::{BodyExt, Empty, Limited};
use hyper::header::{ACCEPT, HOST};
use hyper::rt::{Read, Write};
use hyper::{Request, StatusCode, Uri};
use hyper_util::rt::TokioIo;
use tokio::net::TcpStream;

/// What is at `url`, trusting the authorities in the file `ca`, or else the system's.
///
/// # Errors
/// Why it could not be had, in words. Redirections are not followed.
pub(super) async fn get(url: &str, ca: Option<&Path>) -> Result<Bytes, String> {
    match tokio::time::timeout(PATIENCE, ask(url, ca)).await {
        Ok(fetched) => fetched,
        Err(_) => Err(format!("no answer within {} s", PATIENCE.as_secs())),
    }
}

async fn ask(url: &str, ca: Option<&Path>) -> Result<Bytes, String> {
    let said = |error: &dyn std::fmt::Display| error.to_string();
    let uri: Uri = url.parse().map_err(|error| format!("it is no URL: {error}"))?;
    let host = uri.host().ok_or("it names no host")?;
    let secure = uri.scheme_str() == Some("https");
    let port = uri.port_u16().unwrap_or(if secure { 443 } else { 80 });
    let bare = host.trim_matches(['[', ']']);
    let stream = TcpStream::connect((bare, port)).await.map_err(|error| said(&error))?;
    let path = uri.path_and_query().map_or("/", |path| path.as_str());
    let request = Request::get(path).header(HOST, host).header(ACCEPT, "application/json");
    let request = request.body(Empty::new()).map_err(|error| said(&error))?;
    if !secure {
        return exchange(TokioIo::new(stream), request).await;
    }
    let content = ca.map(std::fs::read).transpose().map_err(|error| format!("its `ca` cannot be read: {error}"))?;
    let config = door::client_config(ca.zip(content.as_deref())).map_err(|error| said(&error))?;
    let stream = door::connect(stream, bare, config).await.map_err(|error| said(&error))?;
    exchange(TokioIo::new(stream), request).await
}

async fn exchange<S>(stream: S, request: Request<Empty<Bytes>>) -> Result<Bytes, String>
where
    S: Read + Write + Unpin + Send + 'static,
{
    let said = |error: hyper::Error| error.to_string();
    let (mut sender, connection) = hyper::client::conn::http1::handshake(stream).await.map_err(said)?;
    let asking = async {
        let answer = sender.send_request(request).await.map_err(said)?;
        if answer.status() != StatusCode::OK {
            return Err(format!("the answer is {}", answer.status()));
        }
        let body = Limited::new(answer.into_body(), BODY_LEN_MAX).collect().await;
        body.map(|body| body.to_bytes()).map_err(|error| error.to_string())
    };
    // The connection is driven only as long as it is asked.
    let mut connection = std::pin::pin!(connection);
    let mut asking = std::pin::pin!(asking);
    tokio::select! {
        biased;
        answer = asking.as_mut() => answer,
        ended = connection.as_mut() => match ended {
            Ok(()) => asking.await,
            Err(error) => Err(error.to_string()),
        },
    }
}

/// Time for an answer.
const PATIENCE: Duration = Duration::from_secs(5);
/// Longest answer, in bytes.
const BODY_LEN_MAX: usize = 256 << 10;
