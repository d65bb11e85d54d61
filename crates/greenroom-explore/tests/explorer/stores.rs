//! Actors with states: reads and writes of their stores are steps, and may fail where a test says so.

use std::cell::{Cell, RefCell};
use std::collections::BTreeSet;
use std::rc::Rc;

use greenroom_explore::prelude::*;
use serde::{Deserialize, Serialize};

#[derive(Default, Debug, Serialize, Deserialize, Actor)]
struct Wallet {
    money: i64,
}

#[actor(persistent)]
impl Wallet {
    pub async fn money(&self) -> i64 {
        self.money
    }

    /// Answers when it is saved.
    pub async fn put(&mut self, cx: &Cx, amount: i64) -> Result<i64, StateError> {
        self.money += amount;
        cx.save(self).await?;
        Ok(self.money)
    }

    /// The mistake: it answers, and nothing is saved.
    pub async fn put_by(&mut self, amount: i64) -> i64 {
        self.money += amount;
        self.money
    }

    /// The mistake: others are told before it is saved.
    pub async fn put_and_tell(&mut self, cx: &Cx, amount: i64) -> Result<(), StateError> {
        BookRef::of(cx, "book").note(amount).send();
        self.money += amount;
        cx.save(self).await
    }

    pub async fn put_then_tell(&mut self, cx: &Cx, amount: i64) -> Result<(), StateError> {
        self.money += amount;
        cx.save(self).await?;
        BookRef::of(cx, "book").note(amount).send();
        Ok(())
    }
}

#[derive(Default, Debug, Actor)]
struct Book {
    noted: i64,
}

#[actor]
impl Book {
    pub async fn note(&mut self, amount: i64) {
        self.noted += amount;
    }

    pub async fn noted(&self) -> i64 {
        self.noted
    }
}

fn wallets() -> Explore {
    Explore::of(|builder| builder.register::<Wallet>().register::<Book>())
}

/// What was acknowledged is there in the end.
async fn acknowledged(world: World, saves: bool) {
    let wallet = WalletRef::of(&world, "ada");
    let sum = Rc::new(Cell::new(0));
    for amount in [1, 10] {
        let (wallet, sum) = (wallet.clone(), sum.clone());
        world.client(async move {
            let is_put = if saves { wallet.put(amount).await.is_ok() } else { wallet.put_by(amount).await.is_ok() };
            sum.set(sum.get() + i64::from(is_put) * amount);
        });
    }
    world.finally(move |_| async move {
        let money = wallet.money().await.expect("it answers");
        assert!(money >= sum.get(), "{} were put, and there are {money}", sum.get());
    });
}

#[test]
fn what_is_not_saved_is_gone_with_its_node() {
    let failure = wallets().faults("crash").check(|world| acknowledged(world, false));
    let failure = failure.expect_err("the node is gone after an answer");
    assert!(failure.replay().contains("crash "), "{failure}");
    wallets().check(|world| acknowledged(world, false)).expect("nothing goes wrong");
}

#[test]
fn what_is_saved_outlives_its_node_whenever_that_goes_and_whatever_stores_do() {
    for faults in ["crash:2", "store:3", "crash, store:2", "all"] {
        wallets().faults(faults).schedules(2_000).run(|world| acknowledged(world, true));
    }
}

#[test]
fn a_write_that_a_store_refuses_is_a_schedule() {
    async fn told(world: World, early: bool) {
        let wallet = WalletRef::of(&world, "ada");
        let asked = wallet.clone();
        world.client(async move {
            drop(if early { asked.put_and_tell(5).await } else { asked.put_then_tell(5).await });
        });
        world.finally(move |world| async move {
            let noted = BookRef::of(&world, "book").noted().await.expect("it answers");
            assert!(noted <= wallet.money().await.expect("it answers"), "{noted} were never put");
        });
    }
    let failure = wallets().faults("store").check(|world| told(world, true)).expect_err("others know what is not so");
    println!("{failure}");
    assert!(failure.replay().ends_with(":store write wallet/ada: refused"), "{failure}");
    assert!(failure.to_string().contains("write wallet/ada"), "{failure}");
    let story: serde_json::Value = serde_json::from_str(&failure.story()).expect("it is JSON");
    let lanes = story["lanes"].as_array().expect("there are some").iter();
    let others: Vec<&str> = lanes.filter_map(|lane| lane["name"].as_str()).filter(|name| name.contains(' ')).collect();
    assert_eq!(others, ["client 1"], "what a store does for an actor is told of that actor");
    let again = wallets().faults("store").replay(failure.replay()).check(|world| told(world, true));
    assert_eq!(again.expect_err("it breaks again").violated(), failure.violated());
    wallets().faults("store:2").schedules(2_000).run(|world| told(world, false));
}

#[test]
fn each_outcome_of_a_write_comes() {
    thread_local! {
        static SEEN: RefCell<BTreeSet<String>> = RefCell::default();
    }
    #[derive(Default)]
    struct Faults;
    impl Monitor for Faults {
        fn saw(&mut self, event: &Event<'_>) -> Verdict {
            SEEN.with_borrow_mut(|seen| seen.extend(event.fault().map(str::to_owned)));
            Verdict::Warm
        }
    }
    wallets().faults("store").run(|world| async move {
        world.monitor::<Faults>();
        let wallet = WalletRef::of(&world, "ada");
        world.client(async move { drop(wallet.put(5).await) });
    });
    let seen = SEEN.take();
    let wanted = ["refused", "unknown, not applied", "unknown, applied", "unknown, applied later"];
    let wanted = wanted.map(|outcome| format!("store write wallet/ada: {outcome}"));
    let all: Vec<String> = wanted.into_iter().chain(["store read wallet/ada: refused".to_owned()]).collect();
    assert!(all.iter().all(|outcome| seen.contains(outcome)), "{seen:?}");
}

#[test]
fn two_who_save_take_their_turns() {
    let explored = wallets().check(|world| async move {
        for amount in [1, 10] {
            let wallet = WalletRef::of(&world, "ada");
            world.client(async move { assert!(wallet.put(amount).await.is_ok()) });
        }
        world.finally(|world| async move {
            assert_eq!(WalletRef::of(&world, "ada").money().await, Ok(11));
        });
    });
    let explored = explored.expect("turns exclude each other until they have saved");
    assert!(explored.all && explored.different == 2, "{explored}");
}
