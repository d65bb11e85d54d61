//! Accounts that outlive their node: `cargo run -p greenroom --example account`, twice.

use greenroom::prelude::*;
use serde::{Deserialize, Serialize};

/// An account. What it holds is one record of the store.
#[derive(Default, Serialize, Deserialize, Actor)]
pub struct Account {
    balance: i64,
}

#[actor(persistent)]
impl Account {
    /// Adds to the balance. Who is answered `Ok` knows that it is saved.
    pub async fn deposit(&mut self, cx: &Cx, amount: i64) -> Result<i64, StateError> {
        self.balance += amount;
        cx.save(self).await?;
        Ok(self.balance)
    }

    /// What is there.
    pub async fn balance(&self) -> i64 {
        self.balance
    }
}

#[tokio::main]
async fn main() -> greenroom::Result<()> {
    let file = std::env::temp_dir().join("greenroom-account.db");
    let node = Node::builder().state(format!("sqlite:{}", file.display())).register::<Account>().start().await?;
    let account = AccountRef::of(&node, "ada");
    println!("ada had {}", account.balance().await?);
    let balance = account.deposit(5).await?;
    println!("ada has {balance}; run it again, or look at {}", file.display());
    node.stop().await;
    Ok(())
}
