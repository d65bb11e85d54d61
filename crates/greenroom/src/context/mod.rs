//! Request context: key-value pairs that callers set and that flow along all calls made on their behalf.

mod trace;

use std::collections::BTreeMap;
use std::sync::Arc;

use greenroom_wire::limit::{CONTEXT_KEY_LEN_MAX, CONTEXT_LEN_MAX, CONTEXT_PAIRS_MAX};
use thiserror::Error;

pub use self::trace::{TraceContext, TraceError};

/// The request context of a turn or a call: at most 64 pairs of at most 8 KiB together. Clones share the pairs.
#[derive(Clone, Default, PartialEq, Eq, Debug)]
pub struct Context(Option<Arc<BTreeMap<Box<str>, Box<str>>>>);

impl Context {
    /// No pairs.
    pub const EMPTY: Self = Self(None);

    /// The value of `key`.
    pub fn get(&self, key: &str) -> Option<&str> {
        self.0.as_ref()?.get(key).map(|value| &**value)
    }

    /// The pairs, by key.
    pub fn iter(&self) -> impl Iterator<Item = (&str, &str)> {
        self.0.iter().flat_map(|pairs| pairs.iter()).map(|(key, value)| (&**key, &**value))
    }

    /// Whether there are no pairs.
    pub fn is_empty(&self) -> bool {
        self.0.as_ref().is_none_or(|pairs| pairs.is_empty())
    }

    /// Sets the value of `key`.
    ///
    /// # Errors
    /// [`ContextError`]; the context is as it was.
    pub fn set(&mut self, key: &str, value: &str) -> Result<(), ContextError> {
        if key.is_empty() || key.len() > CONTEXT_KEY_LEN_MAX {
            return Err(ContextError::Key { len: key.len() });
        }
        let old = self.get(key).map(|old| key.len() + old.len());
        let len = self.len() - old.unwrap_or(0) + key.len() + value.len();
        if len > CONTEXT_LEN_MAX {
            return Err(ContextError::TooLong { len });
        }
        if old.is_none() && self.0.as_ref().is_some_and(|pairs| pairs.len() >= CONTEXT_PAIRS_MAX) {
            return Err(ContextError::TooMany);
        }
        Arc::make_mut(self.0.get_or_insert_default()).insert(key.into(), value.into());
        Ok(())
    }

    /// Bytes of the keys and values.
    fn len(&self) -> usize {
        self.iter().map(|(key, value)| key.len() + value.len()).sum()
    }
}

/// Why a pair cannot be added to a request context. Nothing was sent.
#[derive(Clone, PartialEq, Eq, Debug, Error)]
#[non_exhaustive]
pub enum ContextError {
    /// The key is empty or too long.
    #[error("a context key of {len} bytes is not between 1 and {CONTEXT_KEY_LEN_MAX}; use another one")]
    Key {
        /// Its length in bytes.
        len: usize,
    },
    /// There are too many pairs.
    #[error("a request context has more than {CONTEXT_PAIRS_MAX} pairs; carry less, or pass arguments")]
    TooMany,
    /// The pairs are too long together.
    #[error("a request context of {len} bytes is over the limit of {CONTEXT_LEN_MAX}; carry less, or pass arguments")]
    TooLong {
        /// The length in bytes of all keys and values.
        len: usize,
    },
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_context_is_bounded_in_pairs_and_bytes() {
        let mut context = Context::EMPTY;
        for n in 0..CONTEXT_PAIRS_MAX {
            context.set(&n.to_string(), "v").unwrap();
        }
        assert_eq!(context.set("more", "v"), Err(ContextError::TooMany));
        context.set("0", "w").unwrap();
        assert_eq!((context.get("0"), context.get("more")), (Some("w"), None));
        assert!(matches!(context.set("0", &"v".repeat(CONTEXT_LEN_MAX)), Err(ContextError::TooLong { .. })));
        assert_eq!(context.set("", "v"), Err(ContextError::Key { len: 0 }));
    }

    #[test]
    fn a_copy_does_not_see_later_pairs() {
        let mut context = Context::EMPTY;
        context.set("a", "1").unwrap();
        let copy = context.clone();
        context.set("a", "2").unwrap();
        assert_eq!((copy.get("a"), context.get("a")), (Some("1"), Some("2")));
    }
}
