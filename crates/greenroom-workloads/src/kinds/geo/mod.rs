//! What the geo workloads access: byte arrays (Geo §4.1.1), kept in every way that there is, and the robots that access them.

pub mod array;
pub mod robot;
mod versioned;
mod whole;

use std::time::Duration;

use greenroom::{Builder, CallError, Cx};
use serde::{Deserialize, Serialize};

pub use self::versioned::{kept_each, kept_single, volatile_each, volatile_single};
pub use self::whole::{kept, kept_home_c, volatile, volatile_home_c, volatile_home_n};

/// Registers the kinds.
pub(super) fn register(builder: Builder) -> Builder {
    builder
        .register::<robot::GeoRobot>()
        .register::<volatile::Bytes>()
        .register::<volatile_home_c::Bytes>()
        .register::<volatile_home_n::Bytes>()
        .register::<kept::Bytes>()
        .register::<kept_home_c::Bytes>()
        .register::<volatile_single::Bytes>()
        .register::<volatile_each::Bytes>()
        .register::<kept_single::Bytes>()
        .register::<kept_each::Bytes>()
}

/// A kind of byte array: how it is kept, and how many instances it has.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Kept {
    /// In the memory of its one instance.
    Volatile,
    /// The same, at home in California.
    VolatileHomeC,
    /// The same, at home in the Netherlands.
    VolatileHomeN,
    /// In a store, by its one instance, which saves each change.
    Basic,
    /// The same, at home in California.
    BasicHomeC,
    /// Changed by updates, in the memory of its one instance.
    VersionedVolatile,
    /// Changed by updates, in the memory of an instance in each cluster.
    VersionedVolatileEach,
    /// Changed by updates, in a store, by its one instance.
    Versioned,
    /// Changed by updates, in a store, by an instance in each cluster.
    VersionedEach,
}

/// One access of a byte array.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Access {
    /// Reads the latest state of all.
    Read,
    /// Changes it, and returns when the change is in force everywhere.
    Write,
    /// Reads the state as the instance sees it.
    ReadHere,
    /// Changes the state as the instance sees it; elsewhere later.
    WriteHere,
}

/// Why an access failed.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct Failure {
    /// The error's message.
    pub message: String,
    /// Whether nobody knows if it had its effect.
    pub lost: bool,
}

impl<E: std::fmt::Display> From<CallError<E>> for Failure {
    fn from(error: CallError<E>) -> Self {
        Self { message: error.to_string(), lost: matches!(error, CallError::Unknown(_)) }
    }
}

impl Access {
    /// Whether it changes the state.
    pub fn is_write(self) -> bool {
        matches!(self, Access::Write | Access::WriteHere)
    }
}

impl Kept {
    /// Makes one access of the array called `key`, at `offset`, and gives it up after `within`.
    ///
    /// # Errors
    /// What kept it from its end.
    pub async fn access(
        self,
        cx: &Cx,
        key: &str,
        access: Access,
        offset: u16,
        within: Duration,
    ) -> Result<(), Failure> {
        match self {
            Kept::Volatile => volatile::access(cx, key, access, offset, within).await,
            Kept::VolatileHomeC => volatile_home_c::access(cx, key, access, offset, within).await,
            Kept::VolatileHomeN => volatile_home_n::access(cx, key, access, offset, within).await,
            Kept::Basic => kept::access(cx, key, access, offset, within).await,
            Kept::BasicHomeC => kept_home_c::access(cx, key, access, offset, within).await,
            Kept::VersionedVolatile => volatile_single::access(cx, key, access, offset, within).await,
            Kept::VersionedVolatileEach => volatile_each::access(cx, key, access, offset, within).await,
            Kept::Versioned => kept_single::access(cx, key, access, offset, within).await,
            Kept::VersionedEach => kept_each::access(cx, key, access, offset, within).await,
        }
    }
}
