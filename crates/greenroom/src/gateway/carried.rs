//! What a request's headers let the call carry: `baggage` (W3C Baggage) is its request context, `traceparent` and
//! `tracestate` (W3C Trace Context) its place in a trace.

use std::sync::Arc;

use greenroom_security::principal::Principal;
use hyper::header::{HeaderMap, HeaderValue};

use super::problem::Problem;
use crate::actor::error::Refusal;
use crate::context::{Context, ContextError, TraceContext};
use crate::shard::baggage::{Baggage, Load};

/// What the call of a request with these headers carries that is made on behalf of `principal`.
///
/// A `traceparent` that is none is passed over, as its specification wants: the call then has no trace.
///
/// # Errors
/// The header `baggage` is none, or over the bounds of a request context: what it would have said may matter.
pub(super) fn baggage(headers: &HeaderMap, principal: Option<Principal>) -> Result<Load, Problem> {
    let mut context = Context::EMPTY;
    for header in headers.get_all(BAGGAGE) {
        let text = header.to_str().map_err(|_| Problem::bad_baggage("it is not printable ASCII"))?;
        for member in text.split(',').map(str::trim).filter(|member| !member.is_empty()) {
            let (key, value) = pair(member).map_err(Problem::bad_baggage)?;
            context.set(key, &value).map_err(|error| Problem::bad_baggage(&error.to_string()))?;
        }
    }
    let trace = trace(headers);
    let idempotency = idempotency(headers)?;
    if context.is_empty() && trace.is_none() && principal.is_none() && idempotency.is_none() {
        return Ok(None);
    }
    Ok(Some(Arc::new(Baggage { context, trace, principal, idempotency, ..Baggage::default() })))
}

/// The same, with more of a context and another idempotency key.
///
/// # Errors
/// They are out of their bounds.
pub(super) fn with<'a>(
    load: Load,
    context: impl Iterator<Item = (&'a str, &'a str)>,
    idempotency_key: Option<&str>,
) -> Result<Load, Problem> {
    let mut baggage = load.map(Arc::unwrap_or_clone).unwrap_or_default();
    for (key, value) in context {
        let invalid =
            |error: ContextError| Refusal::Invalid { field: "context".to_owned(), message: error.to_string() };
        baggage.context.set(key, value).map_err(invalid)?;
    }
    if let Some(key) = idempotency_key {
        let fits =
            (1..=IDEMPOTENCY_KEY_LEN_MAX).contains(&key.len()) && key.bytes().all(|byte| (b' '..=b'~').contains(&byte));
        let message = "it is not printable ASCII of 1 to 255 characters".to_owned();
        let invalid = || Refusal::Invalid { field: "idempotency_key".to_owned(), message };
        baggage.idempotency = Some(fits.then(|| key.into()).ok_or_else(invalid)?);
    }
    Ok(Some(Arc::new(baggage)))
}

/// The key by which repeats of a call are known.
fn idempotency(headers: &HeaderMap) -> Result<Option<Box<str>>, Problem> {
    let mut keys = headers.get_all(IDEMPOTENCY_KEY).iter();
    let Some(key) = keys.next() else { return Ok(None) };
    let text = key.to_str().ok().filter(|text| !text.is_empty() && text.len() <= IDEMPOTENCY_KEY_LEN_MAX);
    let text = text.filter(|_| keys.next().is_none());
    let why = "the header Idempotency-Key is not printable ASCII of 1 to 255 characters, given once";
    Ok(Some(text.ok_or_else(|| Problem::bad_request(why))?.into()))
}

fn trace(headers: &HeaderMap) -> Option<TraceContext> {
    let mut parents = headers.get_all(TRACEPARENT).iter();
    let parent = TraceContext::parse(parents.next()?.to_str().ok()?).ok()?;
    if parents.next().is_some() {
        return None;
    }
    let states: Vec<_> =
        headers.get_all(TRACESTATE).iter().filter_map(|state| HeaderValue::to_str(state).ok()).collect();
    Some(parent.with_state(&states.join(",")))
}

/// The key and the value of a member; its properties are left out.
fn pair(member: &str) -> Result<(&str, String), &'static str> {
    let pair = member.split(';').next().unwrap_or_default();
    let (key, value) = pair.split_once('=').ok_or("a member has no value; write key=value")?;
    let (key, value) = (key.trim_end(), value.trim_start().trim_end());
    if key.is_empty() || !key.bytes().all(is_token) {
        return Err("a key is no token");
    }
    let value = percent_decoded(value).ok_or("a value is not percent-encoded UTF-8")?;
    Ok((key, value))
}

fn percent_decoded(value: &str) -> Option<String> {
    let mut bytes = Vec::with_capacity(value.len());
    let mut rest = value.as_bytes();
    while let Some((&first, after)) = rest.split_first() {
        rest = after;
        bytes.push(match first {
            b'%' => {
                let (digits, after) = rest.split_at_checked(2)?;
                rest = after;
                let digit = |byte: u8| char::from(byte).to_digit(16).map(|digit| digit as u8);
                digit(digits[0])? << 4 | digit(digits[1])?
            }
            b' ' | b'"' | b'\\' => return None,
            byte => byte,
        });
    }
    String::from_utf8(bytes).ok()
}

/// A character of a token (RFC 9110 §5.6.2).
fn is_token(byte: u8) -> bool {
    byte.is_ascii_alphanumeric() || b"!#$%&'*+-.^_`|~".contains(&byte)
}

const BAGGAGE: &str = "baggage";
const TRACEPARENT: &str = "traceparent";
const IDEMPOTENCY_KEY: &str = "idempotency-key";
const IDEMPOTENCY_KEY_LEN_MAX: usize = 255;
const TRACESTATE: &str = "tracestate";

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_idempotency_key_that_is_none_is_refused() {
        let key = |values: &[&'static [u8]]| {
            let mut headers = HeaderMap::new();
            for value in values {
                headers.append(IDEMPOTENCY_KEY, HeaderValue::from_bytes(value).expect("it fits a header"));
            }
            idempotency(&headers)
        };
        assert_eq!(key(&[]).ok().flatten(), None);
        assert_eq!(key(&[b"17"]).ok().flatten().as_deref(), Some("17"));
        for bad in [&[&b""[..]][..], &[&[b'x'; 256][..]], &[b"1", b"2"], &["\u{e9}".as_bytes()]] {
            assert!(key(bad).is_err(), "{bad:?}");
        }
    }
}
