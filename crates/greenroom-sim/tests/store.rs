//! Stores that are slow, out of reach, or leave it open what they did.

mod echo;

use std::sync::Arc;

use echo::{calm, millis, secs};
use greenroom_sim::{Fault, Faults, Nemesis, Sim, SimStore, StoreFaults, seeds};
use greenroom_store::memory::MemoryStore;
use greenroom_store::{Applied, Store, StoreError};

fn memory(sim: &Sim) -> (SimStore, Arc<dyn Store>) {
    let inner: Arc<dyn Store> = Arc::new(MemoryStore::new());
    (SimStore::new(sim, "store", inner.clone()), inner)
}

#[test]
fn a_calm_store_does_what_is_asked_in_its_time() {
    seeds("calm store", 20, |seed| {
        Sim::builder().seed(seed).faults(calm()).run(|sim| async move {
            let (store, _) = memory(&sim);
            let seen = store.seen_by("a");
            let first = seen.create("k", "1".into(), secs(1)).await.unwrap();
            assert!(sim.now() >= millis(1) && sim.now() < millis(10));
            let second = seen.replace("k", "2".into(), &first, secs(1)).await.unwrap();
            assert!(seen.replace("k", "3".into(), &first, secs(1)).await.unwrap_err().is_conflict());
            assert_eq!(seen.read("k", secs(1)).await.unwrap().unwrap().version, second);
            assert_eq!(seen.scan("", None, 10, secs(1)).await.unwrap().items.len(), 1);
            seen.delete("k", &second, secs(1)).await.unwrap();
        });
    });
}

#[test]
fn an_unknown_write_may_be_applied_never_at_once_or_late() {
    let outcomes = std::sync::Mutex::new([0; 3]);
    seeds("unknown", 200, |seed| {
        let unclear = StoreFaults { unknown: 1.0, late: millis(500)..secs(1), ..calm().store };
        let faults = Faults { store: unclear, ..calm() };
        let outcome = Sim::builder().seed(seed).faults(faults).run(|sim| async move {
            let (store, inner) = memory(&sim);
            let error = store.seen_by("a").create("k", "1".into(), secs(1)).await.unwrap_err();
            assert!(matches!(error, StoreError::Unknown { .. }), "{error}");
            assert!(sim.now() >= secs(1), "nobody knows before the timeout");
            if inner.read("k", secs(1)).await.unwrap().is_some() {
                return 1;
            }
            tokio::time::sleep(secs(2)).await;
            if inner.read("k", secs(1)).await.unwrap().is_some() { 2 } else { 0 }
        });
        outcomes.lock().unwrap()[outcome] += 1;
    });
    let outcomes = outcomes.into_inner().unwrap();
    assert!(outcomes.iter().all(|count| *count > 30), "never, at once, late: {outcomes:?}");
}

#[test]
fn a_write_that_says_it_was_not_applied_was_not() {
    seeds("outage", 100, |seed| {
        Sim::builder().seed(seed).faults(calm()).run(|sim| async move {
            let (store, inner) = memory(&sim);
            let seen = store.seen_by("a");
            store.serve(false);
            let error = seen.create("k", "1".into(), secs(1)).await.unwrap_err();
            tokio::time::sleep(secs(30)).await;
            let there = inner.read("k", secs(1)).await.unwrap();
            assert!(error.applied() == Applied::Maybe || there.is_none(), "{error}, yet it is there");
            store.serve(true);
            assert_eq!(seen.read("k", secs(1)).await.unwrap(), there);
        });
    });
}

#[test]
fn a_partitioned_node_loses_the_store_and_the_other_keeps_it() {
    seeds("partition", 50, |seed| {
        Sim::builder().seed(seed).faults(calm()).run(|sim| async move {
            let (store, _) = memory(&sim);
            sim.partition(&["a"], &["b", "store"]);
            let error = store.seen_by("a").create("k", "a".into(), secs(1)).await.unwrap_err();
            assert_eq!(error.applied(), Applied::Maybe);
            store.seen_by("b").create("k", "b".into(), secs(1)).await.unwrap();
            sim.heal();
            tokio::time::sleep(secs(1)).await;
            let found = store.seen_by("a").read("k", secs(1)).await.unwrap().unwrap();
            assert_eq!(&found.value[..], b"b", "what the cut held up came second");
        });
    });
}

#[test]
fn a_crash_does_not_take_back_what_was_sent() {
    let applied = std::sync::atomic::AtomicU64::new(0);
    seeds("crash", 50, |seed| {
        let faults = Faults { store: StoreFaults { delay: millis(20)..millis(40), ..calm().store }, ..calm() };
        let there = Sim::builder().seed(seed).faults(faults).run(|sim| async move {
            let (store, inner) = memory(&sim);
            let seen = store.seen_by("a");
            sim.node("a").spawn_local("writer", async move {
                seen.create("k", "1".into(), secs(1)).await.ok();
            });
            tokio::time::sleep(millis(2)).await;
            sim.crash("a");
            tokio::time::sleep(secs(1)).await;
            inner.read("k", secs(1)).await.unwrap().is_some()
        });
        applied.fetch_add(there.into(), std::sync::atomic::Ordering::Relaxed);
    });
    assert_eq!(applied.into_inner(), 50);
}

#[test]
fn a_nemesis_takes_the_store_away_and_leaves_everything_whole() {
    seeds("nemesis", 100, |seed| {
        Sim::builder().seed(seed).faults(calm()).run(|sim| async move {
            let (store, _) = memory(&sim);
            let nodes = ["a", "b", "c"];
            let start = |sim: &Sim, store: &SimStore, name: &str| {
                let seen = store.seen_by(name);
                sim.node(name).spawn_local("reader", async move {
                    loop {
                        seen.read("k", millis(200)).await.ok();
                        tokio::time::sleep(millis(50)).await;
                    }
                });
            };
            nodes.iter().for_each(|name| start(&sim, &store, name));
            let (again, its) = (sim.clone(), store.clone());
            let nemesis = Nemesis::new(&sim, &nodes).store(&store).restart(move |name| start(&again, &its, name));
            let acts = nemesis.only(&[Fault::StoreOutage, Fault::Partition, Fault::Crash]).run(secs(30)).await;
            assert!(!acts.is_empty());
            assert!(
                acts.iter().all(|act| ["store outage", "partition", "crash"].iter().any(|fault| act.contains(fault)))
            );
            assert!(store.serves());
            for name in nodes {
                assert!(sim.is_alive(name) && !sim.is_paused(name) && !sim.is_cut(name, "store"));
                store.seen_by(name).read("k", secs(1)).await.unwrap();
            }
        });
    });
}
