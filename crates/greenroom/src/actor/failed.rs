//! An error that any method may have.

use std::fmt;

use serde::{Deserialize, Serialize};

use super::error::CallError;
use crate::state::error::StateError;

/// What went wrong, in words: an error for methods that call other actors, whose callers need not tell the causes apart.
///
/// It is plain data, so it travels, and `?` makes it from a [`CallError`] of any method, from a [`StateError`], and from text.
///
/// ```
/// use greenroom::Failed;
/// use greenroom::prelude::*;
///
/// # #[derive(Default, Actor)] pub struct Till { cents: u64 }
/// # #[actor]
/// # impl Till { pub async fn pay(&mut self, cents: u64) -> u64 { self.cents += cents; self.cents } }
/// #[derive(Default, Actor)]
/// pub struct Customer {}
///
/// #[actor]
/// impl Customer {
///     pub async fn visit(&mut self, cx: &Cx, till: String, cents: u64) -> Result<u64, Failed> {
///         if cents == 0 {
///             return Err("nothing to pay".into());
///         }
///         Ok(TillRef::of(cx, till).pay(cents).await?)
///     }
/// }
/// ```
///
/// An error type of one's own takes a call's error in as a `Failed`, by three lines:
///
/// ```
/// use std::fmt::Display;
///
/// use greenroom::{CallError, Failed};
/// use serde::{Deserialize, Serialize};
///
/// #[derive(Debug, Serialize, Deserialize)]
/// pub enum VisitError {
///     Closed,
///     Till(Failed),
/// }
///
/// impl<E: Display> From<CallError<E>> for VisitError {
///     fn from(error: CallError<E>) -> Self {
///         Self::Till(error.into())
///     }
/// }
/// ```
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct Failed {
    message: String,
    #[serde(default)]
    may_have_run: bool,
}

impl Failed {
    /// That this is what went wrong, and that nothing has changed by it.
    pub fn new(message: impl Into<String>) -> Self {
        Self { message: message.into(), may_have_run: false }
    }

    /// Whether what failed may have had an effect: retry only what may happen twice.
    pub fn may_have_run(&self) -> bool {
        self.may_have_run
    }
}

impl fmt::Display for Failed {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.message)
    }
}

impl std::error::Error for Failed {}

impl<E: fmt::Display> From<CallError<E>> for Failed {
    fn from(error: CallError<E>) -> Self {
        let may_have_run = match &error {
            CallError::Actor(_) | CallError::Unknown(_) => true,
            CallError::Refused(_) | CallError::Cycle(_) => false,
        };
        Self { message: error.to_string(), may_have_run }
    }
}

impl From<StateError> for Failed {
    fn from(error: StateError) -> Self {
        let may_have_run = matches!(&error, StateError::Unknown { .. } | StateError::Unconfirmed { .. });
        Self { message: error.to_string(), may_have_run }
    }
}

impl From<String> for Failed {
    fn from(message: String) -> Self {
        Self::new(message)
    }
}

impl From<&str> for Failed {
    fn from(message: &str) -> Self {
        Self::new(message)
    }
}
