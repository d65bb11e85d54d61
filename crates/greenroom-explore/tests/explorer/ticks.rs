//! Ticks of reminders come again, to who has lost its memory of them.

use std::time::{Duration, SystemTime};

use greenroom_explore::prelude::*;
use serde::{Deserialize, Serialize};

#[derive(Default, Debug, Serialize, Deserialize, Actor)]
struct Rent {
    is_repaired: bool,
    paid: u64,
    last: Option<SystemTime>,
}

#[actor(persistent, save = "turn")]
impl Rent {
    pub async fn repair(&mut self) {
        self.is_repaired = true;
    }

    pub async fn pay(&mut self, cx: &Cx) {
        let due = cx.tick().map(|tick| tick.due);
        // The mistake is not to ask whether it has had this one.
        if !self.is_repaired || self.last != due {
            (self.paid, self.last) = (self.paid + 1, due);
        }
    }

    pub async fn paid(&self) -> u64 {
        self.paid
    }
}

fn rents(faults: &str) -> Explore {
    Explore::of(|builder| builder.register::<Rent>()).schedules(300).faults(faults)
}

async fn is_paid_once(world: World, is_repaired: bool) {
    let rent = RentRef::of(&world, "ada");
    if is_repaired {
        rent.repair().await.expect("it answers");
    }
    world.client(async move {
        if rent.pay().after(SOON).await.is_ok() {
            tokio::time::sleep(LATER).await;
            drop(rent.paid().await);
        }
    });
    world.always("paid once", |now| now.all::<Rent>().all(|(_, rent)| rent.paid <= 1));
}

#[test]
fn a_tick_comes_again_to_who_has_lost_its_memory_of_it() {
    let failure = rents("crash, repeat").check(|world| is_paid_once(world, false)).expect_err("it comes twice");
    assert!(failure.steps().any(|step| step.starts_with("repeat rent/ada.pay")), "{failure}");
    rents("crash, repeat").run(|world| is_paid_once(world, true));
}

#[test]
fn a_tick_does_not_come_again_to_who_has_had_it() {
    rents("repeat").run(|world| is_paid_once(world, false));
}

#[test]
fn no_tick_comes_again_once_its_reminder_is_cancelled() {
    rents("crash, repeat").run(|world| async move {
        let rent = RentRef::of(&world, "ada");
        let node = world.node().clone();
        world.client(async move {
            let Ok(()) = rent.pay().after(SOON).named("rent").await else { return };
            tokio::time::sleep(LATER).await;
            if node.reminders_of(rent.id()).cancel("rent").await.is_ok() {
                let Ok(before) = rent.paid().await else { return };
                tokio::time::sleep(LATER).await;
                if let Ok(paid) = rent.paid().await {
                    assert_eq!(paid, before, "cancelled is cancelled");
                }
            }
        });
    });
}

#[test]
fn who_sleeps_for_more_than_an_hour_has_had_its_tick() {
    let explored = rents("").timers("in_time").check(|world| async move {
        let rent = RentRef::of(&world, "ada");
        world.client(async move {
            rent.pay().every(HOUR).await.expect("it is stored");
            tokio::time::sleep(HOUR + HOUR / 2).await;
            assert_eq!(rent.paid().await, Ok(1));
        });
    });
    explored.expect("no client waits for what never comes");
}

const HOUR: Duration = Duration::from_secs(60 * 60);
const SOON: Duration = Duration::from_secs(1);
const LATER: Duration = Duration::from_secs(5);
