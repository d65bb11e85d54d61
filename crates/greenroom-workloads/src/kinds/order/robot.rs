//! Robots that order, one order after the other.

use std::collections::BTreeMap;
use std::sync::{Mutex, PoisonError};
use std::time::{Duration, Instant};

use futures_util::future::join_all;
use greenroom::prelude::*;
use serde::{Deserialize, Serialize};

use super::Asking;
use super::cart::{CartRef, Step};
use crate::dice::Dice;
use crate::kinds::geo::robot::IN_TIME;

/// Robots of one cluster.
#[derive(Default, Actor)]
pub struct OrderRobot {}

#[actor(instances = "per_cluster")]
impl OrderRobot {
    /// Lets so many robots order for a time.
    pub async fn order(&self, cx: &Cx, orders: Orders) -> Ordered {
        let end = Instant::now() + Duration::from_millis(orders.for_ms);
        let seen = Mutex::new(Ordered::default());
        let robots = join_all((0..orders.robots).map(|robot| orders.order_until(cx, robot, end, &seen)));
        // What is still on its way then is not counted.
        let _ = tokio::time::timeout(end.saturating_duration_since(Instant::now()), robots).await;
        seen.into_inner().unwrap_or_else(PoisonError::into_inner)
    }

    /// Pieces that were sold of each of some items.
    pub async fn sold(&self, cx: &Cx, asking: Asking, items: Vec<String>) -> Result<Vec<u64>, String> {
        let mut all = Vec::new();
        for some in items.chunks(AT_ONCE) {
            let some = join_all(some.iter().map(|item| asking.sold(cx, item))).await;
            all.extend(some.into_iter().collect::<Result<Vec<_>, _>>()?);
        }
        Ok(all)
    }
}

/// What robots order.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Orders {
    /// A name that no other cluster's robots have.
    pub place: String,
    /// How many robots there are.
    pub robots: u32,
    /// The items' names begin with this.
    pub shop: String,
    /// How many items there are.
    pub items: u64,
    /// How they are asked.
    pub asking: Asking,
    /// Time between two steps.
    pub think_ms: u64,
    /// How long.
    pub for_ms: u64,
    /// What their choices are made from.
    pub seed: u64,
}

/// What came of it.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub struct Ordered {
    /// Steps that were taken in time.
    pub steps: u64,
    /// Those that took longer.
    pub late: u64,
    /// Orders that were off, as there was not enough.
    pub off: u64,
    /// Steps that failed.
    pub errors: u64,
    /// The first failure.
    pub complaint: Option<String>,
    /// Confirmed sales by item.
    pub bought: BTreeMap<String, u64>,
}

impl Orders {
    /// The name of an item.
    pub fn item(shop: &str, number: u64) -> String {
        format!("{shop}-{number}")
    }

    async fn order_until(&self, cx: &Cx, robot: u32, end: Instant, seen: &Mutex<Ordered>) {
        let cart = CartRef::of(cx, format!("{}-{}-{robot}", self.shop, self.place));
        let mut dice = Dice::new(self.seed ^ u64::from(robot) << 32 ^ u64::from(self.place.len() as u32));
        // They do not all begin at once.
        think(dice.below(self.think_ms.max(1) * 4)).await;
        let mut number = 0u64;
        while Instant::now() < end {
            number += 1;
            let order = format!("{}-{robot}-{number}", self.place);
            let item = Self::item(&self.shop, dice.below(self.items));
            for step in Step::ALL {
                let begun = Instant::now();
                let done = cart.step(step, order.clone(), vec![item.clone()], self.asking).await;
                let took = begun.elapsed();
                let goes_on = {
                    let mut seen = seen.lock().unwrap_or_else(PoisonError::into_inner);
                    match &done {
                        Ok(done) => {
                            let counted = if took <= IN_TIME { &mut seen.steps } else { &mut seen.late };
                            *counted += 1;
                            seen.off += u64::from(!done);
                            if step == Step::Confirm && *done {
                                *seen.bought.entry(item.clone()).or_default() += 1;
                            }
                            *done
                        }
                        Err(error) => {
                            seen.errors += 1;
                            seen.complaint.get_or_insert_with(|| error.to_string());
                            false
                        }
                    }
                };
                think(self.think_ms).await;
                if !goes_on {
                    break;
                }
            }
        }
    }
}

async fn think(ms: u64) {
    tokio::time::sleep(Duration::from_millis(ms)).await;
}

/// Items that are asked at once for what was sold.
const AT_ONCE: usize = 64;
