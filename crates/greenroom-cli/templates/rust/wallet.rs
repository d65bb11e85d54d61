//! Wallets between which no payment is lost or made twice.

use greenroom::prelude::*;

/// A wallet. A turn's changes and messages are committed together, and each message is processed exactly once.
#[derive(Default, Actor)]
pub struct Wallet {
    balance: Register<i64>,
}

#[actor(reliable)]
impl Wallet {
    /// Gives `amount` to another wallet; what is left. Wallets may owe.
    pub async fn pay(&mut self, cx: &Cx, to: String, amount: u32) -> i64 {
        let left = self.balance.get() - i64::from(amount);
        self.balance.set(left);
        WalletRef::of(cx, to).take(amount).send();
        left
    }

    /// Takes what another wallet gives.
    pub async fn take(&mut self, amount: u32) {
        let all = self.balance.get() + i64::from(amount);
        self.balance.set(all);
    }

    /// What is there.
    pub async fn balance(&self) -> i64 {
        *self.balance.get()
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use greenroom_test::{Cluster, Moment};

    use super::*;

    #[test]
    fn money_is_neither_lost_nor_made_when_a_node_dies() {
        Cluster::of(3, |builder| builder.register::<Wallet>()).seeds(20, |cluster| async move {
            let mut random = cluster.sim().random();
            let moment = Moment::ALL[random.index(Moment::ALL.len())];
            cluster.crash_at("b", moment, 1 + random.below(12));
            for _ in 0..5 {
                // Whether it was paid when a node died is not known; that both sides agree is.
                let _ = WalletRef::of(&cluster.any(), "ada")
                    .pay("bob", 10)
                    .by(Duration::from_secs(3))
                    .await;
            }
            let ada = cluster
                .eventually(|| WalletRef::of(&cluster.any(), "ada").balance())
                .await;
            for _ in 0..600 {
                let bob = cluster
                    .eventually(|| WalletRef::of(&cluster.any(), "bob").balance())
                    .await;
                if ada + bob == 0 {
                    return;
                }
                tokio::time::sleep(Duration::from_millis(100)).await;
            }
            panic!("what ada has paid has not come to bob");
        });
    }
}
