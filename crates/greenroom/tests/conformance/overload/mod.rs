//! Too much work: what is late never runs, what does not fit is refused, and nobody starves.

mod expired;
mod retries;
mod stalled;
