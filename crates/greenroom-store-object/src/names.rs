//! What the object of a key is called: of harmless ASCII alone, in the same byte order as the keys, and within the
//! lengths that S3 (1024 bytes) and file systems behind it (255 bytes between two slashes) allow.
//!
//! Digits, letters, hyphens and slashes stand for themselves. Every other byte is a symbol and what follows it; the
//! symbol sorts where the byte would. A name ends in `!`, which sorts before everything else, so that no name is the
//! folder of another. A key of more than [`WHOLE_BYTES_MAX`] bytes whose name would be too long is called by its
//! beginning and a hash; such a name says nothing of the key's order, and the key itself is in the object.

use std::fmt::Write;

use ring::digest::{SHA256, digest};

/// The name of `key`'s object, behind the store's prefix.
pub(crate) fn of(key: &str) -> String {
    let mut name = escaped(key.as_bytes());
    if name.len() > NAME_BYTES_MAX {
        name = group(key.as_bytes());
        name.push(HASHED);
        for byte in &digest(&SHA256, key.as_bytes()).as_ref()[..HASH_BYTES] {
            write!(name, "{byte:02x}").expect("a string takes all");
        }
    }
    name.push(END);
    name
}

/// What begins the names of exactly those keys that begin with `bytes`, as long as these are few: at most
/// [`WHOLE_BYTES_MAX`].
pub(crate) fn escaped(bytes: &[u8]) -> String {
    let mut name = String::with_capacity(bytes.len() + 16);
    let mut segment = 0;
    for byte in bytes {
        if segment >= SEGMENT_BYTES_MAX {
            name.push_str("/+");
            segment = 1;
        }
        let before = name.len();
        match byte {
            b'0'..=b'9' | b'A'..=b'Z' | b'a'..=b'z' | b'-' => name.push(char::from(*byte)),
            b'/' if segment == 0 => name.push_str(".s"),
            b'/' => {
                name.push('/');
                segment = 0;
                continue;
            }
            b'.' => name.push_str(".d"),
            b'_' => name.push_str("__"),
            b'`' => name.push_str("_z"),
            other => {
                let symbol = match other {
                    0..b'-' => '$',
                    b':'..=b'@' => ':',
                    b'['..=b'^' => '_',
                    _ => '~',
                };
                write!(name, "{symbol}{other:02x}").expect("a string takes all");
            }
        }
        segment += name.len() - before;
    }
    name
}

/// What begins the names of all keys that are as `key` in their first [`WHOLE_BYTES_MAX`] bytes.
pub(crate) fn group(key: &[u8]) -> String {
    escaped(&key[..key.len().min(WHOLE_BYTES_MAX)])
}

/// What a name says of its key.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Named {
    /// All of it.
    Key(String),
    /// That it is in the object.
    Hashed,
    /// That it is no name of a key's object.
    Foreign,
}

/// The key whose object has `name`.
pub(crate) fn key_of(name: &str) -> Named {
    let Some(name) = name.strip_suffix(END) else { return Named::Foreign };
    if name.contains(HASHED) {
        return Named::Hashed;
    }
    let key = decoded(name.as_bytes()).and_then(|key| String::from_utf8(key).ok());
    key.filter(|key| escaped(key.as_bytes()) == name).map_or(Named::Foreign, Named::Key)
}

fn decoded(name: &[u8]) -> Option<Vec<u8>> {
    let mut key = Vec::with_capacity(name.len());
    let mut rest = name;
    while let Some((first, after)) = rest.split_first() {
        rest = after;
        match first {
            b'/' => match after.strip_prefix(b"+") {
                Some(after) => rest = after,
                None => key.push(b'/'),
            },
            b'.' | b'_' if matches!(after.first(), Some(b'd' | b's' | b'_' | b'z')) => {
                key.push(match (first, after[0]) {
                    (b'.', b'd') => b'.',
                    (b'.', b's') => b'/',
                    (b'_', b'_') => b'_',
                    (b'_', b'z') => b'`',
                    _ => return None,
                });
                rest = &after[1..];
            }
            b'$' | b':' | b'_' | b'~' => {
                let (hex, after) = after.split_at_checked(2)?;
                key.push(u8::from_str_radix(str::from_utf8(hex).ok()?, 16).ok()?);
                rest = after;
            }
            plain => key.push(*plain),
        }
    }
    Some(key)
}

/// Bytes of a key that every name tells.
pub(crate) const WHOLE_BYTES_MAX: usize = 256;

const END: char = '!';

/// Before a hash; as a byte of a key it is spelled otherwise.
pub(crate) const HASHED: char = ',';

/// Longest name without hash: leaves room for the store's prefix in S3's 1024 bytes.
const NAME_BYTES_MAX: usize = 900;

/// After this many bytes a slash is put in.
const SEGMENT_BYTES_MAX: usize = 200;

/// Of a SHA-256, so that nobody finds two keys with one name.
const HASH_BYTES: usize = 16;

#[cfg(test)]
mod tests {
    use super::*;

    fn odd_keys() -> Vec<String> {
        let alphabet = ["a", "Z", "0", "/", ".", "_", "`", ":", "^", "!", " ", "\u{1}", "~", "é", "🎭", "-", "+", ","];
        let mut state = 1_u64;
        let mut roll = |sides: usize| {
            state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
            (state >> 33) as usize % sides
        };
        let mut keys = Vec::new();
        for _ in 0..3000 {
            let few = 1 + roll(3);
            let length = roll(if keys.len() % 10 == 0 { 250 } else { 8 });
            let tail: String = (0..length).map(|_| alphabet[roll(alphabet.len() / few)]).collect();
            let head = "k".repeat(if few == 1 { 190 + roll(15) } else { 0 });
            keys.extend([format!("{head}{tail}"), tail]);
        }
        keys.retain(|key| !key.is_empty() && key.len() <= WHOLE_BYTES_MAX);
        keys.sort();
        keys.dedup();
        keys
    }

    #[test]
    fn names_are_in_the_order_of_keys_and_tell_them() {
        let keys = odd_keys();
        for pair in keys.windows(2) {
            assert!(of(&pair[0]) < of(&pair[1]), "{:?} < {:?}", of(&pair[0]), of(&pair[1]));
        }
        for key in &keys {
            assert_eq!(key_of(&of(key)), Named::Key(key.clone()));
        }
    }

    #[test]
    fn the_names_of_keys_with_a_prefix_begin_with_the_prefixs_own() {
        for key in odd_keys().iter().filter(|key| key.len() > 1) {
            for (at, _) in key.char_indices() {
                assert!(of(key).starts_with(&escaped(&key.as_bytes()[..at])), "{key:?} at {at}");
            }
        }
    }

    #[test]
    fn names_keep_to_what_every_engine_takes() {
        let long = ["/".repeat(900), ".".repeat(900), "é".repeat(450), "k".repeat(900), "_".repeat(900)];
        for key in odd_keys().iter().chain(&long) {
            let name = of(key);
            assert!(name.len() <= NAME_BYTES_MAX + 1, "{} bytes", name.len());
            for part in name.split('/') {
                assert!(!part.is_empty() && part.len() <= 255 && part != "." && part != "..", "{name}");
                assert!(part.bytes().all(|byte| byte.is_ascii_graphic()), "{name}");
            }
        }
        assert_eq!(key_of(&of(&"é".repeat(450))), Named::Hashed);
    }

    #[test]
    fn names_do_not_change_between_releases() {
        for (key, name) in [
            ("counter/a", "counter/a!"),
            ("chat_room/Café 1", "chat__room/Caf~c3~a9$201!"),
            ("//x/../y.z", ".s/x/.d.d/y.dz!"),
            ("a:b", "a:3ab!"),
        ] {
            assert_eq!(of(key), name);
        }
        let long = of(&"é".repeat(450));
        assert_eq!(&long[long.len() - 34..], ",8294abbb3c6295f61e9e46cfd807150a!");
    }
}
