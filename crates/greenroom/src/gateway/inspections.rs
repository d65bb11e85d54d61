//! Requests that look at the node and its cluster: they have a thread and a queue of their own, and each principal a budget, so that
//! neither calls nor answers about the node's health wait for them.

use std::collections::{BTreeMap, VecDeque};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use greenroom_world::Stage;
use tokio::sync::oneshot;

use super::Door;
use super::problem::Problem;
use crate::actor::error::Refusal;

/// The inspections that run and wait. Principals take turns.
#[derive(Default)]
pub(super) struct Inspections {
    state: Mutex<State>,
}

#[derive(Default)]
struct State {
    running: usize,
    /// Principals with inspections that run or wait.
    principals: BTreeMap<String, Budget>,
    /// Principals with inspections that wait, the one whose turn it is first.
    order: VecDeque<String>,
}

/// Use of a principal's budget.
#[derive(Default)]
struct Budget {
    running: usize,
    waiting: VecDeque<oneshot::Sender<InspectionTurn>>,
}

/// Permission to inspect, until it is dropped.
pub(super) struct InspectionTurn {
    inspections: Arc<Inspections>,
    principal: String,
}

impl Inspections {
    /// Waits for a turn for `principal`.
    ///
    /// # Errors
    /// The problem that the client is told: too many of its inspections wait.
    ///
    /// # Cancel safety
    /// Dropping the future gives up the place in the queue.
    pub(super) async fn enter(self: &Arc<Self>, principal: &str) -> Result<InspectionTurn, Problem> {
        let waiting = {
            let mut state = self.lock();
            if state.principals.len() >= PRINCIPALS_MAX && !state.principals.contains_key(principal) {
                return Err(Problem::busy("as many principals look at the node as may"));
            }
            let budget = state.principals.entry(principal.to_owned()).or_default();
            if budget.waiting.len() >= WAITING_MAX {
                // Those whose clients have left wait for nothing.
                budget.waiting.retain(|waiting| !waiting.is_closed());
            }
            if budget.waiting.len() >= WAITING_MAX {
                return Err(Problem::busy(&format!(
                    "{WAITING_MAX} requests of this principal wait to look at the node"
                )));
            }
            let (turn, waiting) = oneshot::channel();
            budget.waiting.push_back(turn);
            if budget.waiting.len() == 1 {
                state.order.push_back(principal.to_owned());
            }
            waiting
        };
        self.grant();
        // Turns are dropped only with the queue itself.
        waiting.await.map_err(|_| Refusal::Stopping.into())
    }

    /// Gives turns to those that wait, as far as the bounds allow.
    fn grant(self: &Arc<Self>) {
        // A turn that nobody takes any more is given back, outside of the lock.
        while let Some((sender, turn)) = self.next() {
            drop(sender.send(turn));
        }
    }

    fn next(self: &Arc<Self>) -> Option<(oneshot::Sender<InspectionTurn>, InspectionTurn)> {
        let mut state = self.lock();
        if state.running >= RUNNING_MAX {
            return None;
        }
        let free =
            |name: &String| state.principals.get(name).is_some_and(|budget| budget.running < PRINCIPAL_RUNNING_MAX);
        let at = state.order.iter().position(free)?;
        let principal = state.order.remove(at)?;
        let budget = state.principals.get_mut(&principal)?;
        let sender = budget.waiting.pop_front()?;
        budget.running += 1;
        if !budget.waiting.is_empty() {
            state.order.push_back(principal.clone());
        }
        state.running += 1;
        Some((sender, InspectionTurn { inspections: self.clone(), principal }))
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Drop for InspectionTurn {
    fn drop(&mut self) {
        {
            let mut state = self.inspections.lock();
            state.running -= 1;
            if let Some(budget) = state.principals.get_mut(&self.principal) {
                budget.running -= 1;
                if budget.running == 0 && budget.waiting.is_empty() {
                    state.principals.remove(&self.principal);
                }
            }
        }
        self.inspections.grant();
    }
}

/// Does `work` on the thread of inspections, when it is the turn of `principal`. Once it has begun, it goes on though the client leaves:
/// until it is done, it counts.
///
/// # Errors
/// The problem that the client is told: too many of the principal's inspections wait.
pub(super) async fn inspect<T: Send + 'static>(
    door: &Arc<Door>,
    principal: &str,
    work: impl Future<Output = T> + Send + 'static,
) -> Result<T, Problem> {
    let turn = door.inspections.enter(principal).await?;
    let (done, result) = oneshot::channel();
    let running = async move {
        // An error means that the client has left.
        let _ = done.send(work.await);
        drop(turn);
    };
    door.node.world().spawn(Stage::Inspection, Box::pin(running));
    // The thread ends only with the node.
    result.await.map_err(|_| Refusal::Stopping.into())
}

/// Inspections that run at once; most of their time they wait for other nodes.
const RUNNING_MAX: usize = 8;
/// Those of one principal.
const PRINCIPAL_RUNNING_MAX: usize = 2;
/// Inspections of one principal that wait for their turn.
const WAITING_MAX: usize = 128;
/// Principals that inspect at once.
const PRINCIPALS_MAX: usize = 1024;

#[cfg(test)]
mod tests {
    use std::pin::pin;

    use futures_util::FutureExt;

    use super::*;

    const ASKED: usize = PRINCIPAL_RUNNING_MAX + WAITING_MAX + 5;

    #[test]
    fn a_principal_that_asks_much_is_refused_and_another_has_its_turn() {
        let inspections = Arc::new(Inspections::default());
        let mut ada: Vec<_> = (0..ASKED).map(|_| Box::pin(inspections.enter("ada"))).collect();
        let polled: Vec<_> = ada.iter_mut().map(|entering| entering.as_mut().now_or_never()).collect();
        let outcome =
            |of: fn(&Option<Result<InspectionTurn, Problem>>) -> bool| polled.iter().filter(|turn| of(turn)).count();
        assert_eq!(outcome(|turn| matches!(turn, Some(Ok(_)))), PRINCIPAL_RUNNING_MAX);
        assert_eq!(outcome(|turn| matches!(turn, Some(Err(_)))), 5);
        let bob = inspections.enter("bob").now_or_never().expect("it need not wait").expect("it may");
        drop((polled, bob));
        assert!(
            ada.iter_mut()
                .skip(PRINCIPAL_RUNNING_MAX)
                .take(PRINCIPAL_RUNNING_MAX)
                .all(|next| { next.as_mut().now_or_never().is_some_and(|turn| turn.is_ok()) })
        );
        drop(ada);
        assert!(inspections.lock().principals.is_empty() && inspections.lock().running == 0);
    }

    #[test]
    fn principals_take_turns() {
        let inspections = Arc::new(Inspections::default());
        let enter = |name: &str| inspections.enter(name).now_or_never();
        let busy: Vec<_> = (0..4).flat_map(|number| [enter(&number.to_string()), enter(&number.to_string())]).collect();
        assert_eq!(busy.len(), RUNNING_MAX);
        let mut ada = [pin!(inspections.enter("ada")), pin!(inspections.enter("ada"))];
        assert!(ada.iter_mut().all(|turn| turn.as_mut().now_or_never().is_none()));
        let mut bob = pin!(inspections.enter("bob"));
        assert!(bob.as_mut().now_or_never().is_none());
        let mut busy = busy.into_iter();
        drop(busy.next());
        let [first, second] = &mut ada;
        let first = first.as_mut().now_or_never();
        assert!(first.is_some() && second.as_mut().now_or_never().is_none(), "the first that came");
        drop(busy.next());
        let turn = bob.as_mut().now_or_never();
        assert!(turn.is_some() && second.as_mut().now_or_never().is_none(), "then the other principal");
    }
}
