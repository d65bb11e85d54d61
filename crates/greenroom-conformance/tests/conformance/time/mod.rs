//! Time: timers inside of activations, and reminders that outlive them.

mod reminders;
mod timers;
