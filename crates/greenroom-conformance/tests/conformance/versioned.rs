//! Every confirmed update of a versioned state is applied exactly once and in one order, whatever crashes, pauses and fails.

use std::cell::RefCell;
use std::collections::VecDeque;
use std::rc::Rc;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use greenroom::CallError;
use greenroom::prelude::*;
use greenroom::versioned::elsewhere::{Around, Delivery, Elsewhere, Letter};
use greenroom::versioned::protocol::ClusterId;
use greenroom::versioned::{Rejected, UpdateError};
use greenroom_sim::{Faults, Nemesis, Sim, SimStore, StoreFaults, seeds};
use greenroom_store::memory::MemoryStore;
use serde::{Deserialize, Serialize};

use crate::cluster::{Cluster, sim};
use crate::persistence::{Ledger, Told};

const NODES: &[&str] = &["a", "b", "c"];

/// The same, and one more that is a cluster of its own.
const WITH_ABROAD: &[&str] = &["a", "b", "c", ABROAD];
const ABROAD: &str = "d";

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

    /// What the log has, but for what was rejected.
    pub async fn recorded(&self) -> Result<Vec<u64>, StateError> {
        let mut lines = Vec::new();
        let mut next = 1;
        loop {
            let some = self.lines.history(next..).await?;
            let Some(last) = some.last() else { return Ok(lines) };
            next = last.position + 1;
            lines.extend(some.into_iter().filter_map(|recorded| recorded.update));
        }
    }

    pub async fn read_at(&self, position: u64) -> Result<Vec<u64>, StateError> {
        Ok(self.lines.state_at(position).await?.0.0.clone())
    }

    /// This instance's confirmed state, as it is.
    pub async fn glance(&self) -> Vec<u64> {
        self.lines.confirmed().0.0.clone()
    }

    pub async fn leave(&mut self, cx: &Cx) {
        cx.deactivate();
    }
}

/// How the books are kept, and where.
#[derive(Clone, Copy)]
struct Setup {
    protocol: &'static str,
    nodes: &'static [&'static str],
    /// Whether the instance abroad lets the other one write for it when it loses races.
    is_far: bool,
}

const RECORDS: Setup = Setup { protocol: "bcas", nodes: NODES, is_far: false };

/// What is on its way from one cluster to the other.
#[derive(Default)]
struct Mail(Mutex<VecDeque<(ClusterId, Letter)>>);

/// The mail as one cluster sees it.
struct Link {
    mail: Arc<Mail>,
    here: ClusterId,
    is_far: bool,
}

const HOME: ClusterId = ClusterId(1);
const AWAY: ClusterId = ClusterId(2);

impl Elsewhere for Link {
    fn around(&self, _: &str, _: &str) -> Around {
        let other = if self.here == HOME { AWAY } else { HOME };
        let near = self.is_far.then_some(HOME);
        Around { here: self.here, others: vec![other], leader: HOME, near }
    }

    fn send(&self, to: ClusterId, letter: Letter) {
        self.mail.0.lock().expect("nobody panics with it").push_back((to, letter));
    }
}

impl Mail {
    /// Brings letters to whoever has the instance: late, in any order, twice, or not at all.
    fn carry(self: &Arc<Self>, sim: &Sim, cluster: &Cluster) {
        let (mail, sim, cluster) = (self.clone(), sim.clone(), cluster.clone());
        let mut random = sim.random();
        sim.clone().spawn(async move {
            loop {
                tokio::time::sleep(Duration::from_millis(5)).await;
                let next = mail.0.lock().expect("nobody panics with it").pop_front();
                let Some((to, letter)) = next else { continue };
                for _ in 0..[0, 1, 1, 1, 1, 1, 1, 2][random.index(8)] {
                    let delay = random.within(&(Duration::from_millis(20)..Duration::from_millis(400)));
                    let (cluster, letter) = (cluster.clone(), letter.clone());
                    sim.spawn(async move {
                        tokio::time::sleep(delay).await;
                        deliver(&cluster, to, &letter).await;
                    });
                }
            }
        });
    }
}

async fn deliver(cluster: &Cluster, to: ClusterId, letter: &Letter) {
    let from = if to == HOME { AWAY } else { HOME };
    let nodes =
        || WITH_ABROAD.iter().filter(|name| (**name == ABROAD) == (to == AWAY)).filter_map(|name| cluster.node(name));
    if nodes().any(|node| node.post().deliver(from, letter)) || letter.delivery != Delivery::Wakes {
        return;
    }
    let Some(node) = nodes().next() else { return };
    // Whatever comes of it: it is awake then, or the letter is lost.
    drop(BookRef::of(&node, letter.key.as_str()).glance().by(PATIENCE).await);
    nodes().any(|node| node.post().deliver(from, letter));
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
fn scenario(seed: u64, setup: Setup) {
    sim(seed, faults()).deadline(Duration::from_secs(600)).run(|sim| async move {
        let Setup { protocol, nodes, is_far } = setup;
        let states = SimStore::journal(&sim, "books", Arc::new(MemoryStore::new()));
        let (of, mail) = (states.clone(), Arc::<Mail>::default());
        let post = mail.clone();
        let cluster = Cluster::new(&sim, move |builder, name| {
            let here = if name == ABROAD { AWAY } else { HOME };
            let builder = builder.register::<Book>().state_journal("", of.journal_seen_by(name)).configure(|config| {
                let kind = config.kinds.entry("book".to_owned()).or_default();
                kind.protocol = Some(protocol.to_owned());
                kind.snapshot_every = Some(7);
                // Both clusters write the same books.
                config.namespace = "books".to_owned();
                if here == AWAY {
                    config.cluster = "abroad".to_owned();
                }
            });
            match nodes.len() {
                3 => builder,
                _ => builder.elsewhere(Arc::new(Link { mail: post.clone(), here, is_far })),
            }
        });
        mail.carry(&sim, &cluster);
        cluster.supervise();
        for name in nodes {
            cluster.start(name).await;
        }
        let ledger = Rc::new(RefCell::new(Ledger::default()));
        for name in nodes {
            write_from(&sim, &cluster, name, &ledger);
        }
        let restarting = cluster.clone();
        let nemesis = Nemesis::new(&sim, nodes)
            .restart(move |name| restarting.restart(name))
            .store(&states)
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
            if protocol == "log" {
                check_log(&sim, &cluster, book, &lines).await;
            }
            let next = eventually(&sim, &cluster, |node| BookRef::of(node, book).write(u64::MAX).by(PATIENCE)).await;
            assert!(next > lines.len() as u64, "book {book} does not go on from its end");
        }
    });
}

/// The log has what the book has, and leads to every state that it had.
async fn check_log(sim: &Sim, cluster: &Cluster, book: usize, lines: &[u64]) {
    let recorded = eventually(sim, cluster, |node| BookRef::of(node, book).recorded().by(PATIENCE)).await;
    assert_eq!(recorded, lines, "the log of book {book}");
    for position in [0, 1, 7, 8, lines.len() / 2, lines.len()].into_iter().filter(|at| *at <= lines.len()) {
        let call = |node: &Node| BookRef::of(node, book).read_at(position as u64).by(PATIENCE);
        assert_eq!(eventually(sim, cluster, call).await, lines[..position], "book {book} at {position}");
    }
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
                match random.index(13) {
                    12 => {
                        if let Ok(seen) = actor.glance().by(PATIENCE).await {
                            ledger.borrow_mut().seen.push((book, seen));
                        }
                    }
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
    let name = "a_confirmed_update_is_applied_exactly_once_and_in_one_order";
    seeds(name, 20, |seed| scenario(seed, RECORDS));
}

#[test]
fn a_log_has_every_confirmed_update_exactly_once_and_leads_to_every_state() {
    let name = "a_log_has_every_confirmed_update_exactly_once_and_leads_to_every_state";
    seeds(name, 20, |seed| scenario(seed, Setup { protocol: "log", ..RECORDS }));
}

#[test]
fn instances_in_two_clusters_confirm_every_update_exactly_once_and_see_prefixes_of_one_sequence() {
    let name = "instances_in_two_clusters_confirm_every_update_exactly_once_and_see_prefixes_of_one_sequence";
    seeds(name, 20, |seed| scenario(seed, Setup { nodes: WITH_ABROAD, is_far: seed % 2 == 1, ..RECORDS }));
}

#[test]
fn logs_that_two_clusters_write_have_every_update_exactly_once() {
    let name = "logs_that_two_clusters_write_have_every_update_exactly_once";
    seeds(name, 10, |seed| scenario(seed, Setup { protocol: "log", nodes: WITH_ABROAD, ..RECORDS }));
}

const BOOKS: usize = 2;
/// At once, on each node.
const WRITERS: usize = 3;
const PATIENCE: Duration = Duration::from_secs(2);
