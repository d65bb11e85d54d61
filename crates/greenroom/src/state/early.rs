//! Records that are read for an activation before it begins.

use std::future::{Future, pending};

use greenroom_protocols::directory::Epoch;
use greenroom_store::{StoreError, Versioned};
use tokio::sync::{oneshot, watch};

/// What was found of a record.
pub(crate) type Found = Result<Option<Versioned>, StoreError>;

/// One record on its way, for one activation.
pub(crate) struct Claim {
    pub(crate) epoch: Epoch,
    /// The activation that may use it, once that is known.
    pub(crate) usable: watch::Receiver<Option<Epoch>>,
    pub(crate) read: oneshot::Receiver<Found>,
}

impl Claim {
    /// What was read early, if this activation may use it; else what `own` finds.
    pub(crate) async fn or(self, own: impl Future<Output = Found>) -> Found {
        let Self { epoch, mut usable, read } = self;
        let told = *usable.borrow() == Some(epoch);
        if told {
            return match read.await {
                Ok(Ok(found)) => Ok(found),
                _ => own.await,
            };
        }
        // The word may be slower than the call that begins the activation.
        let early = async {
            if usable.wait_for(|usable| *usable == Some(epoch)).await.is_err() {
                pending::<()>().await;
            }
            match read.await {
                Ok(Ok(found)) => found,
                _ => pending().await,
            }
        };
        tokio::select! {
            biased;
            found = early => Ok(found),
            found = own => found,
        }
    }
}
