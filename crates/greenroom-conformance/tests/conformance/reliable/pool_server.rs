//! PoolServer (RSM §5.2): pools reach their sizes and disposed pools leave nothing, whatever crashes and whatever the provider
//! refuses and loses.

use std::cell::Cell;
use std::rc::Rc;
use std::time::Duration;

use greenroom_sim::seeds;

use super::pools::{PoolRef, PoolView, ProviderRef};
use super::{NODES, PATIENCE, Trial, eventually, faults, through_a_bad_day};
use crate::cluster::{Cluster, sim};

/// What the owner of a pool does: makes it with the first size, resizes it to the others, and may delete it at last.
fn wishes(random: u64) -> (Vec<u64>, bool) {
    let sizes = (0..4).map(|place| (random >> (8 * place)) % 6).collect();
    (sizes, random.is_multiple_of(3))
}

pub(super) fn pools(seed: u64, trial: Trial) {
    sim(seed, faults()).deadline(Duration::from_secs(900)).run(|sim| async move {
        let owners = Rc::new(Cell::new(0));
        let wanted: Vec<(Vec<u64>, bool)> = NODES.iter().map(|_| wishes(sim.random().index(1 << 31) as u64)).collect();
        let (wishes_of, left) = (wanted.clone(), owners.clone());
        let cluster = through_a_bad_day(&sim, trial, move |cluster, name| {
            let place = NODES.iter().position(|node| *node == name).unwrap_or(0);
            left.set(left.get() + 1);
            cluster.sim.spawn(own(cluster.clone(), name, wishes_of[place].clone(), left.clone()));
            if place == 0 {
                cluster.sim.spawn(annoy(cluster.clone(), left.clone()));
            }
        })
        .await;
        while owners.get() > 0 {
            tokio::time::sleep(Duration::from_millis(100)).await;
        }
        // Nothing fails from here on: Properties 2 and 3 must come true in bounded time.
        eventually(&sim, &cluster, |node| ProviderRef::of(node, "cloud").refuse(0).by(PATIENCE)).await;
        let until = sim.now() + FAIR;
        loop {
            let mut resources: Vec<String> = Vec::new();
            let mut settled = true;
            for (name, (sizes, deleted)) in NODES.iter().zip(&wanted) {
                let view = look(&cluster, name).await;
                let size = if *deleted { 0 } else { *sizes.last().expect("there are four") };
                let state = if *deleted { "Absent" } else { "Ready" };
                settled &= (&*view.state, view.created, view.creating, view.deleting) == (state, size, 0, 0);
                resources.extend(view.resources);
            }
            let mut allocated =
                eventually(&sim, &cluster, |node| ProviderRef::of(node, "cloud").allocations().by(PATIENCE)).await;
            resources.sort_unstable();
            allocated.sort_unstable();
            if settled && resources == allocated {
                return;
            }
            assert!(sim.now() < until, "pools {wanted:?} have {resources:?}, the provider {allocated:?}");
            tokio::time::sleep(Duration::from_millis(200)).await;
        }
    });
}

/// How a pool is; Property 1 holds whenever it is looked at.
async fn look(cluster: &Cluster, name: &str) -> PoolView {
    let view = eventually(&cluster.sim, cluster, |node| PoolRef::of(node, name).look().by(PATIENCE)).await;
    assert_eq!(view.creating + view.created, view.goal, "Property 1: {view:?}");
    let all = view.creating + view.created + view.deleting;
    assert_eq!(all, view.resources.len() as u64, "no resource is forgotten: {view:?}");
    view
}

/// Carries wishes out, each until there is an answer. The answers are those of a run without failures (Theorem 3.1).
async fn own(cluster: Cluster, name: &'static str, (sizes, deleted): (Vec<u64>, bool), left: Rc<Cell<u64>>) {
    let sim = cluster.sim.clone();
    for (place, size) in sizes.into_iter().enumerate() {
        let key = place.to_string();
        let answer = eventually(&sim, &cluster, |node| {
            let pool = PoolRef::of(node, name);
            async move {
                match place {
                    0 => answered(pool.create_pool(size).idempotent(&key_of(place)).by(PATIENCE).await),
                    _ => answered(pool.resize(size).idempotent(&key_of(place)).by(PATIENCE).await),
                }
            }
        })
        .await;
        assert_eq!(answer, Ok(()), "wish {key} of {name}");
        look(&cluster, name).await;
        tokio::time::sleep(Duration::from_millis(sim.random().index(6000) as u64)).await;
    }
    if deleted {
        let answer = eventually(&sim, &cluster, |node| {
            let pool = PoolRef::of(node, name);
            async move { answered(pool.delete().idempotent("delete").by(PATIENCE).await) }
        });
        assert_eq!(answer.await, Ok(()), "the end of {name}");
    }
    left.set(left.get() - 1);
}

fn key_of(place: usize) -> String {
    format!("wish {place}")
}

/// What the pool has answered; an error if nobody has.
fn answered<E: std::fmt::Debug + Clone>(
    answer: Result<(), greenroom::CallError<E>>,
) -> Result<Result<(), E>, greenroom::CallError<E>> {
    match answer {
        Ok(()) => Ok(Ok(())),
        Err(greenroom::CallError::Actor(error)) => Ok(Err(error)),
        Err(error) => Err(error),
    }
}

/// Lets the provider refuse, and lose resources.
async fn annoy(cluster: Cluster, left: Rc<Cell<u64>>) {
    let mut random = cluster.sim.random();
    while left.get() > 0 {
        tokio::time::sleep(Duration::from_millis(random.index(2000) as u64)).await;
        let (each, place) = (2 + random.index(3) as u64, random.index(16) as u64);
        if let Some(node) = NODES.iter().find_map(|name| cluster.node(name)) {
            // What comes to nothing annoys nobody.
            let _ = ProviderRef::of(&node, "cloud").refuse(each).by(PATIENCE).await;
            let _ = ProviderRef::of(&node, "cloud").lose(place).by(PATIENCE).await;
        }
    }
}

#[test]
fn pools_reach_their_sizes_and_disposed_pools_leave_nothing() {
    seeds("pools_reach_their_sizes_and_disposed_pools_leave_nothing", 8, |seed| pools(seed, Trial::default()));
}

/// Time for Properties 2 and 3 to come true after the last fault.
const FAIR: Duration = Duration::from_secs(60);
