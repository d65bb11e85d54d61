//! The fields of an actor's state, or their changes: whole, or by entries.

use bytes::{BufMut, BytesMut};

use crate::error::{EncodeError, FrameError};
use crate::limit::NAME_LEN_MAX;
use crate::reader::Reader;

use super::limit::{ENTRY_NAME_LEN_MAX, FIELDS_MAX};
use super::writer::Writer;

/// Validated fields that lie in someone else's bytes.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Fields<'a> {
    count: usize,
    /// The fields without their count.
    encoded: &'a [u8],
}

/// How a field is written.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Form<'a> {
    /// As one payload.
    Whole(&'a [u8]),
    /// By entries.
    Entries(Entries<'a>),
}

/// Validated entries of a field: each name with its payload, or nothing if the entry is gone.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Entries<'a> {
    count: usize,
    encoded: &'a [u8],
}

impl<'a> Fields<'a> {
    /// No fields.
    pub const NONE: Self = Self { count: 0, encoded: &[] };

    /// Fields that were written by a [`FieldsWriter`], such as those in the map of [`Operation::Save`](super::Operation).
    ///
    /// # Errors
    /// [`FrameError`] if `bytes` do not begin with fields within their bounds.
    pub fn parse(bytes: &'a [u8]) -> Result<Self, FrameError> {
        Self::read(&mut Reader::new(bytes))
    }

    /// How many there are.
    pub fn len(&self) -> usize {
        self.count
    }

    /// Whether there are none.
    pub fn is_empty(&self) -> bool {
        self.count == 0
    }

    /// Each field's name and form, in the order in which they were written.
    pub fn iter(&self) -> impl Iterator<Item = (&'a str, Form<'a>)> + use<'a> {
        let mut reader = Reader::new(self.encoded);
        // They are validated, so none can be missing.
        (0..self.count).map_while(move |_| field(&mut reader).ok())
    }

    pub(super) fn read(reader: &mut Reader<'a>) -> Result<Self, FrameError> {
        let count = reader.varint("fields", FIELDS_MAX as u64)? as usize;
        let all = reader.peek();
        for _ in 0..count {
            field(reader)?;
        }
        Ok(Self { count, encoded: &all[..all.len() - reader.peek().len()] })
    }

    pub(super) fn put(&self, writer: &mut Writer<'_>) {
        writer.varint(self.count as u64).rest(self.encoded);
    }
}

impl<'a> Entries<'a> {
    /// How many there are.
    pub fn len(&self) -> usize {
        self.count
    }

    /// Whether there are none.
    pub fn is_empty(&self) -> bool {
        self.count == 0
    }

    /// Each entry's name and payload.
    pub fn iter(&self) -> impl Iterator<Item = (&'a str, Option<&'a [u8]>)> + use<'a> {
        let mut reader = Reader::new(self.encoded);
        (0..self.count).map_while(move |_| entry(&mut reader).ok())
    }
}

fn field<'a>(reader: &mut Reader<'a>) -> Result<(&'a str, Form<'a>), FrameError> {
    let name = reader.text("field name", NAME_LEN_MAX)?;
    let form = match reader.u8("field form")? {
        WHOLE => Form::Whole(reader.bytes("field value", usize::MAX)?),
        ENTRIES => {
            let count = reader.varint("field entries", u32::MAX.into())? as usize;
            let all = reader.peek();
            for _ in 0..count {
                entry(reader)?;
            }
            Form::Entries(Entries { count, encoded: &all[..all.len() - reader.peek().len()] })
        }
        form => return Err(FrameError::OutOfBounds { field: "field form", value: form.into(), max: ENTRIES.into() }),
    };
    Ok((name, form))
}

fn entry<'a>(reader: &mut Reader<'a>) -> Result<(&'a str, Option<&'a [u8]>), FrameError> {
    let name = reader.text("entry name", ENTRY_NAME_LEN_MAX)?;
    if name.is_empty() {
        // It is that of a field as a whole.
        return Err(FrameError::OutOfBounds { field: "entry name length", value: 0, max: ENTRY_NAME_LEN_MAX as u64 });
    }
    let value = match reader.u8("entry presence")? {
        0 => None,
        1 => Some(reader.bytes("entry value", usize::MAX)?),
        other => return Err(FrameError::OutOfBounds { field: "entry presence", value: other.into(), max: 1 }),
    };
    Ok((name, value))
}

/// Writes fields one after the other.
#[derive(Clone, Debug, Default)]
pub struct FieldsWriter {
    count: usize,
    encoded: BytesMut,
}

impl FieldsWriter {
    /// No fields yet.
    pub fn new() -> Self {
        Self::default()
    }

    /// Appends a field as one payload.
    ///
    /// # Errors
    /// [`EncodeError::TextTooLong`] when the name is, or there are too many fields; nothing is appended then.
    pub fn whole(&mut self, name: &str, value: &[u8]) -> Result<(), EncodeError> {
        self.field(name, WHOLE, |writer| writer.bytes("field value", value, usize::MAX).map(|_| ()))
    }

    /// Appends a field by its entries, whose names are not empty: that is the name of a field as a whole.
    ///
    /// # Errors
    /// As for [`FieldsWriter::whole`].
    pub fn entries<'e>(
        &mut self,
        name: &str,
        entries: impl ExactSizeIterator<Item = (&'e str, Option<&'e [u8]>)>,
    ) -> Result<(), EncodeError> {
        self.field(name, ENTRIES, |writer| {
            writer.varint(entries.len() as u64);
            for (name, value) in entries {
                writer.text("entry name", name, ENTRY_NAME_LEN_MAX)?.u8(value.is_some().into());
                if let Some(value) = value {
                    writer.bytes("entry value", value, usize::MAX)?;
                }
            }
            Ok(())
        })
    }

    /// What is written so far.
    pub fn fields(&self) -> Fields<'_> {
        Fields { count: self.count, encoded: &self.encoded }
    }

    /// What is written so far, as [`Fields::parse`] reads it.
    pub fn to_bytes(&self) -> BytesMut {
        let mut out = BytesMut::new();
        self.fields().put(&mut Writer { batch: &mut out });
        out
    }

    fn field(
        &mut self,
        name: &str,
        form: u8,
        write: impl FnOnce(&mut Writer<'_>) -> Result<(), EncodeError>,
    ) -> Result<(), EncodeError> {
        if self.count == FIELDS_MAX {
            return Err(EncodeError::TextTooLong { field: "fields", len: self.count + 1, max: FIELDS_MAX });
        }
        let start = self.encoded.len();
        let mut writer = Writer { batch: &mut self.encoded };
        let result = writer.text("field name", name, NAME_LEN_MAX).map(|writer| writer.batch.put_u8(form));
        let result = result.and_then(|()| write(&mut writer));
        match result {
            Ok(()) => self.count += 1,
            Err(_) => self.encoded.truncate(start),
        }
        result
    }
}

const WHOLE: u8 = 0;
const ENTRIES: u8 = 1;
