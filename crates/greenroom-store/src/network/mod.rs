//! What providers of engines behind a network have in common: a bounded queue before the task that writes, and a connection
//! that is made anew when it has ended. Behind the feature `network`.

mod lane;
mod link;

pub use lane::{Lane, Request};
pub use link::{Connect, Link};
