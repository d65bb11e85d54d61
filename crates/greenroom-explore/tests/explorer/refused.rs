//! What a test cannot ask for, and what it would prove nothing by, is refused, with the remedy.

use std::panic::{AssertUnwindSafe, catch_unwind};

use greenroom_explore::prelude::*;

#[derive(Default, Debug, Actor)]
struct Count {
    count: u64,
}

#[actor]
impl Count {
    pub async fn add(&mut self) -> u64 {
        self.count += 1;
        self.count
    }
}

#[derive(Default, Debug, Actor)]
struct Stranger;

#[actor]
impl Stranger {
    pub async fn ask(&self) {}
}

fn kinds(builder: Builder) -> Builder {
    builder.register::<Count>()
}

fn one_client(world: &World) {
    let count = CountRef::of(world, "one");
    world.client(async move { drop(count.add().await) });
}

/// What `explore` dies of.
fn refusal<F: Future<Output = ()> + 'static>(
    explore: Explore,
    body: impl Fn(World) -> F + Send + Sync + 'static,
) -> String {
    let ended = catch_unwind(AssertUnwindSafe(|| drop(explore.check(body))));
    let payload = ended.expect_err("it is refused");
    let text = payload.downcast_ref::<String>().cloned();
    text.or_else(|| payload.downcast_ref::<&str>().map(|text| (*text).to_owned())).expect("it has words")
}

/// What `body` violates.
fn violation<F: Future<Output = ()> + 'static>(body: impl Fn(World) -> F + Send + Sync + 'static) -> String {
    Explore::of(kinds).check(body).expect_err("it is a violation").violated().to_owned()
}

#[explore(with = kinds)]
async fn kinds_may_be_registered_by_a_function(world: World) {
    one_client(&world);
}

#[test]
fn who_enters_while_clients_run_would_never_act_and_is_refused() {
    let told = violation(|world| async move {
        let late = world.clone();
        world.client(async move { one_client(&late) });
    });
    assert_eq!(
        told,
        "client 1 panicked: `world.client` comes too late: say it in the test's body, before its clients run"
    );
    let told = violation(|world| async move {
        one_client(&world);
        world.finally(|world| async move { one_client(&world) });
    });
    assert!(told.starts_with("`world.client` comes too late"), "{told}");
}

#[test]
fn what_is_claimed_while_clients_run_would_never_be_judged_and_is_refused() {
    let told = violation(|world| async move {
        let late = world.clone();
        world.client(async move { late.always("none", |now| now.all::<Count>().count() == 0) });
    });
    assert!(told.starts_with("client 1 panicked: `world.always` comes too late"), "{told}");
}

#[test]
fn a_choice_of_nothing_and_a_fault_that_never_comes_are_refused() {
    let told = violation(|world| async move {
        let chooses = world.clone();
        world.client(async move { _ = chooses.choose(0) });
    });
    assert!(told.contains("there is nothing to choose from"), "{told}");
    let ended = catch_unwind(|| drop(Explore::of(kinds).faults("crash:0")));
    let told = ended.expect_err("it is refused").downcast_ref::<String>().cloned();
    assert!(told.as_deref().is_some_and(|told| told.contains("\"0\" is no count")), "{told:?}");
}

#[test]
fn options_that_a_cluster_has_no_use_for_are_refused_by_their_names() {
    let ended = catch_unwind(AssertUnwindSafe(|| {
        drop(Explore::of(kinds).schedules(5).steps(100).timers("in_time").exhaustive(true).cluster(3));
    }));
    let told = ended.expect_err("it is refused").downcast_ref::<String>().cloned().expect("it has words");
    assert!(told.contains("no use for `steps`, `patience`, `timers`, `exhaustive`"), "{told}");
}

#[test]
fn a_test_in_which_nothing_is_explored_is_refused() {
    let told = refusal(Explore::of(kinds), |world| async move {
        assert_eq!(CountRef::of(&world, "one").add().await, Ok(1));
    });
    assert!(told.contains("nothing was explored") && told.contains("world.client"), "{told}");
}

#[test]
fn a_finally_that_no_schedule_comes_to_is_refused() {
    let body = |world: World| async move {
        let count = CountRef::of(&world, "one");
        world.client(async move {
            loop {
                count.add().await.expect("it answers");
            }
        });
        world.finally(|_| async { panic!("nobody hears it") });
    };
    let told = refusal(Explore::of(kinds).steps(40).schedules(20), body);
    assert!(told.contains("`finally` was never asked, as all 20 schedules were cut off"), "{told}");
}

#[test]
fn anybody_calls_only_kinds_that_are_registered() {
    let told = violation(|world| async move { world.anybody::<Stranger>(["one"], 1, 1) });
    assert!(told.contains("actor kind \"stranger\" is not registered"), "{told}");
}

#[test]
fn a_stage_has_no_doors() {
    let told =
        refusal(Explore::of(|builder| kinds(builder).http("127.0.0.1:0")), |world| async move { one_client(&world) });
    assert!(told.starts_with("a stage has no network, and `http` wants one"), "{told}");
}

#[test]
fn a_test_is_not_explored_inside_of_async_code() {
    let runtime = tokio::runtime::Builder::new_current_thread().build().expect("it starts");
    let told = runtime.block_on(async { refusal(Explore::of(kinds), |world| async move { one_client(&world) }) });
    assert!(told.contains("plain `#[test]`"), "{told}");
    let told = violation(|world| async move {
        world.client(async {
            drop(Explore::of(kinds).check(|world| async move { one_client(&world) }));
        });
    });
    assert!(told.contains("plain `#[test]`"), "{told}");
}

#[test]
fn what_is_neither_a_schedule_nor_a_file_says_what_to_give() {
    let told = refusal(Explore::of(kinds).replay("explore/gone.schedule"), |world| async move { one_client(&world) });
    assert!(told.contains("no file") && told.contains("GREENROOM_REPLAY"), "{told}");
}

#[test]
fn a_replay_says_what_of_its_schedule_did_not_come() {
    let replay = |schedule: &str| {
        let explore = Explore::of(kinds).replay(schedule);
        explore.check(|world| async move { one_client(&world) }).expect("it breaks nothing")
    };
    let stale = replay("2:client 7; 3:client 1");
    assert_eq!(stale.unfit, ["2:client 7", "3:client 1"]);
    assert!(stale.to_string().contains("without \"2:client 7\", which did not come"), "{stale}");
    assert!(replay("1:client 1").unfit.is_empty() && replay("").unfit.is_empty());
}
