//! The maps of greetings: named MessagePack, in which later versions may add names.

use std::fmt;

use bytes::{BufMut, BytesMut};
use serde::de::{self, SeqAccess, Visitor};
use serde::{Deserialize, Deserializer, Serialize, Serializer, de::DeserializeOwned};

use crate::codec;
use crate::error::{EncodeError, FrameError};
use crate::hello::Versions;
use crate::limit::NAME_LEN_MAX;
use crate::reader::Reader;

use super::limit::{LANES_MAX, OFFERS_MAX, TEXT_LEN_MAX, TOKEN_LEN_MAX};
use super::{MAGIC, VERSIONS};

/// The first frame of a control lane.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Hello {
    /// The versions that the host speaks.
    pub versions: Versions,
    /// Who it is, and what it offers.
    pub map: HelloMap,
}

/// Who a host is, and what it offers.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
#[non_exhaustive]
pub struct HelloMap {
    /// Its name, for people.
    pub name: String,
    /// Its SDK and the SDK's version, for people.
    #[serde(default)]
    pub sdk: String,
    /// What it shows at the HTTP door, if that asks for one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub token: Option<String>,
    /// The session whose seats it has dropped.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub ended: Option<Ended>,
    /// User lanes that it will join at most.
    #[serde(default = "lanes_default")]
    pub lanes: u32,
    /// The codecs that it reads: [`Codec::tag`](crate::codec::Codec::tag).
    #[serde(default = "codecs_default")]
    pub codecs: Vec<u8>,
    /// Seats that it takes at most.
    #[serde(default = "seats_default")]
    pub seats_max: u32,
    /// Turns of a lane that it runs at most.
    #[serde(default = "turns_default")]
    pub turns_max: u32,
    /// Bytes of turns that were sent on a lane and have not ended, at most.
    #[serde(default = "bytes_default")]
    pub bytes_max: u64,
    /// What its share of seats is by, beside other hosts; 1 by default.
    #[serde(default = "weight_default")]
    pub weight: u32,
    /// `"all"` if it wants to hear of all nodes, to have a session with each; empty otherwise.
    #[serde(default)]
    pub spread: String,
    /// The kinds that it runs turns of. A session without offers is a client.
    #[serde(default)]
    pub offers: Vec<OfferMap>,
}

/// A session of before, all of whose seats its host has dropped.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct Ended {
    /// Its number.
    pub session: u64,
    /// Its secret.
    pub secret: Secret,
}

/// A kind that a host offers.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct OfferMap {
    /// The kind.
    pub kind: String,
    /// The version of its interface.
    #[serde(default = "version_default")]
    pub version: u16,
    /// The oldest version whose callers it serves.
    #[serde(default = "version_default")]
    pub compatible: u16,
    /// The digest of its description, in hexadecimal digits.
    pub digest: String,
}

/// The node's answer to a Hello.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Welcome {
    /// The version that both speak.
    pub version: u16,
    /// What the session is.
    pub map: WelcomeMap,
}

/// What a session is.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
#[non_exhaustive]
pub struct WelcomeMap {
    /// The cluster's name.
    pub cluster: String,
    /// The node's incarnation.
    pub node: u64,
    /// The session's number: never used again by the node.
    pub session: u64,
    /// What proves that a lane belongs to the session.
    pub secret: Secret,
    /// How long an answered Alive lets the host act, in milliseconds from when the host sent it; it takes 0.99 of that.
    pub lease_ms: u64,
    /// The shards whose lanes the host is to join.
    #[serde(default)]
    pub shards: Vec<u32>,
    /// Longest frame, in bytes after the length field.
    #[serde(default = "frame_len_default")]
    pub frame_len_max: u32,
    /// Bytes of Call, Ask and StreamItem frames that a host may send on a new lane.
    #[serde(default = "window_default")]
    pub window: u64,
    /// The digests whose descriptions the node wants to see, before it takes the offers.
    #[serde(default)]
    pub unknown: Vec<String>,
    /// Whether reliable turns are run twice, so that what one chooses by chance is to be told.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub rerun: bool,
}

/// The first frame of a user lane.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Join {
    /// The version that the Welcome said.
    pub version: u16,
    /// Which lane it is.
    pub map: JoinMap,
}

/// Which lane of which session.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct JoinMap {
    /// The session.
    pub session: u64,
    /// Its secret.
    pub secret: Secret,
    /// The shard.
    pub shard: u32,
}

/// The nodes of a cluster, for hosts that have a session with each.
#[derive(Clone, PartialEq, Eq, Debug, Default, Serialize, Deserialize)]
pub struct NodesMap {
    /// The nodes that take hosts.
    pub nodes: Vec<NodeMap>,
}

/// A node that takes hosts.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct NodeMap {
    /// Its incarnation.
    pub node: u64,
    /// Its name, for people.
    #[serde(default)]
    pub name: String,
    /// Its ways in: `unix:PATH` or `http://ADDRESS`, the best first.
    pub ways: Vec<String>,
}

/// What proves that a lane belongs to a session. It does not show itself in logs.
#[derive(Clone, Copy, PartialEq, Eq)]
pub struct Secret(pub [u8; 16]);

impl Hello {
    /// A Hello of this build's versions.
    pub fn new(map: HelloMap) -> Self {
        Self { versions: VERSIONS, map }
    }

    pub(super) fn parse(body: &[u8]) -> Result<Self, FrameError> {
        let (reader, versions) = greeting(body)?;
        let map: HelloMap = read("Hello", reader)?;
        bounded("Hello name", map.name.len(), TEXT_LEN_MAX)?;
        bounded("Hello sdk", map.sdk.len(), TEXT_LEN_MAX)?;
        bounded("Hello token", map.token.as_ref().map_or(0, String::len), TOKEN_LEN_MAX)?;
        bounded("Hello spread", map.spread.len(), TEXT_LEN_MAX)?;
        bounded("Hello offers", map.offers.len(), OFFERS_MAX)?;
        for offer in &map.offers {
            bounded("offer kind", offer.kind.len(), NAME_LEN_MAX)?;
            bounded("offer digest", offer.digest.len(), DIGEST_LEN_MAX)?;
        }
        Ok(Self { versions, map })
    }

    pub(super) fn write(&self, batch: &mut BytesMut) -> Result<(), EncodeError> {
        put_greeting(self.versions, batch);
        codec::encode_message_pack(&self.map, batch)
    }

    /// The highest version of the protocol that both sides speak; `None` if there is none.
    pub fn version(&self) -> Option<u16> {
        let version = self.versions.max.min(VERSIONS.max);
        (version >= self.versions.min.max(VERSIONS.min)).then_some(version)
    }
}

impl HelloMap {
    /// A client with the default bounds: it offers nothing.
    pub fn new(name: impl Into<String>) -> Self {
        Self {
            name: name.into(),
            sdk: String::new(),
            token: None,
            ended: None,
            lanes: lanes_default(),
            codecs: codecs_default(),
            seats_max: seats_default(),
            turns_max: turns_default(),
            bytes_max: bytes_default(),
            weight: weight_default(),
            spread: String::new(),
            offers: Vec::new(),
        }
    }
}

impl Welcome {
    pub(super) fn parse(body: &[u8]) -> Result<Self, FrameError> {
        let (reader, versions) = greeting(body)?;
        let map: WelcomeMap = read("Welcome", reader)?;
        bounded("Welcome shards", map.shards.len(), LANES_MAX)?;
        bounded("Welcome unknown digests", map.unknown.len(), OFFERS_MAX)?;
        Ok(Self { version: versions.max, map })
    }

    pub(super) fn write(&self, batch: &mut BytesMut) -> Result<(), EncodeError> {
        put_greeting(Versions { min: self.version, max: self.version }, batch);
        codec::encode_message_pack(&self.map, batch)
    }
}

impl WelcomeMap {
    /// A session with the default bounds, no shards and no digests to ask for.
    pub fn new(cluster: impl Into<String>, node: u64, session: u64, secret: Secret, lease_ms: u64) -> Self {
        Self {
            cluster: cluster.into(),
            node,
            session,
            secret,
            lease_ms,
            shards: Vec::new(),
            frame_len_max: frame_len_default(),
            window: window_default(),
            unknown: Vec::new(),
            rerun: false,
        }
    }
}

impl Join {
    pub(super) fn parse(body: &[u8]) -> Result<Self, FrameError> {
        let mut reader = Reader::new(body);
        magic(&mut reader)?;
        let version = u16::from_le_bytes(reader.array("Join version")?);
        Ok(Self { version, map: read("Join", reader)? })
    }

    pub(super) fn write(&self, batch: &mut BytesMut) -> Result<(), EncodeError> {
        batch.put_slice(&MAGIC);
        batch.put_u16_le(self.version);
        codec::encode_message_pack(&self.map, batch)
    }
}

impl NodesMap {
    pub(super) fn parse(body: &[u8]) -> Result<Self, FrameError> {
        read("Nodes", Reader::new(body))
    }

    pub(super) fn write(&self, batch: &mut BytesMut) -> Result<(), EncodeError> {
        codec::encode_message_pack(self, batch)
    }
}

impl fmt::Debug for Secret {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Secret(..)")
    }
}

impl Serialize for Secret {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_bytes(&self.0)
    }
}

impl<'de> Deserialize<'de> for Secret {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_bytes(SecretVisitor)
    }
}

struct SecretVisitor;

impl<'de> Visitor<'de> for SecretVisitor {
    type Value = Secret;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("16 bytes")
    }

    fn visit_bytes<E: de::Error>(self, bytes: &[u8]) -> Result<Secret, E> {
        bytes.try_into().map(Secret).map_err(|_| E::invalid_length(bytes.len(), &self))
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut list: A) -> Result<Secret, A::Error> {
        let mut secret = [0; 16];
        for (at, byte) in secret.iter_mut().enumerate() {
            *byte = list.next_element()?.ok_or_else(|| de::Error::invalid_length(at, &self))?;
        }
        Ok(Secret(secret))
    }
}

fn greeting(body: &[u8]) -> Result<(Reader<'_>, Versions), FrameError> {
    let mut reader = Reader::new(body);
    magic(&mut reader)?;
    let min = u16::from_le_bytes(reader.array("lowest version")?);
    let max = u16::from_le_bytes(reader.array("highest version")?);
    Ok((reader, Versions { min, max }))
}

fn magic(reader: &mut Reader<'_>) -> Result<(), FrameError> {
    let found = reader.array("magic")?;
    if found == MAGIC { Ok(()) } else { Err(FrameError::WrongHostMagic { found }) }
}

fn put_greeting(versions: Versions, batch: &mut BytesMut) {
    batch.put_slice(&MAGIC);
    batch.put_u16_le(versions.min);
    batch.put_u16_le(versions.max);
}

fn read<T: DeserializeOwned>(frame: &'static str, reader: Reader<'_>) -> Result<T, FrameError> {
    codec::decode_message_pack_prefix(reader.rest())
        .map_err(|error| FrameError::Map { frame, what: error.to_string().into() })
}

fn bounded(field: &'static str, value: usize, max: usize) -> Result<(), FrameError> {
    if value > max { Err(FrameError::OutOfBounds { field, value: value as u64, max: max as u64 }) } else { Ok(()) }
}

fn lanes_default() -> u32 {
    4
}

fn codecs_default() -> Vec<u8> {
    vec![codec::Codec::MessagePack.tag(), codec::Codec::Json.tag()]
}

fn seats_default() -> u32 {
    100_000
}

fn turns_default() -> u32 {
    1_024
}

fn bytes_default() -> u64 {
    8 << 20
}

fn weight_default() -> u32 {
    1
}

fn version_default() -> u16 {
    1
}

fn frame_len_default() -> u32 {
    super::FRAME_LEN_MAX
}

fn window_default() -> u64 {
    super::WINDOW
}

/// Longest digest, in hexadecimal digits.
const DIGEST_LEN_MAX: usize = 128;
