//! On how many threads schedules are run changes nothing of what is found.

use std::panic::{self, AssertUnwindSafe};
use std::thread;

use greenroom_explore::{Explored, Strategy};

use super::programs::Program;

#[test]
fn threads_find_the_same_schedule_first() {
    for program in Program::ALL {
        let found = |threads| {
            let explore = program.explore(false).seed(7).threads(threads).schedules(2_000);
            let failure = explore.check(move |world| program.body(world, false, 2)).expect_err("it is wrong");
            (failure.schedule(), failure.replay().to_owned(), failure.violated().to_owned())
        };
        let alone = found(1);
        assert_eq!(found(3), alone, "{program:?}");
    }
}

#[test]
fn threads_see_as_much() {
    let seen = |program: Program, strategy, schedules, threads| {
        let explore = program.explore(true).strategy(strategy).threads(threads).schedules(schedules);
        let explored = explore.check(move |world| program.body(world, true, 1)).expect("it is repaired");
        let Explored { schedules, all, different, pairs, cut, never, .. } = explored;
        // Where all were run, the others had begun some more.
        (all || schedules > 0, all, different, if all { (0, 0, Vec::new()) } else { (pairs, cut, never) })
    };
    for (program, strategy, schedules) in [
        (Program::PoolServer2, Strategy::Mixed, 700),
        (Program::Survey, Strategy::Urw, 300),
        (Program::LostUpdate, Strategy::Mixed, 5_000),
    ] {
        let alone = seen(program, strategy, schedules, 1);
        assert_eq!(seen(program, strategy, schedules, 7), alone, "{program:?}");
    }
}

#[test]
fn what_panics_on_another_thread_ends_the_test() {
    let program = Program::LostUpdate;
    let explore = program.explore(true).threads(4).schedules(100_000).strategy(Strategy::Walk);
    let here = thread::current().id();
    let explored = panic::catch_unwind(AssertUnwindSafe(|| {
        explore.check(move |world| async move {
            world.linearizable();
            let noisy = if thread::current().id() == here { 0 } else { 5 };
            program.body(world, true, noisy).await;
        })
    }));
    let payload = explored.expect_err("the calls of seven clients have more than 5,000 orders");
    let told = payload.downcast_ref::<String>().map(String::as_str).unwrap_or_default();
    assert!(told.contains("more than 5000 orders"), "{told}");
}
