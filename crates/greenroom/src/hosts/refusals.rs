//! Outcomes of the operations that hosts ask for. Every refusal passes [`OnShard::refuse`], which drops none: a host that awaits
//! the outcome gets a Reply; a reliable turn that does not await it fails; any other refusal goes to the host's log, and is counted
//! for the finding `operations-refused`.

use std::fmt::Display;
use std::time::Duration;

use greenroom_wire::host::FromNode;
use greenroom_world::Timestamp;

use super::Hosts;
use super::on_shard::OnShard;
use crate::actor::error::{CallError, Failure, Never};
use crate::actor::key::ActorId;
use crate::actor::reply::encode_failure;
use crate::reliable::hosted::HostedTurn;
use crate::shard::Shard;

/// The origin of a host's operation: the session, request, turn and seat that its frame names.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) struct RequestOrigin {
    pub(super) session: u64,
    /// 0 for an operation whose outcome the host does not await.
    pub(super) request: u64,
    /// 0 outside of turns.
    pub(super) turn: u64,
    /// 0 where the frame names none.
    pub(super) seat: u64,
}

/// The actor whose code asks for an operation, as far as it is known, and its turn if that is one of a reliable actor.
pub(super) struct Requester {
    pub(super) actor: Option<ActorId>,
    pub(super) hosted: Option<HostedTurn>,
}

impl OnShard {
    /// Takes in that an operation is refused, which `requester` asked for.
    pub(super) fn refuse(
        &self,
        shard: &Shard,
        origin: RequestOrigin,
        Requester { actor, hosted }: Requester,
        operation: &dyn Display,
        failure: Failure,
    ) {
        let RequestOrigin { session, request, turn, .. } = origin;
        if request != 0 {
            let (status, payload) = encode_failure(&failure);
            return self.answer(session, request, status, &payload);
        }
        let reason = match failure {
            Failure::Refused(refusal) => refusal.to_string(),
            failure => CallError::<Never>::from(failure).to_string(),
        };
        if let Some(hosted) = hosted {
            return hosted.fail(format!("its operation {operation} is refused: {reason}"));
        }
        let actor = actor.map(|id| (id.kind.name(), id.to_string()));
        let (kind, actor) = actor.unwrap_or_default();
        shard.port().node.part::<Hosts>().refused_operations.count(kind, &format!("{operation}: {reason}"));
        let mut state = self.state.borrow_mut();
        let Some(lane) = state.lanes.get_mut(&session) else { return };
        let Some(omitted) = lane.refusal_budget.take(shard.now()) else { return };
        let operation = operation.to_string();
        let host = &lane.session.name;
        tracing::warn!(host, actor, operation, reason, omitted, "an operation of a host is refused");
        let reason = match omitted {
            0 => reason,
            omitted => format!("{reason} ({omitted} more refusals were not reported)"),
        };
        lane.put(&FromNode::OperationRefused { turn, actor: &actor, operation: &operation, reason: &reason });
    }

    /// Returns the requester of an operation whose frame has just come: the end of its turn has not been read yet.
    pub(super) fn requester(&self, origin: RequestOrigin) -> Requester {
        let RequestOrigin { session, turn, seat, .. } = origin;
        let mut state = self.state.borrow_mut();
        let cookie = if turn == 0 { None } else { state.turn(session, turn) };
        match cookie.and_then(|cookie| state.turns.get(&cookie)) {
            Some(running) => Requester { actor: Some(running.actor.clone()), hosted: HostedTurn::of(&running.baggage) },
            None => Requester { actor: state.place(session, seat).map(|place| place.id.clone()), hosted: None },
        }
    }
}

/// A bound on the refusals that one lane reports, so that a host in a loop floods no log.
#[derive(Default)]
pub(super) struct RefusalBudget {
    began: Timestamp,
    reported: u32,
    omitted: u64,
}

impl RefusalBudget {
    /// Takes one report; returns the number of refusals omitted since the last one, or `None` if this one is to be omitted too.
    fn take(&mut self, now: Timestamp) -> Option<u64> {
        if now.since(self.began) >= REPORT_PERIOD {
            (self.began, self.reported) = (now, 0);
        }
        if self.reported >= REPORTS_MAX {
            self.omitted += 1;
            return None;
        }
        self.reported += 1;
        Some(std::mem::take(&mut self.omitted))
    }
}

/// Refusals that one lane reports in [`REPORT_PERIOD`].
const REPORTS_MAX: u32 = 50;
const REPORT_PERIOD: Duration = Duration::from_secs(10);

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_lane_reports_a_bounded_number_of_refusals_and_says_how_many_it_omits() {
        let mut budget = RefusalBudget::default();
        let at = |seconds| Timestamp::default() + Duration::from_secs(seconds);
        let reported = (0..80).filter(|_| budget.take(at(20)).is_some()).count();
        assert_eq!(reported, REPORTS_MAX as usize);
        assert_eq!((budget.take(at(29)), budget.take(at(30)), budget.take(at(30))), (None, Some(31), Some(0)));
    }
}
