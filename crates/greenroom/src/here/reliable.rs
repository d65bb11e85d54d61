//! Which kinds are reliable, as far as a node knows.

use super::Here;
use super::built_in::RELIABLE;
use crate::actor::error::{IDEMPOTENCY_KEY, Refusal};
use crate::actor::key::Kind;
use crate::shard::baggage::Baggage;
use crate::shard::mail::Described;

impl Here {
    /// Whether actors of `kind` are reliable, whose interface is this.
    pub(crate) fn is_reliable(&self, kind: Kind, interface: &Described) -> bool {
        interface.reliable || self.is_reliable_kind(kind)
    }

    /// The same, for who does not know the interface.
    pub(crate) fn is_reliable_kind(&self, kind: Kind) -> bool {
        self.kinds().is_reliable(kind)
            || (self.kinds().find(kind).is_none()
                && self.view().hosts(kind).is_some_and(|hosts| hosts.placement == RELIABLE))
    }

    /// Refuses a call with an idempotency key to actors for which nobody keeps answers; `reliable` if the caller knows that
    /// they are.
    ///
    /// # Errors
    /// [`Refusal::Invalid`], which names the kind.
    #[inline]
    pub(crate) fn check_idempotency(&self, kind: Kind, reliable: bool, load: Option<&Baggage>) -> Result<(), Refusal> {
        if load.is_none_or(|load| load.idempotency.is_none()) {
            return Ok(());
        }
        self.check_key_taken(kind, reliable)
    }

    #[cold]
    fn check_key_taken(&self, kind: Kind, reliable: bool) -> Result<(), Refusal> {
        if reliable || self.is_reliable_kind(kind) {
            return Ok(());
        }
        let message = format!(
            "actors of kind {:?} are not reliable, so a repeat of a call with an idempotency key would run again; leave the key \
             out, or let the kind be `#[actor(reliable)]`",
            kind.name()
        );
        Err(Refusal::Invalid { field: IDEMPOTENCY_KEY.to_owned(), message })
    }
}
