//! What a test may let happen, and what it may ask for.

use std::panic::{AssertUnwindSafe, catch_unwind};

use greenroom_explore::prelude::*;

/// A gate, which counts who goes through.
#[derive(Default, Debug, Actor)]
struct Gate {
    through: u64,
}

#[actor]
impl Gate {
    pub async fn pass(&mut self) -> u64 {
        self.through += 1;
        self.through
    }

    /// Lets nobody else through until somebody has passed the other one.
    pub async fn pass_behind(&mut self, cx: &Cx, other: String) {
        drop(GateRef::of(cx, other).pass().await);
    }

    pub async fn fall(&self) {
        panic!("nothing holds here");
    }
}

fn gates() -> Explore {
    Explore::of(|builder| builder.register::<Gate>()).schedules(20)
}

#[explore(Gate, exhaustive = true)]
async fn all_traces_of_what_is_small_are_run(world: World) {
    for _ in 0..2 {
        let gate = GateRef::of(&world, "north");
        world.client(async move { drop(gate.pass().await) });
    }
}

#[test]
fn a_test_that_is_to_run_all_traces_and_does_not_fails() {
    let explore = gates().exhaustive(true);
    let ended = catch_unwind(AssertUnwindSafe(|| {
        drop(explore.check(|world| async move {
            for client in 0..4 {
                let gate = GateRef::of(&world, format!("{}", client % 2));
                world.client(async move {
                    for _ in 0..4 {
                        drop(gate.pass().await);
                    }
                });
            }
        }));
    }));
    let payload = ended.expect_err("there are more");
    let told = payload.downcast_ref::<String>().expect("it has words");
    assert!(told.starts_with("not all traces were run in 20 schedules"), "{told}");
}

async fn two_wait_for_each_other(world: World) {
    for (gate, other) in [("north", "south"), ("south", "north")] {
        let gate = GateRef::of(&world, gate);
        world.client(async move { drop(gate.pass_behind(other.to_owned()).await) });
    }
    world.finally(|world| async move {
        assert_eq!(GateRef::of(&world, "east").pass().await, Ok(1));
    });
}

#[test]
fn who_may_wait_for_ever_breaks_no_test_and_the_rest_is_judged() {
    gates().deadlocks(false).run(two_wait_for_each_other);
    let failure = gates().check(two_wait_for_each_other).expect_err("they wait for ever");
    assert!(failure.violated().starts_with("deadlock"), "{failure}");
}

async fn two_fall(world: World) {
    let gate = GateRef::of(&world, "north");
    world.client(async move { gate.fall().await.expect("it answers") });
    world.finally(|world| async move {
        assert_eq!(GateRef::of(&world, "north").pass().await, Ok(1));
    });
}

#[test]
fn who_may_panic_breaks_no_test_but_what_the_test_says_itself_does() {
    gates().panics(false).run(two_fall);
    gates().check(two_fall).expect_err("a turn has panicked");
    let failure = gates().panics(false).check(|world| async move {
        two_fall(world.clone()).await;
        world.finally(|_| async { panic!("the end is wrong") });
    });
    assert_eq!(failure.expect_err("the test says so").violated(), "the end is wrong");
}

#[test]
fn what_a_test_lets_happen_is_told_by_its_name() {
    let failure = gates().check(|world| async move {
        let (gate, of_client) = (GateRef::of(&world, "north"), world.clone());
        world.client(async move {
            if !of_client.maybe("the bridge is up") {
                drop(gate.pass().await);
            }
        });
        world.eventually("one is through", |now| now.all::<Gate>().any(|(_, gate)| gate.through == 1));
    });
    let failure = failure.expect_err("nobody passes a bridge that is up");
    assert!(failure.to_string().contains("the bridge is up: yes"), "{failure}");
}

#[test]
fn what_a_test_notes_stands_under_the_step_in_which_it_was_said() {
    let failure = gates().check(|world| async move {
        let (gate, of_client) = (GateRef::of(&world, "north"), world.clone());
        world.note("before any client runs");
        world.client(async move {
            of_client.note("knocks");
            let through = gate.pass().await;
            of_client.note(format_args!("is number {through:?}"));
            assert_eq!(through, Ok(2), "nobody was here before");
        });
    });
    let failure = failure.expect_err("it is the first");
    let told = failure.to_string();
    let lines: Vec<&str> = told.lines().map(str::trim).collect();
    let place = |said: &str| lines.iter().position(|line| *line == said).unwrap_or_else(|| panic!("{said}: {told}"));
    assert!(lines[place("knocks") - 1].starts_with("1  client 1"), "{told}");
    assert!(lines[place("is number Ok(1)") - 1].contains("client 1<gate/north.pass"), "{told}");
    assert!(!told.contains("before any client"), "{told}");
    assert!(failure.mermaid().contains("knocks") && failure.page().contains("knocks"));
}

#[explore(Gate)]
async fn claims_know_how_much_is_under_way(world: World) {
    for _ in 0..2 {
        let gate = GateRef::of(&world, "north");
        world.client(async move { drop(gate.pass().await) });
    }
    world.always("one call of each client", |now| now.in_flight() <= 2);
    world.sometimes("both are under way", |now| now.in_flight() == 2);
    world.eventually("all has come", |now| now.in_flight() == 0);
}
