//! Partitions of reliable actors are spread evenly, also over a node that has come later, and callers hear nothing of it.

use std::cell::Cell;
use std::rc::Rc;
use std::sync::Arc;
use std::time::Duration;

use greenroom::prelude::*;
use greenroom_sim::{Faults, SimStore, seeds};
use greenroom_store::memory::MemoryStore;

use crate::cluster::{Cluster, sim};

/// Counts, and says where it is.
#[derive(Default, Actor)]
struct Tally {
    count: Register<u64>,
    heard: Register<u64>,
}

#[actor(reliable)]
impl Tally {
    pub async fn add(&mut self, cx: &Cx) -> u64 {
        *self.count.get_mut() += 1;
        TallyRef::of(cx, (self.number(cx) + 1) % TALLIES).hear().send();
        *self.count.get()
    }

    pub async fn hear(&mut self) {
        *self.heard.get_mut() += 1;
    }

    pub async fn seen(&self, cx: &Cx) -> (u64, u64, String) {
        (*self.count.get(), *self.heard.get(), cx.node_name().to_owned())
    }

    fn number(&self, cx: &Cx) -> u64 {
        cx.key().parse().expect("tallies are numbered")
    }
}

/// The number of tallies on each of `names`.
async fn spread(node: &Node, names: &[&str]) -> Vec<usize> {
    let mut spread = vec![0; names.len()];
    for tally in 0..TALLIES {
        let (_, _, place) = TallyRef::of(node, tally).seen().await.expect("nothing fails here");
        spread[names.iter().position(|name| *name == place).expect("it is a node")] += 1;
    }
    spread
}

fn a_node_comes_and_goes(seed: u64) {
    sim(seed, Faults::none()).deadline(Duration::from_secs(600)).run(|sim| async move {
        let journal = SimStore::journal(&sim, "journal", Arc::new(MemoryStore::new()));
        let cluster = Cluster::new(&sim, move |builder, name| {
            let builder = builder.register::<Tally>().journal_store(journal.journal_seen_by(name));
            builder.configure(|config| config.reliable.partitions = PARTITIONS)
        });
        cluster.start_all(&["a", "b"]).await;
        let node = cluster.node("a").expect("it was started");
        let (closed, added) = (Rc::new(Cell::new(false)), Rc::new(Cell::new(0)));
        for tally in 0..TALLIES {
            let (node, closed, added) = (node.clone(), closed.clone(), added.clone());
            sim.spawn(async move {
                for expected in 1.. {
                    if closed.get() {
                        return;
                    }
                    let count = TallyRef::of(&node, tally).add().await;
                    assert_eq!(count.ok(), Some(expected), "the call {expected} of tally {tally}");
                    added.set(added.get() + 1);
                    tokio::time::sleep(Duration::from_millis(200)).await;
                }
            });
        }
        tokio::time::sleep(Duration::from_secs(2)).await;
        assert!(
            spread(&node, &["a", "b"]).await.iter().all(|tallies| *tallies > 0),
            "both have some from the first on"
        );
        cluster.start("c").await;
        cluster.settled(&["a", "b", "c"]).await;
        tokio::time::sleep(Duration::from_secs(25)).await;
        let after = spread(&node, &["a", "b", "c"]).await;
        assert!(after.iter().all(|tallies| *tallies > TALLIES as usize / 6), "c has its share: {after:?}");
        cluster.node("c").expect("it was started").drain().await;
        cluster.settled(&["a", "b"]).await;
        tokio::time::sleep(Duration::from_secs(25)).await;
        assert!(spread(&node, &["a", "b"]).await.iter().all(|tallies| *tallies > TALLIES as usize / 4));
        closed.set(true);
        tokio::time::sleep(Duration::from_secs(2)).await;
        let (mut counted, mut heard) = (0, 0);
        for tally in 0..TALLIES {
            let (count, hears, _) = TallyRef::of(&node, tally).seen().await.expect("nothing fails here");
            (counted, heard) = (counted + count, heard + hears);
        }
        assert_eq!((counted, heard), (added.get(), added.get()), "each call had its effects once");
    });
}

#[test]
fn partitions_go_to_a_node_that_comes_and_no_caller_hears_of_it() {
    seeds("partitions_go_to_a_node_that_comes_and_no_caller_hears_of_it", 5, a_node_comes_and_goes);
}

const PARTITIONS: u32 = 12;
const TALLIES: u64 = 36;
