//! What a handler sees of its surroundings.

use std::any::Any;
use std::fmt;
use std::sync::atomic::AtomicU64;
use std::sync::{Arc, OnceLock};
use std::time::Duration;

use greenroom_protocols::directory::Epoch;
use greenroom_security::principal::Principal;

use super::cancelled::Cancelled;
use super::interface::{Actor, Why};
use super::key::{ActorId, Key};
use super::migration::Unmoved;
use crate::context::{Context, ContextError, TraceContext};
use crate::here::port::Port;
use crate::shard::Shard;
use crate::state::{Holder, Lost, Site, Slot, State, StateError, WHOLE};
use crate::time::tick::Tick;

/// An actor's surroundings: who it is, where it runs, and the way to other actors.
pub struct Cx {
    pub(crate) port: Arc<Port>,
    pub(crate) id: ActorId,
    pub(crate) epoch: Epoch,
    /// For kinds that are persistent as a whole, or whose replies wait for saves.
    pub(crate) state: Option<Arc<CxState>>,
}

/// What the runtime keeps of an activation's state.
#[derive(Default)]
pub(crate) struct CxState {
    pub(crate) slot: Slot,
    pub(crate) holder: Holder,
    /// When what has changed is to be saved; 0 if nothing has. In nanoseconds of the node's clock.
    pub(crate) due: AtomicU64,
    /// What is known of the fields, for who loads them otherwise than from a store.
    pub(crate) memory: OnceLock<Box<dyn Any + Send + Sync>>,
}

impl Cx {
    /// The actor's key.
    pub fn key(&self) -> &Key {
        &self.id.key
    }

    /// Whether another cluster may have an instance of the actor too: it was activated while a cluster did not answer, and
    /// no other one has been looked for successfully since. Always false in a cluster that is alone.
    pub fn is_doubtful(&self) -> bool {
        self.port.node.is_doubtful(&self.id, self.epoch)
    }

    /// The actor's kind, as it is called on the wire.
    pub fn kind(&self) -> &'static str {
        self.id.kind.name()
    }

    /// The actor's full name.
    pub fn id(&self) -> &ActorId {
        &self.id
    }

    /// The number of this activation among all activations of the actor: it only rises.
    pub fn epoch(&self) -> u64 {
        self.epoch.0
    }

    /// The name of the node that the activation is on.
    pub fn node_name(&self) -> &str {
        self.port.node.name()
    }

    /// What is left of the time that the current call has been given.
    ///
    /// `None` outside of a turn, and in a turn that nobody waits for.
    pub fn time_left(&self) -> Option<Duration> {
        Shard::with(|shard| shard.and_then(Shard::time_left))
    }

    /// The request context that the current turn's message came with. Calls of the turn carry it on.
    ///
    /// Empty outside of a turn.
    pub fn context(&self) -> Context {
        Shard::with(|shard| shard.and_then(Shard::baggage).map(|baggage| baggage.context.clone()).unwrap_or_default())
    }

    /// Lets the calls that the current turn makes from here on carry `value` under `key`.
    ///
    /// # Errors
    /// [`ContextError`]; nothing has changed.
    pub fn set_context(&self, key: &str, value: &str) -> Result<(), ContextError> {
        Shard::with(|shard| shard.map_or(Ok(()), |shard| shard.carry(|baggage| baggage.context.set(key, value))))
    }

    /// Where the current turn stands in a distributed trace, if its message came as a part of one.
    pub fn trace(&self) -> Option<TraceContext> {
        Shard::with(|shard| shard.and_then(Shard::baggage).and_then(|baggage| baggage.trace.clone()))
    }

    /// On whose behalf the current turn runs, if its message, or the one that led to it, came through an HTTP door from
    /// somebody with credentials. The nodes of a cluster trust each other to say so.
    pub fn principal(&self) -> Option<Principal> {
        Shard::with(|shard| shard.and_then(Shard::baggage).and_then(|baggage| baggage.principal.clone()))
    }

    /// Whether something happens that is not up to the actor, such as that a provider refuses: chosen where the actor is explored by
    /// `greenroom-explore`, which calls it by the name of `what`; `false` everywhere else.
    pub fn maybe(&self, what: &str) -> bool {
        #[cfg(feature = "rehearsal")]
        return crate::shard::rehearsal::maybe(what);
        #[cfg(not(feature = "rehearsal"))]
        {
            let _ = what;
            false
        }
    }

    /// The tick that began the current turn; `None` in turns that a call began.
    pub fn tick(&self) -> Option<Tick> {
        Shard::with(|shard| shard.and_then(Shard::baggage)?.tick.as_ref().map(|ticked| ticked.tick.clone()))
    }

    /// Writes the state of a persistent actor, if it is still as this activation last saw it: `cx.save(self).await?`.
    ///
    /// # Errors
    /// [`StateError`]. On [`StateError::Conflict`] the actor is what is in the store now. After any other error but
    /// [`StateError::NotLoaded`] the activation ends with its turn: what was not saved is seen by nobody else.
    ///
    /// # Cancel safety
    /// Dropping the future leaves the outcome unknown: deactivate then, or reload.
    pub async fn save<A: Actor + State>(&self, actor: &mut A) -> Result<(), StateError> {
        self.write(actor).await.map_err(|error| self.note(error))
    }

    /// Reads the state of a persistent actor again; a fresh actor if there is none.
    ///
    /// # Errors
    /// [`StateError::NotLoaded`]; the actor is as it was.
    pub async fn reload<A: Actor + State>(&self, actor: &mut A) -> Result<(), StateError> {
        let (site, slot) = self.whole().map_err(|why| StateError::not_loaded(self.id.kind.name(), why))?;
        let found = slot.load::<A>(self, &site).await?;
        self.take(actor, found).await
    }

    /// Removes the state of a persistent actor from the store, and makes the actor a fresh one. Its [`Stored`] fields are
    /// states of their own and stay.
    ///
    /// # Errors
    /// As for [`save`](Self::save); the actor is as it was.
    ///
    /// [`Stored`]: crate::Stored
    pub async fn clear<A: Actor + State>(&self, actor: &mut A) -> Result<(), StateError> {
        let (site, slot) = self.whole().map_err(|why| StateError::not_saved(self.id.kind.name(), why))?;
        slot.clear(self, &site).await.map_err(|error| self.note(error))?;
        self.take(actor, None).await
    }

    /// Loads a persistent actor and its fields that are states of their own.
    #[doc(hidden)]
    pub async fn load<A: Actor + State>(&self, actor: &mut A) -> Result<(), StateError> {
        self.enter_namespace().await.map_err(|why| StateError::not_loaded(self.id.kind.name(), why))?;
        let (site, slot) = self.whole().map_err(|why| StateError::not_loaded(self.id.kind.name(), why))?;
        if let Some(found) = slot.load_first::<A>(self, &site).await? {
            *actor = found;
        }
        self.load_fields(actor).await
    }

    /// Reads the state of a persistent actor again, and those of its fields, as far as other activations have written them.
    #[doc(hidden)]
    pub async fn refresh<A: Actor + State>(&self, actor: &mut A) -> Result<(), StateError> {
        let (site, slot) = self.whole().map_err(|why| StateError::not_loaded(self.id.kind.name(), why))?;
        if let Some(found) = slot.refresh::<A>(self, &site).await? {
            return self.take(actor, found).await;
        }
        for (_, field) in actor.stored() {
            field.refresh(self).await?;
        }
        Ok(())
    }

    /// Writes the state of a persistent actor, and of its fields that are states of their own, as far as they have
    /// changed. What follows from an error is left to the caller.
    #[doc(hidden)]
    pub async fn save_changed<A: Actor + State>(&self, actor: &mut A) -> Result<(), StateError> {
        let (site, slot) = self.whole().map_err(|why| StateError::not_saved(self.id.kind.name(), why))?;
        let saved = slot.save_changed(self, &site, actor).await;
        self.saved(actor, saved).await?;
        for (_, field) in actor.stored() {
            field.save_changed(self).await?;
        }
        Ok(())
    }

    async fn write<A: Actor + State>(&self, actor: &mut A) -> Result<(), StateError> {
        let (site, slot) = self.whole().map_err(|why| StateError::not_saved(self.id.kind.name(), why))?;
        let saved = slot.save(self, &site, actor).await;
        self.saved(actor, saved).await
    }

    /// Lets the actor go on with what is in the store, where its own state was not saved for that.
    async fn saved<A: Actor + State>(&self, actor: &mut A, saved: Result<(), Lost<A>>) -> Result<(), StateError> {
        let Err(lost) = saved else { return Ok(()) };
        if let Some(found) = lost.found {
            self.take(actor, found).await?;
        }
        Err(lost.error)
    }

    /// Makes `actor` what was found in the store.
    async fn take<A: Actor + State>(&self, actor: &mut A, found: Option<A>) -> Result<(), StateError> {
        *actor = match found {
            Some(found) => found,
            None => A::create(self).map_err(|why| StateError::not_saved(self.id.kind.name(), why))?,
        };
        self.load_fields(actor).await
    }

    async fn load_fields<A: Actor>(&self, actor: &mut A) -> Result<(), StateError> {
        for (name, field) in actor.stored() {
            field.load(self, name).await?;
        }
        Ok(())
    }

    fn whole(&self) -> Result<(Site, &Slot), String> {
        let Some(state) = &self.state else {
            return Err("the kind is not persistent; write `#[actor(persistent)]` above its `impl` block".to_owned());
        };
        Ok((self.site(WHOLE)?, &state.slot))
    }

    /// Makes sure that the node has entered its namespace in the kind's store, before an activation's first look at its states: it has
    /// for the kinds that it was started with, and not for those of hosts and for kinds that are only spawned.
    pub(crate) async fn enter_namespace(&self) -> Result<(), String> {
        let entered = self.port.node.stores().enter(self.store_name()).await;
        entered.map(|_| ()).map_err(|error| error.to_string())
    }

    /// The name of the store that the kind keeps its states in.
    fn store_name(&self) -> &'static str {
        self.port.node.kinds().find(self.id.kind).map_or("", |kind| kind.options().store)
    }

    /// Where the actor's state called `name` is kept.
    pub(crate) fn site(&self, name: &str) -> Result<Site, String> {
        let (node, store) = (&self.port.node, self.store_name());
        Ok(node.stores().site(store, &self.id, name)?.under(node.in_force(self.id.kind, name)))
    }

    /// Lets an error have its consequence for the current turn's activation, and gives it back.
    pub(crate) fn note(&self, error: StateError) -> StateError {
        if error.ends_activation() {
            Shard::with(|shard| {
                if let Some(shard) = shard {
                    shard.end_current(Why::Unsaved);
                }
            });
        }
        error
    }

    /// Resolves when nobody waits for the current turn any more: its caller has dropped the call, its deadline has passed,
    /// the caller's node or connection is gone, or the client of the HTTP door has hung up. Never for a one-way message.
    ///
    /// Word of it may be lost, so a turn that must end by some time watches its clock too.
    ///
    /// # Cancel safety
    /// Dropping the future forgets nothing but who asked.
    pub fn cancelled(&self) -> Cancelled {
        Cancelled::new()
    }

    /// Whether nobody waits for the current turn any more: what [`cancelled`](Self::cancelled) waits for.
    pub fn is_cancelled(&self) -> bool {
        Shard::with(|shard| shard.is_some_and(Shard::current_is_cancelled))
    }

    /// Lets the activation not count as idle for `time`, at most [`KEEP_ALIVE_MAX`](crate::KEEP_ALIVE_MAX); the last word
    /// counts, and zero takes it back. The activation still ends when it is asked to, and when its node drains or stops.
    pub fn keep_alive(&self, time: Duration) {
        Shard::with(|shard| {
            if let Some(shard) = shard {
                shard.keep_current(time.min(KEEP_ALIVE_MAX));
            }
        });
    }

    /// Asks the optimiser to leave the actor on its node for `time`, at most [`KEEP_ALIVE_MAX`](crate::KEEP_ALIVE_MAX); the last
    /// word counts, and zero takes it back. Nothing else is changed: it ends when it is idle, goes where somebody sends it, and is
    /// as free as others on the next node. `#[actor(pinned)]` says it of a whole kind.
    pub fn pin(&self, time: Duration) {
        Shard::with(|shard| {
            if let Some(shard) = shard {
                shard.pin_current(time.min(KEEP_ALIVE_MAX));
            }
        });
    }

    /// Ends the activation once the turns that it has begun are over. The next message activates the actor anew.
    pub fn deactivate(&self) {
        Shard::with(|shard| {
            if let Some(shard) = shard {
                shard.end_current(Why::Asked);
            }
        });
    }
}

impl Cx {
    /// Lets the activation go to the node called `node`, with what it holds in memory, once the turns that it has begun are
    /// over. What waits for it follows in its order, and callers hear nothing of it.
    ///
    /// The kind says how its state travels: `#[actor(migrate)]`, or the hooks `migrating` and `migrated`. The hook
    /// `deactivating` runs here with [`Why::Migrating`], and `activated` there, after the state has arrived. If the
    /// target does not take it, the actor goes on here with the same state.
    ///
    /// # Errors
    /// [`Unmoved`]: it stays, as there is no such node, or the state cannot travel.
    pub fn migrate_to(&self, node: &str) -> Result<(), Unmoved> {
        let to = self.port.node.view().view.serving().find(|(_, member)| member.name == node).map(|(id, _)| id);
        let to = to.ok_or_else(|| Unmoved::NoSuchNode { node: node.to_owned() })?;
        Shard::with(|shard| match shard {
            Some(shard) => shard.migrate_current(to),
            None => Err(Unmoved::NotActive),
        })
    }
}

impl fmt::Debug for Cx {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Cx").field("id", &self.id).field("epoch", &self.epoch.0).finish()
    }
}

/// Longest time for which [`Cx::keep_alive`] keeps an activation: a day. Who needs more says so again.
pub const KEEP_ALIVE_MAX: Duration = Duration::from_secs(24 * 60 * 60);

/// What a reference can be bound to: a node, or an actor's surroundings.
pub trait Scope {
    #[doc(hidden)]
    fn port(&self) -> &Arc<Port>;
}

impl Scope for Cx {
    fn port(&self) -> &Arc<Port> {
        &self.port
    }
}

impl<S: Scope> Scope for &S {
    fn port(&self) -> &Arc<Port> {
        (*self).port()
    }
}
