//! Time for actors: timers inside of an activation, and reminders that outlive activations and nodes.
//!
//! A reminder is a record in the store (`rows.rs`), changed by the machines of `greenroom_protocols::reminders`: `change.rs`
//! drives the one that registers and cancels, `keeping.rs` the one that keeps the ranges that this node owns and sends
//! ticks (`deliver.rs`). `calendar.rs` is what the rest of the node sees of it.

mod calendar;
mod change;
#[cfg(feature = "cron")]
mod cron;
mod deliver;
mod error;
mod keeping;
mod reminder;
mod reminders;
mod rows;
mod schedule;
pub(crate) mod tick;
mod timer;

pub(crate) use self::calendar::Calendar;
pub use self::error::ReminderError;
pub(crate) use self::reminder::{FirstDue, When, check_name, register};
pub use self::reminder::{Registering, Reminder, ReminderInfo};
pub use self::reminders::Reminders;
#[cfg(feature = "http")]
pub(crate) use self::reminders::{cancel, list, retry};
pub use self::schedule::Schedule;
pub(crate) use self::schedule::Task;
pub use self::tick::Tick;
pub use self::timer::Timer;
