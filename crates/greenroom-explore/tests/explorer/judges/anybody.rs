//! Clients that nobody has written, and runs that differ although nothing was chosen otherwise.

use std::collections::HashMap;
use std::sync::atomic::{AtomicU64, Ordering};

use greenroom_explore::prelude::*;

/// A register that anybody may use, with a mistake: a swap is two turns.
#[derive(Default, Debug, Actor)]
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

#[derive(Default, Actor)]
struct Swap;

#[actor]
impl Swap {
    pub async fn swap(&self, cx: &Cx, value: u64) -> u64 {
        let cell = CellRef::of(cx, "1");
        let before = cell.read().await.expect("it answers");
        cell.write(value).await.expect("it answers");
        before
    }

    pub async fn swap_together(&self, _value: Option<Vec<(String, bool)>>) -> u64 {
        0
    }
}

fn swaps() -> Explore {
    Explore::of(|builder| builder.register::<Cell>().register::<Swap>())
}

#[test]
fn anybody_finds_what_is_wrong_without_a_test() {
    let failure = swaps().schedules(2_000).check(|world| async move {
        world.anybody::<Swap>(["1", "2"], 2, 2);
        world.linearizable();
    });
    let failure = failure.expect_err("two swaps get the same value");
    assert!(failure.violated().starts_with("not linearizable"), "{failure}");
    let again = swaps().replay(failure.replay()).check(|world| async move {
        world.anybody::<Swap>(["1", "2"], 2, 2);
        world.linearizable();
    });
    assert_eq!(again.expect_err("it breaks again").violated(), failure.violated());
}

#[test]
fn anybody_is_quiet_where_all_is_well() {
    swaps().schedules(300).run(|world| async move {
        world.anybody::<Cell>(["1", "2"], 2, 3);
        world.linearizable();
        world.sometimes("something was written", |now| now.all::<Cell>().any(|(_, cell)| cell.value > 0));
    });
}

#[test]
fn each_program_of_anybody_has_serial_runs_of_its_own() {
    // Two clients of five calls have 252 orders: those of all programs together are more than may be run.
    swaps().schedules(3).run(|world| async move {
        world.anybody::<Cell>(["1"], 2, 5);
        world.linearizable();
    });
}

#[derive(Default, Actor)]
struct Mailing;

#[actor]
impl Mailing {
    /// The mistake: in which order they get it, nobody has decided.
    pub async fn send(&self, cx: &Cx) {
        let readers: HashMap<String, u64> = (0..16).map(|at| (at.to_string(), at)).collect();
        for (reader, value) in &readers {
            CellRef::of(cx, reader.as_str()).write(*value).send();
        }
    }

    /// The mistake: the how many-th it is, is known beyond this run.
    pub async fn number(&self) -> u64 {
        static NUMBERS: AtomicU64 = AtomicU64::new(0);
        NUMBERS.fetch_add(1, Ordering::Relaxed)
    }

    /// The mistake: once somebody has asked often enough, it is known.
    pub async fn known(&self) -> u64 {
        static ASKED: AtomicU64 = AtomicU64::new(0);
        ASKED.fetch_add(1, Ordering::Relaxed).min(2)
    }
}

fn mailing() -> Explore {
    Explore::of(|builder| builder.register::<Mailing>().register::<Cell>()).schedules(20)
}

#[test]
fn a_hash_map_that_decides_an_order_is_named() {
    let failure = mailing().check(|world| async move {
        let mailing = MailingRef::of(&world, "news");
        world.client(async move { mailing.send().await.expect("it answers") });
    });
    let failure = failure.expect_err("it is not deterministic");
    let told = failure.violated();
    assert!(told.starts_with("not deterministic") && told.contains("mailing/news.send"), "{told}");
    assert!(told.contains("BTreeMap"), "{told}");
    let again = mailing().replay(failure.replay()).check(|world| async move {
        let mailing = MailingRef::of(&world, "news");
        world.client(async move { mailing.send().await.expect("it answers") });
    });
    let again = again.expect_err("it is not deterministic in this schedule, either");
    assert!(again.violated().starts_with("not deterministic"), "{again}");
}

#[test]
fn what_outlives_a_run_is_named() {
    let failure = mailing().check(|world| async move {
        let mailing = MailingRef::of(&world, "news");
        world.client(async move { drop(mailing.number().await) });
    });
    let failure = failure.expect_err("it is not deterministic");
    assert!(failure.violated().contains("mailing/news.number, answered "), "{failure}");
}

#[test]
fn what_one_run_has_left_for_all_others_is_told_from_chance() {
    let failure = mailing().check(|world| async move {
        let mailing = MailingRef::of(&world, "news");
        world.client(async move { drop(mailing.known().await) });
    });
    let failure = failure.expect_err("it is not deterministic");
    assert!(failure.violated().contains("what the first run left behind"), "{failure}");
}

#[test]
fn what_is_seen_is_said() {
    let explored = swaps().schedules(300).check(|world| async move {
        for value in [1, 2] {
            let cell = CellRef::of(&world, "1");
            world.client(async move { drop(cell.write(value).await) });
        }
        let cell = CellRef::of(&world, "1");
        world.client(async move {
            drop(cell.read().await);
        });
    });
    let explored = explored.unwrap_or_else(|failure| panic!("{failure}"));
    assert!(explored.pairs == 2 && explored.never.is_empty(), "{explored}");
    assert!(explored.to_string().contains("2 of 2 pairs of turns"), "{explored}");
    let one = swaps().schedules(50).check(|world| async move {
        let cell = CellRef::of(&world, "1");
        world.client(async move {
            drop(cell.write(1).await);
            drop(cell.read().await);
        });
    });
    let one = one.unwrap_or_else(|failure| panic!("{failure}"));
    assert_eq!(one.never, ["cell.read before cell.write"], "{one}");
}
