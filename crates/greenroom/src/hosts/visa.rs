//! What hosts that come by the HTTP door may do outside of turns (L18).

use std::pin::Pin;

use greenroom_security::principal::Principal;

use crate::actor::error::Refusal;

/// What the door knows of a host that has shown credentials there.
pub(crate) trait Visa: Send + Sync {
    /// On whose behalf it calls outside of turns.
    fn principal(&self) -> &Principal;

    /// Whether it may call this outside of turns: the door's rules are asked, as for each request there.
    ///
    /// # Errors
    /// [`Refusal::Denied`], which names a rule that would allow it.
    fn check(&self, kind: &str, key: &str, method: &str) -> Result<(), Refusal>;

    /// Resolves when its credentials count no more, with why.
    fn withdrawn(&self) -> Pin<Box<dyn Future<Output = String> + Send + '_>>;
}
