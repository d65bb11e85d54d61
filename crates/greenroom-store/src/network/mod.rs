//! What providers of engines behind a network have in common: a bounded queue before the task that writes, a connection
//! that is made anew when it has ended, and for clients that are libraries the runtime they are at home in. Behind the
//! feature `network`.

mod home;
mod lane;
mod link;

pub use home::{Home, Operation};
pub use lane::{Lane, Request};
pub use link::{Connect, Link};
