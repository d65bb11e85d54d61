//! When a node dies.

use greenroom_sim::Edge;

/// A moment of what a node does to the world outside of it: see [`Cluster::crash_at`](crate::Cluster::crash_at).
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Moment {
    /// A state is about to be saved: the store never hears of it.
    BeforeSave,
    /// A state has been saved: the store has it, and nobody has heard so.
    AfterSave,
    /// A message is about to leave for another node: it never does.
    BeforeSend,
    /// A message has arrived at another node, whose turn for it is still to begin.
    AfterSend,
    /// A turn of a reliable actor is about to be committed, maybe several at once: the journal never hears of it.
    BeforeCommit,
    /// A turn of a reliable actor has been committed: the journal has it, and nobody has heard so.
    AfterCommit,
}

/// What a node does at a moment.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum Act {
    Save,
    Send,
    Commit,
}

impl Moment {
    /// All moments: a test may try each, or have the seed choose.
    pub const ALL: [Self; 6] =
        [Self::BeforeSave, Self::AfterSave, Self::BeforeSend, Self::AfterSend, Self::BeforeCommit, Self::AfterCommit];

    pub(crate) fn act(self) -> Act {
        match self {
            Self::BeforeSave | Self::AfterSave => Act::Save,
            Self::BeforeSend | Self::AfterSend => Act::Send,
            Self::BeforeCommit | Self::AfterCommit => Act::Commit,
        }
    }

    pub(crate) fn edge(self) -> Edge {
        match self {
            Self::BeforeSave | Self::BeforeSend | Self::BeforeCommit => Edge::Before,
            Self::AfterSave | Self::AfterSend | Self::AfterCommit => Edge::After,
        }
    }
}
