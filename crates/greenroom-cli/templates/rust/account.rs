//! Accounts that outlive their nodes.

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

#[cfg(test)]
mod tests {
    use greenroom_test::Cluster;

    use super::*;

    #[test]
    fn what_was_deposited_outlives_every_node() {
        Cluster::of(3, |builder| builder.register::<Account>()).seeds(20, |cluster| async move {
            assert_eq!(
                AccountRef::of(&cluster.node("a"), "ada").deposit(5).await,
                Ok(5)
            );
            for name in ["a", "b", "c"] {
                cluster.kill(name);
                cluster.start(name).await;
                cluster.settled().await;
            }
            let balance = cluster
                .eventually(|| AccountRef::of(&cluster.any(), "ada").balance())
                .await;
            assert_eq!(balance, 5);
        });
    }
}
