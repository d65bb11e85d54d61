//! What a node is told of its threads.

use std::fmt;
use std::str::FromStr;

use serde::de::{self, Deserializer, Visitor};
use serde::{Deserialize, Serialize, Serializer};

/// A node's threads beside its shards: the table `[threads]` of its configuration file.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
#[non_exhaustive]
pub struct Threads {
    /// Threads for what [blocks](crate::Cx::blocking); `auto` by default. None is started before it is needed.
    pub blocking: PoolSize,
    /// Closures that may wait for one of these threads, at least one; 4096 by default. More are refused.
    pub blocking_len_max: usize,
}

/// How many threads a pool has: `"auto"` or a number in files.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
#[non_exhaustive]
pub enum PoolSize {
    /// As many as what is measured asks for; 4 at least, and [`POOL_THREADS_MAX`] at most.
    #[default]
    Auto,
    /// So many: 0 counts as one, and more than [`POOL_THREADS_MAX`] as that.
    Fixed(usize),
}

impl Default for Threads {
    fn default() -> Self {
        Self { blocking: PoolSize::Auto, blocking_len_max: 4096 }
    }
}

impl FromStr for PoolSize {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        match text.parse() {
            _ if text == "auto" => Ok(Self::Auto),
            Ok(threads) if (1..=POOL_THREADS_MAX).contains(&threads) => Ok(Self::Fixed(threads)),
            _ => Err(format!("write `auto` or a number of threads from 1 to {POOL_THREADS_MAX}")),
        }
    }
}

impl Serialize for PoolSize {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        match self {
            Self::Auto => serializer.serialize_str("auto"),
            Self::Fixed(threads) => serializer.serialize_u64(*threads as u64),
        }
    }
}

impl<'de> Deserialize<'de> for PoolSize {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct Size;
        impl Visitor<'_> for Size {
            type Value = PoolSize;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                write!(f, "`auto` or a number of threads from 1 to {POOL_THREADS_MAX}")
            }

            fn visit_str<E: de::Error>(self, text: &str) -> Result<PoolSize, E> {
                text.parse().map_err(E::custom)
            }

            fn visit_u64<E: de::Error>(self, threads: u64) -> Result<PoolSize, E> {
                self.visit_str(&threads.to_string())
            }

            fn visit_i64<E: de::Error>(self, threads: i64) -> Result<PoolSize, E> {
                self.visit_str(&threads.to_string())
            }
        }
        deserializer.deserialize_any(Size)
    }
}

/// Most threads of one pool.
pub const POOL_THREADS_MAX: usize = 256;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_size_is_auto_or_a_number_of_threads() {
        let read = |text: &str| serde_json::from_str::<PoolSize>(text).map_err(|error| error.to_string());
        assert_eq!(read(r#""auto""#), Ok(PoolSize::Auto));
        assert_eq!((read("8"), read(r#""8""#)), (Ok(PoolSize::Fixed(8)), Ok(PoolSize::Fixed(8))));
        for wrong in ["0", "257", "-1", r#""many""#, "true"] {
            let said = read(wrong).expect_err(wrong);
            assert!(said.contains("`auto` or a number of threads from 1 to 256"), "{said}");
        }
        for size in [PoolSize::Auto, PoolSize::Fixed(3)] {
            let written = serde_json::to_string(&size).expect("it is plain");
            assert_eq!(read(&written), Ok(size));
        }
    }
}
