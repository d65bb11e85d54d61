//! The end of an actor, as others are told of it.

use crate::actor::key::ActorId;
use crate::actor::why::Why;

/// An actor has ended: what the hook `ended` and [`Pid::ended`](crate::Pid::ended) tell.
#[derive(Clone, PartialEq, Eq, Debug)]
#[non_exhaustive]
pub struct Ended {
    /// Who.
    pub id: ActorId,
    /// Why, as far as is known.
    pub why: Why,
}
