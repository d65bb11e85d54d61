//! One partition's driver: takes the fence, and takes it anew when an ownership is over.

use std::collections::VecDeque;
use std::sync::Arc;
use std::time::Duration;

use greenroom_protocols::delivery::{Life, PartitionId};
use greenroom_reliable::ledger::{Ledger, Place};
use greenroom_store::Journal;
use tokio::sync::{mpsc, oneshot};

use super::admin::Report;
use super::errands::Pause;
use super::name::{Body, Named};
use super::owned::Owned;
use super::partition::Input;
use crate::node::port::Port;

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
        let taking = async {
            let mut pause = Pause::default();
            loop {
                if !node.fence_open() {
                    let world = node.world();
                    world.sleep_until(world.now() + AGAIN_AFTER).await;
                    continue;
                }
                let place = Place::new(&node.config().cluster, self.partition);
                let life = Life(node.world().wall().as_millis() as u64);
                let timeout = node.config().store_timeout;
                let taken = Ledger::take::<Named, Body>(self.journal.clone(), place, node.name(), life, timeout).await;
                match taken {
                    Ok(taken) => return taken,
                    Err(error) => {
                        let what = format!("partition {} of reliable actors cannot be taken", self.partition.0);
                        pause.after(&node, &what, &error).await;
                    }
                }
            }
        };
        tokio::pin!(taking);
        let (ledger, recovered) = loop {
            tokio::select! {
                biased;
                taken = &mut taking => break taken,
                input = self.inputs.recv(), if early.len() < EARLY_MAX => match input {
                    Some(Input::Leave(told)) => return Err(Over::Left(Some(told))),
                    Some(Input::Look(report)) => {
                        let node = node.name().to_owned();
                        let _ = report.send(Report { partition: self.partition.0, node, ..Report::default() });
                    }
                    Some(input) => early.push_back(input),
                    None => return Err(Over::Left(None)),
                },
            }
        };
        Ok(Owned::recover(&self.port, &*self.journal, ledger, recovered))
    }
}

/// Before a fence is taken anew.
const AGAIN_AFTER: Duration = Duration::from_millis(50);
/// And so much more at most, by chance.
const AGAIN_SPREAD_MS: u64 = 200;
/// Inputs that wait for an ownership; others wait in their queue.
const EARLY_MAX: usize = 4096;
