//! Versioned states of several clusters while everything goes wrong: each confirmed update is there exactly once, each instance
//! sees a prefix of the one sequence, and what is linearizable is.

use std::cell::RefCell;
use std::collections::BTreeMap;
use std::rc::Rc;
use std::time::Duration;

use greenroom::CallError;
use greenroom::versioned::UpdateError;
use greenroom_sim::{Faults, Nemesis, Sim, StoreFaults, seeds};

use super::pages::{Library, PageRef, Setup, Shown};
use super::world::{CLUSTERS, run_under};
use crate::persistence::{Ledger, Told};

/// What callers have seen and done, by page.
#[derive(Default)]
struct Book {
    ledger: Ledger,
    /// Linearizable operations: page, begin, end, how many lines there were then.
    done: Vec<(usize, Duration, Duration, u64)>,
    /// What instances have shown, by page and instance.
    shown: BTreeMap<(usize, u64), Vec<Seen>>,
}

/// When an instance was asked, when it had answered, what it showed, and the line that was jotted down with that.
type Seen = (Duration, Duration, Shown, Option<u64>);

impl Book {
    /// Compares all with what is there in the end.
    fn check(&self, page: usize, lines: &[u64]) {
        self.ledger.check(page, lines);
        let mut done: Vec<_> = self.done.iter().filter(|(of, ..)| *of == page).collect();
        done.sort_by_key(|(_, began, ..)| *began);
        let mut ended: Vec<_> = done.clone();
        ended.sort_by_key(|(_, _, end, _)| *end);
        let (mut ended, mut latest) = (ended.into_iter().peekable(), 0);
        for (_, began, _, count) in done {
            while let Some((.., seen)) = ended.next_if(|(_, _, end, _)| end < began) {
                latest = latest.max(*seen);
            }
            assert!(
                *count >= latest,
                "page {page}: {latest} lines were there before {began:?}, then {count} at {began:?}"
            );
        }
        for ((_, instance), shown) in self.shown.iter().filter(|((of, _), _)| *of == page) {
            self.check_instance(page, *instance, shown, lines);
        }
    }

    /// Each instance shows a prefix, never goes back, and has its own lines at once.
    fn check_instance(&self, page: usize, instance: u64, shown: &[Seen], lines: &[u64]) {
        for (at, (began, _, show, _)) in shown.iter().enumerate() {
            let Shown { confirmed, tentative, version, .. } = show;
            assert!(lines.starts_with(confirmed), "page {page} on {instance} shows {confirmed:?}, there is {lines:?}");
            assert!(tentative.starts_with(confirmed), "page {page} on {instance}: {tentative:?} after {confirmed:?}");
            for (_, ended, before, jotted) in shown[..at].iter().filter(|(_, ended, ..)| ended < began) {
                assert!(before.version <= *version, "page {page} on {instance} goes back at {ended:?}");
                let own = jotted.is_none_or(|line| tentative.contains(&line));
                assert!(own, "page {page} on {instance} has not its own line {jotted:?} at {began:?}: {tentative:?}");
            }
        }
    }
}

/// What befalls the clusters.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Trouble {
    /// Nodes crash, pause and part, and the store fails.
    Anything,
    /// The same, but for the first cluster, whose nodes live on.
    Spares,
    /// Clusters are cut off and lost as a whole.
    Clusters,
}

pub(super) fn scenario(seed: u64, setup: Setup, trouble: Trouble, end: impl FnOnce(&Library) + 'static) {
    let table = if trouble == Trouble::Spares { Faults::none().store } else { bad_store() };
    run_under(seed, Faults { store: table, ..faults() }, move |sim| async move {
        let library = Rc::new(Library::boot(&sim, setup).await);
        let book = Rc::new(RefCell::new(Book::default()));
        for name in library.names() {
            for _ in 0..CALLERS {
                call_from(&sim, &library, name, &book);
            }
        }
        match trouble {
            Trouble::Anything => nemesis(&sim, &library, &library.names().collect::<Vec<_>>()).await,
            Trouble::Spares => {
                let spared = CLUSTERS[0].1;
                nemesis(&sim, &library, &library.names().filter(|name| !spared.contains(name)).collect::<Vec<_>>())
                    .await;
            }
            Trouble::Clusters => clusters(&sim, &library).await,
        }
        sim.heal();
        library.store.serve(true);
        tokio::time::sleep(Duration::from_secs(25)).await;
        book.borrow_mut().ledger.closed = true;
        // No instance is idle for so long that it ends, and takes a state in memory with it.
        tokio::time::sleep(Duration::from_secs(12)).await;
        assert!(book.borrow().ledger.saved() > 0, "some lines were confirmed");
        end(&library);
        for page in 0..PAGES {
            let lines = eventually(&sim, &library, page).await;
            book.borrow().check(page, &lines);
        }
    });
}

async fn nemesis(sim: &Sim, library: &Rc<Library>, nodes: &[&'static str]) {
    let restarting = library.clone();
    let nemesis = Nemesis::new(sim, nodes)
        .restart(move |name| restarting.cluster_of(name).restart(name))
        .store(&library.store)
        .lease(Duration::from_secs(4))
        .lasting(Duration::from_millis(500)..Duration::from_secs(6))
        .gap(Duration::from_millis(200)..Duration::from_secs(4));
    assert!(!nemesis.run(Duration::from_secs(25)).await.is_empty(), "every seed has its fault");
}

async fn clusters(sim: &Sim, library: &Rc<Library>) {
    let mut random = sim.random();
    for _ in 0..3 {
        tokio::time::sleep(random.within(&(Duration::from_secs(1)..Duration::from_secs(4)))).await;
        let lasts = random.within(&(Duration::from_millis(300)..Duration::from_secs(8)));
        if random.chance(0.5) {
            library.cut();
            tokio::time::sleep(lasts).await;
            sim.heal();
        } else {
            let (_, nodes) = CLUSTERS[random.index(library.setup.clusters)];
            for name in nodes {
                sim.crash(name);
            }
            tokio::time::sleep(lasts).await;
            for name in nodes {
                library.cluster_of(name).restart(name);
            }
        }
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

fn call_from(sim: &Sim, library: &Rc<Library>, name: &'static str, book: &Rc<RefCell<Book>>) {
    let (sim, library, mut random, book) = (sim.clone(), library.clone(), sim.random(), book.clone());
    sim.clone().spawn(async move {
        while !book.borrow().ledger.closed {
            let pause = random.within(&(Duration::from_millis(20)..Duration::from_millis(400)));
            tokio::time::sleep(pause).await;
            let page = random.index(PAGES);
            let Some(node) = library.try_node(name) else { continue };
            let actor = PageRef::of(&node, page);
            let began = sim.now();
            match random.index(16) {
                0 if spared(&library, name) => {}
                0 => drop(actor.leave().by(PATIENCE).await),
                1..4 => {
                    if let Ok(lines) = actor.read().by(PATIENCE).await {
                        let mut book = book.borrow_mut();
                        book.done.push((page, began, sim.now(), lines.len() as u64));
                        book.ledger.seen.push((page, lines));
                    }
                }
                4..7 => {
                    if let Ok(shown) = actor.glance().by(PATIENCE).await {
                        let shows = &mut book.borrow_mut().shown;
                        shows.entry((page, shown.instance)).or_default().push((began, sim.now(), shown, None));
                    }
                }
                7..10 => {
                    let id = book.borrow_mut().ledger.begin(page);
                    if let Ok(shown) = actor.jot(id).by(PATIENCE).await {
                        let shows = &mut book.borrow_mut().shown;
                        shows.entry((page, shown.instance)).or_default().push((began, sim.now(), shown, Some(id)));
                    }
                }
                _ => {
                    let id = book.borrow_mut().ledger.begin(page);
                    let told = told(&actor.write(id).by(PATIENCE).await);
                    let mut book = book.borrow_mut();
                    if let Told::Saved(number) = told {
                        book.done.push((page, began, sim.now(), number));
                    }
                    book.ledger.told.insert((page, id), told);
                }
            }
        }
    });
}

/// Whether the instances that the node's calls reach are to live on.
fn spared(library: &Library, name: &str) -> bool {
    library
        .setup
        .leader
        .is_some_and(|leader| CLUSTERS.iter().any(|(cluster, nodes)| *cluster == leader && nodes.contains(&name)))
}

/// What a page has once somebody can say so: all is well again.
async fn eventually(sim: &Sim, library: &Library, page: usize) -> Vec<u64> {
    let until = sim.now() + Duration::from_secs(90);
    loop {
        for name in library.names() {
            if let Some(node) = library.try_node(name)
                && let Ok(lines) = PageRef::of(&node, page).read().by(PATIENCE).await
            {
                return lines;
            }
        }
        assert!(sim.now() < until, "nobody answers for too long");
        tokio::time::sleep(Duration::from_millis(100)).await;
    }
}

/// Answers get lost, and writes come late.
fn bad_store() -> StoreFaults {
    StoreFaults { not_applied: 0.02, unknown: 0.05, ..Faults::rough().store }
}

/// A bad day on the wide area.
fn faults() -> Faults {
    let calm = Faults::none();
    Faults {
        spike_chance: 0.1,
        spike: Duration::from_millis(50)..Duration::from_millis(900),
        user_loss: 0.02,
        reordering: 0.2,
        ..calm
    }
}

#[test]
fn confirmed_updates_of_all_clusters_are_there_once_and_linearizable() {
    let name = "confirmed_updates_of_all_clusters_are_there_once_and_linearizable";
    seeds(name, 15, |seed| {
        let setup = Setup { placed: seed % 2 == 1, ..Setup::of("bcas") };
        scenario(seed, setup, if seed % 3 == 0 { Trouble::Clusters } else { Trouble::Anything }, |_| {});
    });
}

#[test]
fn logs_of_all_clusters_have_confirmed_updates_once_and_are_linearizable() {
    let name = "logs_of_all_clusters_have_confirmed_updates_once_and_are_linearizable";
    seeds(name, 8, |seed| {
        scenario(seed, Setup::of("log"), if seed % 3 == 0 { Trouble::Clusters } else { Trouble::Anything }, |_| {});
    });
}

#[test]
fn the_one_instance_of_a_state_has_confirmed_updates_once_also_when_clusters_are_cut_off() {
    let name = "the_one_instance_of_a_state_has_confirmed_updates_once_also_when_clusters_are_cut_off";
    seeds(name, 6, |seed| scenario(seed, Setup { single: true, ..Setup::of("bcas") }, Trouble::Clusters, |_| {}));
}

#[test]
fn volatile_states_have_confirmed_updates_once_and_are_linearizable_while_their_leader_lives() {
    let name = "volatile_states_have_confirmed_updates_once_and_are_linearizable_while_their_leader_lives";
    seeds(name, 15, |seed| {
        scenario(seed, Setup { leader: Some("eu"), ..Setup::of("vlb") }, Trouble::Spares, |_| {});
    });
}

const PAGES: usize = 2;
/// At once, on each node.
const CALLERS: usize = 2;
const PATIENCE: Duration = Duration::from_secs(3);
