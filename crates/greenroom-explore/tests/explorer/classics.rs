//! The classic mistakes are found, and their repaired twins are not.

use std::future::IntoFuture;
use std::time::Duration;

use greenroom::prelude::*;
use greenroom_explore::{Explore, Failure, Strategy, World};

#[derive(Default, Actor)]
struct Account {
    balance: i64,
}

#[actor]
impl Account {
    pub async fn balance(&self) -> i64 {
        self.balance
    }

    pub async fn set(&mut self, balance: i64) {
        self.balance = balance;
    }

    pub async fn add(&mut self, amount: i64) {
        self.balance += amount;
    }
}

#[derive(Default, Actor)]
struct Teller;

#[actor]
impl Teller {
    pub async fn deposit(&self, cx: &Cx, amount: i64) {
        let account = AccountRef::of(cx, "ada");
        let balance = account.balance().await.expect("the account answers");
        account.set(balance + amount).await.expect("the account answers");
    }

    pub async fn deposit_at_once(&self, cx: &Cx, amount: i64) {
        AccountRef::of(cx, "ada").add(amount).await.expect("the account answers");
    }
}

fn bank() -> Explore {
    Explore::of(|builder| builder.register::<Account>().register::<Teller>())
}

fn two_deposits(world: &World, repaired: bool) {
    for desk in ["1", "2"] {
        let teller = TellerRef::of(world, desk);
        world.client(async move {
            let done = if repaired { teller.deposit_at_once(10).await } else { teller.deposit(10).await };
            done.expect("the teller answers");
        });
    }
    world.finally(|world| async move {
        assert_eq!(AccountRef::of(&world, "ada").balance().await, Ok(20), "a deposit is lost");
    });
}

fn lost_update(explore: Explore) -> Box<Failure> {
    explore.check(|world| async move { two_deposits(&world, false) }).expect_err("a deposit is lost")
}

#[test]
fn a_lost_update_is_found_and_told_and_replayed() {
    let failure = lost_update(bank());
    println!("{failure}");
    assert!(failure.violated().contains("a deposit is lost"), "{failure}");
    assert!(failure.schedule() <= 200, "{failure}");
    assert!((1..=3).contains(&failure.deviations()), "{failure}");
    for _ in 0..10 {
        let again = lost_update(bank().replay(failure.replay()));
        assert_eq!(again.violated(), failure.violated());
        assert!(again.steps().eq(failure.steps()), "{again}");
    }
}

#[test]
fn each_strategy_finds_a_lost_update() {
    for strategy in [Strategy::Deviations, Strategy::Pos, Strategy::Pct, Strategy::Walk] {
        for seed in 0..5 {
            let failure = lost_update(bank().strategy(strategy).seed(seed));
            assert!(failure.deviations() <= 3, "{strategy:?}, seed {seed}: {failure}");
        }
    }
}

#[test]
fn deposits_that_are_one_turn_are_not_lost() {
    let explored = bank().schedules(1_000).check(|world| async move {
        two_deposits(&world, true);
        world.always("the account has one deposit or none or both", |now| {
            now.all::<Account>().all(|(_, account)| [0, 10, 20].contains(&account.balance))
        });
        world.sometimes("one deposit is there, and the other is not", |now| {
            now.get::<Account>("ada").is_some_and(|account| account.balance == 10)
        });
        world
            .eventually("both are there", |now| now.get::<Account>("ada").is_some_and(|account| account.balance == 20));
    });
    let explored = explored.unwrap_or_else(|failure| panic!("{failure}"));
    println!("{explored}");
    assert_eq!(explored.different, 2, "either is first: {explored}");
}

#[derive(Default, Actor)]
struct Philosopher;

#[actor]
impl Philosopher {
    /// Passes `left` on to the next of three, one fewer each time.
    pub async fn ask(&mut self, cx: &Cx, next: u64, left: u64) {
        if left > 0 {
            let after = next % 3 + 1;
            PhilosopherRef::of(cx, next.to_string()).ask(after, left - 1).await.expect("the neighbour answers");
        }
    }
}

#[test]
fn a_deadlock_of_three_is_found_and_says_who_waits_for_whom() {
    let explore = Explore::of(|builder| builder.register::<Philosopher>());
    let failure = explore.check(|world| async move {
        for first in 1..=3_u64 {
            let philosopher = PhilosopherRef::of(&world, first.to_string());
            world.client(async move { philosopher.ask(first % 3 + 1, 1).await.expect("all answer in the end") });
        }
    });
    let failure = failure.expect_err("all three wait");
    println!("{failure}");
    assert!(failure.violated().starts_with("deadlock"), "{failure}");
    assert!(failure.violated().contains("philosopher/1 waits for philosopher/2.ask"), "{failure}");
}

#[derive(Default, Actor)]
struct Order {
    created: bool,
    paid: bool,
}

#[actor]
impl Order {
    pub async fn created(&mut self) {
        self.created = true;
    }

    pub async fn paid(&mut self) {
        // The mistake: what is not created yet is not paid.
        if self.created {
            self.paid = true;
        }
    }
}

#[test]
fn the_order_of_two_senders_is_not_taken_for_granted() {
    let failure = Explore::of(|builder| builder.register::<Order>()).check(|world| async move {
        let (shop, cashier) = (OrderRef::of(&world, "7"), OrderRef::of(&world, "7"));
        world.client(async move { shop.created().send() });
        world.client(async move { cashier.paid().send() });
        world.eventually("the order is paid", |now| now.get::<Order>("7").is_some_and(|order| order.paid));
    });
    let failure = failure.expect_err("the payment may come first");
    assert_eq!(failure.violated(), "not in the end: the order is paid");
    assert_eq!(failure.deviations(), 1, "{failure}");
}

#[test]
fn messages_of_one_sender_keep_their_order() {
    // `Dpor` takes the order for given, and so would be through at once.
    for strategy in [Strategy::Deviations, Strategy::Pos, Strategy::Pct, Strategy::Walk] {
        Explore::of(|builder| builder.register::<Order>()).strategy(strategy).schedules(50).run(|world| async move {
            let order = OrderRef::of(&world, "7");
            world.client(async move {
                order.created().send();
                order.paid().await.expect("it answers");
            });
            let other = OrderRef::of(&world, "8");
            world.client(async move { other.created().await.expect("it answers") });
            world.eventually("the order is paid", |now| now.get::<Order>("7").is_some_and(|order| order.paid));
        });
    }
}

#[test]
fn a_panic_is_a_violation() {
    let failure = bank().check(|world| async move {
        let account = AccountRef::of(&world, "ada");
        world.client(async move { assert_eq!(account.balance().await, Ok(1), "it is empty") });
    });
    let failure = failure.expect_err("the client panics");
    assert!(failure.violated().starts_with("client 1 panicked") && failure.violated().contains("it is empty"));
}

#[test]
#[should_panic(expected = "never in 20 schedules: somebody is rich")]
fn a_test_that_proves_nothing_fails() {
    bank().schedules(20).strategy(Strategy::Dpor).run(|world| async move {
        let account = AccountRef::of(&world, "ada");
        world.client(async move { account.add(1).await.expect("it answers") });
        world.sometimes("somebody is rich", |now| now.all::<Account>().any(|(_, account)| account.balance > 100));
    });
}

#[test]
fn all_schedules_of_a_small_test_are_run() {
    let explored = Explore::of(|builder| builder.register::<Order>()).check(|world| async move {
        for key in ["7", "8"] {
            let order = OrderRef::of(&world, key);
            world.client(async move { order.created().await.expect("it answers") });
        }
    });
    let explored = explored.unwrap_or_else(|failure| panic!("{failure}"));
    // Two clients of three steps each, which have nothing to do with each other: 6! / (3! 3!) schedules.
    assert!(explored.all && explored.different == 1, "{explored}");
}

#[test]
fn a_choice_of_the_test_is_explored_and_told() {
    let failure = bank().check(|world| async move {
        let (account, chooses) = (AccountRef::of(&world, "ada"), world.clone());
        world.client(async move {
            let amount = [5, 10, -1][chooses.choose(3)];
            account.add(amount).await.expect("it answers");
        });
        world.always("never in debt", |now| now.all::<Account>().all(|(_, account)| account.balance >= 0));
    });
    let failure = failure.expect_err("one choice takes what is not there");
    assert_eq!((failure.violated(), failure.deviations()), ("not always: never in debt", 1), "{failure}");
    assert!(failure.replay().ends_with(":choice 2"), "{failure}");
}

#[test]
fn a_claim_over_two_actors_is_judged_in_more_than_one_schedule_of_a_trace() {
    let failure = Explore::of(|builder| builder.register::<Order>()).check(|world| async move {
        for key in ["7", "8"] {
            let order = OrderRef::of(&world, key);
            world.client(async move { order.created().await.expect("it answers") });
        }
        // All schedules are one trace, and in half of them it does not hold.
        world.always("7 is created before 8", |now| {
            let is_created = |key: &str| now.get::<Order>(key).is_some_and(|order| order.created);
            is_created("7") || !is_created("8")
        });
    });
    assert_eq!(failure.expect_err("8 may be first").violated(), "not always: 7 is created before 8");
}

#[test]
fn a_turn_that_excludes_others_keeps_their_messages_waiting() {
    let explored = Explore::of(|builder| builder.register::<Philosopher>()).check(|world| async move {
        for _ in 0..2 {
            let philosopher = PhilosopherRef::of(&world, "1");
            world.client(async move { philosopher.ask(2, 1).await.expect("all answer") });
        }
    });
    let explored = explored.unwrap_or_else(|failure| panic!("{failure}"));
    // Two chains of five steps, the middle three of which exclude the other's.
    assert!(explored.all && explored.different == 2, "either is first: {explored}");
}

#[derive(Default, Actor)]
struct Patient;

#[actor]
impl Patient {
    pub async fn rest(&mut self) {
        tokio::time::sleep(Duration::from_secs(3600)).await;
    }

    /// Asks another one, and gives up after a second.
    pub async fn ask(&mut self, cx: &Cx, next: Option<u64>) {
        if let Some(next) = next {
            let asked = PatientRef::of(cx, next.to_string()).ask(None).into_future();
            let _ = tokio::time::timeout(Duration::from_secs(1), asked).await;
        }
    }
}

#[test]
fn a_wait_that_somebody_gives_up_is_no_deadlock() {
    Explore::of(|builder| builder.register::<Patient>()).schedules(200).run(|world| async move {
        for (one, other) in [(1_u64, 2), (2, 1)] {
            let patient = PatientRef::of(&world, one.to_string());
            world.client(async move { patient.ask(Some(other)).await.expect("it gives up in time") });
        }
    });
}

#[derive(Default, Actor)]
struct Restless;

#[actor]
impl Restless {
    pub async fn go_on(&mut self, cx: &Cx) {
        RestlessRef::of(cx, "1").go_on().send();
    }
}

#[test]
fn what_never_ends_is_cut_off_and_says_so() {
    let restless = || Explore::of(|builder| builder.register::<Restless>()).schedules(5).steps(50);
    let client = restless().check(|world| async move {
        let one = RestlessRef::of(&world, "1");
        world.client(async move { one.go_on().send() });
    });
    let explored = client.unwrap_or_else(|failure| panic!("{failure}"));
    assert!(explored.cut == 5 && !explored.all, "{explored}");
    let set_up = restless().check(|world| async move { RestlessRef::of(&world, "1").go_on().send() });
    let failure = set_up.expect_err("the set-up never ends");
    assert_eq!(failure.violated(), "before any client ran: it goes on for more than 50 steps");
}

#[test]
fn a_claim_that_cannot_be_judged_in_the_end_is_a_violation() {
    let failure = Explore::of(|builder| builder.register::<Patient>()).schedules(5).check(|world| async move {
        let patient = PatientRef::of(&world, "1");
        world.client(async move { patient.rest().send() });
        world.eventually("nobody is anybody", |now| now.all::<Patient>().count() == 0);
    });
    assert_eq!(failure.expect_err("a turn has it").violated(), "not in the end: nobody is anybody");
}

#[test]
#[should_panic(expected = "no schedule is to be run")]
fn a_test_without_schedules_is_refused() {
    bank().schedules(0).run(|_| async {});
}

#[test]
fn each_strategy_finds_a_lost_update_by_one_deviation() {
    for strategy in [Strategy::Pos, Strategy::Walk] {
        for seed in 0..5 {
            let failure = lost_update(bank().strategy(strategy).seed(seed));
            assert_eq!(failure.deviations(), 1, "{strategy:?}, seed {seed}: {failure}");
        }
    }
}

#[test]
fn what_is_made_short_violates_the_same() {
    let found = |seed| {
        let failure = bank().strategy(Strategy::Walk).seed(seed).check(|world| async move {
            let chooses = world.clone();
            world.client(async move {
                if chooses.choose(2) == 1 {
                    // Without the second choice it is something else.
                    let violated = if chooses.choose(2) == 1 { "it is this" } else { "it is that" };
                    panic!("{violated}");
                }
            });
        });
        failure.expect_err("it panics").violated().to_owned()
    };
    let all: Vec<String> = (0..10).map(found).collect();
    for wanted in ["it is this", "it is that"] {
        assert!(all.iter().any(|violated| violated.contains(wanted)), "{all:?}");
    }
}

#[test]
fn what_is_made_short_has_no_deviation_too_many() {
    // Two choices break it, behind so many sends that no search through all schedules comes to them.
    let failure = bank().strategy(Strategy::Walk).schedules(200).check(|world| async move {
        let accounts: Vec<AccountRef> = (0..20_u64).map(|key| AccountRef::of(&world, key)).collect();
        let chooses = world.clone();
        world.client(async move {
            accounts.iter().for_each(|account| account.add(1).send());
            accounts[0].balance().await.expect("it answers");
            assert!(chooses.choose(2) == 0 || chooses.choose(2) == 0, "both are chosen");
        });
    });
    let failure = failure.expect_err("both are chosen");
    assert_eq!(failure.deviations(), 2, "{failure}");
}

#[test]
fn what_does_not_matter_is_not_said() {
    // The second step comes early, and breaks nothing: the deposit is lost whoever writes last.
    let failure = lost_update(bank().replay("5:client 2; 9:account/ada.set<teller/1"));
    assert_eq!(failure.deviations(), 2, "{failure}");
    let matters: Vec<&str> = failure.matters().collect();
    assert_eq!(matters, ["account/ada.balance<teller/2 came before account/ada.set<teller/1"], "{failure}");
}
