//! Methods that block their thread: the actor goes there as a value, and comes back.

use std::mem;
use std::sync::{Arc, Mutex, PoisonError};

use super::error::NotBegun;
use crate::actor::cx::Cx;
use crate::actor::error::{CallError, Refusal};
use crate::actor::spent::Spent;

/// Runs a method of `actor` on a thread of the node's pool for what blocks. A fresh actor stands in for it meanwhile; an exclusive turn has it, so
/// that nobody meets that one. If the method panics, the turn does, and the activation begins anew.
#[doc(hidden)]
pub async fn on_a_thread<A: Default + Send + 'static, T: Send + 'static, E: Send + 'static>(
    cx: &Cx,
    actor: &mut A,
    method: impl FnOnce(&mut A) -> Result<T, CallError<E>> + Send + 'static,
) -> Result<T, CallError<E>> {
    let lent = Arc::new(Mutex::new(mem::take(actor)));
    let there = lent.clone();
    let ended = cx.blocking(move || method(&mut there.lock().unwrap_or_else(PoisonError::into_inner))).await;
    mem::swap(actor, &mut lent.lock().unwrap_or_else(PoisonError::into_inner));
    ended.unwrap_or_else(|not_begun| Err(CallError::Refused(refusal(not_begun, cx))))
}

/// What the caller of a method is told that never began.
fn refusal(why: NotBegun, cx: &Cx) -> Refusal {
    let queue = |what: &str| format!("{what} of node {}", cx.node_name());
    match why {
        NotBegun::Full { waiting, .. } => {
            Refusal::Overloaded { queue: queue("the queue for what blocks"), bound: waiting }
        }
        NotBegun::Late { .. } | NotBegun::Abandoned => {
            Refusal::Expired(Box::new(Spent { node: Some(cx.node_name().to_owned()), ..Spent::default() }))
        }
        NotBegun::Stopping => Refusal::Stopping,
        NotBegun::NoThread { reason } => {
            tracing::warn!(%reason, "no thread could be started for what blocks; let the process have more threads");
            Refusal::Overloaded { queue: queue("the pool of threads for what blocks"), bound: 0 }
        }
    }
}
