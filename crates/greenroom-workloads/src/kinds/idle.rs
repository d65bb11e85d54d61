//! Idle: a million small actors that wait, each found by its key.

use std::sync::atomic::{AtomicU64, Ordering};

use greenroom::prelude::*;
use serde::{Deserialize, Serialize};

use super::tally::TallyRef;
use crate::report::Record;

/// What a [`Rouser`] is asked to do.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct RouseOrder {
    /// The number of the first actor.
    pub from: u64,
    /// The number after the last one.
    pub to: u64,
    /// The distance from one to the next.
    pub step: u64,
    /// What each is expected to answer: how often it has been roused, this time among them.
    pub turn: u64,
    /// The key of the tally that gets the report.
    pub tally: String,
}

/// Rouses sleepers, many at once.
#[derive(Default, Actor)]
pub struct Rouser {
    next: AtomicU64,
    open: AtomicU64,
    record: std::sync::Mutex<Option<Record>>,
}

#[actor]
impl Rouser {
    /// Starts rousing and returns at once: the tally hears of its end.
    pub async fn start(&mut self, cx: &Cx, order: RouseOrder) {
        self.next = AtomicU64::new(order.from);
        self.open = AtomicU64::new(AT_ONCE);
        self.record = std::sync::Mutex::new(Some(Record::begin()));
        let me = RouserRef::of(cx, cx.key());
        (0..AT_ONCE).for_each(|_| me.rouse(order.clone()).send());
    }

    /// Rouses one sleeper after the other, beside others that do the same.
    pub async fn rouse(&self, cx: &Cx, order: RouseOrder) {
        let mut record = Record::begin();
        loop {
            let number = self.next.fetch_add(order.step, Ordering::Relaxed);
            if number >= order.to {
                break;
            }
            match SleeperRef::of(cx, key(number)).rouse().await {
                Ok(turn) if turn == order.turn => record.count(1),
                // It has been activated anew: what it knew is gone.
                Ok(_) => record.count_lost(1),
                Err(error) => record.fail(&error),
            }
        }
        let mut total = self.record.lock().unwrap_or_else(std::sync::PoisonError::into_inner);
        if let Some(total) = total.as_mut() {
            total.absorb(record);
        }
        if self.open.fetch_sub(1, Ordering::Relaxed) == 1
            && let Some(record) = total.take()
        {
            TallyRef::of(cx, order.tally).report(record.end()).send();
        }
    }
}

/// Waits to be roused.
#[derive(Default, Actor)]
pub struct Sleeper {
    turns: u64,
}

#[actor(idle = "1d")]
impl Sleeper {
    /// How often it has been roused.
    pub async fn rouse(&mut self) -> u64 {
        self.turns += 1;
        self.turns
    }
}

/// A key of 16 bytes.
fn key(number: u64) -> String {
    format!("{number:016x}")
}

/// Calls in flight of one rouser.
const AT_ONCE: u64 = 64;
