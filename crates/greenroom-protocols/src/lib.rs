//! Every distributed protocol of Greenroom as a pure state machine: events and `now` in, actions out.
//!
//! Nothing here knows an async runtime, a clock, a socket, a thread or a source of randomness; nothing iterates a hash
//! map. The async code around these machines only moves bytes and time.

pub mod time;
