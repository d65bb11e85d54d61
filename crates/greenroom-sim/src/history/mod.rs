//! Checkers of histories: what callers asked and were told, and when.
//!
//! A history is *linearizable* if every call can be given one instant between its beginning and its end, at which it took
//! effect as if it were alone (Herlihy & Wing, TOPLAS 1990). [`linearize`] decides that for any object and short
//! histories; [`registers`] does for registers whose answers are stamped, in time that hardly grows faster than the history.

mod linear;
pub mod registers;

pub use linear::{Call, Object, Unexplained, linearize};
