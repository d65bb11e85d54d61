//! W3C trace context: which trace a call belongs to, and which span made it.

use std::fmt::{self, Write};

use greenroom_wire::limit::TRACE_STATE_LEN_MAX;
use thiserror::Error;

/// Where a call stands in a distributed trace (W3C Trace Context, level 1).
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct TraceContext {
    trace: [u8; 16],
    span: [u8; 8],
    flags: u8,
    state: Box<str>,
}

impl TraceContext {
    /// The context of a span. `None` if one of the ids is all zeros.
    pub fn new(trace: [u8; 16], span: [u8; 8], sampled: bool) -> Option<Self> {
        (trace != [0; 16] && span != [0; 8]).then(|| Self { trace, span, flags: sampled.into(), state: "".into() })
    }

    /// Reads the header `traceparent`, strictly: of a later version its beginning, of version 00 all of it.
    ///
    /// # Errors
    /// [`TraceError`]: it is none. Go on without a trace then, or begin one.
    pub fn parse(traceparent: &str) -> Result<Self, TraceError> {
        let bytes = traceparent.as_bytes();
        let (head, rest) = bytes.split_at_checked(PARENT_LEN).ok_or(TraceError)?;
        let (Some(&[version]), Some(trace), Some(span), Some(&[flags])) =
            (hex(&head[..2]).as_ref(), hex(&head[3..35]), hex(&head[36..52]), hex(&head[53..]).as_ref())
        else {
            return Err(TraceError);
        };
        let dashes = [head[2], head[35], head[52]] == [b'-'; 3];
        let end =
            if version == 0 { rest.is_empty() } else { version != 0xff && rest.first().is_none_or(|b| *b == b'-') };
        match Self::new(trace, span, flags & SAMPLED != 0) {
            Some(context) if dashes && end => Ok(Self { flags: flags & SAMPLED, ..context }),
            _ => Err(TraceError),
        }
    }

    /// This context with the header `tracestate`, as long as it is printable and at most 512 bytes; otherwise without it.
    #[must_use]
    pub fn with_state(mut self, tracestate: &str) -> Self {
        let printable = tracestate.bytes().all(|byte| matches!(byte, b' '..=b'~' | b'\t'));
        self.state = if printable && tracestate.len() <= TRACE_STATE_LEN_MAX { tracestate.into() } else { "".into() };
        self
    }

    /// The same trace, seen from another of its spans.
    #[must_use]
    pub fn child(&self, span: [u8; 8]) -> Self {
        Self { span, ..self.clone() }
    }

    /// The trace's id.
    pub fn trace_id(&self) -> [u8; 16] {
        self.trace
    }

    /// The id of the span that made the call.
    pub fn span_id(&self) -> [u8; 8] {
        self.span
    }

    /// Whether the trace is recorded.
    pub fn is_sampled(&self) -> bool {
        self.flags & SAMPLED != 0
    }

    /// The header `tracestate`; empty if there is none.
    pub fn state(&self) -> &str {
        &self.state
    }

    /// The trace's id as it is written in headers and logs.
    pub fn trace_hex(&self) -> String {
        let mut out = String::with_capacity(32);
        put_hex(&self.trace, &mut out);
        out
    }

    pub(crate) fn flags(&self) -> u8 {
        self.flags
    }
}

impl fmt::Display for TraceContext {
    /// The header `traceparent`.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut out = String::with_capacity(PARENT_LEN);
        out.push_str("00-");
        put_hex(&self.trace, &mut out);
        out.push('-');
        put_hex(&self.span, &mut out);
        write!(f, "{out}-{:02x}", self.flags)
    }
}

/// The header is not a `traceparent`.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Error)]
#[error("not a traceparent: version, trace id, span id and flags in lower-case hex, with dashes between, ids not zero")]
pub struct TraceError;

/// Bytes from lower-case hex, which is all that the headers allow.
fn hex<const N: usize>(text: &[u8]) -> Option<[u8; N]> {
    let digit = |byte: u8| match byte {
        b'0'..=b'9' => Some(byte - b'0'),
        b'a'..=b'f' => Some(byte - b'a' + 10),
        _ => None,
    };
    let mut bytes = [0; N];
    for (byte, pair) in bytes.iter_mut().zip(text.chunks_exact(2)) {
        *byte = digit(pair[0])? << 4 | digit(pair[1])?;
    }
    Some(bytes)
}

fn put_hex(bytes: &[u8], out: &mut String) {
    for byte in bytes {
        // Writing to a string does not fail.
        let _ = write!(out, "{byte:02x}");
    }
}

const PARENT_LEN: usize = 55;
const SAMPLED: u8 = 1;

#[cfg(test)]
mod tests {
    use super::*;

    const PARENT: &str = "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01";

    #[test]
    fn a_traceparent_survives_being_read_and_written() {
        let context = TraceContext::parse(PARENT).unwrap();
        assert_eq!(context.to_string(), PARENT);
        assert!(context.is_sampled());
        assert_eq!(context.trace_hex(), "4bf92f3577b34da6a3ce929d0e0e4736");
        let child = context.child([1; 8]);
        assert_eq!(child.to_string(), "00-4bf92f3577b34da6a3ce929d0e0e4736-0101010101010101-01");
    }

    #[test]
    fn a_later_version_is_read_by_its_beginning() {
        let later = PARENT.replacen("00", "cc", 1);
        assert!(TraceContext::parse(&later).is_ok());
        assert!(TraceContext::parse(&format!("{later}-what-comes-after")).is_ok());
        assert!(TraceContext::parse(&format!("{later}.no")).is_err());
    }

    #[test]
    fn what_is_no_traceparent_is_refused() {
        for bad in [
            "",
            "00",
            "ff-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01",
            "00-4BF92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01",
            "00-00000000000000000000000000000000-00f067aa0ba902b7-01",
            "00-4bf92f3577b34da6a3ce929d0e0e4736-0000000000000000-01",
            "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01-",
            "00_4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01",
            "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-0g",
            "é0-4bf92f3577b34da6a3ce929d0e0e473-00f067aa0ba902b7-01",
        ] {
            assert_eq!(TraceContext::parse(bad), Err(TraceError), "{bad}");
        }
    }

    #[test]
    fn a_state_that_is_too_long_or_not_printable_is_left_out() {
        let context = TraceContext::parse(PARENT).unwrap();
        assert_eq!(context.clone().with_state("a=b,c=d").state(), "a=b,c=d");
        assert_eq!(context.clone().with_state("a=\n").state(), "");
        assert_eq!(context.with_state(&"a".repeat(513)).state(), "");
    }
}
