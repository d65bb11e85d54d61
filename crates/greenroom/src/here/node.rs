//! The handle on a node.

use std::sync::Arc;

use super::Here;
use super::port::Port;
use crate::actor::cx::Scope;

/// A running node. Clones are handles on the same node; it stops when [`Node::stop`] is called or the process ends.
#[derive(Clone, Debug)]
pub struct Node {
    port: Arc<Port>,
}

impl Node {
    pub(crate) fn new(here: Arc<Here>) -> Self {
        Self { port: Arc::new(Port { node: here }) }
    }

    /// The node that a port leads to.
    pub(crate) fn at(port: Arc<Port>) -> Self {
        Self { port }
    }

    pub(crate) fn here(&self) -> &Arc<Here> {
        &self.port.node
    }
}

impl Scope for Node {
    fn port(&self) -> &Arc<Port> {
        &self.port
    }
}
