//! Wallets that must not lose money, whenever a node dies: a test to copy.

use std::time::Duration;

use greenroom::prelude::*;
use greenroom_test::{Cluster, Moment};
use serde::{Deserialize, Serialize};

/// Pays and is paid. A turn's balance and its payment are one commit.
#[derive(Default, Actor)]
struct Wallet {
    balance: Register<i64>,
}

#[actor(reliable)]
impl Wallet {
    pub async fn deposit(&mut self, amount: i64) {
        *self.balance.get_mut() += amount;
    }

    /// Whether there was enough.
    pub async fn pay(&mut self, cx: &Cx, to: String, amount: i64) -> bool {
        if *self.balance.get() < amount {
            return false;
        }
        *self.balance.get_mut() -= amount;
        WalletRef::of(cx, to).deposit(amount).send();
        true
    }

    pub async fn balance(&self) -> i64 {
        *self.balance.get()
    }
}

/// The same with a saved state: between the save and the deposit the money is nowhere.
#[derive(Default, Serialize, Deserialize, Actor)]
struct Purse {
    balance: i64,
}

#[actor(persistent)]
impl Purse {
    pub async fn deposit(&mut self, cx: &Cx, amount: i64) -> Result<(), StateError> {
        self.balance += amount;
        cx.save(self).await
    }

    pub async fn pay(&mut self, cx: &Cx, to: String, amount: i64) -> Result<bool, StateError> {
        if self.balance < amount {
            return Ok(false);
        }
        self.balance -= amount;
        cx.save(self).await?;
        Ok(PurseRef::of(cx, to).deposit(amount).await.is_ok())
    }

    pub async fn balance(&self) -> i64 {
        self.balance
    }
}

/// A moment that the seed chooses: any, and any of the first few times.
fn some_moment(cluster: &Cluster) -> (Moment, u64) {
    let mut random = cluster.sim().random();
    (Moment::ALL[random.index(Moment::ALL.len())], 1 + random.below(12))
}

#[test]
fn wallets_lose_no_money_whenever_a_node_dies() {
    Cluster::of(3, |builder| builder.register::<Wallet>()).seeds(60, |cluster| async move {
        let ada = || WalletRef::of(&cluster.any(), "ada");
        let bob = || WalletRef::of(&cluster.any(), "bob");
        // Under a key, a call may be made again and again: it is one.
        cluster.eventually(|| ada().deposit(100).idempotent("wages")).await;
        let (moment, nth) = some_moment(&cluster);
        cluster.crash_at("b", moment, nth);
        for week in 0..5 {
            cluster
                .eventually(|| ada().pay("bob".to_owned(), 10).idempotent(&format!("rent {week}")).by(PATIENCE))
                .await;
        }
        // The last payment may still be on its way.
        tokio::time::sleep(Duration::from_secs(60)).await;
        let balances = (cluster.eventually(|| ada().balance()).await, cluster.eventually(|| bob().balance()).await);
        assert_eq!(balances, (50, 50));
    });
}

#[test]
fn purses_lose_money_when_a_node_dies_at_the_wrong_moment() {
    let lost = Cluster::of(3, |builder| builder.register::<Purse>()).expect_violation(500, |cluster| async move {
        let ada = || PurseRef::of(&cluster.any(), "ada");
        let bob = || PurseRef::of(&cluster.any(), "bob");
        cluster.eventually(|| ada().deposit(100)).await;
        let (moment, nth) = some_moment(&cluster);
        cluster.crash_at("b", moment, nth);
        for _week in 0..5 {
            // Made once each: there is no key that would make a repeat harmless.
            let _ = ada().pay("bob".to_owned(), 10).by(PATIENCE).await;
        }
        let there = cluster.eventually(|| ada().balance()).await + cluster.eventually(|| bob().balance()).await;
        assert_eq!(there, 100, "money is neither lost nor made");
    });
    assert!(lost.what.contains("money is neither lost nor made"), "{}", lost.what);
    assert!(lost.trace.iter().any(|line| line.contains("purse/ada.pay")), "{lost}");
}

const PATIENCE: Duration = Duration::from_secs(3);
