//! Actors as users see them: references, calls, errors, and what `#[actor]` implements.

pub(crate) mod call;
pub(crate) mod cancelled;
pub(crate) mod cx;
pub(crate) mod error;
pub(crate) mod failed;
pub(crate) mod interface;
#[cfg(feature = "rehearsal")]
pub(crate) mod invent;
pub(crate) mod key;
pub(crate) mod migration;
mod outside;
pub(crate) mod reference;
pub(crate) mod reply;
pub(crate) mod retry;
#[cfg(feature = "rehearsal")]
pub(crate) mod shown;
pub(crate) mod signature;
pub(crate) mod spent;
pub(crate) mod version_gap;
pub(crate) mod why;
