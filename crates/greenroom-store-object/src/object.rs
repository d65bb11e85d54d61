//! Reading and writing the object of one key.

use std::time::Duration;

use bytes::Bytes;
use greenroom_store::url::Remote;
use greenroom_store::{Found, Result, StoreError, Version, Versioned};
use object_store::aws::AmazonS3;
use object_store::path::Path;
use object_store::{ObjectStore as _, ObjectStoreExt as _, PutMode, PutOptions, UpdateVersion};

use crate::body::{Body, Content};
use crate::fault::Failure;
use crate::{names, settings};

/// A bucket, and where in it the store is.
#[derive(Debug)]
pub(crate) struct Bucket {
    pub(crate) s3: AmazonS3,
    name: String,
    /// Before the name of every object: `prefix/`.
    root: String,
}

/// What is under a key.
pub(crate) struct Object {
    pub(crate) version: Version,
    pub(crate) body: Body,
}

impl Bucket {
    pub(crate) fn new(remote: &Remote) -> Result<Self> {
        let path = remote.path.trim_matches('/');
        let path = if path.is_empty() { PREFIX_DEFAULT } else { path };
        if path.len() > PREFIX_BYTES_MAX || !path.is_ascii() || Path::parse(path).is_err() {
            let reason = format!("its prefix is longer than {PREFIX_BYTES_MAX} bytes or not plain; choose another");
            return Err(StoreError::Configuration { store: remote.to_string(), reason });
        }
        Ok(Self { s3: settings::client(remote)?, name: remote.to_string(), root: format!("{path}/") })
    }

    /// The store, as its URL names it.
    pub(crate) fn name(&self) -> &str {
        &self.name
    }

    /// Where the objects of keys are.
    pub(crate) fn folder(&self) -> String {
        format!("{}k/", self.root)
    }

    /// The object that `key`, whose name is checked, has or will have.
    pub(crate) fn location(&self, key: &str) -> Path {
        path(&format!("{}{}", self.folder(), names::of(key)))
    }

    pub(crate) async fn read(&self, key: &str) -> Result<Option<Versioned>> {
        let object = self.fetch(&self.location(key)).await.map_err(|failure| failure.of_read(&self.name))?;
        match object {
            Some(Object { version, body: Body { content: Content::Live { key: whole, value }, .. } }) => {
                if whole == key { Ok(Some(Versioned { value, version })) } else { Err(self.mixed_up(key, &whole)) }
            }
            _ => Ok(None),
        }
    }

    /// Writes, if `expected` is there, or nothing. Each of its attempts but the last was refused as a whole.
    pub(crate) async fn write(&self, key: &str, expected: Option<Version>, content: Content) -> Result<Version> {
        let conflict = |found| Err(StoreError::Conflict { key: key.to_owned(), found });
        let location = self.location(key);
        let body = Body::new(content);
        let bytes = body.encode();
        // What no server has spelled is not sent: some take a condition that they do not understand for none.
        let mut condition = match &expected {
            None => Some(PutMode::Create),
            Some(version) => condition(version),
        };
        loop {
            let put = match condition.clone() {
                Some(mode) => self.put(&location, bytes.clone(), mode).await,
                None => Err(Failure::Condition),
            };
            let lost = match put {
                Ok(version) => return Ok(version),
                Err(Failure::NotApplied(error)) => return Err(error),
                Err(Failure::Lost(reason)) => Some(reason),
                Err(Failure::Condition | Failure::Absent) => None,
            };
            let found = match (self.fetch(&location).await, &lost) {
                // Someone between may have sent the write twice, and the second was refused by the first.
                (Ok(Some(found)), _) if found.body.salt == body.salt => return Ok(found.version),
                (_, Some(reason)) => {
                    return Err(StoreError::Unknown { key: key.to_owned(), reason: reason.clone() });
                }
                (Ok(found), None) => found,
                (Err(_), None) => return conflict(Found::Untold),
            };
            let (version, live) = match found {
                Some(Object { version, body }) => (Some(version), body.content != Content::Tombstone),
                None => (None, false),
            };
            match (&expected, version) {
                (Some(expected), Some(version)) if live && version == *expected && condition.is_some() => {}
                (_, Some(version)) if live => return conflict(Found::Version(version)),
                (Some(_), _) => return conflict(Found::Absent),
                (None, Some(tombstone)) => condition = self::condition(&tombstone),
                (None, None) => condition = Some(PutMode::Create),
            }
            // The condition holds after all: others wrote at the same moment, or the key was deleted.
            tokio::time::sleep(PAUSE).await;
        }
    }

    /// The object at `location`, if there is one.
    pub(crate) async fn fetch(&self, location: &Path) -> Result<Option<Object>, Failure> {
        let failed = |error| Failure::of(&error, &self.name);
        let got = match self.s3.get(location).await.map_err(failed) {
            Err(Failure::Absent) => return Ok(None),
            got => got?,
        };
        let version = self.version(got.meta.e_tag.as_deref())?;
        let bytes = got.bytes().await.map_err(failed)?;
        let format = |reason| Failure::NotApplied(StoreError::Format { store: self.name.clone(), reason });
        Ok(Some(Object { version, body: Body::decode(&bytes).map_err(format)? }))
    }

    /// One conditional PUT.
    async fn put(&self, location: &Path, bytes: Bytes, mode: PutMode) -> Result<Version, Failure> {
        let options = PutOptions { mode, ..PutOptions::default() };
        let put = self.s3.put_opts(location, bytes.into(), options).await;
        let put = put.map_err(|error| Failure::of(&error, &self.name))?;
        // It was applied; what it is called is not known.
        self.version(put.e_tag.as_deref()).map_err(|_| Failure::Lost("the answer has no ETag".to_owned()))
    }

    fn version(&self, etag: Option<&str>) -> Result<Version, Failure> {
        let version = etag.map(|etag| Version::new(etag.trim_matches('"')));
        version.filter(|version| condition(version).is_some()).ok_or_else(|| {
            let reason = "its objects have no ETags, which conditional writes need".to_owned();
            Failure::NotApplied(StoreError::Configuration { store: self.name.clone(), reason })
        })
    }

    /// Makes sure that the bucket is there, that conditions are kept, and that the format is known.
    pub(crate) async fn check(&self) -> Result<()> {
        let location = path(&format!("{}format", self.root));
        let body = Body::new(Content::Live { key: "format".to_owned(), value: FORMAT.into() }).encode();
        let answered = |put: Result<Version, Failure>| match put {
            Err(Failure::Condition | Failure::Absent) => Ok(false),
            put => put.map(|_| true).map_err(|failure| failure.of_read(&self.name)),
        };
        let none = UpdateVersion { e_tag: Some(format!("\"{}\"", "0".repeat(32))), version: None };
        let created = answered(self.put(&location, body.clone(), PutMode::Create).await)?;
        let again = created && answered(self.put(&location, body.clone(), PutMode::Create).await)?;
        let replaced = !again && answered(self.put(&location, body, PutMode::Update(none)).await)?;
        if again || replaced {
            let header = if again { "If-None-Match" } else { "If-Match" };
            let reason =
                format!("it ignores the condition {header} on PUT, so that writes would be lost; use another server");
            return Err(StoreError::Configuration { store: self.name.clone(), reason });
        }
        let found = self.fetch(&location).await.map_err(|failure| failure.of_read(&self.name))?;
        match found.map(|found| found.body.content) {
            Some(Content::Live { value, .. }) if value == FORMAT => {}
            found => {
                let reason = format!("its format is {found:?}, this version knows {FORMAT:?}; use a newer Greenroom");
                return Err(StoreError::Format { store: self.name.clone(), reason });
            }
        }
        // The right to list is another one.
        self.scan("", None, 1).await.map(drop)
    }

    pub(crate) fn mixed_up(&self, key: &str, found: &str) -> StoreError {
        let reason = format!("the object of key {key:?} says that it is {found:?}'s: something has moved it");
        StoreError::Format { store: self.name.clone(), reason }
    }
}

/// That `version` is there; `None` if no server has spelled it.
fn condition(version: &Version) -> Option<PutMode> {
    let text = version.as_str();
    let plain = |byte: u8| byte.is_ascii_graphic() && !matches!(byte, b'"' | b'\\' | b'*' | b',');
    let spelled = (1..=ETAG_BYTES_MAX).contains(&text.len()) && text.bytes().all(plain);
    spelled.then(|| PutMode::Update(UpdateVersion { e_tag: Some(format!("\"{text}\"")), version: None }))
}

/// `name` holds no empty part and no control character.
pub(crate) fn path(name: &str) -> Path {
    Path::parse(name).expect("names are escaped and the prefix was checked")
}

const PREFIX_DEFAULT: &str = "greenroom";

/// Room for a prefix beside the longest name.
const PREFIX_BYTES_MAX: usize = 100;

/// Of names and objects, as this version writes and reads them.
const FORMAT: &str = "1";

const ETAG_BYTES_MAX: usize = 128;

/// Before a write is tried again.
const PAUSE: Duration = Duration::from_millis(5);
