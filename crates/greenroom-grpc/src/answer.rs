//! Last steps of every answer: its status says whether a turn may have run, and its message is encoded as gRPC's specification says.

use http::{HeaderMap, HeaderValue, Response};
use http_body_util::BodyExt;
use tonic::body::Body;
use tonic::{Code, Status};

use crate::status::{self, MAY_HAVE_RUN};

/// Returns `answer` as clients get it.
pub(crate) fn finished(answer: Response<Body>) -> Response<Body> {
    let mut answer = match Status::from_header_map(answer.headers()) {
        // Its sender is the library below, which has found the request itself to be wrong.
        Some(found) if found.code() != Code::Ok && !answer.headers().contains_key(MAY_HAVE_RUN) => {
            status::not_run(&found).into_http()
        }
        _ => answer,
    };
    encode_message(answer.headers_mut());
    answer.map(|body| {
        Body::new(body.map_frame(|mut frame| {
            if let Some(trailers) = frame.trailers_mut() {
                encode_message(trailers);
            }
            frame
        }))
    })
}

/// Percent-encodes the message of a status: the percent sign, and all bytes but those from space to tilde.
fn encode_message(headers: &mut HeaderMap) {
    let Some(message) = headers.get(MESSAGE) else { return };
    if let Ok(encoded) = HeaderValue::try_from(encoded(&decoded(message.as_bytes()))) {
        headers.insert(MESSAGE, encoded);
    }
}

fn encoded(message: &[u8]) -> String {
    let mut text = String::with_capacity(message.len());
    for byte in message {
        match byte {
            b' '..=b'~' if *byte != b'%' => text.push(char::from(*byte)),
            _ => text.push_str(&format!("%{byte:02X}")),
        }
    }
    text
}

fn decoded(mut text: &[u8]) -> Vec<u8> {
    let mut message = Vec::with_capacity(text.len());
    while let Some((first, rest)) = text.split_first() {
        let digits = rest.first_chunk::<2>().filter(|_| *first == b'%');
        let byte = digits.and_then(|digits| u8::from_str_radix(std::str::from_utf8(digits).ok()?, 16).ok());
        message.push(byte.unwrap_or(*first));
        text = if byte.is_some() { &rest[2..] } else { rest };
    }
    message
}

/// The header or trailer with a status's message.
const MESSAGE: &str = "grpc-message";

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_the_percent_sign_and_what_is_not_printable_ascii_is_encoded() {
        let message = "no kind \"a\" <b> {c} `d` #e? 5%\u{e9}\n\u{7f}~";
        let mut headers = Status::not_found(message).into_http::<Body>().headers().clone();
        encode_message(&mut headers);
        assert_eq!(headers[MESSAGE], "no kind \"a\" <b> {c} `d` #e? 5%25%C3%A9%0A%7F~");
        assert_eq!(decoded(headers[MESSAGE].as_bytes()), message.as_bytes());
        assert_eq!(decoded(b"100%zz %4"), b"100%zz %4");
    }
}
