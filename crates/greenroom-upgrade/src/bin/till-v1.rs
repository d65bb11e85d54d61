//! The first version: tills that are paid at, and customers who pay.

use std::time::Duration;

use clap::Parser;
use greenroom::flags::NodeFlags;
use greenroom::prelude::*;
use serde::{Deserialize, Serialize};

/// What has been paid, in a store.
#[derive(Default, Serialize, Deserialize, Actor)]
struct Till {
    cents: u64,
}

#[actor(persistent)]
impl Till {
    /// Takes so much, and gives what is there.
    pub async fn pay(&mut self, cx: &Cx, cents: u64) -> Result<u64, StateError> {
        self.cents += cents;
        cx.save(self).await?;
        Ok(self.cents)
    }

    /// What is there, and the version that says so.
    pub async fn total(&self) -> (u64, u16) {
        (self.cents, 1)
    }
}

/// Goes to tills, on whichever node is asked: its version is that of the node.
#[derive(Default, Actor)]
struct Customer {}

#[actor(workers = 8)]
impl Customer {
    /// Pays one cent at `till`; the version of this customer, and what the till says.
    pub async fn visit(&self, cx: &Cx, till: String) -> Result<(u16, u64), String> {
        let till = TillRef::of(cx, till);
        loop {
            match till.pay(1).await {
                Ok(paid) => return Ok((1, paid)),
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
