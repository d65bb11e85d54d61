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
    ///
    /// # Errors
    /// The wallet would owe or hold more than can be written down. Nothing was given.
    pub async fn pay(&mut self, cx: &Cx, order: String, to: String, amount: i64) -> Result<i64, String> {
        let left = self.balance.get().checked_sub(amount).ok_or_else(|| beyond(cx, amount))?;
        self.balance.set(left);
        count(&mut self.paid, &order);
        WalletRef::of(cx, to).take(order, amount, Some(WalletRef::me(cx))).send();
        Ok(left)
    }

    /// Takes what another wallet gives. While this one is frozen the turn fails, and so what is given is parked.
    ///
    /// # Errors
    /// It would be more than can be written down: the giver has it back, if it is known.
    pub async fn take(
        &mut self,
        cx: &Cx,
        order: String,
        amount: i64,
        #[serde(default)] from: Option<WalletRef>,
    ) -> Result<(), String> {
        assert!(!self.frozen.get(), "{} is frozen; thaw it, and retry what is parked", cx.id());
        let Some(all) = self.balance.get().checked_add(amount) else {
            if let Some(from) = from {
                from.bind(cx).take(order, amount, None).send();
            }
            return Err(beyond(cx, amount));
        };
        self.balance.set(all);
        count(&mut self.got, &order);
        Ok(())
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

/// Why an amount is refused.
fn beyond(cx: &Cx, amount: i64) -> String {
    format!("{} cannot add or take {amount}: its balance would be beyond what a wallet holds; split it", cx.id())
}

fn count(orders: &mut Map<String, u64>, order: &str) {
    let times = orders.get(order).copied().unwrap_or(0) + 1;
    orders.insert(order.to_owned(), times);
}

#[cfg(test)]
mod tests {
    use greenroom::{CallError, Node};

    use super::*;

    #[tokio::test]
    async fn a_balance_does_not_wrap() {
        let builder = Node::builder().configure(|config| config.reliable.journal = "memory:".into());
        let node = register(builder).start().await.expect("a node alone starts");
        let (poor, rich) = (WalletRef::of(&node, "poor"), WalletRef::of(&node, "rich"));
        let pay = async |amount| poor.pay("o", "rich", amount).await;
        assert_eq!(pay(i64::MAX).await.expect("it may owe"), -i64::MAX);
        assert!(matches!(pay(2).await, Err(CallError::Actor(why)) if why.contains("wallet/poor")));
        assert!(matches!(pay(i64::MIN).await, Ok(1)));
        assert!(matches!(pay(i64::MIN).await, Err(CallError::Actor(_))));
        assert_eq!(poor.look().await.expect("it answers").balance, 1);
        while rich.look().await.expect("it answers").balance != -1 {
            tokio::task::yield_now().await;
        }
        node.stop().await;
    }

    #[tokio::test]
    async fn what_does_not_fit_into_a_wallet_goes_back_to_who_gave_it() {
        let builder = Node::builder().configure(|config| config.reliable.journal = "memory:".into());
        let node = register(builder).start().await.expect("a node alone starts");
        let [ada, bob] = ["ada", "bob"].map(|name| WalletRef::of(&node, name));
        ada.pay("first", "rich", i64::MAX).await.expect("it may owe");
        let rich = WalletRef::of(&node, "rich");
        while rich.look().await.expect("it answers").balance != i64::MAX {
            tokio::task::yield_now().await;
        }
        bob.pay("second", "rich", 7).await.expect("it may owe");
        while bob.look().await.expect("it answers").balance != 0 {
            tokio::task::yield_now().await;
        }
        assert_eq!(rich.look().await.expect("it answers").balance, i64::MAX);
        let more = rich.take("third", 1, None).await;
        assert!(matches!(more, Err(CallError::Actor(why)) if why.contains("split it")), "an error, and no panic");
        node.stop().await;
    }
}
