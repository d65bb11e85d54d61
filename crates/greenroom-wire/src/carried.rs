//! What the fields of a call's extension block hold: request context, trace context and principal, which flow along calls,
//! and the version of the interface that the caller speaks.

use bytes::{BufMut, BytesMut};

use crate::error::FrameError;
use crate::limit::{
    CONTEXT_KEY_LEN_MAX, CONTEXT_LEN_MAX, CONTEXT_PAIRS_MAX, PRINCIPAL_NAME_LEN_MAX, PRINCIPAL_ROLES_MAX,
    REMINDER_NAME_LEN_MAX, TRACE_STATE_LEN_MAX,
};
use crate::reader::Reader;
use crate::varint::Head;

/// Appends the pairs of a request context: key and value of each as texts.
pub fn put_pairs<'a>(pairs: impl IntoIterator<Item = (&'a str, &'a str)>, out: &mut BytesMut) {
    for (key, value) in pairs {
        for text in [key, value] {
            let mut head = Head::bare();
            head.varint(text.len() as u64);
            out.put_slice(head.as_slice());
            out.put_slice(text.as_bytes());
        }
    }
}

/// The pairs of a request context.
///
/// # Errors
/// [`FrameError`] if `bytes` are not whole pairs within the bounds. Whether a key comes twice is for the caller to see.
pub fn pairs(bytes: &[u8]) -> Result<Vec<(&str, &str)>, FrameError> {
    let mut reader = Reader::new(bytes);
    let (mut pairs, mut len) = (Vec::new(), 0);
    while !reader.is_empty() {
        let key = reader.text("context key", CONTEXT_KEY_LEN_MAX)?;
        let value = reader.text("context value", CONTEXT_LEN_MAX)?;
        len += key.len() + value.len();
        pairs.push((key, value));
        for (field, value, max) in
            [("context", len, CONTEXT_LEN_MAX), ("context pairs", pairs.len(), CONTEXT_PAIRS_MAX)]
        {
            if value > max {
                return Err(FrameError::OutOfBounds { field, value: value as u64, max: max as u64 });
            }
        }
    }
    Ok(pairs)
}

/// The node that a grant is for.
///
/// # Errors
/// [`FrameError`] if `bytes` do not begin with one.
pub fn granted_host(bytes: &[u8]) -> Result<u64, FrameError> {
    Reader::new(bytes).array("granted host").map(u64::from_le_bytes)
}

/// The cluster that a call came in at.
///
/// # Errors
/// [`FrameError`] if `bytes` do not begin with one.
pub fn calling_cluster(bytes: &[u8]) -> Result<u16, FrameError> {
    Reader::new(bytes).array("calling cluster").map(u16::from_le_bytes)
}

/// Returns the seat whose hook makes a call.
///
/// # Errors
/// [`FrameError`] if `bytes` do not begin with one.
pub fn calling_seat(bytes: &[u8]) -> Result<u64, FrameError> {
    Reader::new(bytes).u64("calling seat")
}

/// Appends the version of the interface that a caller speaks. 1 goes without saying, and 0 stands for any.
pub fn put_version(version: u16, out: &mut BytesMut) {
    let mut head = Head::bare();
    head.varint(version.into());
    out.put_slice(head.as_slice());
}

/// The version of the interface that a caller speaks.
///
/// # Errors
/// [`FrameError`] if `bytes` do not begin with a version. What follows it is a later protocol's, and ignored.
pub fn version(bytes: &[u8]) -> Result<u16, FrameError> {
    let version = Reader::new(bytes).u64("interface version")?;
    let max = u16::MAX.into();
    u16::try_from(version).map_err(|_| FrameError::OutOfBounds { field: "interface version", value: version, max })
}

/// On whose behalf a call is, borrowed.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct PrincipalView<'a> {
    /// Who.
    pub name: &'a str,
    /// In which roles.
    pub roles: Vec<&'a str>,
}

impl<'a> PrincipalView<'a> {
    /// Reads the field.
    ///
    /// # Errors
    /// [`FrameError`] if it is cut short, not UTF-8, or over its bounds.
    pub fn parse(bytes: &'a [u8]) -> Result<Self, FrameError> {
        let mut reader = Reader::new(bytes);
        let name = reader.text("principal name", PRINCIPAL_NAME_LEN_MAX)?;
        let mut roles = Vec::new();
        while !reader.is_empty() {
            roles.push(reader.text("principal role", PRINCIPAL_NAME_LEN_MAX)?);
            if roles.len() > PRINCIPAL_ROLES_MAX {
                let (value, max) = (roles.len() as u64, PRINCIPAL_ROLES_MAX as u64);
                return Err(FrameError::OutOfBounds { field: "principal roles", value, max });
            }
        }
        Ok(Self { name, roles })
    }

    /// Appends the field.
    pub fn put(&self, out: &mut BytesMut) {
        for text in std::iter::once(&self.name).chain(&self.roles) {
            let mut head = Head::bare();
            head.varint(text.len() as u64);
            out.put_slice(head.as_slice());
            out.put_slice(text.as_bytes());
        }
    }
}

/// Who has named the principal.
///
/// # Errors
/// [`FrameError`] if `bytes` are not UTF-8 or too long.
pub fn principal_issuer(bytes: &[u8]) -> Result<&str, FrameError> {
    let (field, max) = ("principal issuer", PRINCIPAL_NAME_LEN_MAX);
    if bytes.len() > max {
        return Err(FrameError::OutOfBounds { field, value: bytes.len() as u64, max: max as u64 });
    }
    std::str::from_utf8(bytes).map_err(|_| FrameError::NotUtf8 { field })
}

/// A W3C trace context, borrowed.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct TraceView<'a> {
    /// The trace's id.
    pub trace: [u8; 16],
    /// The id of the span that made the call.
    pub span: [u8; 8],
    /// The trace's flags; the lowest bit says that it is sampled.
    pub flags: u8,
    /// What tracing systems carry along: the header `tracestate`.
    pub state: &'a str,
}

impl<'a> TraceView<'a> {
    /// Reads the field.
    ///
    /// # Errors
    /// [`FrameError`] if it is cut short, not UTF-8 or too long.
    pub fn parse(bytes: &'a [u8]) -> Result<Self, FrameError> {
        let mut reader = Reader::new(bytes);
        let (trace, span) = (reader.array("trace id")?, reader.array("trace span")?);
        let flags = reader.u8("trace flags")?;
        let state = reader.text("trace state", TRACE_STATE_LEN_MAX)?;
        Ok(Self { trace, span, flags, state })
    }

    /// Appends the field.
    pub fn put(self, out: &mut BytesMut) {
        out.put_slice(&self.trace);
        out.put_slice(&self.span);
        out.put_u8(self.flags);
        let mut head = Head::bare();
        head.varint(self.state.len() as u64);
        out.put_slice(head.as_slice());
        out.put_slice(self.state.as_bytes());
    }
}

/// The tick of a reminder that a call is, borrowed.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct TickView<'a> {
    /// Tells the reminder from earlier and later ones of its name.
    pub registration: u64,
    /// When it is due, in milliseconds since 1970, UTC.
    pub due_millis: u64,
    /// Due times after that which have passed as well.
    pub missed: u64,
    /// The reminder's name.
    pub name: &'a str,
}

impl<'a> TickView<'a> {
    /// Reads the field.
    ///
    /// # Errors
    /// [`FrameError`] if it is cut short, not UTF-8 or too long.
    pub fn parse(bytes: &'a [u8]) -> Result<Self, FrameError> {
        let mut reader = Reader::new(bytes);
        let registration = u64::from_le_bytes(reader.array("reminder registration")?);
        let (due_millis, missed) = (reader.u64("reminder due")?, reader.u64("reminder missed")?);
        let name = reader.text("reminder name", REMINDER_NAME_LEN_MAX)?;
        Ok(Self { registration, due_millis, missed, name })
    }

    /// Appends the field.
    pub fn put(self, out: &mut BytesMut) {
        out.put_u64_le(self.registration);
        let mut head = Head::bare();
        head.varint(self.due_millis);
        head.varint(self.missed);
        head.varint(self.name.len() as u64);
        out.put_slice(head.as_slice());
        out.put_slice(self.name.as_bytes());
    }
}
