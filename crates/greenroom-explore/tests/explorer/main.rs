//! The explorer: which schedules it runs, what it finds in them, and the story that it tells of a violation.
//!
//! One program has these tests, a module for each subject, because each program is linked for itself.
//! `cargo test -p greenroom-explore --test explorer judges::` runs those of one subject.

mod cases;
mod classics;
mod clocks;
mod elsewhere;
mod faults;
mod hooks;
mod judges;
mod options;
mod refused;
mod reliable;
mod stores;
mod streams;
mod ticks;
mod topics;
mod watch;
