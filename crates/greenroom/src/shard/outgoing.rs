//! Calls that leave the node.

use greenroom_protocols::directory::Grant;
use greenroom_protocols::node::NodeId;
use greenroom_wire::CallId;
use greenroom_world::Timestamp;

use super::baggage::Baggage;
use super::chain::CallPath;

/// A call as it goes out.
pub(super) struct Outgoing<'a> {
    pub(super) id: Option<CallId>,
    pub(super) origin: Option<NodeId>,
    pub(super) hops: u8,
    pub(super) kind: &'a str,
    pub(super) method: &'a str,
    pub(super) key: &'a str,
    pub(super) deadline: Timestamp,
    pub(super) grant: Option<Grant>,
    /// The callers that wait for it.
    pub(super) chain: Option<&'a CallPath>,
    pub(super) baggage: Option<&'a Baggage>,
    /// The version of the kind's interface that the caller speaks.
    pub(super) version: u16,
}
