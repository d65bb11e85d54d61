//! The keeper of a shard: what shards and nodes ask of each other about spawned actors, as calls like any other.

use super::key::Address;
use super::kin::Parent;
use super::watch::Deliver;
use crate::actor::cx::{Cx, Scope};
use crate::actor::error::{CallError, Refusal};
use crate::actor::interface::{Actor, Interface, Why};
use crate::actor::key::{ActorId, Key, Kind};
use crate::actor::reference::Ref;
use crate::shard::Shard;
use greenroom_macros::actor;
use tokio::sync::oneshot;

/// It keeps nothing itself: what it knows is the shard's. All its turns are reads, so that none waits for another.
#[derive(Default)]
pub(crate) struct Keeper;

impl Actor for Keeper {
    fn create(_: &Cx) -> Result<Self, String> {
        Ok(Self)
    }
}

/// Runs on the shard whose turn this is.
fn here<R>(run: impl FnOnce(&Shard) -> R) -> Result<R, Refusal> {
    Shard::with(|shard| shard.map(run).ok_or(Refusal::Stopping))
}

#[actor(kind = "greenroom.keeper")]
impl Keeper {
    /// Ends an actor of this shard; returns when it has ended.
    pub async fn stop(&self, number: u64, why: Why) {
        let waits = here(|shard| {
            let activation = shard.numbered(number)?;
            let (told, waiting) = oneshot::channel();
            let (id, address) = (activation.id().clone(), Address { number, ..shard.keeper_address() });
            // Who is waited for by its own end would wait for ever.
            let waits = !shard.waits_for_this_turn(&id);
            if waits {
                shard.watch_actor(address, id, Deliver::Told(told));
            }
            match why {
                Why::Killed => shard.kill_soon(number),
                why => shard.end_numbered(number, why),
            }
            waits.then_some(waiting)
        });
        if let Ok(Some(waiting)) = waits {
            // An error is the shard's own end.
            let _ = waiting.await;
        }
    }

    /// Which of these actors of this shard have ended? The keeper at `from` wants to hear of the others' ends.
    pub async fn watch(&self, numbers: Vec<u64>, from: Address) -> Vec<(u64, Why)> {
        here(|shard| shard.asked(numbers, from)).unwrap_or_default()
    }

    /// An actor of another shard has ended.
    pub async fn ended(&self, address: Address, why: Why) {
        let _ = here(|shard| shard.tell_ended(&address, why));
    }

    /// Asks the keeper of `at` whether these live, for this shard.
    pub async fn ask(&self, cx: &Cx, at: Address, numbers: Vec<u64>) {
        let Ok((keeper, from)) = here(|shard| (shard.keeper(at), shard.keeper_address())) else { return };
        let ended = match keeper.watch(numbers.clone(), from).await {
            Ok(ended) => ended,
            // Another incarnation answers there.
            Err(CallError::Refused(Refusal::DeadLetter { .. })) => {
                numbers.into_iter().map(|number| (number, Why::NodeLost)).collect()
            }
            // Asked again in a while, unless the view says before that the node is lost.
            Err(error) => return tracing::debug!(keeper = %cx.id(), %error, "a watched actor's shard did not answer"),
        };
        let _ = here(|shard| {
            for (number, why) in ended {
                shard.tell_ended(&Address { number, ..at }, why);
            }
        });
    }

    /// A child elsewhere of an activation of this shard has failed and escalates.
    pub async fn escalate(&self, number: u64) {
        let _ = here(|shard| shard.end_numbered(number, Why::Escalated));
    }

    /// Spawns an actor on this node by what was registered for its kind.
    pub async fn spawn(
        &self,
        cx: &Cx,
        kind: String,
        arguments: Vec<u8>,
        parent: Option<(Address, String, Key)>,
    ) -> Result<Address, Refusal> {
        let (mine, chosen) = here(|shard| (shard.index(), shard.port().node.deal_shard()))?;
        if mine == chosen {
            return self.spawn_here(kind, arguments, parent).await;
        }
        let sibling = here(|shard| Address { shard: chosen, ..shard.keeper_address() })?;
        let sibling: KeeperRef = Ref::made(sibling.key(), Some(cx.port().clone())).into();
        match sibling.spawn_here(kind, arguments, parent).await {
            Ok(address) => Ok(address),
            Err(CallError::Actor(refusal) | CallError::Refused(refusal)) => Err(refusal),
            Err(error) => Err(Refusal::Activation { message: error.to_string() }),
        }
    }

    /// The same, on this shard.
    pub async fn spawn_here(
        &self,
        kind: String,
        arguments: Vec<u8>,
        parent: Option<(Address, String, Key)>,
    ) -> Result<Address, Refusal> {
        here(|shard| {
            let node = shard.port().node.clone();
            let Some(spawner) = node.spawner(&kind) else {
                let message = format!(
                    "kind {kind:?} is not spawned by others on node {:?}; register it there with `spawnable`",
                    node.name()
                );
                return Err(Refusal::Placement { message });
            };
            let parents =
                parent.as_ref().map(|(_, kind, _)| Kind::offered(kind).ok_or_else(|| node.unknown_kind(kind)));
            let parents = parents.transpose()?;
            let above = parent.as_ref().map(|(address, ..)| Parent::Away(*address));
            let address = spawner.spawn(shard, arguments, above)?;
            if let (Some((parent, _, key)), Some(kind)) = (parent, parents) {
                let id = ActorId::new(kind, key)?;
                shard.watch_actor(parent, id, Deliver::StopChild(address.number));
            }
            Ok(address)
        })?
    }
}

const _: () = assert!(<KeeperInterface as Interface>::INTERNAL);

/// What a spawn elsewhere has come to.
pub(super) fn spawned(result: Result<Address, CallError<Refusal>>) -> Result<Address, CallError> {
    result.map_err(|error| match error {
        CallError::Actor(refusal) | CallError::Refused(refusal) => CallError::Refused(refusal),
        CallError::Unknown(doubt) => CallError::Unknown(doubt),
        CallError::Cycle(path) => CallError::Cycle(path),
    })
}
