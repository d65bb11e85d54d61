//! What an object holds: a head that tells the format and which write made it, and the key's value.
//!
//! The head's salt is new for every write, so that equal values have different ETags, and an ETag that was given once is
//! never given again. A tombstone is an object of a head alone: it stands for a key that was deleted.

use bytes::Bytes;
use uuid::Uuid;

/// Marks a write, and tells it from every other.
pub(crate) type Salt = [u8; 16];

/// Of an object, what was written.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Body {
    pub(crate) salt: Salt,
    pub(crate) content: Content,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Content {
    /// The key is deleted.
    Tombstone,
    /// The whole key, as names of long ones do not tell it, and its value.
    Live { key: String, value: Bytes },
}

impl Body {
    /// With a salt of its own.
    pub(crate) fn new(content: Content) -> Self {
        Self { salt: *Uuid::new_v4().as_bytes(), content }
    }

    /// The bytes of the object.
    pub(crate) fn encode(&self) -> Bytes {
        let mut bytes = Vec::with_capacity(TOMBSTONE_BYTES + 1024);
        bytes.extend_from_slice(MAGIC);
        bytes.push(FORMAT);
        bytes.push(u8::from(self.content != Content::Tombstone));
        bytes.extend_from_slice(&[0; 2]);
        bytes.extend_from_slice(&self.salt);
        if let Content::Live { key, value } = &self.content {
            let length = u16::try_from(key.len()).expect("a checked key is short");
            bytes.extend_from_slice(&length.to_be_bytes());
            bytes.extend_from_slice(key.as_bytes());
            bytes.extend_from_slice(value);
        }
        bytes.into()
    }

    /// What the bytes of an object say.
    ///
    /// # Errors
    ///
    /// What is wrong with them, and what helps.
    pub(crate) fn decode(bytes: &Bytes) -> Result<Self, String> {
        let foreign = || "an object there is none of Greenroom's; use a prefix of its own".to_owned();
        let (head, rest) = bytes.split_at_checked(TOMBSTONE_BYTES).ok_or_else(foreign)?;
        if head[..4] != *MAGIC {
            return Err(foreign());
        }
        if head[4] != FORMAT {
            return Err(format!(
                "an object is of format {}, this version knows {FORMAT}; use a newer Greenroom",
                head[4]
            ));
        }
        let salt = head[8..].try_into().map_err(|_| foreign())?;
        if head[5] == 0 {
            return Ok(Self { salt, content: Content::Tombstone });
        }
        let (length, rest) = rest.split_at_checked(2).ok_or_else(foreign)?;
        let length = usize::from(u16::from_be_bytes([length[0], length[1]]));
        let (key, value) = rest.split_at_checked(length).ok_or_else(foreign)?;
        let key = str::from_utf8(key).map_err(|_| foreign())?.to_owned();
        Ok(Self { salt, content: Content::Live { key, value: bytes.slice_ref(value) } })
    }
}

/// Size of a tombstone; everything else is larger.
pub(crate) const TOMBSTONE_BYTES: usize = 24;

const MAGIC: &[u8; 4] = b"GrRm";

/// Of objects and their names, as this version writes and reads them.
const FORMAT: u8 = 1;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn objects_of_the_first_format_are_read_by_every_release() {
        let live = b"GrRm\x01\x01\0\0abcdefghijklmnop\0\x03keyvalue";
        let content = Content::Live { key: "key".to_owned(), value: "value".into() };
        let body = Body { salt: *b"abcdefghijklmnop", content };
        assert_eq!(body.encode(), &live[..]);
        assert_eq!(Body::decode(&Bytes::from_static(live)), Ok(body));

        let tombstone = b"GrRm\x01\0\0\0abcdefghijklmnop";
        let body = Body { salt: *b"abcdefghijklmnop", content: Content::Tombstone };
        assert_eq!(body.encode(), &tombstone[..]);
        assert_eq!(Body::decode(&Bytes::from_static(tombstone)), Ok(body));
    }

    #[test]
    fn other_objects_and_newer_formats_are_refused_with_the_remedy() {
        let newer = b"GrRm\x02\0\0\0abcdefghijklmnop";
        assert!(Body::decode(&Bytes::from_static(newer)).unwrap_err().contains("newer Greenroom"));
        for foreign in
            [&b""[..], b"GrRm", b"a picture of some kind, long enough", b"GrRm\x01\x01\0\0abcdefghijklmnop\0\x09key"]
        {
            assert!(Body::decode(&Bytes::from_static(foreign)).unwrap_err().contains("prefix of its own"));
        }
    }

    #[test]
    fn equal_contents_make_different_bodies() {
        assert_ne!(Body::new(Content::Tombstone).encode(), Body::new(Content::Tombstone).encode());
    }
}
