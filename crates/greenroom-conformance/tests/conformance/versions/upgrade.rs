//! Rolling upgrades: every node drains and comes back with the next version, while callers of both call.

use std::cell::Cell;
use std::rc::Rc;
use std::time::Duration;

use greenroom::prelude::*;
use greenroom_sim::Faults;

use super::tills::{Book, Hosting, serve, with_tills};
use crate::cluster::Cluster;

const NODES: &[&str] = &["a", "b", "c", "d"];
const ALL_OLD: &[(&str, u16)] = &[("a", 1), ("b", 1), ("c", 1), ("d", 1)];

/// How calls went.
#[derive(Default)]
struct Tally {
    answered: Cell<u64>,
    unknown: Cell<u64>,
    done: Cell<bool>,
    running: Cell<u64>,
}

/// Calls by whichever node takes it, in its node's version, and tries again for as long as it was refused.
async fn call(cluster: &Cluster, hosting: &Hosting, operation: u64, tally: &Tally) {
    let key = (operation % ACTORS).to_string();
    for turn in 0..TRIES {
        let name = NODES[(operation as usize / 7 + turn) % NODES.len()];
        let Some(node) = cluster.node(name).filter(|node| !node.is_stopped()) else {
            tokio::time::sleep(Duration::from_millis(20)).await;
            continue;
        };
        let version = hosting.borrow()[name];
        match serve(&node, version, &key, operation).await {
            Ok((_, served, _)) => {
                assert!(served >= version, "operation {operation} of version {version} was served by {served}");
                return tally.answered.set(tally.answered.get() + 1);
            }
            Err(CallError::Refused(refusal)) => {
                let pause = refusal.retry_after().unwrap_or_else(|| panic!("not to be retried: {refusal}"));
                tokio::time::sleep(pause.min(Duration::from_millis(100))).await;
            }
            Err(CallError::Unknown(doubt)) => {
                cluster.sim.note(format_args!("operation {operation} of {key}: {doubt}"));
                return tally.unknown.set(tally.unknown.get() + 1);
            }
            Err(error) => panic!("operation {operation}: {error}"),
        }
    }
    panic!("operation {operation} was refused {TRIES} times");
}

/// Upgrades one node after the other while clients call; how the calls went.
async fn rolling_upgrade(cluster: &Cluster, hosting: &Hosting) -> Rc<Tally> {
    let tally = Rc::new(Tally { running: Cell::new(CLIENTS), ..Tally::default() });
    for client in 0..CLIENTS {
        let (cluster, hosting, tally) = (cluster.clone(), hosting.clone(), tally.clone());
        cluster.sim.clone().spawn(async move {
            let mut operation = client * 1_000_000;
            while !tally.done.get() {
                operation += 1;
                call(&cluster, &hosting, operation, &tally).await;
                tokio::time::sleep(Duration::from_millis(5)).await;
            }
            tally.running.set(tally.running.get() - 1);
        });
    }
    for name in NODES {
        tokio::time::sleep(Duration::from_millis(300)).await;
        let Some(node) = cluster.node(name) else { continue };
        node.drain().await;
        cluster.sim.crash(name);
        hosting.borrow_mut().insert((*name).to_owned(), 2);
        cluster.start(name).await;
    }
    for name in NODES {
        // Faults may have stopped some.
        if cluster.node(name).is_none_or(|node| node.is_stopped()) {
            cluster.sim.crash(name);
            cluster.start(name).await;
        }
    }
    tokio::time::sleep(Duration::from_millis(300)).await;
    tally.done.set(true);
    while tally.running.get() > 0 {
        tokio::time::sleep(Duration::from_millis(50)).await;
    }
    tally
}

fn never_back(book: &Book) {
    for key in 0..ACTORS {
        let key = key.to_string();
        let ran = book.ran().into_iter().filter(|(actor, ..)| *actor == key);
        let versions: Vec<u16> = ran.map(|(_, version, _)| version).collect();
        assert!(versions.is_sorted(), "{key} went back: {versions:?}");
    }
}

#[test]
fn a_rolling_upgrade_under_load_loses_no_call_and_fails_none_that_is_retried_when_refused() {
    with_tills(60, Faults::none(), ALL_OLD, async |cluster, hosting, book| {
        let tally = rolling_upgrade(&cluster, &hosting).await;
        assert_eq!(tally.unknown.get(), 0, "every call was answered, or refused before it ran");
        assert!(tally.answered.get() > 500, "hardly any load: {}", tally.answered.get());
        assert_eq!(book.ran().len() as u64, tally.answered.get());
        book.at_most_once();
        never_back(&book);
    });
}

#[test]
fn a_rolling_upgrade_among_faults_runs_no_call_twice() {
    with_tills(40, Faults::rough(), ALL_OLD, async |cluster, hosting, book| {
        let tally = rolling_upgrade(&cluster, &hosting).await;
        let (ran, answered) = (book.ran().len() as u64, tally.answered.get());
        assert!((answered..=answered + tally.unknown.get()).contains(&ran), "{ran} ran, {answered} were answered");
        book.at_most_once();
    });
}

const CLIENTS: u64 = 6;
const ACTORS: u64 = 40;
const TRIES: usize = 1000;
