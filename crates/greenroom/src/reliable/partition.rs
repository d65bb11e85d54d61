//! The built-in kind behind reliable actors: each partition is an actor, found and kept single like all others, and it
//! goes home when it is elsewhere.

use greenroom_protocols::delivery::PartitionId;
use tokio::sync::{mpsc, oneshot};

use super::admin::{Report, Wish};
use super::answers::Answered;
use super::driver::Driver;
use super::name::{Letter, Named, Sealed, Wire};
use crate::actor::cx::Cx;
use crate::actor::interface::{Actor, Interface, Why};
use crate::shard::Shard;

/// What a partition's driver is told.
pub(super) enum Input {
    /// A call from outside, and who waits for the answer.
    Called(Sealed, Option<oneshot::Sender<Answered>>),
    /// Who waited for the answer to this call does not any more.
    Withdrawn(Named, String),
    /// From the owner of another partition.
    Arrived(Box<Wire>),
    /// Somebody wants to know how it is.
    Look(oneshot::Sender<Report>),
    /// Something that an operator wants.
    Wish(Wish, oneshot::Sender<Result<String, String>>),
    /// The activation is about to end.
    Leave(oneshot::Sender<()>),
}

/// One partition.
#[derive(Default)]
pub(crate) struct Partitions {
    inputs: Option<mpsc::Sender<Input>>,
    partition: PartitionId,
    partitions: u32,
}

impl Actor for Partitions {
    fn create(cx: &Cx) -> Result<Self, String> {
        let partitions = cx.port.node.config().reliable.partitions;
        Ok(Self { partitions, ..Self::default() })
    }
}

#[greenroom_macros::actor(
    kind = "greenroom.partition",
    placement = "greenroom.home",
    idle = "1d",
    instances = "per_cluster"
)]
impl Partitions {
    async fn activated(&mut self, cx: &Cx) -> Result<(), String> {
        let number: Option<u32> = cx.key().parse().ok();
        let number = number.filter(|number| *number < self.partitions);
        self.partition = PartitionId(number.ok_or_else(|| format!("there is no partition {}", cx.key()))?);
        let Some(journal) = cx.port.node.journal().cloned() else {
            return Err("this node has no journal; give it one: `--journal URL` (`memory:` to try it), or `journal` under `[reliable]`".to_owned());
        };
        let (inputs, queue) = mpsc::channel(INPUTS_MAX);
        self.inputs = Some(inputs);
        let driver = Driver::new(cx.port.clone(), self.partition, journal, queue);
        let driving = cx.port.node.clone().vital("a partition of reliable actors", driver.run());
        Shard::with(|shard| {
            if let Some(shard) = shard {
                shard.begin_beside(Some(cx.id()), Box::pin(driving));
            }
        });
        Ok(())
    }

    async fn migrating(&mut self) -> u32 {
        self.partition.0
    }

    async fn migrated(&mut self, partition: u32) {
        self.partition = PartitionId(partition);
    }

    async fn deactivating(&mut self, _cx: &Cx, _why: Why) {
        if let Some(inputs) = self.inputs.take() {
            let (left, leaving) = oneshot::channel();
            if inputs.send(Input::Leave(left)).await.is_ok() {
                // An error means that it has left.
                let _ = leaving.await;
            }
        }
    }

    /// A call from outside, to an actor of this partition.
    pub async fn called(&self, cx: &Cx, letter: Letter) -> Answered {
        if letter.to.partition(self.partitions) != self.partition {
            return Answered::Partitions(self.partitions);
        }
        let withdrawn = letter.call.as_ref().map(|call| Input::Withdrawn(letter.to.clone(), call.key.clone()));
        let (answer, answered) = oneshot::channel();
        let asked = async {
            if !self.tell(Input::Called(letter.into(), Some(answer))).await {
                return Answered::Busy;
            }
            answered.await.unwrap_or(Answered::Lost)
        };
        tokio::select! {
            biased;
            answered = asked => return answered,
            () = cx.cancelled() => {}
        }
        // What has not begun never will, and waits no longer than its caller.
        if let Some(withdrawn) = withdrawn {
            self.tell(withdrawn).await;
        }
        Answered::Lost
    }

    /// A message from outside, for which nobody waits.
    pub async fn told(&self, letter: Letter) {
        self.tell(Input::Called(letter.into(), None)).await;
    }

    /// From the owner of another partition. It may be lost.
    pub async fn arrived(&self, wire: Wire) {
        if let Some(inputs) = &self.inputs {
            // What finds no room is sent again.
            let _ = inputs.try_send(Input::Arrived(Box::new(wire)));
        }
    }

    /// Makes sure that the partition has an owner, which is to be the node called `home`, if one is named.
    pub async fn wake(&self, cx: &Cx, home: Option<String>) {
        if let Some(home) = home.filter(|home| home != cx.port.node.name())
            && let Err(unmoved) = cx.migrate_to(&home)
        {
            tracing::debug!(partition = self.partition.0, %unmoved, "a partition does not go home now");
        }
    }

    /// How it is.
    pub async fn look(&self) -> Option<Report> {
        let (report, reported) = oneshot::channel();
        self.tell(Input::Look(report)).await;
        reported.await.ok()
    }

    /// Does something for an operator.
    pub async fn wish(&self, wish: Wish) -> Result<String, String> {
        let (done, doing) = oneshot::channel();
        self.tell(Input::Wish(wish, done)).await;
        doing.await.unwrap_or_else(|_| Err("the partition has just left its node; try again".to_owned()))
    }

    async fn tell(&self, input: Input) -> bool {
        match &self.inputs {
            Some(inputs) => inputs.send(input).await.is_ok(),
            None => false,
        }
    }
}

/// What may wait for a partition's driver; more waits at its activation.
const INPUTS_MAX: usize = 4096;
/// The kind's name: nobody else's.
pub(crate) const PARTITIONS: &str = <PartitionsInterface as Interface>::KIND;
// Messages between partitions come from nodes of the cluster alone.
const _: () = assert!(<PartitionsInterface as Interface>::INTERNAL);
