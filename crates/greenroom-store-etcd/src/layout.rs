//! Where in etcd a store keeps its things: its keys, the heads of its logs, and their entries, each in a range of its
//! own behind the store's prefix.

use bytes::Bytes;
use greenroom_store::Version;

/// The names in etcd of one store's things.
#[derive(Debug)]
pub(crate) struct Layout {
    pub(crate) root: String,
}

impl Layout {
    /// What says of which format the rest is.
    pub(crate) fn format(&self) -> Bytes {
        format!("{}format", self.root).into()
    }

    pub(crate) fn key(&self, key: &str) -> Bytes {
        format!("{}k/{key}", self.root).into()
    }

    /// Of a key of etcd, what it is called in the store; `None` if it is none of the store's keys, or no text.
    pub(crate) fn key_of(&self, name: &[u8]) -> Option<String> {
        let name = name.strip_prefix(self.root.as_bytes())?.strip_prefix(b"k/")?;
        str::from_utf8(name).ok().map(str::to_owned)
    }

    /// The range of the keys that begin with `prefix` and come after `after`.
    pub(crate) fn keys(&self, prefix: &str, after: Option<&str>) -> (Bytes, Bytes) {
        let from = match after {
            // No key lies between one and itself with a NUL.
            Some(after) if after >= prefix => format!("{}k/{after}\0", self.root).into(),
            _ => self.key(prefix),
        };
        (from, successor(&self.key(prefix)))
    }

    /// What holds the position that the next entry of `log` will get, in decimal.
    pub(crate) fn head(&self, log: &str) -> Bytes {
        format!("{}h/{log}", self.root).into()
    }

    /// The NUL keeps apart a log and another whose name begins with the first one's.
    pub(crate) fn entry(&self, log: &str, position: u64) -> Bytes {
        format!("{}e/{log}\0{position:020}", self.root).into()
    }

    pub(crate) fn position_of(&self, log: &str, name: &[u8]) -> Option<u64> {
        let head = format!("{}e/{log}\0", self.root);
        str::from_utf8(name.strip_prefix(head.as_bytes())?).ok()?.parse().ok()
    }

    /// The range of the entries of `log` from `from` on.
    pub(crate) fn entries(&self, log: &str, from: u64) -> (Bytes, Bytes) {
        (self.entry(log, from), successor(format!("{}e/{log}\0", self.root).as_bytes()))
    }
}

/// The first name behind all that begin with `prefix`, which is not empty and does not consist of bytes 255 alone.
fn successor(prefix: &[u8]) -> Bytes {
    let mut end = prefix.to_vec();
    while end.last() == Some(&u8::MAX) {
        end.pop();
    }
    *end.last_mut().expect("the store's root is text") += 1;
    end.into()
}

/// The revision of etcd that a version stands for; -1, which no key ever has, for a version of another store.
pub(crate) fn revision(version: &Version) -> i64 {
    let parsed = version.as_str().parse::<i64>().ok();
    // Only the spelling that this store gives.
    parsed.filter(|revision| *revision > 0 && revision.to_string() == version.as_str()).unwrap_or(-1)
}

pub(crate) fn version(revision: i64) -> Version {
    Version::new(revision.to_string())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_the_own_spelling_of_a_positive_revision_is_a_version() {
        assert_eq!(revision(&version(17)), 17);
        for foreign in ["", "0", "-1", "+5", "05", "5 ", "99999999999999999999"] {
            assert_eq!(revision(&Version::new(foreign)), -1, "{foreign:?}");
        }
    }

    #[test]
    fn names_in_etcd_do_not_change_between_releases() {
        let layout = Layout { root: "greenroom/".to_owned() };
        assert_eq!(layout.format(), "greenroom/format");
        assert_eq!(layout.key("a/b"), "greenroom/k/a/b");
        assert_eq!(layout.head("log"), "greenroom/h/log");
        assert_eq!(layout.entry("log", 7), "greenroom/e/log\x0000000000000000000007");
    }
}
