//! What a driver has others do: the journal's part of the actions, and turns that wait.

use std::fmt::Display;
use std::time::Duration;

use futures_util::future::{LocalBoxFuture, try_join};
use greenroom_protocols::delivery::{Commit, CommitId, Deferred, Lane, Parked, Presence, TurnId};
use greenroom_reliable::ledger::{Ledger, Outcome, StoredField, TurnChanges};
use greenroom_store::StoreError;
use tokio::sync::{OwnedSemaphorePermit, oneshot};

use super::admin::{self, Wish};
use super::name::{Body, Happening, Letter, Named, Sealed};
use super::waiting::WaitingWish;
use crate::actor::key::{ActorId, Kind};
use crate::here::Here;
use crate::shard::calls::Completion;

/// What has come back.
pub(super) enum Done {
    /// For the machine.
    Happened(Happening),
    /// An actor's records are read.
    Loaded { actor: Named, presence: Option<Presence>, queue: Vec<Deferred<Named, Body>>, fields: Vec<StoredField> },
    /// An actor's records never can be read.
    Unloadable { actor: Named, error: String },
    /// An actor's fields are read, as its activation has ended by itself; or they never can be.
    Fields { actor: Named, fields: Result<Vec<StoredField>, String> },
    /// A turn that could not begin is to be tried again.
    Due { turn: TurnId, letter: Sealed },
    /// The turn of a suspect may begin here, with a permit if it runs alone.
    Admitted { turn: TurnId, permit: Option<OwnedSemaphorePermit> },
    /// The turn of a suspect has run alone for long enough.
    AloneForLong { turn: TurnId },
    /// A turn has ended; `None` if it was dropped.
    Turn { turn: TurnId, completion: Option<Completion> },
    /// A commit has ended.
    Committed { id: CommitId, outcome: Outcome, took: Duration },
    /// The parked messages are read, as somebody wants something of them.
    Parked {
        wish: Wish,
        parked: Result<Vec<Parked<Named, Body>>, String>,
        done: oneshot::Sender<Result<String, String>>,
    },
    /// An outlet has an output, or will not have it for this reason.
    Output { lane: Lane, number: u64, refused: Option<String> },
    /// The actors' own queues are read, as somebody wants something of the messages that wait.
    Waiting { wish: WaitingWish, deferred: Result<Vec<Deferred<Named, Body>>, String> },
    /// Nothing depends on it.
    Nothing,
}

pub(super) type Errand = LocalBoxFuture<'static, Done>;
pub(super) type Changes = (TurnId, TurnChanges<Named>);

/// Where errands are done.
#[derive(Clone)]
pub(super) struct Desk {
    pub(super) node: std::sync::Arc<Here>,
    pub(super) ledger: Ledger,
}

impl Desk {
    /// Reads an actor's records, unless that is given up. What no retry would change is said at once.
    pub(super) fn load(self, actor: Named, given_up: oneshot::Receiver<()>) -> Errand {
        let loaded = self.loaded(actor);
        Box::pin(async move {
            tokio::select! {
                biased;
                done = loaded => done,
                _ = given_up => Done::Nothing,
            }
        })
    }

    fn loaded(self, actor: Named) -> Errand {
        Box::pin(async move {
            if let Err(refusal) = actor.check(self.node.config().reliable.partitions) {
                return Done::Unloadable { actor, error: refusal.to_string() };
            }
            let mut pause = Pause::default();
            loop {
                // All at once: a journal may serve them together.
                match try_join(self.ledger.load::<_, Body>(&actor), self.ledger.fields(&actor)).await {
                    Ok(((presence, queue), fields)) => return Done::Loaded { actor, presence, queue, fields },
                    Err(error) if error.is_permanent() => {
                        tracing::error!(%actor, %error, "an actor cannot be loaded; callers are told, and messages for it are parked");
                        return Done::Unloadable { actor, error: error.to_string() };
                    }
                    Err(error) => pause.after(&self.node, &format!("{actor} cannot be loaded"), &error).await,
                }
            }
        })
    }

    /// Waits before a turn is begun again whose kind nobody has offered here yet.
    pub(super) fn later(self, turn: TurnId, letter: Sealed) -> Errand {
        Box::pin(async move {
            let world = self.node.world();
            world.sleep_until(world.now() + OFFERED_AFTER).await;
            Done::Due { turn, letter }
        })
    }

    /// Waits until the turn of a suspect may begin here: its kind is offered and, if it runs alone, no other suspect does.
    pub(super) fn admission(self, turn: TurnId, letter: Sealed, alone: bool) -> Errand {
        Box::pin(async move {
            let world = self.node.world();
            let kind = &letter.to.kind;
            while !self.node.kinds().contains(kind) && self.node.may_be_offered(kind) {
                world.sleep_until(world.now() + OFFERED_AFTER).await;
            }
            // It is never closed.
            let permit = if alone { self.node.isolation().clone().acquire_owned().await.ok() } else { None };
            Done::Admitted { turn, permit }
        })
    }

    /// Waits until the turn of a suspect has run alone for so long that others may run beside it.
    pub(super) fn alone_for_long(self, turn: TurnId) -> Errand {
        Box::pin(async move {
            let world = self.node.world();
            world.sleep_until(world.now() + ALONE_MAX).await;
            Done::AloneForLong { turn }
        })
    }

    pub(super) fn fields(self, actor: Named) -> Errand {
        Box::pin(async move {
            let mut pause = Pause::default();
            loop {
                match self.ledger.fields(&actor).await {
                    Ok(fields) => return Done::Fields { actor, fields: Ok(fields) },
                    Err(error) if error.is_permanent() => {
                        return Done::Fields { actor, fields: Err(error.to_string()) };
                    }
                    Err(error) => pause.after(&self.node, &format!("{actor} cannot be loaded"), &error).await,
                }
            }
        })
    }

    pub(super) fn commit(self, commit: Commit<Named, Body>, changes: Vec<Changes>) -> Errand {
        Box::pin(async move {
            let mut pause = Pause::default();
            let began = self.node.world().now();
            loop {
                let outcome = match self.ledger.commit(&commit, &changes).await {
                    Outcome::Again(error) => {
                        pause.after(&self.node, "a commit of reliable actors waits for the journal", &error).await;
                        continue;
                    }
                    outcome => outcome,
                };
                return Done::Committed { id: commit.id, outcome, took: self.node.world().now().since(began) };
            }
        })
    }

    pub(super) fn page(self, lane: Lane, from: u64, limit: usize) -> Errand {
        Box::pin(async move {
            let mut pause = Pause::default();
            loop {
                match self.ledger.page::<Named, Body>(lane, from, limit).await {
                    Ok(entries) => return Done::Happened(Happening::Paged { lane, entries }),
                    Err(error) => {
                        pause.after_journal(&self.node, "messages on their way cannot be read", &error).await;
                    }
                }
            }
        })
    }

    pub(super) fn trim(self, lane: Lane, through: u64) -> Errand {
        Box::pin(async move {
            if let Err(error) = self.ledger.trim(lane, through).await {
                tracing::debug!(%error, "acknowledged messages stay in the journal until the next trim");
            }
            Done::Nothing
        })
    }

    /// Reads the recorded answers that may be a call's, unless that is given up.
    pub(super) fn recall(self, key: String, numbers: Vec<u64>, given_up: oneshot::Receiver<()>) -> Errand {
        let recalled = self.recalled(key, numbers);
        Box::pin(async move {
            tokio::select! {
                biased;
                done = recalled => done,
                _ = given_up => Done::Nothing,
            }
        })
    }

    fn recalled(self, key: String, numbers: Vec<u64>) -> Errand {
        Box::pin(async move {
            let mut pause = Pause::default();
            loop {
                let found = match self.ledger.recall::<Body>(&key, &numbers).await {
                    Ok(found) => Ok(found),
                    // It stays as it is however often it is read.
                    Err(error @ StoreError::Format { .. }) => Err(format!(
                        "the answer that may be recorded under its idempotency key cannot be read: {error}"
                    )),
                    Err(error) => {
                        pause.after(&self.node, "a recorded answer cannot be read", &error).await;
                        continue;
                    }
                };
                return Done::Happened(Happening::Recalled { key, numbers, found });
            }
        })
    }

    /// Lets recorded answers go whose time is over.
    pub(super) fn prune(self, answers: u64, bundles: u64) -> Errand {
        Box::pin(async move {
            if let Err(error) = self.ledger.prune(answers, bundles).await {
                tracing::debug!(%error, "answers whose time is over stay in the journal until the next ones go");
            }
            Done::Nothing
        })
    }

    pub(super) fn turn(turn: TurnId, ended: oneshot::Receiver<Completion>) -> Errand {
        Box::pin(async move { Done::Turn { turn, completion: ended.await.ok() } })
    }

    /// Reads the parked messages, of which `wish` is about one or all.
    pub(super) fn parked(self, wish: Wish, done: oneshot::Sender<Result<String, String>>) -> Errand {
        Box::pin(async move {
            let parked = self.ledger.parked().await.map_err(|error| error.to_string());
            Done::Parked { wish, parked, done }
        })
    }

    /// Shows an operator what the journal holds of an actor.
    pub(super) fn show(
        self,
        kind: String,
        key: String,
        memory: bool,
        done: oneshot::Sender<Result<String, String>>,
    ) -> Errand {
        Box::pin(async move {
            let id = Kind::known(&kind).map(|kind| ActorId::unchecked(kind, &*key));
            let history = id.map(|id| self.node.kinds().history_of(&id, self.node.world().now()).1);
            let actor = Named { kind: kind.to_owned().into(), key: key.into() };
            let shown = async {
                let (presence, queue) = self.ledger.load::<_, Body>(&actor).await?;
                let fields = self.ledger.fields(&actor).await?;
                Ok::<_, StoreError>(admin::actor(
                    &actor,
                    memory,
                    presence,
                    &queue,
                    &fields,
                    &history.unwrap_or_default(),
                ))
            };
            // An error means that nobody waits.
            let _ = done.send(shown.await.map_err(|error| error.to_string()));
            Done::Nothing
        })
    }
}

/// The growing pauses between tries.
pub(super) struct Pause(Duration);

impl Default for Pause {
    fn default() -> Self {
        Self(PAUSE_MIN)
    }
}

impl Pause {
    pub(super) async fn after(&mut self, node: &Here, what: &str, error: &(impl Display + Sync)) {
        if self.0 < PAUSE_TOLD {
            tracing::debug!(%error, again_in = ?self.0, "{what}");
        } else {
            tracing::warn!(%error, again_in = ?self.0, "{what}");
        }
        self.rest(node).await;
    }

    /// The same after an error of the journal. One that no retry changes is looked at again from time to time only, for
    /// when somebody has put right what is stored.
    pub(super) async fn after_journal(&mut self, node: &Here, what: &str, error: &StoreError) {
        if !error.is_permanent() {
            return self.after(node, what, error).await;
        }
        self.0 = PAUSE_PERMANENT;
        tracing::error!(%error, again_in = ?self.0, "{what}");
        self.rest(node).await;
    }

    async fn rest(&mut self, node: &Here) {
        let world = node.world();
        world.sleep_until(world.now() + self.0).await;
        self.0 = (self.0 * 2).min(PAUSE_MAX);
    }
}

/// What a message is about, for people.
pub(super) fn subject(letter: &Letter) -> String {
    match &letter.body {
        Body::Call { method, .. } => format!("{}.{method}", letter.to),
        Body::Reply { .. } | Body::Created | Body::Output(_) => letter.to.to_string(),
    }
}

const PAUSE_MIN: Duration = Duration::from_millis(20);
/// The first pause of which people are told: a burst that a store turns down for a moment is nothing to warn of, thousands of times.
const PAUSE_TOLD: Duration = Duration::from_millis(100);
const PAUSE_MAX: Duration = Duration::from_secs(2);
/// Between two looks whether a kind is offered.
const OFFERED_AFTER: Duration = Duration::from_millis(200);
/// Time after which a suspect that does not end lets others run beside it.
const ALONE_MAX: Duration = Duration::from_secs(10);
/// Pause where a retry helps only after an operator has.
const PAUSE_PERMANENT: Duration = Duration::from_secs(5);
