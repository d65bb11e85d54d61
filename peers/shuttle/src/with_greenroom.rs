//! The explorer: the account is an actor.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use greenroom_explore::prelude::*;

use crate::Run;
use crate::clock::Clock;

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
}

pub fn run(schedules: u64) -> Run {
    let explore = Explore::of(|builder| builder.register::<Account>()).strategy(Strategy::Walk).schedules(schedules);
    let counts = Arc::new([AtomicU64::new(0), AtomicU64::new(0)]);
    let counted = counts.clone();
    let clock = Clock::start();
    let explored = explore.check(move |world| {
        let counted = counted.clone();
        async move {
            for _ in 0..2 {
                let account = AccountRef::of(&world, "ada");
                world.client(async move {
                    let balance = account.balance().await.expect("it answers");
                    account.set(balance + 10).await.expect("it answers");
                });
            }
            world.finally(|world| async move {
                let balance = AccountRef::of(&world, "ada").balance().await.expect("it answers");
                counted[usize::from(balance == 20)].fetch_add(1, Ordering::Relaxed);
            });
        }
    });
    let took = clock.took();
    let explored = explored.unwrap_or_else(|failure| panic!("{failure}"));
    assert_eq!(explored.schedules, schedules);
    // One schedule of 64 runs twice, to see whether its choices decide it.
    let [lost, kept] = [0, 1].map(|place| counts[place].load(Ordering::Relaxed) as f64);
    Run { took, lost: lost * 100.0 / (lost + kept) }
}
