//! What keeps a value from being read, and where.

use std::fmt::{self, Write};

use serde::de;

use super::token::Token;
use super::{Codec, DecodeError};

/// Why reading ended. In a box, as it is rare and results are moved at each step.
#[derive(Debug)]
pub(super) struct Fault(Box<What>);

#[derive(Debug)]
enum What {
    Malformed(Box<str>),
    Wrong(Box<str>),
    /// A member of this name must be there.
    Missing(&'static str),
    TooDeep,
}

impl Fault {
    /// The bytes are no value.
    #[cold]
    pub(super) fn malformed(what: impl Into<Box<str>>) -> Self {
        Self(Box::new(What::Malformed(what.into())))
    }

    /// The bytes end in the middle of a value.
    #[cold]
    pub(super) fn cut() -> Self {
        Self::malformed("it ends too early")
    }

    /// The value is not of the type.
    #[cold]
    pub(super) fn wrong(what: impl Into<Box<str>>) -> Self {
        Self(Box::new(What::Wrong(what.into())))
    }

    /// The value is nested over the limit.
    #[cold]
    pub(super) fn too_deep() -> Self {
        Self(Box::new(What::TooDeep))
    }

    /// What is told of it, given where it is.
    #[cold]
    pub(super) fn at(self, codec: Codec, place: &Place<'_>) -> DecodeError {
        let path = place.path().into();
        match *self.0 {
            What::Malformed(what) => DecodeError::Malformed { codec, path, what },
            What::Wrong(what) => DecodeError::WrongType { path, what },
            What::Missing(name) => {
                let path = if &*path == "." { name.into() } else { format!("{path}.{name}").into() };
                DecodeError::WrongType { path, what: missing(name).into() }
            }
            What::TooDeep => DecodeError::TooDeep { path },
        }
    }
}

impl fmt::Display for Fault {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &*self.0 {
            What::Malformed(what) | What::Wrong(what) => f.write_str(what),
            What::Missing(name) => f.write_str(&missing(name)),
            What::TooDeep => f.write_str("it is nested over the limit"),
        }
    }
}

impl std::error::Error for Fault {}

impl de::Error for Fault {
    #[cold]
    fn custom<T: fmt::Display>(message: T) -> Self {
        Self::wrong(message.to_string())
    }

    #[cold]
    fn missing_field(name: &'static str) -> Self {
        Self(Box::new(What::Missing(name)))
    }
}

fn missing(name: &str) -> String {
    format!("missing field `{name}`")
}

/// A place in the bytes of a value.
pub(super) struct Place<'a> {
    pub(super) bytes: &'a [u8],
    /// Where a value in there begins.
    pub(super) at: usize,
}

/// A list or map that the place may be in.
struct Level {
    /// Values behind the current one: in a map, keys too. Behind a key there is an odd number of them.
    left: u64,
    is_map: bool,
    count: u64,
    /// The length of the path of the list or map itself.
    path_len: usize,
}

impl Place<'_> {
    /// The names of fields and the indices that lead there: `tags[1]`, or `.` for the value itself.
    fn path(&self) -> String {
        let mut path = String::new();
        let mut levels: Vec<Level> = Vec::new();
        let mut next = 0;
        // Bytes that cannot be read end the search: no value begins behind them.
        while next < self.at
            && let Ok((token, behind)) = Token::read(self.bytes, next)
        {
            next = behind;
            let is_key = levels.last().is_some_and(|level| level.is_map && level.left % 2 == 1);
            match token {
                Token::List(len) => levels.push(Level::new(len.into(), false, path.len())),
                Token::Map(len) => levels.push(Level::new(2 * u64::from(len), true, path.len())),
                _ if is_key => {
                    let separator = if path.is_empty() { "" } else { "." };
                    let _ = match token {
                        Token::Text(name) => write!(path, "{separator}{name}"),
                        Token::Unsigned(number) => write!(path, "{separator}{number}"),
                        Token::Signed(number) => write!(path, "{separator}{number}"),
                        _ => write!(path, "{separator}?"),
                    };
                    // Its value is next.
                    levels.last_mut().into_iter().for_each(|level| level.left -= 1);
                    continue;
                }
                _ => {}
            }
            // The next value: what is complete is left.
            while let Some(level) = levels.last_mut() {
                path.truncate(level.path_len);
                if level.left == 0 {
                    levels.pop();
                    continue;
                }
                level.left -= 1;
                if !level.is_map {
                    let _ = write!(path, "[{}]", level.count);
                }
                level.count += 1;
                break;
            }
        }
        if path.is_empty() { ".".to_owned() } else { path }
    }
}

impl Level {
    fn new(left: u64, is_map: bool, path_len: usize) -> Self {
        Self { left, is_map, count: 0, path_len }
    }
}
