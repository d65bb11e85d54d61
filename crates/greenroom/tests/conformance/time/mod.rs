//! Time: timers inside of activations.

mod timers;
