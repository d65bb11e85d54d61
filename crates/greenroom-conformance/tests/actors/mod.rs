//! What actors promise, on one real node.

mod blocking;
mod blocking_methods;
mod chains;
mod errors;
mod lifecycle;
mod pids;
mod placement;
mod runs;
mod streams;
mod turns;

use greenroom::{Builder, Node};

/// A node of its own, for one test.
async fn node(equip: impl FnOnce(Builder) -> Builder) -> Node {
    equip(Node::builder()).start().await.expect("a node on loopback starts")
}
