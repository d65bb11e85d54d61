//! One partition's driver: takes the fence, and takes it anew when an ownership is over.

use std::collections::VecDeque;
use std::future::Future;
use std::sync::Arc;
use std::time::Duration;

use greenroom_protocols::delivery::{PartitionId, Recovered};
use greenroom_reliable::ledger::{Ledger, OwnerProcess, Place};
use greenroom_store::{Journal, StoreError};
use tokio::sync::{mpsc, oneshot};

use super::admin::Report;
use super::answers::Answered;
use super::errands::Pause;
use super::name::{Body, Named};
use super::owned::Owned;
use super::partition::Input;
use crate::actor::error::Refusal;
use crate::here::Here;
use crate::here::port::Port;

/// One partition's driver, for as long as the partition's activation lives.
pub(super) struct Driver {
    port: Arc<Port>,
    partition: PartitionId,
    journal: Arc<dyn Journal>,
    inputs: mpsc::Receiver<Input>,
}

/// Why an ownership is over.
pub(super) enum Over {
    /// The activation ends; who is to be told that nothing runs any more.
    Left(Option<oneshot::Sender<()>>),
    /// The fence is to be taken anew.
    Again,
}

impl Driver {
    pub(super) fn new(
        port: Arc<Port>,
        partition: PartitionId,
        journal: Arc<dyn Journal>,
        inputs: mpsc::Receiver<Input>,
    ) -> Self {
        Self { port, partition, journal, inputs }
    }

    /// Owns the partition until its activation ends.
    pub(super) async fn run(mut self) {
        let mut early = VecDeque::new();
        loop {
            let over = match self.take(&mut early).await {
                Ok(owned) => owned.run(&mut self.inputs, &mut early).await,
                Err(over) => over,
            };
            match over {
                Over::Left(None) => return,
                Over::Left(Some(told)) => {
                    // Nobody listens if the activation was cut.
                    let _ = told.send(());
                    return;
                }
                Over::Again => self.rest(&mut early).await,
            }
        }
    }

    /// Lets other owners have their go before the fence is taken anew.
    async fn rest(&mut self, early: &mut VecDeque<Input>) {
        let world = self.port.node.world();
        let pause = AGAIN_AFTER + Duration::from_millis(world.random() % AGAIN_SPREAD_MS);
        let mut over = world.sleep_until(world.now() + pause);
        loop {
            tokio::select! {
                biased;
                input = self.inputs.recv(), if early.len() < EARLY_MAX => match input {
                    Some(input) => early.push_back(input),
                    None => return,
                },
                () = &mut over => return,
            }
        }
    }

    /// Takes the partition's fence, and reads what it recovers from.
    async fn take(&mut self, early: &mut VecDeque<Input>) -> Result<Owned, Over> {
        let node = self.port.node.clone();
        let mut pause = Pause::default();
        loop {
            let (node, journal, partition) = (node.clone(), self.journal.clone(), self.partition);
            let taken = self.meanwhile(taken(node.clone(), journal, partition), early, None).await?;
            let error = match taken {
                Ok((ledger, recovered)) => {
                    return Ok(Owned::recover(&self.port, &*self.journal, ledger, recovered));
                }
                Err(error) => error,
            };
            let what = format!("partition {} of reliable actors cannot be taken", partition.0);
            let trouble = error.is_permanent().then(|| format!("{what}: {error}"));
            self.meanwhile(pause.after_journal(&node, &what, &error), early, trouble.as_deref()).await?;
        }
    }

    /// Does `work` while inputs come, which wait for it; if there is `trouble` that no waiting ends, who asks is told of it.
    async fn meanwhile<T>(
        &mut self,
        work: impl Future<Output = T>,
        early: &mut VecDeque<Input>,
        trouble: Option<&str>,
    ) -> Result<T, Over> {
        if let Some(trouble) = trouble {
            *early = std::mem::take(early).into_iter().filter_map(|input| turned_away(input, trouble)).collect();
        }
        tokio::pin!(work);
        loop {
            tokio::select! {
                biased;
                done = &mut work => return Ok(done),
                input = self.inputs.recv(), if early.len() < EARLY_MAX => match input {
                    Some(Input::Leave(told)) => return Err(Over::Left(Some(told))),
                    Some(Input::Look(report)) => {
                        let (node, trouble) = (self.port.node.name().to_owned(), trouble.map(str::to_owned));
                        let _ = report.send(Report { partition: self.partition.0, node, trouble, ..Report::default() });
                    }
                    Some(Input::Withdrawn(..)) => early.retain(|input| !is_withdrawn(input)),
                    Some(input) => early.extend(match trouble {
                        Some(trouble) => turned_away(input, trouble),
                        None => Some(input),
                    }),
                    None => return Err(Over::Left(None)),
                },
            }
        }
    }
}

/// What comes of taking a partition, once this node may.
async fn taken(
    node: Arc<Here>,
    journal: Arc<dyn Journal>,
    partition: PartitionId,
) -> Result<(Ledger, Recovered<Named, Body>), StoreError> {
    let world = node.world();
    while !node.fence_open() {
        world.sleep_until(world.now() + AGAIN_AFTER).await;
    }
    let place = Place::new(&node.config().cluster, partition);
    let owner = OwnerProcess { name: node.name(), number: node.birth().into() };
    Ledger::take(journal, place, owner, node.wall(), node.config().store_timeout).await
}

/// Whether it is a call for whose answer nobody waits any more.
fn is_withdrawn(input: &Input) -> bool {
    matches!(input, Input::Called(_, Some(waiter)) if waiter.is_closed())
}

/// Tells who waits for an answer why there will be none; what nobody waits for stays.
fn turned_away(input: Input, trouble: &str) -> Option<Input> {
    // An error means that who asked has gone.
    match input {
        Input::Called(_, Some(waiter)) => {
            let _ = waiter.send(Answered::refused(Refusal::Activation { message: trouble.to_owned() }));
        }
        Input::Wish(_, done) => _ = done.send(Err(trouble.to_owned())),
        Input::Called(_, None) | Input::Withdrawn(..) | Input::Arrived(_) | Input::Look(_) | Input::Leave(_) => {
            return Some(input);
        }
    }
    None
}

/// Before a fence is taken anew.
const AGAIN_AFTER: Duration = Duration::from_millis(50);
/// And so much more at most, by chance.
const AGAIN_SPREAD_MS: u64 = 200;
/// Inputs that wait for an ownership; others wait in their queue.
const EARLY_MAX: usize = 4096;
