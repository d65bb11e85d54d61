//! Actors that notice when a message is lost, doubled or out of order.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use greenroom::prelude::*;
use greenroom::{Builder, Inspected, Node};

/// Keeps what each teller has told it: their numbers rise one by one.
#[derive(Default, Actor)]
pub(crate) struct Ledger {
    last: BTreeMap<u64, u64>,
    wrong: u64,
}

#[actor]
impl Ledger {
    pub async fn note(&mut self, teller: u64, number: u64) {
        let last = self.last.entry(teller).or_default();
        self.wrong += u64::from(number != *last + 1);
        *last = number;
    }

    /// The last number of a teller, and how many were not those that were due.
    pub async fn told(&mut self, teller: u64) -> (u64, u64) {
        (self.last.get(&teller).copied().unwrap_or_default(), self.wrong)
    }
}

/// Tells a ledger numbers, by references that it has had for long and by fresh ones.
#[derive(Default, Actor)]
pub(crate) struct Teller {
    said: u64,
    known: Option<LedgerRef>,
}

#[actor]
impl Teller {
    /// Tells `ledger` so many numbers, and asks it whether it has heard all of them.
    pub async fn tell(&mut self, cx: &Cx, teller: u64, ledger: String, numbers: u64) -> Result<(), String> {
        for _ in 0..numbers {
            self.said += 1;
            let known = self.known.get_or_insert_with(|| LedgerRef::of(cx, ledger.as_str())).clone();
            let by = if self.said.is_multiple_of(3) { LedgerRef::of(cx, ledger.as_str()) } else { known };
            by.note(teller, self.said).send();
        }
        let heard = LedgerRef::of(cx, ledger.as_str()).told(teller).await.map_err(|error| error.to_string())?;
        if heard == (self.said, 0) { Ok(()) } else { Err(format!("{heard:?} of {}", self.said)) }
    }

    pub async fn hello(&mut self) {}
}

/// How many activations have begun, and how many have had their last hook.
#[derive(Default)]
pub(crate) struct Lives {
    pub(crate) begun: AtomicU64,
    pub(crate) ended: AtomicU64,
}

/// Says when it begins and ends.
pub(crate) struct Mayfly {
    lives: Arc<Lives>,
}

impl Actor for Mayfly {}

#[actor]
impl Mayfly {
    pub async fn hello(&mut self) {}

    async fn activated(&mut self) {
        self.lives.begun.fetch_add(1, Ordering::Relaxed);
    }

    async fn deactivating(&mut self) {
        self.lives.ended.fetch_add(1, Ordering::Relaxed);
    }
}

pub(crate) fn equipped(builder: Builder, shards: usize, lives: &Arc<Lives>) -> Builder {
    let lives = lives.clone();
    builder
        .register::<Ledger>()
        .register::<Teller>()
        .register_with(move |_| Mayfly { lives: lives.clone() })
        .configure(|config| config.shards = shards)
}

/// The shard that an actor is on; `None` while it goes to another one.
pub(crate) async fn shard_of(node: &Node, kind: &str, key: &str) -> Option<u16> {
    match node.inspect(kind, key).await {
        Inspected::Here(inspection) => u16::try_from(inspection.shard).ok(),
        _ => None,
    }
}

/// Brings an actor that is active to a shard.
pub(crate) async fn bring(node: &Node, kind: &str, key: &str, shard: u16) {
    while shard_of(node, kind, key).await != Some(shard) {
        node.pass(kind, key, shard);
        tokio::time::sleep(std::time::Duration::from_millis(5)).await;
    }
}
