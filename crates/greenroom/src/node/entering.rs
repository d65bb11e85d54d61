//! Hosts that come by a way of a test's own.

use greenroom_world::{Stage, Stream};

use super::Node;
use crate::hosts::{Peer, attend};

impl Node {
    /// Lets in a host that has connected from `from` by `stream`, as one that comes by the node's socket: in a simulated world there are none.
    #[doc(hidden)]
    pub fn let_in(&self, stream: Box<dyn Stream>, from: String) {
        let here = self.here().clone();
        let world = here.world().clone();
        world.spawn(Stage::Door, Box::pin(async move { attend(&here, stream, Peer::trusted(from)).await }));
    }
}
