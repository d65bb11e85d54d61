//! Names of actors: a kind, and a key within it. The law for both is here, and nowhere else.
//!
//! Stores hold keys of [`greenroom_store::key::KEY_BYTES_MAX`] bytes, and whatever is kept of an actor lies under its kind
//! and key behind a prefix. [`check`] leaves room for the longest of these; who makes an [`ActorId`] asks it.

use std::collections::HashMap;
use std::fmt;
use std::hash::{BuildHasherDefault, Hasher};
use std::sync::{OnceLock, RwLock};

use arcstr::ArcStr;
use serde::{Deserialize, Deserializer, Serialize, Serializer};

use super::error::Refusal;

/// The name of an actor within its kind: a string of 1 to [`KEY_LEN_MAX`] bytes without control characters, of which each
/// `/` and `%` counts as three, other than `.` and `..`. What is called by another key is [refused](Refusal::InvalidKey). Clones share it.
///
/// Integers are spelled in decimal and UUIDs in lower-case hyphenated form, so that every caller names the same actor.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Key(ArcStr);

impl Key {
    /// The key as text.
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl std::ops::Deref for Key {
    type Target = str;

    fn deref(&self) -> &str {
        &self.0
    }
}

impl fmt::Display for Key {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl fmt::Debug for Key {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Debug::fmt(&*self.0, f)
    }
}

impl From<&str> for Key {
    fn from(key: &str) -> Self {
        Key(key.into())
    }
}

impl From<String> for Key {
    fn from(key: String) -> Self {
        Key(key.into())
    }
}

impl From<&String> for Key {
    fn from(key: &String) -> Self {
        Key(key.as_str().into())
    }
}

impl From<&Key> for Key {
    fn from(key: &Key) -> Self {
        key.clone()
    }
}

macro_rules! integer_keys {
    ($($integer:ty),*) => {$(
        impl From<$integer> for Key {
            fn from(key: $integer) -> Self {
                Key(key.to_string().into())
            }
        }
    )*};
}

integer_keys!(u8, u16, u32, u64, u128, usize, i8, i16, i32, i64, i128, isize);

impl From<uuid::Uuid> for Key {
    fn from(key: uuid::Uuid) -> Self {
        let mut text = [0; uuid::fmt::Hyphenated::LENGTH];
        Key((&*key.hyphenated().encode_lower(&mut text)).into())
    }
}

impl Serialize for Key {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_str(&self.0)
    }
}

impl<'de> Deserialize<'de> for Key {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        String::deserialize(deserializer).map(Key::from)
    }
}

/// A kind's name, interned: comparing two is comparing two small numbers.
///
/// The numbers mean nothing outside this process and are never stored or sent. Inside it they stand for their names wherever an
/// actor is named: in references that programs hold, in queues, in the directory's entries, for as long as each of these likes, and
/// nobody counts them, as a kind is copied. So a number is never given to another name, not even when no node offers its kind
/// any more: an old reference would then call an actor of another kind, and be answered.
#[derive(Clone, Copy, PartialEq, Eq, Hash)]
pub struct Kind(u16);

impl Kind {
    /// The kind that the program's own code calls `name`, made known to this process if it is new. However many names
    /// others offer, there is room for those of code.
    ///
    /// # Panics
    /// When the program has more than [`KINDS_MAX`] less [`KINDS_OFFERED_MAX`] kinds of its own.
    pub fn intern(name: &'static str) -> Kind {
        let mut names = names().write().unwrap_or_else(|poisoned| poisoned.into_inner());
        names.find(name).unwrap_or_else(|| {
            assert!(names.all.len() < KINDS_MAX, "more than {KINDS_MAX} kinds of actor in one process");
            names.add(name)
        })
    }

    /// The kind that others call `name`: another node in the membership table, or a message of one. `None` when the process has
    /// met [`KINDS_OFFERED_MAX`] kinds, as names are kept as long as it lives, at some 100 bytes each; who asks refuses the name as one of
    /// nobody's kind. Whom it has met it goes on to call, and a process that is started again begins with what is offered then.
    pub fn offered(name: &str) -> Option<Kind> {
        if let Some(known) = Kind::known(name) {
            return Some(known);
        }
        let mut names = names().write().unwrap_or_else(|poisoned| poisoned.into_inner());
        if let Some(known) = names.find(name) {
            return Some(known);
        }
        if names.all.len() >= KINDS_OFFERED_MAX {
            if !std::mem::replace(&mut names.full, true) {
                tracing::error!(
                    kind = name,
                    "other nodes have offered so many kinds of actors that no more can be known here: actors of new kinds \
                     cannot be called from this node until it has been restarted"
                );
            }
            return None;
        }
        Some(names.add(Box::leak(name.to_owned().into_boxed_str())))
    }

    /// The kind called `name`, if this process has met it.
    pub fn known(name: &str) -> Option<Kind> {
        names().read().unwrap_or_else(|poisoned| poisoned.into_inner()).find(name)
    }

    /// A number that no other kind of this process has, from 0 up.
    pub(crate) fn number(self) -> u16 {
        self.0
    }

    /// The kind of this number, if there is one.
    pub(crate) fn numbered(number: u16) -> Option<Kind> {
        let names = names().read().unwrap_or_else(|poisoned| poisoned.into_inner());
        (usize::from(number) < names.all.len()).then_some(Kind(number))
    }

    /// The kind that gave this number.
    pub(crate) fn of_number(number: u16) -> Kind {
        Kind(number)
    }

    pub(crate) fn index(self) -> usize {
        usize::from(self.0)
    }

    /// The kind's name on the wire.
    #[inline]
    pub fn name(self) -> &'static str {
        // Nobody has a kind's number before its name is there.
        let (row, at) = (self.index() / ROW_LEN, self.index() % ROW_LEN);
        SPELLED[row].get().and_then(|row| row[at].get()).copied().unwrap_or_default()
    }
}

/// The names of kinds that this process has met.
#[derive(Default)]
struct Names {
    all: Vec<&'static str>,
    /// Where each is.
    places: HashMap<&'static str, u16, BuildHasherDefault<Spelling>>,
    /// Whether one was refused.
    full: bool,
}

/// A hash of a name that is good enough for as few as there may be.
#[derive(Default)]
struct Spelling(u64);

impl Hasher for Spelling {
    fn finish(&self) -> u64 {
        self.0 ^ (self.0 >> 33)
    }

    fn write(&mut self, bytes: &[u8]) {
        for part in bytes.chunks(8) {
            let mut word = [0; 8];
            word[..part.len()].copy_from_slice(part);
            self.0 = mix(self.0, u64::from_le_bytes(word));
        }
    }
}

impl Names {
    fn find(&self, name: &str) -> Option<Kind> {
        self.places.get(name).copied().map(Kind)
    }

    fn add(&mut self, name: &'static str) -> Kind {
        // There are at most `KINDS_MAX`.
        let at = self.all.len() as u16;
        self.all.push(name);
        // It was empty: numbers are given once.
        let row = SPELLED[usize::from(at) / ROW_LEN].get_or_init(|| Box::new([const { OnceLock::new() }; ROW_LEN]));
        let _ = row[usize::from(at) % ROW_LEN].set(name);
        self.places.insert(name, at);
        Kind(at)
    }
}

/// The names by the kinds' numbers, row by row, for those who look often: no lock is taken.
static SPELLED: [OnceLock<Box<Row>>; KINDS_MAX / ROW_LEN] = [const { OnceLock::new() }; KINDS_MAX / ROW_LEN];

type Row = [OnceLock<&'static str>; ROW_LEN];

const ROW_LEN: usize = 256;

fn names() -> &'static RwLock<Names> {
    static NAMES: OnceLock<RwLock<Names>> = OnceLock::new();
    NAMES.get_or_init(RwLock::default)
}

impl fmt::Display for Kind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

impl fmt::Debug for Kind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

/// An actor's full name.
#[derive(Clone, PartialEq, Eq, Hash)]
#[expect(clippy::manual_non_exhaustive, reason = "this crate, too, makes them by the functions below alone")]
pub struct ActorId {
    /// The actor's type.
    pub kind: Kind,
    /// The actor's name within its kind.
    pub key: Key,
    /// Whoever makes one says whether its key was checked.
    made: (),
}

impl ActorId {
    /// The actor of `kind` that is called `key`.
    ///
    /// # Errors
    /// [`Refusal::InvalidKey`] if no actor may be called so, which says why.
    pub fn new(kind: Kind, key: impl Into<Key>) -> Result<Self, Refusal> {
        let key = key.into();
        check(&key)?;
        Ok(Self::unchecked(kind, key))
    }

    /// The same where nobody needs to ask: the runtime has spelled the key, an actor of this name is active, or every
    /// call asks, as by references.
    pub(crate) fn unchecked(kind: Kind, key: impl Into<Key>) -> Self {
        Self { kind, key: key.into(), made: () }
    }

    /// A hash that every node computes alike, whatever its version: it decides which range of the directory the actor
    /// is in.
    pub fn stable_hash(&self) -> u64 {
        stable_hash(self.kind.name(), &self.key)
    }
}

impl fmt::Display for ActorId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}/{}", self.kind, self.key)
    }
}

impl fmt::Debug for ActorId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{self}")
    }
}

// The order is by name, as interning order differs from run to run.
impl Ord for ActorId {
    fn cmp(&self, other: &Self) -> std::cmp::Ordering {
        if self.kind == other.kind {
            return self.key.cmp(&other.key);
        }
        (self.kind.name(), &self.key).cmp(&(other.kind.name(), &other.key))
    }
}

impl PartialOrd for ActorId {
    fn partial_cmp(&self, other: &Self) -> Option<std::cmp::Ordering> {
        Some(self.cmp(other))
    }
}

impl Serialize for ActorId {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        (self.kind.name(), &self.key).serialize(serializer)
    }
}

impl<'de> Deserialize<'de> for ActorId {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let (kind, key) = <(String, Key)>::deserialize(deserializer)?;
        let kind = Kind::known(&kind)
            .ok_or_else(|| serde::de::Error::custom(format_args!("actor kind {kind:?} is not known to this node")))?;
        ActorId::new(kind, key).map_err(serde::de::Error::custom)
    }
}

/// Multiply and rotate over words of eight bytes, then MurmurHash3's finaliser. A promise between nodes: golden values
/// in the tests.
pub(crate) fn stable_hash(kind: &str, key: &str) -> u64 {
    let mut hash = SEED;
    for part in [kind.as_bytes(), key.as_bytes()] {
        let mut words = part.chunks_exact(8);
        for word in &mut words {
            hash = mix(hash, u64::from_le_bytes(word.try_into().expect("eight bytes")));
        }
        let mut tail = [0; 8];
        tail[..words.remainder().len()].copy_from_slice(words.remainder());
        hash = mix(hash, u64::from_le_bytes(tail));
        hash = mix(hash, part.len() as u64);
    }
    hash ^= hash >> 33;
    hash = hash.wrapping_mul(0xFF51_AFD7_ED55_8CCD);
    hash ^= hash >> 33;
    hash = hash.wrapping_mul(0xC4CE_B9FE_1A85_EC53);
    hash ^ (hash >> 33)
}

fn mix(hash: u64, word: u64) -> u64 {
    (hash ^ word).wrapping_mul(MULTIPLIER).rotate_left(29)
}

/// Whether `key` may name an actor.
///
/// # Errors
/// [`Refusal::InvalidKey`]: what is wrong with it, and what helps.
pub(crate) fn check(key: &str) -> Result<(), Refusal> {
    if matches!(key, "." | "..") {
        let message =
            format!("{key:?} is a step of a path, which clients and proxies take out of URLs; use another key");
        return Err(Refusal::InvalidKey { message });
    }
    check_within(key, KEY_LEN_MAX).map_err(|message| Refusal::InvalidKey { message })
}

/// Whether `name` may stand in what a store calls things, where it has room for `len_max` bytes.
///
/// # Errors
/// What is wrong with it, and what helps.
pub(crate) fn check_within(name: &str, len_max: usize) -> Result<(), String> {
    if name.is_empty() {
        return Err("it is empty".to_owned());
    }
    if let Some(control) = name.chars().find(|char| char.is_control()) {
        return Err(format!("it has the control character {control:?}; leave it out, or encode it"));
    }
    let len = stored_len(name);
    if len > len_max {
        return Err(format!(
            "it has {len} bytes (each `/` and `%` counts as three), over the limit of {len_max}; use a shorter one, or a hash"
        ));
    }
    Ok(())
}

/// The bytes of `name` where stores escape it.
fn stored_len(name: &str) -> usize {
    name.len() + 2 * name.bytes().filter(|byte| matches!(byte, b'/' | b'%')).count()
}

/// Longest key in bytes, of which each `/` and `%` counts as three: so long are they where stores escape them. Frames may
/// hold longer ones, which are refused.
pub const KEY_LEN_MAX: usize = 400;
/// Longest name of a kind that a node may host, in bytes.
pub const KIND_LEN_MAX: usize = 64;
/// Longest name of a cluster that a node may be in, counted as keys are.
pub(crate) const CLUSTER_LEN_MAX: usize = 64;
/// What the longest name of a record has beside a cluster, a kind and a key: an entry of a reliable actor's map, whose
/// field has 64 bytes and whose key is 128 bytes in hexadecimal digits.
const BESIDE_LEN_MAX: usize = "reliable//00000/state////".len() + 64 + 2 * 128;
const _: () = assert!(
    CLUSTER_LEN_MAX + KIND_LEN_MAX + KEY_LEN_MAX + BESIDE_LEN_MAX <= greenroom_store::key::KEY_BYTES_MAX,
    "a record of an actor would have a name that no store holds"
);
const _: () =
    assert!(KEY_LEN_MAX <= greenroom_wire::limit::KEY_LEN_MAX && KIND_LEN_MAX <= greenroom_wire::limit::NAME_LEN_MAX);
/// Different kinds that one process may know.
pub const KINDS_MAX: usize = 1 << 15;
/// Different kinds that one process may know before it takes no more names from others.
pub const KINDS_OFFERED_MAX: usize = 1 << 14;
const SEED: u64 = 0x9E37_79B9_7F4A_7C15;
const MULTIPLIER: u64 = 0x9FB2_1C65_1E98_DF25;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_stable_hash_is_a_promise_between_nodes() {
        let golden = [
            (("chat_room", "lobby"), 0x5F115946E68BA66D),
            (("user", ""), 0x0300366AD1DCC998),
            (("", "user"), 0xE92D979EC0C52F62),
            (("counter", "0123456789abcdef"), 0xBA7104DA0B09E56A),
        ];
        for ((kind, key), hash) in golden {
            assert_eq!(stable_hash(kind, key), hash, "{kind}/{key}");
        }
    }

    #[test]
    fn integers_and_uuids_have_one_spelling() {
        assert_eq!(Key::from(7_u8), Key::from("7"));
        assert_eq!(Key::from(-7_i64), Key::from("-7"));
        let id = uuid::Uuid::from_u128(0xABCD);
        assert_eq!(Key::from(id).as_str(), "00000000-0000-0000-0000-00000000abcd");
    }

    #[test]
    fn a_key_is_text_of_bounded_length_without_control_characters() {
        let longest = "k".repeat(KEY_LEN_MAX);
        let slashes = "/".repeat(KEY_LEN_MAX / 3);
        for lawful in ["a", "0", "a/b", "50%", " ", "\u{a0}", "~1.2.3.4", "@1.1.1.1", "é", &longest, &slashes] {
            assert_eq!(check(lawful), Ok(()), "{lawful:?}");
        }
        let (long, slashes) = ("k".repeat(KEY_LEN_MAX + 1), "/".repeat(KEY_LEN_MAX / 3 + 1));
        for unlawful in ["", "\0", "a\0b", "a\nb", "\u{7f}", "\u{85}", &long, &slashes] {
            assert!(
                matches!(ActorId::new(Kind::intern("k"), unlawful), Err(Refusal::InvalidKey { .. })),
                "{unlawful:?}"
            );
        }
    }

    #[test]
    fn a_name_that_came_from_elsewhere_is_checked() {
        Kind::intern("key_test_kind");
        assert!(serde_json::from_str::<ActorId>(r#"["key_test_kind","a"]"#).is_ok());
        assert!(serde_json::from_str::<ActorId>(r#"["key_test_kind",""]"#).is_err());
    }

    #[test]
    fn interning_twice_gives_the_same_kind() {
        let kind = Kind::intern("key_test_kind");
        assert_eq!(kind, Kind::intern("key_test_kind"));
        assert_eq!(Kind::known("key_test_kind"), Some(kind));
        assert_eq!(Kind::known("key_test_kind_unheard_of"), None);
    }
}
