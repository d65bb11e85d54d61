//! The classic mistakes of actors, each with a twin in which it is repaired.

use greenroom::prelude::*;
use greenroom_explore::{Explore, World};

/// A program to be explored.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Program {
    /// A read, then a write that depends on it.
    LostUpdate,
    /// Each of three excludes others while it awaits the next one.
    Deadlock,
    /// What two senders send to one actor is taken to come in one order.
    TwoSenders,
}

impl Program {
    pub(crate) const ALL: [Program; 3] = [Program::LostUpdate, Program::Deadlock, Program::TwoSenders];

    pub(crate) fn explore(self) -> Explore {
        Explore::of(|builder| {
            let builder = builder.register::<Account>().register::<Teller>().register::<Philosopher>();
            builder.register::<Order>().register::<Noise>()
        })
    }

    /// The clients and what is claimed, beside so many clients that have nothing to do with it.
    pub(crate) fn body(self, world: &World, is_repaired: bool, noisy: usize) {
        for client in 0..noisy {
            let noise = NoiseRef::of(world, format!("{}", client % 2));
            world.client(async move {
                for _ in 0..3 {
                    noise.make().await.expect("it answers");
                }
            });
        }
        match self {
            Program::LostUpdate => lost_update(world, is_repaired),
            Program::Deadlock => deadlock(world, is_repaired),
            Program::TwoSenders => two_senders(world, is_repaired),
        }
    }
}

#[derive(Default, Actor)]
struct Noise {
    made: u64,
}

#[actor]
impl Noise {
    pub async fn make(&mut self) -> u64 {
        self.made += 1;
        self.made
    }
}

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

fn lost_update(world: &World, is_repaired: bool) {
    for desk in ["1", "2"] {
        let teller = TellerRef::of(world, desk);
        world.client(async move {
            let done = if is_repaired { teller.deposit_at_once(10).await } else { teller.deposit(10).await };
            done.expect("the teller answers");
        });
    }
    world.finally(|world| async move {
        assert_eq!(AccountRef::of(&world, "ada").balance().await, Ok(20), "a deposit is lost");
    });
}

#[derive(Default, Actor)]
struct Philosopher;

#[actor]
impl Philosopher {
    /// Passes it on to the next of three, and excludes others until that has answered.
    pub async fn ask(&mut self, cx: &Cx, next: u64, left: u64) {
        if left > 0 {
            let after = next % 3 + 1;
            PhilosopherRef::of(cx, next).ask(after, left - 1).await.expect("the neighbour answers");
        }
    }

    /// The same, beside others.
    pub async fn ask_beside(&self, cx: &Cx, next: u64, left: u64) {
        if left > 0 {
            let after = next % 3 + 1;
            PhilosopherRef::of(cx, next).ask_beside(after, left - 1).await.expect("the neighbour answers");
        }
    }
}

fn deadlock(world: &World, is_repaired: bool) {
    for first in 1..=3_u64 {
        let philosopher = PhilosopherRef::of(world, first);
        world.client(async move {
            let next = first % 3 + 1;
            let done = if is_repaired { philosopher.ask_beside(next, 1).await } else { philosopher.ask(next, 1).await };
            done.expect("all answer in the end");
        });
    }
}

#[derive(Default, Actor)]
struct Order {
    is_created: bool,
    is_paid: bool,
}

#[actor]
impl Order {
    pub async fn created(&mut self) {
        self.is_created = true;
    }

    pub async fn paid(&mut self, may_be_first: bool) {
        self.is_paid |= self.is_created || may_be_first;
    }
}

fn two_senders(world: &World, is_repaired: bool) {
    let (shop, cashier) = (OrderRef::of(world, "7"), OrderRef::of(world, "7"));
    world.client(async move { shop.created().send() });
    world.client(async move { cashier.paid(is_repaired).send() });
    world.eventually("the order is paid", |now| now.get::<Order>("7").is_some_and(|order| order.is_paid));
}
