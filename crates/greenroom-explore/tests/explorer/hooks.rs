//! What a stage holds back, and what it lets go on by itself: a test for each of its rules.

use std::sync::Mutex;
use std::time::Duration;

use greenroom_explore::prelude::*;

#[derive(Default, Debug, Actor)]
struct Cell {
    value: u64,
    seen: Option<u64>,
}

#[actor]
impl Cell {
    pub async fn get(&self) -> u64 {
        self.value
    }

    pub async fn set(&mut self, value: u64) {
        self.value = value;
    }

    /// Sees what another one has, and keeps it.
    pub async fn look_at(&mut self, cx: &Cx, other: String) {
        self.seen = CellRef::of(cx, other).get().await.ok();
    }

    /// Makes another one greater, by a reference that knows the way to it.
    pub async fn raise(&self, cx: &Cx, other: String) {
        let other = CellRef::of(cx, other);
        other.get().await.expect("it answers");
        let value = other.get().await.expect("it answers");
        other.set(value + 1).await.expect("it answers");
    }

    /// Whether a call of itself is told that it goes round in a circle.
    pub async fn ask_itself(&mut self, cx: &Cx) -> bool {
        matches!(CellRef::me(cx).get().await, Err(CallError::Cycle(_)))
    }

    pub async fn fail(&mut self) {
        panic!("it is broken");
    }
}

fn cells() -> Explore {
    Explore::of(|builder| builder.register::<Cell>())
}

/// Two raise a cell, by actors of these keys.
async fn raised_by(world: World, keys: [&'static str; 2]) {
    CellRef::of(&world, "ada").set(0).await.expect("it answers");
    for key in keys {
        let cell = CellRef::of(&world, key);
        world.client(async move { cell.raise("ada").await.expect("it answers") });
    }
    world.finally(|world| async move {
        assert_eq!(CellRef::of(&world, "ada").get().await, Ok(2), "it was raised twice");
    });
}

#[test]
fn a_call_by_a_reference_that_knows_the_way_is_a_step() {
    let failure = cells().check(|world| raised_by(world, ["1", "2"])).expect_err("two read before either writes");
    assert!(failure.violated().contains("it was raised twice"), "{failure}");
}

#[test]
fn a_send_by_a_reference_that_knows_the_way_is_a_step() {
    cells().run(|world| async move {
        let (ada, bob) = (CellRef::of(&world, "ada"), CellRef::of(&world, "bob"));
        ada.get().await.expect("it answers");
        world.client(async move {
            ada.get().await.expect("it answers");
            ada.set(5).send();
            bob.look_at("ada").await.expect("it answers");
        });
        let seen = |value: u64| move |now: &Now| now.get::<Cell>("bob").is_some_and(|bob| bob.seen == Some(value));
        world.sometimes("it is read before what was sent has come", seen(0));
        world.sometimes("it is read when that has come", seen(5));
    });
}

#[test]
fn reads_of_one_actor_begin_beside_each_other() {
    let failure = cells().check(|world| raised_by(world, ["1", "1"])).expect_err("two read before either writes");
    assert!(failure.violated().contains("it was raised twice"), "{failure}");
}

#[test]
fn who_calls_itself_is_told_so_and_waits_for_nobody() {
    cells().run(|world| async move {
        let cell = CellRef::of(&world, "ada");
        world.client(async move { assert_eq!(cell.ask_itself().await, Ok(true)) });
    });
}

#[test]
fn a_turn_that_panics_is_a_violation_though_nobody_waits_for_it() {
    let failure = cells().check(|world| async move {
        let cell = CellRef::of(&world, "ada");
        world.client(async move { cell.fail().send() });
    });
    let failure = failure.expect_err("a turn panics");
    assert_eq!(failure.violated(), "cell/ada.fail panicked: it is broken");
}

/// Does one thing at a time; there are as many as it takes.
#[derive(Default, Debug, Actor)]
struct Worker;

#[actor(workers = 4)]
impl Worker {
    pub async fn work(&mut self, cx: &Cx) {
        CellRef::of(cx, "ada").get().await.expect("it answers");
    }
}

#[test]
fn workers_begin_beside_each_other() {
    Explore::of(|builder| builder.register::<Cell>().register::<Worker>()).run(|world| async move {
        for _ in 0..2 {
            let worker = WorkerRef::of(&world, "all");
            world.client(async move { worker.work().await.expect("it answers") });
        }
        world.sometimes("one works, and another beside it", |now| now.all::<Worker>().count() == 2);
    });
}

/// Does its work by a child that it spawns.
#[derive(Default, Debug, Actor)]
struct Parent;

#[actor]
impl Parent {
    pub async fn delegate(&mut self, cx: &Cx) -> u64 {
        cx.spawn(Child::default()).count().await.expect("it answers")
    }
}

#[derive(Default, Debug, Actor)]
struct Child {
    count: u64,
}

#[actor]
impl Child {
    pub async fn count(&mut self) -> u64 {
        self.count += 1;
        self.count
    }
}

#[test]
fn a_spawned_child_answers_its_parent_in_every_schedule() {
    Explore::of(|builder| builder.register::<Parent>()).run(|world| async move {
        for _ in 0..2 {
            let parent = ParentRef::of(&world, "all");
            world.client(async move { assert_eq!(parent.delegate().await, Ok(1), "each child is a new one") });
        }
    });
}

/// Says late what it has heard.
#[derive(Default, Debug, Actor)]
struct Sleeper {
    heard: Mutex<u64>,
}

#[actor]
impl Sleeper {
    pub async fn hear(&self, what: u64) {
        *self.heard.lock().expect("nobody panics") = what;
    }

    pub async fn say(&self) -> u64 {
        tokio::time::sleep(Duration::from_secs(1)).await;
        *self.heard.lock().expect("nobody panics")
    }
}

#[test]
fn who_is_woken_by_time_goes_on_in_a_step_of_its_own() {
    let said = |wanted: u64| {
        Explore::of(|builder| builder.register::<Sleeper>()).timers("in_time").check(move |world| async move {
            let sleeper = SleeperRef::of(&world, "ada");
            let other = sleeper.clone();
            world.client(async move { assert_ne!(sleeper.say().await, Ok(wanted), "it is said") });
            world.client(async move {
                tokio::time::sleep(Duration::from_secs(1)).await;
                other.hear(5).await.expect("it answers");
            });
        })
    };
    for heard in [0, 5] {
        let failure = said(heard).expect_err("who is woken at one moment goes on in any order");
        assert!(failure.violated().contains("it is said"), "{failure}");
    }
}

/// Counts, and what it has counted is kept.
#[derive(Default, Debug, Actor)]
struct Meter {
    count: u64,
}

#[actor(reliable)]
impl Meter {
    pub async fn count(&mut self) -> u64 {
        self.count += 1;
        self.count
    }
}

#[test]
fn what_a_reliable_turn_has_done_comes_true_in_a_step_of_its_own() {
    let failure = Explore::of(|builder| builder.register::<Meter>()).check(|world| async move {
        let meter = MeterRef::of(&world, "ada");
        world.client(async move { assert_ne!(meter.count().await, Ok(1), "it is counted") });
    });
    let failure = failure.expect_err("it is counted");
    let steps: Vec<&str> = failure.steps().collect();
    assert_eq!(steps, ["client 1", "meter/ada.count<client 1", "commit meter/ada", "client 1<meter/ada.count"]);
}

/// Tells a list what to note, one thing after the other.
#[derive(Default, Debug, Actor)]
struct Teller;

#[actor(reliable)]
impl Teller {
    pub async fn tell(&mut self, cx: &Cx) {
        for number in [1, 2] {
            ListRef::of(cx, "ada").note(number).send();
        }
    }
}

#[derive(Default, Debug, Actor)]
struct List {
    noted: Vec<u64>,
}

#[actor(reliable)]
impl List {
    pub async fn note(&mut self, number: u64) {
        self.noted.push(number);
    }

    pub async fn noted(&self) -> Vec<u64> {
        self.noted.clone()
    }
}

#[test]
fn what_one_reliable_actor_sends_another_comes_in_its_order() {
    for faults in ["", "crash"] {
        let kinds = Explore::of(|builder| builder.register::<Teller>().register::<List>());
        kinds.faults(faults).run(|world| async move {
            let teller = TellerRef::of(&world, "bob");
            world.client(async move { drop(teller.tell().idempotent("once").await) });
            world.finally(|world| async move {
                let noted = ListRef::of(&world, "ada").noted().await.expect("it answers");
                assert!(noted.is_empty() || noted == [1, 2], "{noted:?}");
            });
        });
    }
}

#[test]
fn an_answer_goes_with_the_node_that_gave_it() {
    let failure = cells().faults("crash").check(|world| async move {
        let cell = CellRef::of(&world, "ada");
        world.client(async move {
            let answer = cell.get().await;
            assert!(!matches!(answer, Err(CallError::Unknown(_))), "nobody knows");
        });
    });
    let failure = failure.expect_err("the node is gone");
    let steps: Vec<&str> = failure.steps().collect();
    let (began, gone) = ("cell/ada.get<client 1", |step: &&str| step.starts_with("crash "));
    let crash = steps.iter().position(gone).expect("a node is gone");
    assert!(steps[..crash].contains(&began), "its turn has ended before: {failure}");
}

#[test]
fn an_actor_that_has_no_state_does_not_move() {
    cells().faults("move").run(|world| async move {
        let cell = CellRef::of(&world, "ada");
        world.client(async move {
            cell.set(5).await.expect("it answers");
            assert_eq!(cell.get().await, Ok(5), "it is where it was");
        });
    });
}
