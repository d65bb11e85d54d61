//! The two worlds agree: what a whole cluster shows is what some schedule of a stage shows.
//!
//! `GREENROOM_SEEDS=10000 cargo test --release -p greenroom-explore --test worlds` runs as many seeds of a cluster for each program.

use std::cell::RefCell;
use std::collections::BTreeSet;
use std::rc::Rc;
use std::sync::{Arc, Mutex};

use greenroom_explore::prelude::*;
use greenroom_test::Random;

#[derive(Default, Actor)]
struct Cell {
    said: Vec<u64>,
}

#[actor]
impl Cell {
    pub async fn say(&mut self, what: u64) -> u64 {
        self.said.push(what);
        self.said.len() as u64
    }

    pub async fn listen(&self) -> u64 {
        self.said.iter().fold(0, |sum, said| sum * 10 + said)
    }

    /// Asks another one while it excludes others.
    pub async fn ask(&mut self, cx: &Cx, other: u64) -> u64 {
        let heard = CellRef::of(cx, other).listen().await.unwrap_or(9);
        self.said.push(heard % 7);
        heard
    }

    /// Asks another one, and tells it, while others go on.
    pub async fn pass_on(&self, cx: &Cx, other: u64) -> u64 {
        let heard = CellRef::of(cx, other).listen().await.unwrap_or(9);
        CellRef::of(cx, other).say(heard % 7).send();
        heard
    }

    pub async fn tell(&mut self, cx: &Cx, other: u64) {
        CellRef::of(cx, other).say(3).send();
        CellRef::of(cx, other).say(4).send();
        self.said.push(5);
    }
}

/// What clients and the end of a test were told.
type Outcomes = Arc<Mutex<BTreeSet<Vec<String>>>>;

/// Two or three clients with up to four calls of two actors; who is told of each outcome is `judge`.
async fn program(seed: u64, world: World, judge: impl Fn(Vec<String>) + 'static) {
    let mut random = Random::new(seed);
    let (clients, told) = (2 + random.index(2), Rc::new(RefCell::new(Vec::new())));
    for client in 0..clients {
        let calls: Vec<_> = (0..if client == 0 { 2 } else { 1 })
            .map(|_| (random.index(5), random.index(2) as u64, random.index(2) as u64))
            .collect();
        let (world_of_client, told) = (world.clone(), told.clone());
        world.client(async move {
            for (place, (what, at, other)) in calls.into_iter().enumerate() {
                let cell = CellRef::of(&world_of_client, at);
                let answer = match what {
                    0 => cell.say(6).await,
                    1 => cell.listen().await,
                    2 => cell.ask(other).await,
                    3 => cell.pass_on(other).await,
                    _ => cell.tell(other).await.map(|()| 0),
                };
                let answer = answer.map_or_else(|error| error.to_string(), |answer| answer.to_string());
                told.borrow_mut().push(format!("client {client} call {place}: {answer}"));
            }
        });
    }
    world.finally(move |world| async move {
        let mut outcome = told.take();
        outcome.sort_unstable();
        for at in [0_u64, 1] {
            outcome.push(format!("{at}: {:?}", CellRef::of(&world, at).listen().await.ok()));
        }
        judge(outcome);
    });
}

fn kinds() -> Explore {
    Explore::of(|builder| builder.register::<Cell>())
}

/// All outcomes that a stage shows; nothing for programs in which clients may wait for each other for ever.
fn on_a_stage(seed: u64) -> Option<Outcomes> {
    let outcomes = Outcomes::default();
    let shown = outcomes.clone();
    let explored = kinds().strategy(Strategy::Dpor).schedules(50_000).check(move |world| {
        let shown = shown.clone();
        program(seed, world, move |outcome| _ = shown.lock().expect("nobody panics").insert(outcome))
    });
    let explored = explored.ok()?;
    assert!(explored.all, "program {seed}: {explored}");
    Some(outcomes)
}

#[test]
fn what_a_cluster_shows_some_schedule_shows() {
    let (mut programs, mut of_stages, mut of_clusters) = (0, 0, 0);
    for seed in 0.. {
        let Some(known) = on_a_stage(seed) else { continue };
        let (expected, seen) = (known.lock().expect("nobody panics").clone(), Outcomes::default());
        (programs, of_stages) = (programs + 1, of_stages + expected.len());
        let (shown, expected) = (seen.clone(), Arc::new(expected));
        kinds().schedules(SEEDS).cluster(3).run(move |world| {
            let (shown, expected) = (shown.clone(), expected.clone());
            program(seed, world, move |outcome| {
                assert!(
                    expected.contains(&outcome),
                    "program {seed}: no schedule shows {outcome:?}, only {expected:?}"
                );
                shown.lock().expect("nobody panics").insert(outcome);
            })
        });
        of_clusters += seen.lock().expect("nobody panics").len();
        if programs == PROGRAMS {
            break;
        }
    }
    println!("{PROGRAMS} programs: {of_stages} outcomes of stages, {of_clusters} of them seen in clusters");
    assert!(of_clusters > PROGRAMS, "clusters show more than one order");
}

#[test]
fn what_no_schedule_shows_is_found_in_a_cluster() {
    let violation = kinds().schedules(SEEDS).cluster(3).expect_violation(|world| async move {
        let (one, other) = (CellRef::of(&world, 1_u64), CellRef::of(&world, 2_u64));
        world.client(async move { drop(one.pass_on(0).await) });
        world.client(async move { drop(other.tell(0).await) });
        world.finally(|world| async move {
            // Nothing was heard, which is said first.
            assert_eq!(CellRef::of(&world, 0_u64).listen().await, Ok(34), "one order is taken for granted");
        });
    });
    assert!(violation.what.contains("one order is taken for granted"), "{}", violation.what);
}

#[explore(Cell, schedules = 5, faults = Faults::rough(), cluster = 3)]
async fn an_attribute_asks_for_a_cluster(world: World) {
    let cell = CellRef::of(&world, 0_u64);
    world.client(async move { drop(cell.say(6).await) });
    world.finally(|world| async move {
        let said = CellRef::of(&world, 0_u64).listen().await;
        assert!(said.is_err() || matches!(said, Ok(0 | 6)), "{said:?}");
    });
}

#[test]
fn what_needs_one_shard_is_refused_by_name() {
    let violation = kinds().schedules(1).cluster(2).expect_violation(|world| async move {
        world.eventually("nothing", |_| true);
    });
    assert!(violation.what.contains("look at one shard"), "{}", violation.what);
}

const PROGRAMS: usize = 20;
const SEEDS: u64 = 20;
