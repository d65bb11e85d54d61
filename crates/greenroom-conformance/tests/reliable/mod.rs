//! Reliable actors on real nodes: their turns commit with what they send, and what was not committed never was.

mod bank;
mod effects;
mod faults;
mod interference;
mod keys;
mod machine;
mod outputs;
mod refusals;
