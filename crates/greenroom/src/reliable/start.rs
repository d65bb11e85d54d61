//! What must hold before a node hosts reliable actors, and what keeps its partitions owned.

use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;

use greenroom_protocols::node::NodeId;
use greenroom_reliable::ledger::is_occupied;
use greenroom_store::url::redact;
use greenroom_store::{Journal, Store, StoreError};
use greenroom_world::{Stage, World};
use serde::{Deserialize, Serialize};
use tokio::sync::Semaphore;

use super::admin::{Report, reports};
use super::counts::Counts;
use super::hall::Hall;
use super::homes::{home, homes};
use super::outputs::Outlets;
use super::partition::{PARTITIONS, PartitionsRef};
use crate::actor::key::{ActorId, Kind};
use crate::actor::reference::Ref;
use crate::cluster::view::KindHosts;
use crate::here::Here;
use crate::here::figures::Figures;
use crate::here::kinds::Kinds;
use crate::here::node::Node;
use crate::here::parts::Part;
use crate::here::port::Port;
use crate::here::stores::open_store;
use crate::node::config::Config;
use crate::node::error::{Error, Result};
use crate::shard::parts::ShardPart;
use crate::shard::underway::Way;

/// A node's journal, if it has one.
#[derive(Default, Debug)]
pub(crate) struct Journals {
    journal: Option<Arc<dyn Journal>>,
    counts: Counts,
    outlets: Outlets,
    isolation: Isolation,
}

/// Permit of the one suspect that runs alone at this node.
#[derive(Debug)]
struct Isolation(Arc<Semaphore>);

impl Default for Isolation {
    fn default() -> Self {
        Self(Arc::new(Semaphore::new(1)))
    }
}

impl Journals {
    /// The same, with ways out of the cluster.
    pub(crate) fn with(self, outlets: Outlets) -> Self {
        Self { outlets, ..self }
    }

    pub(crate) fn outlets(&self) -> &Outlets {
        &self.outlets
    }

    pub(crate) fn get(&self) -> Option<&Arc<dyn Journal>> {
        self.journal.as_ref()
    }

    /// What this node's partitions do.
    pub(crate) fn counts(&self) -> &Counts {
        &self.counts
    }

    fn of(journal: Arc<dyn Journal>) -> Self {
        Self { journal: Some(journal), ..Self::default() }
    }
}

/// What a journal says of itself.
#[derive(Debug, Serialize, Deserialize)]
struct About {
    /// Tells this journal from all others.
    id: String,
    partitions: u32,
}

/// Opens the journal of a node that hosts `kinds`, and makes sure that it is the cluster's.
///
/// # Errors
/// [`Error::NoJournal`] and [`Error::Journal`].
pub(crate) async fn open(
    world: &Arc<dyn World>,
    config: &Config,
    kinds: &Kinds,
    table: &Arc<dyn Store>,
    given: Option<Arc<dyn Journal>>,
) -> Result<Journals> {
    let url = &config.reliable.journal;
    if given.is_none() && url.is_empty() {
        return match kinds.reliable().next() {
            Some(kind) => Err(Error::NoJournal { kind }),
            None => Ok(Journals::default()),
        };
    }
    let failed = |reason: String| {
        let url = if url.is_empty() { "the program's own".to_owned() } else { redact(url) };
        Error::Journal { url, reason }
    };
    let partitions = config.reliable.partitions;
    config.reliable.check().map_err(&failed)?;
    let (journal, lasts) = match given {
        Some(journal) => (journal, true),
        None => {
            let opened = open_store(world, url).await.map_err(&failed)?;
            let none = "it cannot commit several writes at once; use sqlite:, postgres:, redis:, etcd: or kafka:, or memory: for trials";
            (opened.journal.ok_or_else(|| failed(none.to_owned()))?, opened.shared)
        }
    };
    let timeout = config.store_timeout;
    let told = |error: StoreError| failed(error.to_string());
    let about = format!("reliable/{}/about", config.cluster);
    let key = format!("reliable/{}/journal", config.cluster);
    // What the cluster knows is asked first, so that nothing is written to what is not its journal.
    if lasts
        && read(&**table, &key, timeout).await.map_err(told)?.is_some()
        && read(&*journal, &about, timeout).await.map_err(told)?.is_none()
    {
        let reason = format!(
            "it is empty, and the cluster's reliable actors are in a journal that was in use: this one was emptied or \
             removed, or is another one. Put it back from a backup, or name the right one; or, if all that was in it is \
             lost, remove the key {key:?} from the membership table's store, and the cluster begins anew in this one"
        );
        return Err(failed(reason));
    }
    let own = About { id: format!("{:016x}{:016x}", world.random(), world.random()), partitions };
    let known = agreed(&*journal, &about, &own, timeout).await.map_err(told)?;
    if known.partitions != partitions {
        let reason = format!(
            "it has {} partitions, and the configuration says {partitions}; their number is for ever: write `partitions = {}`",
            known.partitions, known.partitions
        );
        return Err(failed(reason));
    }
    if !lasts {
        tracing::warn!("reliable actors are kept in this process's memory: what they hold and send ends with it");
        return Ok(Journals::of(journal));
    }
    let common = agreed(&**table, &key, &known, timeout).await.map_err(told)?;
    if common.id != known.id {
        let reason = format!(
            "the cluster's reliable actors are in another journal; give all nodes the same one, or, if it is lost with all \
             that was in it, remove the key {key:?} from the membership table's store"
        );
        return Err(failed(reason));
    }
    Ok(Journals::of(journal))
}

impl Part for Journals {
    fn start(&self, here: &Arc<Here>) {
        if self.get().is_some() {
            here.world().spawn(Stage::Door, Box::pin(keep_awake(here.clone())));
            if here.config().geo.is_some() {
                // A node that starts again must not take what the others, which are closed, would have refused: it is closed until it has looked.
                self.counts().is_closed.store(leaves(here), Ordering::Release);
                here.world().spawn(Stage::Door, Box::pin(watch_vacant(here.clone())));
            }
        }
    }

    fn report(&self, figures: &mut Figures) {
        self.counts().report(figures);
    }

    fn on_shard(&self) -> Option<Box<dyn ShardPart>> {
        Some(Box::<Hall>::default())
    }

    fn way(&self) -> Option<&dyn Way> {
        Some(self)
    }

    fn home(&self, here: &Here, actor: &ActorId, hosts: &KindHosts) -> Option<NodeId> {
        (actor.kind.name() == PARTITIONS).then(|| home(here, actor, hosts)).flatten()
    }
}

impl Here {
    fn journals(&self) -> &Journals {
        self.part()
    }

    /// Where reliable actors are kept; `None` on nodes that host none.
    pub(crate) fn journal(&self) -> Option<&Arc<dyn Journal>> {
        self.journals().get()
    }

    /// Where outputs of reliable actors go.
    pub(crate) fn outlets(&self) -> &Outlets {
        self.journals().outlets()
    }

    /// The permit of the one turn that runs alone, as it may take this node down.
    pub(crate) fn isolation(&self) -> &Arc<Semaphore> {
        &self.journals().isolation.0
    }

    /// True unless the cluster leaves, its partitions of reliable actors hold nothing, and this node's take nothing any more: a cluster
    /// that leaves is not empty while its journal holds something, or may.
    pub(crate) fn may_hold_reliable_actors(&self) -> bool {
        self.journal().is_some() && !self.reliable().is_vacant.load(Ordering::Acquire)
    }

    /// What this node's partitions of reliable actors do.
    pub(crate) fn reliable(&self) -> &Counts {
        self.journals().counts()
    }
}

/// What is written under `key`: `own`, if nothing was.
async fn agreed<S: Store + ?Sized>(store: &S, key: &str, own: &About, timeout: Duration) -> Result<About, StoreError> {
    let mut last = None;
    for _ in 0..TRIES {
        match read(store, key, timeout).await {
            Ok(Some(found)) => return Ok(found),
            Ok(None) => {}
            Err(error) if error.is_permanent() => return Err(error),
            Err(error) => {
                last = Some(error);
                continue;
            }
        }
        let value = serde_json::to_vec(own).map_err(|error| unreadable(error.to_string()))?;
        // Whoever was first: it is read again.
        if let Err(error) = store.create(key, value.into(), timeout).await {
            last = Some(error);
        }
    }
    Err(last.unwrap_or_else(|| unreadable(format!("record {key:?} comes and goes"))))
}

/// What is written under `key`.
async fn read<S: Store + ?Sized>(store: &S, key: &str, timeout: Duration) -> Result<Option<About>, StoreError> {
    let found = store.read(key, timeout).await?;
    found
        .map(|found| serde_json::from_slice(&found.value))
        .transpose()
        .map_err(|error| unreadable(format!("record {key:?}: {error}")))
}

fn unreadable(reason: String) -> StoreError {
    StoreError::Format { store: "the journal".to_owned(), reason }
}

/// While the cluster drains, looks at the journal from time to time, and notes whether the cluster's partitions hold anything.
async fn watch_vacant(node: Arc<Here>) {
    let world = node.world().clone();
    let Some(journal) = node.journal().cloned() else { return };
    while !node.is_stopped() {
        let leaves = leaves(&node);
        let is_vacant = leaves && becomes_vacant(&node, &*journal).await;
        node.reliable().is_vacant.store(is_vacant, Ordering::Release);
        if !leaves {
            node.reliable().is_closed.store(false, Ordering::Release);
        }
        world.sleep_until(world.now() + VACANT_LOOK_EVERY).await;
    }
}

/// Returns true if the node's cluster drains, or has left.
fn leaves(node: &Here) -> bool {
    node.parts().any(|part| part.is_cluster_leaving())
}

/// Returns true if the cluster's partitions hold nothing, and this node's will take nothing. If they hold nothing this closes them, waits for
/// what they have in memory, and looks once more: what came before is in the journal by then.
async fn becomes_vacant(node: &Arc<Here>, journal: &dyn Journal) -> bool {
    let (cluster, timeout) = (&node.config().cluster, node.config().store_timeout);
    let is_empty = is_occupied(journal, cluster, timeout).await.is_ok_and(|occupied| !occupied);
    if !is_empty {
        node.reliable().is_vacant.store(false, Ordering::Release);
        node.reliable().is_closed.store(false, Ordering::Release);
        return false;
    }
    node.reliable().is_closed.store(true, Ordering::Release);
    let reports = reports(&Node::at(Arc::new(Port { node: node.clone() }))).await;
    let is_idle = |report: &Report| report.waiting == 0 && report.outgoing == 0;
    if !reports.iter().all(|(_, report)| report.as_ref().is_some_and(is_idle)) {
        return false;
    }
    is_occupied(journal, cluster, timeout).await.is_ok_and(|occupied| !occupied)
}

/// Sees to it that each partition has an owner, also if nobody calls its actors.
async fn keep_awake(node: Arc<Here>) {
    let world = node.world().clone();
    let port = Arc::new(Port { node: node.clone() });
    let kind = Kind::intern(PARTITIONS);
    let partitions: Vec<PartitionsRef> = (0..node.config().reliable.partitions)
        .map(|partition| Ref::made(partition.to_string().into(), Some(port.clone())).into())
        .collect();
    let (mut known, mut since, mut round) = (Vec::new(), world.now(), 0);
    while !node.is_stopped() {
        let homes = homes(&node.view(), kind, partitions.len() as u32);
        if homes != known {
            (known, since) = (homes, world.now());
        }
        let settled = since + SETTLED_AFTER <= world.now();
        // Each node looks after those that belong on it, so that one question comes for each partition.
        let own = partitions.iter().enumerate().filter(|(partition, _)| known.get(*partition) == Some(&node.me()));
        for (partition, actor) in own {
            // Not all go home at once.
            let home = (settled && partition % TURNS == round).then(|| node.name().to_owned());
            // What is refused is asked for again.
            let _ = actor.wake(home).try_send();
        }
        round = (round + 1) % TURNS;
        world.sleep_until(world.now() + WAKE_EVERY).await;
    }
}

/// Time between two looks whether the partitions of a cluster that drains hold anything.
const VACANT_LOOK_EVERY: Duration = Duration::from_secs(2);
/// Between two looks whether each partition has an owner.
const WAKE_EVERY: Duration = Duration::from_secs(2);
/// How long the cluster must have been as it is before partitions go home.
const SETTLED_AFTER: Duration = Duration::from_secs(5);
/// In so many looks all partitions are sent home.
const TURNS: usize = 4;
/// Reads and writes of a record that nodes agree on.
const TRIES: usize = 8;
