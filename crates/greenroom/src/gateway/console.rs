//! The console's pages. They hold nothing, so that everybody may have them; what they ask for, the door guards.

use hyper::header::{ACCEPT, HeaderMap, HeaderValue, LOCATION};
use hyper::{Response, StatusCode};

use super::answer::{Answer, AnswerBody};
use super::problem::Problem;

/// Whether somebody who asks for `/` sits at a browser.
pub(super) fn wants_page(headers: &HeaderMap) -> bool {
    let accept = headers.get(ACCEPT).and_then(|accept| accept.to_str().ok());
    accept.is_some_and(|accept| accept.split(',').any(|kind| kind.trim().starts_with("text/html")))
}

/// Sends a browser to the console.
pub(super) fn there() -> Answer {
    let mut answer = Response::new(AnswerBody::whole(bytes::Bytes::new()));
    *answer.status_mut() = StatusCode::SEE_OTHER;
    answer.headers_mut().insert(LOCATION, HeaderValue::from_static("/-/console/"));
    answer
}

/// The file at `path` below `/-/console/`.
///
/// # Errors
/// There is none, or the program was built without the console.
#[cfg(feature = "console")]
pub(super) fn page(path: &str) -> Result<Answer, Problem> {
    use hyper::header::{CACHE_CONTROL, CONTENT_ENCODING, CONTENT_SECURITY_POLICY, REFERRER_POLICY};

    let asset = greenroom_console::find(path).ok_or_else(|| Problem::no_such_path(&format!("/-/console/{path}")))?;
    let body = bytes::Bytes::from_static(asset.gzipped);
    let mut answer = super::service::bytes(StatusCode::OK, asset.content_type, body);
    let kept = if asset.lasting { "public, max-age=31536000, immutable" } else { "no-cache" };
    for (name, value) in [
        (CACHE_CONTROL, kept),
        (CONTENT_ENCODING, "gzip"),
        (CONTENT_SECURITY_POLICY, greenroom_console::SECURITY_POLICY),
        (REFERRER_POLICY, "no-referrer"),
        (hyper::header::X_CONTENT_TYPE_OPTIONS, "nosniff"),
        (hyper::header::HeaderName::from_static("cross-origin-opener-policy"), "same-origin"),
        (hyper::header::HeaderName::from_static("cross-origin-resource-policy"), "same-origin"),
    ] {
        answer.headers_mut().insert(name, HeaderValue::from_static(value));
    }
    Ok(answer)
}

/// The file at `path` below `/-/console/`.
///
/// # Errors
/// The program was built without the console.
#[cfg(not(feature = "console"))]
pub(super) fn page(_path: &str) -> Result<Answer, Problem> {
    Err(Problem::no_console())
}
