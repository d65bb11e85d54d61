//! Every confirmed update of a versioned state is applied exactly once and in one order, whatever crashes, pauses and fails.

use std::cell::{OnceCell, RefCell};
use std::rc::Rc;
use std::time::Duration;

use greenroom::CallError;
use greenroom::prelude::*;
use greenroom::versioned::{Rejected, UpdateError};
use greenroom_sim::{Faults, Nemesis, Sim, SimStore, StoreFaults, seeds};
use serde::{Deserialize, Serialize};

use crate::cluster::{Cluster, sim};
use crate::persistence::{Ledger, Told};

const NODES: &[&str] = &["a", "b", "c"];

/// What was written down, in order.
#[derive(Default, Clone, Serialize, Deserialize)]
struct Lines(Vec<u64>);

impl VersionedStateWithOutput for Lines {
    type Update = u64;
    /// The line's number, from 1.
    type Output = u64;

    fn apply(&mut self, line: &u64) -> Result<u64, Rejected> {
        self.0.push(*line);
        Ok(self.0.len() as u64)
    }
}

#[derive(Default, Actor)]
struct Book {
    lines: Versioned<Lines>,
}

#[actor(idle = "3s")]
impl Book {
    /// Answers when the line is confirmed, with its number.
    #[update]
    pub async fn write(&self, line: u64) -> Result<u64, UpdateError> {
        self.lines.enqueue(line).await
    }

    /// Answers at once, and says where the line would be.
    #[update]
    pub async fn jot(&self, line: u64) -> u64 {
        self.lines.enqueue(line);
        self.lines.tentative().0.len() as u64
    }

    /// Linearizable.
    pub async fn read(&self) -> Result<Vec<u64>, StateError> {
        self.lines.refresh_now().await?;
        Ok(self.lines.confirmed().0.0.clone())
    }

    pub async fn leave(&mut self, cx: &Cx) {
        cx.deactivate();
    }
}

fn told(answer: &Result<u64, CallError<UpdateError>>) -> Told {
    match answer {
        Ok(number) => Told::Saved(*number),
        Err(CallError::Actor(UpdateError::OutputUnknown)) => Told::Made,
        Err(CallError::Actor(_) | CallError::Unknown(_)) => Told::Doubt,
        Err(error) => Told::Not(error.to_string()),
    }
}

/// Three nodes, two books that everybody writes into, and a nemesis for 30 virtual seconds.
fn scenario(seed: u64) {
    sim(seed, faults()).deadline(Duration::from_secs(600)).run(|sim| async move {
        let states = Rc::new(OnceCell::<SimStore>::new());
        let of = states.clone();
        let cluster = Cluster::new(&sim, move |builder, name| {
            let states = of.get().expect("no node starts before the cluster is there").seen_by(name);
            builder.register::<Book>().state_store("", states)
        });
        assert!(states.set(cluster.store.clone()).is_ok(), "nobody else sets it");
        cluster.supervise(NODES);
        for name in NODES {
            cluster.start(name).await;
        }
        let ledger = Rc::new(RefCell::new(Ledger::default()));
        for name in NODES {
            write_from(&sim, &cluster, name, &ledger);
        }
        let restarting = cluster.clone();
        let nemesis = Nemesis::new(&sim, NODES)
            .restart(move |name| restarting.restart(name))
            .store(&cluster.store)
            .lease(Duration::from_secs(4))
            .lasting(Duration::from_millis(500)..Duration::from_secs(8))
            .gap(Duration::from_millis(200)..Duration::from_secs(4));
        let acts = nemesis.run(Duration::from_secs(30)).await;
        assert!(!acts.is_empty(), "every seed has its fault");
        tokio::time::sleep(Duration::from_secs(20)).await;
        ledger.borrow_mut().closed = true;
        tokio::time::sleep(Duration::from_secs(30)).await;
        assert!(ledger.borrow().saved() > 0, "some lines were confirmed");
        for book in 0..BOOKS {
            let lines = eventually(&sim, &cluster, |node| BookRef::of(node, book).read().by(PATIENCE)).await;
            ledger.borrow().check(book, &lines);
            let next = eventually(&sim, &cluster, |node| BookRef::of(node, book).write(u64::MAX).by(PATIENCE)).await;
            assert!(next > lines.len() as u64, "book {book} does not go on from its end");
        }
    });
}

fn write_from(sim: &Sim, cluster: &Cluster, name: &'static str, ledger: &Rc<RefCell<Ledger>>) {
    for _ in 0..WRITERS {
        let (cluster, mut random, ledger) = (cluster.clone(), sim.random(), ledger.clone());
        sim.spawn(async move {
            while !ledger.borrow().closed {
                let pause = random.within(&(Duration::from_millis(10)..Duration::from_millis(200)));
                tokio::time::sleep(pause).await;
                let book = random.index(BOOKS);
                let Some(node) = cluster.node(name) else { continue };
                let actor = BookRef::of(&node, book);
                match random.index(12) {
                    0 => drop(actor.leave().by(PATIENCE).await),
                    1 => {
                        if let Ok(seen) = actor.read().by(PATIENCE).await {
                            ledger.borrow_mut().seen.push((book, seen));
                        }
                    }
                    // Nobody is told whether it was confirmed; that it is there once at most is checked.
                    2 => {
                        let id = ledger.borrow_mut().begin(book);
                        drop(actor.jot(id).by(PATIENCE).await);
                    }
                    _ => {
                        let id = ledger.borrow_mut().begin(book);
                        let told = told(&actor.write(id).by(PATIENCE).await);
                        ledger.borrow_mut().told.insert((book, id), told);
                    }
                }
            }
        });
    }
}

/// The answer to `call`, made until there is one: all is well again.
async fn eventually<T, E, C>(sim: &Sim, cluster: &Cluster, call: impl Fn(&Node) -> C) -> T
where
    C: IntoFuture<Output = Result<T, E>>,
{
    let until = sim.now() + Duration::from_secs(60);
    loop {
        if let Some(node) = NODES.iter().find_map(|name| cluster.node(name))
            && let Ok(answer) = call(&node).await
        {
            return answer;
        }
        assert!(sim.now() < until, "nobody answers for too long");
        tokio::time::sleep(Duration::from_millis(100)).await;
    }
}

/// A bad day, and a store whose answers get lost.
fn faults() -> Faults {
    let rough = Faults::rough();
    Faults { store: StoreFaults { not_applied: 0.03, unknown: 0.06, ..rough.store.clone() }, ..rough }
}

#[test]
fn a_confirmed_update_is_applied_exactly_once_and_in_one_order() {
    seeds("a_confirmed_update_is_applied_exactly_once_and_in_one_order", 20, scenario);
}

const BOOKS: usize = 2;
/// At once, on each node.
const WRITERS: usize = 3;
const PATIENCE: Duration = Duration::from_secs(2);
