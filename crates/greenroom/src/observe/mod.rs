//! What a node measures and remembers for those who look at it. Looking changes nothing: it activates no actor, runs nobody's code,
//! and takes no shard's time but for what is already published.

pub(crate) mod events;
pub(crate) mod level;
pub(crate) mod subject;
