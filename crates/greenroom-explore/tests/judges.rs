//! Each judge finds what it is for, and is quiet about repaired twins.

use greenroom::prelude::*;
use greenroom_explore::{Event, Explore, Monitor, Verdict, World};

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

    pub async fn add(&mut self, amount: i64) -> i64 {
        self.balance += amount;
        self.balance
    }
}

#[derive(Default, Actor)]
struct Teller;

#[actor]
impl Teller {
    pub async fn deposit(&self, cx: &Cx, amount: i64) -> i64 {
        let account = AccountRef::of(cx, "ada");
        let balance = account.balance().await.expect("the account answers");
        account.set(balance + amount).await.expect("the account answers");
        balance + amount
    }

    pub async fn deposit_at_once(&self, cx: &Cx, amount: i64) -> i64 {
        AccountRef::of(cx, "ada").add(amount).await.expect("the account answers")
    }
}

fn bank() -> Explore {
    Explore::of(|builder| builder.register::<Account>().register::<Teller>())
}

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

/// Counts what is deposited and not yet in an account.
#[derive(Default)]
struct OnItsWay(i64);

impl Monitor for OnItsWay {
    fn saw(&mut self, event: &Event<'_>) -> Verdict {
        if event.begins("account", "add") {
            self.0 += event.argument::<i64>("amount").expect("it has an amount");
        } else if event.ends("account", "add") {
            self.0 -= 10;
        } else {
            return Verdict::Warm;
        }
        match self.0 {
            0 => Verdict::Cold,
            10 => Verdict::Hot,
            more => Verdict::Violated(format!("{more} on its way at once")),
        }
    }
}

/// Waits for a payment once an order was created.
#[derive(Default)]
struct Paid;

impl Monitor for Paid {
    fn saw(&mut self, event: &Event<'_>) -> Verdict {
        match event.method() {
            "add" if event.begins("account", "add") => Verdict::Hot,
            "set" if event.ends("account", "set") => Verdict::Cold,
            _ => Verdict::Warm,
        }
    }
}

#[test]
fn a_monitor_sees_turns_and_their_arguments() {
    let two = |amount: i64| {
        bank().schedules(200).check(move |world| async move {
            for _ in 0..2 {
                let account = AccountRef::of(&world, "ada");
                world.client(async move { drop(account.add(amount).await) });
            }
            world.monitor::<OnItsWay>();
        })
    };
    two(10).unwrap_or_else(|failure| panic!("{failure}"));
    let failure = two(7).expect_err("seven is not ten");
    assert_eq!(failure.violated(), "OnItsWay: 7 on its way at once");
}

#[test]
fn a_monitor_that_is_hot_in_the_end_is_a_violation() {
    let failure = bank().schedules(20).check(|world| async move {
        let account = AccountRef::of(&world, "ada");
        world.client(async move { drop(account.add(1).await) });
        world.monitor::<Paid>();
    });
    assert_eq!(failure.expect_err("nothing is set").violated(), "Paid: hot in the end");
    bank().schedules(20).run(|world| async move {
        let account = AccountRef::of(&world, "ada");
        world.client(async move {
            drop(account.add(1).await);
            drop(account.set(1).await);
        });
        world.monitor::<Paid>();
    });
}
