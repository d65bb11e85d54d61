//! The second version: tills also give money back, and customers change their minds.

use std::time::Duration;

use clap::Parser;
use greenroom::flags::NodeFlags;
use greenroom::prelude::*;
use greenroom::state::{Old, Older, Written};
use serde::{Deserialize, Serialize};

/// What the first version keeps in a store.
#[derive(Serialize, Deserialize)]
struct TillV1 {
    cents: u64,
}

/// What has been paid, in a store, under another name than the first version's.
#[derive(Default, Serialize, Deserialize, Actor)]
struct Till {
    #[serde(rename = "taken")]
    cents: u64,
    refunds: u64,
}

#[actor(persistent, interface = 2, version = 2, writes = 1)]
impl Till {
    fn migrate(old: Old<'_>) -> Result<Self, String> {
        Ok(Self { cents: old.read::<TillV1>()?.cents, refunds: 0 })
    }

    fn write_older(&self, older: Older) -> Result<Written, String> {
        older.write(&TillV1 { cents: self.cents })
    }

    /// Takes so much, and gives what is there.
    pub async fn pay(&mut self, cx: &Cx, cents: u64) -> Result<u64, StateError> {
        self.cents += cents;
        cx.save(self).await?;
        Ok(self.cents)
    }

    /// Takes so much and gives some of it back, at once. New in this version.
    pub async fn exchange(&mut self, cx: &Cx, cents: u64, back: u64) -> Result<u64, StateError> {
        self.cents += cents;
        self.cents -= back.min(self.cents);
        self.refunds += 1;
        cx.save(self).await?;
        Ok(self.cents)
    }

    /// What is there, and the version that says so.
    pub async fn total(&self) -> (u64, u16) {
        (self.cents, 2)
    }
}

/// Goes to tills, on whichever node is asked: its version is that of the node.
#[derive(Default, Actor)]
struct Customer {}

#[actor(workers = 8)]
impl Customer {
    /// Pays one cent at `till`, by what only this version's tills know; the version of this customer, and what the till says.
    pub async fn visit(&self, cx: &Cx, till: String) -> Result<(u16, u64), String> {
        let till = TillRef::of(cx, till);
        loop {
            match till.exchange(3, 2).await {
                Ok(paid) => return Ok((2, paid)),
                // Nothing has run.
                Err(CallError::Refused(refusal)) if refusal.retry_after().is_some() => tokio::time::sleep(PAUSE).await,
                Err(error) => return Err(error.to_string()),
            }
        }
    }
}

#[derive(Parser)]
struct Arguments {
    #[command(flatten)]
    node: NodeFlags,
}

#[tokio::main(flavor = "current_thread")]
async fn main() -> greenroom::Result<()> {
    Arguments::parse().node.run(Node::builder().register::<Till>().register::<Customer>()).await
}

/// Between a refusal and the next attempt.
const PAUSE: Duration = Duration::from_millis(20);
