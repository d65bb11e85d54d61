//! Where an activation is to go, and who hears what becomes of it.

use bytes::Bytes;
use greenroom_protocols::node::NodeId;
use greenroom_world::Timestamp;

/// Where an activation is to go at its next turn boundary.
pub(crate) struct Trip {
    pub(crate) to: NodeId,
    /// Where it has not set out by then, it stays.
    pub(crate) until: Timestamp,
    /// What the parts of its next shard are told of it.
    pub(crate) letter: Bytes,
    pub(crate) told: Told,
}

/// How a trip ended.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum TripEnd {
    /// The actor is no longer here.
    Moved,
    /// It set out, and is here again.
    Back,
    /// It never left.
    Stayed,
}

/// Who hears how a trip ended: once, whatever becomes of it.
#[derive(Default)]
pub(crate) struct Told(Option<Box<dyn FnOnce(TripEnd) + Send>>);

impl Trip {
    /// To this node, whenever its turns let it.
    pub(crate) fn to(node: NodeId) -> Self {
        Self { to: node, until: Timestamp::NEVER, letter: Bytes::new(), told: Told::default() }
    }
}

impl Told {
    pub(crate) fn new(hear: impl FnOnce(TripEnd) + Send + 'static) -> Self {
        Self(Some(Box::new(hear)))
    }

    pub(crate) fn is_nobody(&self) -> bool {
        self.0.is_none()
    }

    pub(crate) fn ended(mut self, end: TripEnd) {
        if let Some(hear) = self.0.take() {
            hear(end);
        }
    }
}

impl Drop for Told {
    fn drop(&mut self) {
        if let Some(hear) = self.0.take() {
            hear(TripEnd::Stayed);
        }
    }
}
