//! Games in a simulated world: the whole library on as many nodes as are asked for, in one thread, under virtual time.

use std::sync::Arc;
use std::thread;
use std::time::{Duration, Instant};

use greenroom::{Config, Node};
use greenroom_sim::{Faults, Sim, SimStore};
use greenroom_store::memory::MemoryStore;
use tokio::sync::oneshot;
use tracing::instrument::WithSubscriber;
use tracing::subscriber::NoSubscriber;

use super::leg::Leg;
use crate::cluster::Cluster;
use crate::driver::Plan;
use crate::kinds::presence::{self, clock::Clock};

/// Runs the games of `plan` in a world of their own, on a thread of its own.
pub(super) async fn leg(plan: Plan) -> Result<Leg, String> {
    let (told, telling) = oneshot::channel();
    let simulate = move || {
        let begun = Instant::now();
        let world = Sim::builder().seed(plan.seed).faults(Faults::none()).deadline(DEADLINE).polls_max(u64::MAX);
        let leg = world.run(|sim| async move {
            let clock = Clock::simulated();
            let table = SimStore::new(&sim, "table", Arc::new(MemoryStore::new()));
            let join = async |cluster: &mut Cluster| {
                if let Cluster::Simulated(nodes) = cluster {
                    nodes.push(node(&sim, &table, &plan, nodes.len() as u32, clock).await?);
                }
                Ok(())
            };
            Leg::play(cluster(&sim, &table, &plan, clock).await?, &plan, clock, join).await
        });
        // Who does not wait any more need not know.
        let _ = told.send(leg.map(|leg| leg.simulated_in(begun.elapsed())));
    };
    let thread = thread::Builder::new().name("bench-simulation".to_owned()).spawn(simulate);
    thread.map_err(|error| format!("no thread for the simulation: {error}"))?;
    telling.await.map_err(|_| "the simulation has ended before its time".to_owned())?
}

/// The nodes, when each of them knows all of them.
async fn cluster(sim: &Sim, table: &SimStore, plan: &Plan, clock: Clock) -> Result<Cluster, String> {
    let mut nodes = Vec::new();
    for place in 0..plan.nodes {
        nodes.push(node(sim, table, plan, place, clock).await?);
    }
    while nodes.iter().any(|node| node.members().len() < nodes.len()) {
        tokio::time::sleep(Duration::from_millis(100)).await;
    }
    Ok(Cluster::Simulated(nodes))
}

async fn node(sim: &Sim, table: &SimStore, plan: &Plan, place: u32, clock: Clock) -> Result<Node, String> {
    let name = &*format!("node-{}", place + 1);
    let mut config = Config::default();
    config.name = name.to_owned();
    config.listen = format!("{name}:0");
    config.insecure_listen = true;
    config.shards = 1;
    config.optimiser.mode = plan.optimiser.unwrap_or_default();
    // All players are seated by one call.
    config.call_timeout = DEADLINE;
    let builder = Node::builder().config(config).world(sim.node(name)).store(table.seen_by(name));
    // Only this world reaches its port, of which there is nothing to warn of.
    let starting = presence::register_by(builder, clock).start().with_subscriber(NoSubscriber::default());
    starting.await.map_err(|error| format!("{name} cannot start: {error}"))
}

/// No run takes as long.
const DEADLINE: Duration = Duration::from_secs(24 * 3600);
