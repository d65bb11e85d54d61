//! The rules of the host protocol, each of which a test can take out to show that it matters.

/// Which rules are in force; all of them, unless a test says otherwise.
#[doc(hidden)]
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub struct Checks {
    /// A held seat is given away only when its host can act no more (L1).
    pub held: bool,
    /// What comes from a lane or session that is lost does not count (L3).
    pub live: bool,
    /// Numbers of seats only rise (L7).
    pub rising: bool,
    /// A turn with an open request gives its place back (L8).
    pub waits: bool,
    /// The first digest of a version holds (L12).
    pub digest: bool,
    /// Only what may run again does (L15).
    pub again: bool,
    /// What was not sent is untouched by the loss of a host (L16).
    pub unsent: bool,
    /// A request names turns of its own lane only (L18).
    pub own_turns: bool,
    /// Streams end with their seat (L19).
    pub streams: bool,
    /// A node's row changes slowly (L20).
    pub row: bool,
    /// An activation never goes back to an older version (L23).
    pub versions: bool,
    /// No host may act for longer than its node.
    pub node_lease: bool,
    /// A host that does not drop a broken lane gets no further lease.
    pub overdue: bool,
}

impl Default for Checks {
    fn default() -> Self {
        Self {
            held: true,
            live: true,
            rising: true,
            waits: true,
            digest: true,
            again: true,
            unsent: true,
            own_turns: true,
            streams: true,
            row: true,
            versions: true,
            node_lease: true,
            overdue: true,
        }
    }
}
