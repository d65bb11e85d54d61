//! Each judge finds what it is for, and is quiet about repaired twins; and what is found is told.

mod anybody;
mod bank;
mod liveness;
mod monitors;
mod serial;
mod told;
