//! The example of a reliable actor: wallets, for nodes that have a journal.

use greenroom::Builder;
use greenroom::prelude::*;
use serde::{Deserialize, Serialize};

/// Registers wallets.
pub(crate) fn register(builder: Builder) -> Builder {
    builder.register::<Wallet>()
}

/// Their kind.
pub(crate) const WALLET: &str = "wallet";

/// Money, and how often each order was carried out here.
#[derive(Default, Actor)]
pub(crate) struct Wallet {
    balance: Register<i64>,
    paid: Map<String, u64>,
    got: Map<String, u64>,
    frozen: Register<bool>,
}

/// What a wallet shows.
#[derive(Serialize, Deserialize)]
pub(crate) struct Contents {
    balance: i64,
    paid: Vec<(String, u64)>,
    got: Vec<(String, u64)>,
}

#[actor(reliable)]
impl Wallet {
    /// Gives `amount` to another wallet, and says what is left. Wallets may owe.
    pub async fn pay(&mut self, cx: &Cx, order: String, to: String, amount: i64) -> i64 {
        *self.balance.get_mut() -= amount;
        count(&mut self.paid, &order);
        WalletRef::of(cx, to).take(order, amount).send();
        *self.balance.get()
    }

    /// Takes what another wallet gives. While this one is frozen the turn fails, and so what is given is parked.
    pub async fn take(&mut self, cx: &Cx, order: String, amount: i64) {
        assert!(!self.frozen.get(), "{} is frozen; thaw it, and retry what is parked", cx.id());
        *self.balance.get_mut() += amount;
        count(&mut self.got, &order);
    }

    /// Lets it take nothing, until it is thawed.
    pub async fn freeze(&mut self) {
        self.frozen.set(true);
    }

    /// Lets it take again.
    pub async fn thaw(&mut self) {
        self.frozen.set(false);
    }

    /// What is in it.
    pub async fn look(&self) -> Contents {
        let list = |map: &Map<String, u64>| map.iter().map(|(order, times)| (order.clone(), *times)).collect();
        Contents { balance: *self.balance.get(), paid: list(&self.paid), got: list(&self.got) }
    }
}

fn count(orders: &mut Map<String, u64>, order: &str) {
    let times = orders.get(order).copied().unwrap_or(0) + 1;
    orders.insert(order.to_owned(), times);
}
