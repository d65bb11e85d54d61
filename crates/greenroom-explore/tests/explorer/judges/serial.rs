//! Answers are judged by the actors' own serial runs.

use greenroom_explore::prelude::*;

use super::bank::{AccountRef, TellerRef, bank};

fn tellers(world: &World, repaired: bool) {
    for desk in ["1", "2"] {
        let teller = TellerRef::of(world, desk);
        world.client(async move {
            for amount in [10, 5] {
                let done = if repaired { teller.deposit_at_once(amount).await } else { teller.deposit(amount).await };
                done.expect("the teller answers");
            }
        });
    }
    world.linearizable();
}

#[test]
fn a_lost_update_is_found_by_the_actors_own_serial_runs() {
    let failure = bank().check(|world| async move { tellers(&world, false) }).expect_err("a deposit is lost");
    println!("{failure}");
    assert!(failure.violated().starts_with("not linearizable"), "{failure}");
    assert!((1..=3).contains(&failure.deviations()), "{failure}");
}

#[test]
fn what_can_be_told_one_at_a_time_is_no_violation() {
    bank().schedules(500).run(|world| async move {
        tellers(&world, true);
        world.finally(|world| async move {
            AccountRef::of(&world, "ada").balance().await.expect("it answers");
        });
    });
}

#[test]
fn an_order_that_real_time_excludes_explains_nothing() {
    // Answers of some order of the calls, but not of one that the clients' own clocks allow.
    let explore = || Explore::of(|builder| builder.register::<Cell>().register::<Relay>());
    let failure = explore().check(|world| async move { reads(&world, true) });
    let failure = failure.expect_err("an old value is read after a new one was acknowledged");
    assert!(failure.violated().starts_with("not linearizable"), "{failure}");
    explore().run(|world| async move { reads(&world, false) });
}

#[test]
fn what_was_acknowledged_before_a_read_was_asked_for_is_read() {
    // Some order of the two calls gives these answers: the other one than that in which they were made.
    let explore = || Explore::of(|builder| builder.register::<Cell>().register::<Relay>());
    let failure = explore().check(|world| async move { writes_and_reads(&world, true) });
    let failure = failure.expect_err("the write was acknowledged, and is under way");
    assert!(failure.violated().starts_with("not linearizable"), "{failure}");
    explore().run(|world| async move { writes_and_reads(&world, false) });
}

/// Writes behind the back of who asks, or at once.
#[derive(Default, Actor)]
struct Relay;

#[actor]
impl Relay {
    pub async fn write(&self, cx: &Cx, value: u64, late: bool) {
        let cell = CellRef::of(cx, "1");
        match late {
            true => cell.write(value).send(),
            false => cell.write(value).await.expect("it answers"),
        }
    }
}

#[derive(Default, Actor)]
struct Cell {
    value: u64,
}

#[actor]
impl Cell {
    pub async fn write(&mut self, value: u64) {
        self.value = value;
    }

    pub async fn read(&self) -> u64 {
        self.value
    }
}

fn reads(world: &World, late: bool) {
    let (relay, cell) = (RelayRef::of(world, "1"), CellRef::of(world, "1"));
    world.client(async move {
        relay.write(7, late).await.expect("it answers");
        cell.read().await.expect("it answers");
    });
    world.linearizable();
}

fn writes_and_reads(world: &World, late: bool) {
    let (relay, cell) = (RelayRef::of(world, "1"), CellRef::of(world, "1"));
    world.client(async move { relay.write(7, late).await.expect("it answers") });
    world.client(async move {
        cell.read().await.expect("it answers");
    });
    world.linearizable();
}
