//! The tick of a reminder on its way: an ordinary call, whose arguments come out of the record.

use std::sync::Arc;
use std::time::{Duration, UNIX_EPOCH};

use bytes::Bytes;
use greenroom_protocols::reminders::{Delivered, Fold, Record};
use greenroom_wire::Status;
use tokio::sync::oneshot;

use super::rows::{self, ReminderId};
use super::schedule::Planned;
use super::tick::{Tick, Ticked};
use crate::actor::error::{Doubt, Failure, HOST_LOST_ACTIVATING, Refusal};
use crate::actor::key::{ActorId, Kind};
use crate::actor::reply::{self, ReplyForm, WireReply};
use crate::here::Here;
use crate::shard::baggage::Baggage;
use crate::shard::calls::Completion;
use crate::shard::chain::PortableChain;
use crate::shard::raw::{Journey, RawParcel};

/// Sends the tick and waits for its end.
pub(super) async fn deliver(node: &Arc<Here>, of: &ReminderId, record: &Record<Planned>, fold: Fold) -> Delivered {
    let Ok(plan) = &record.plan else { return Delivered::Gone };
    let kind = Kind::known(&of.kind);
    let hosted = kind.filter(|kind| node.kinds().contains(&of.kind) || node.view().hosts(*kind).is_some());
    // A node that hosts it may come back.
    let Some(kind) = hosted else { return Delivered::Again };
    let Ok(id) = ActorId::new(kind, of.key.as_str()) else { return hopeless(of, &plan.0.method) };
    let Ok(route) = node.kinds().external_route(&of.kind, &plan.0.method) else { return hopeless(of, &plan.0.method) };
    let tick = Tick {
        reminder: Some(of.name.clone()),
        due: UNIX_EPOCH + Duration::from_millis(record.due.0),
        late_by: Duration::ZERO,
        missed: fold.missed,
    };
    let ticked = Ticked { tick, registration: record.registration };
    let baggage = Baggage { tick: Some(Box::new(ticked)), ..Baggage::default() };
    // A turn that takes longer is asked for again: the activation knows when it has run.
    let patience = node.config().call_timeout;
    let (sender, receiver) = oneshot::channel();
    let hash = id.stable_hash();
    let parcel = RawParcel {
        id: id.clone(),
        route: Arc::new(route),
        payload: Bytes::from(plan.0.arguments.clone()),
        reply: WireReply::gateway(sender, node.next_outside(), ReplyForm::PLAIN),
        deadline: node.deadline(Some(patience)),
        chain: PortableChain { link: None, baggage: Some(Arc::new(baggage)) },
        journey: Journey { origin: node.me(), from: node.me(), hops: 0, grant: None },
    };
    // A refusal comes by the reply as well.
    let _ = node.enter(&id, hash, Box::new(parcel));
    let world = node.world();
    let late = world.sleep_until(world.now() + patience);
    let ended = tokio::select! {
        biased;
        ended = receiver => ended,
        () = late => return Delivered::Again,
    };
    let attempts_max = node.config().tick_attempts(&of.kind);
    let how = match ended {
        Err(_) => Delivered::Lost,
        Ok(Completion::Value(_) | Completion::Wire { status: Status::Ok | Status::ActorError, .. }) => Delivered::Ran,
        Ok(Completion::Wire { payload, .. }) => judge_lost(node, reply::failure(&payload), attempts_max).await,
        Ok(Completion::Failed(failure)) => judge_lost(node, *failure, attempts_max).await,
    };
    if how == Delivered::Hopeless { hopeless(of, &plan.0.method) } else { how }
}

/// Says that no tick of this reminder can be taken.
fn hopeless(of: &ReminderId, method: &str) -> Delivered {
    let ReminderId { kind, key, name } = of;
    tracing::error!(
        kind,
        key,
        reminder = name,
        method,
        "a reminder's tick was refused for good: its arguments do not fit the method any more, or its actor's key names none"
    );
    Delivered::Hopeless
}

/// Returns how a tick's call has ended that got no reply of its method. A connection that breaks is no death: this waits as long as the
/// cluster may take to notice the death of the node at its other end.
async fn judge_lost(node: &Here, failure: Failure, attempts_max: u32) -> Delivered {
    let Failure::Unknown(Doubt::Disconnected { node: name }) = &failure else { return judge(&failure, attempts_max) };
    let world = node.world();
    let Some(other) = node.view().view.by_name(name) else { return Delivered::Died };
    let until = world.now() + node.config().lease * NOTICE_LEASES;
    while world.now() < until {
        if !node.view().view.is_active(other) {
            return Delivered::Died;
        }
        world.sleep_until(world.now() + LOOK_AGAIN).await;
    }
    Delivered::Lost
}

/// Returns how a tick's call has ended that got no reply of its method. A tick that fails by an exception has `attempts_max` attempts; one
/// whose host was lost, or whose state was not saved, is sent again until it is done.
fn judge(failure: &Failure, attempts_max: u32) -> Delivered {
    match failure {
        Failure::Refused(Refusal::TickOver { ran: true }) => Delivered::Ran,
        Failure::Unknown(Doubt::Panicked { .. } | Doubt::Unreadable { .. })
        | Failure::Refused(Refusal::NotCommitted { .. }) => Delivered::Failed { attempts_max },
        Failure::Refused(Refusal::TickOver { ran: false }) => Delivered::Gone,
        Failure::Refused(Refusal::Invalid { .. } | Refusal::InvalidKey { .. }) => Delivered::Hopeless,
        Failure::Refused(
            Refusal::Unreachable { .. } | Refusal::Recovering | Refusal::Moved | Refusal::Stopping | Refusal::Fenced,
        )
        | Failure::Unknown(Doubt::Disconnected { .. } | Doubt::Dropped) => Delivered::Lost,
        Failure::Unknown(Doubt::HostLost { .. } | Doubt::Fenced) => Delivered::Died,
        Failure::Refused(Refusal::Activation { message }) if message == HOST_LOST_ACTIVATING => Delivered::Died,
        _ => Delivered::Again,
    }
}

/// Whether the reminder is still as it was when its tick was sent.
///
/// # Errors
/// What the store said.
pub(super) async fn is_still_due(node: &Here, id: &ActorId, ticked: &Ticked) -> Result<bool, String> {
    let Some(name) = &ticked.tick.reminder else { return Ok(true) };
    let store = node.calendar().store(node)?;
    let key = node.calendar().keys().record(&ReminderId::new(id, name));
    let row = store.read(&key, node.config().store_timeout).await.map_err(|error| error.to_string())?;
    let Some(row) = row else { return Ok(false) };
    let (_, found) = rows::read_record(&row)?;
    let due = UNIX_EPOCH + Duration::from_millis(found.record.due.0);
    let same = (found.record.registration, due) == (ticked.registration, ticked.tick.due);
    Ok(same && found.record.plan.is_ok())
}

/// Leases within which the cluster notices the death of a node, and that much for others to hear of it.
const NOTICE_LEASES: u32 = 2;
/// Between two looks whether a node is dead.
const LOOK_AGAIN: Duration = Duration::from_millis(100);
