//! Too much work: what is late never runs, what does not fit is refused, and nobody starves.

mod admission;
mod expired;
mod fairness;
mod retries;
mod stalled;
