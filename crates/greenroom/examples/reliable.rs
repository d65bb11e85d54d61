//! A bank whose money is never lost and never made: `cargo run -p greenroom --example reliable`, twice. Kill it in between.
//!
//! Accounts and brokers are reliable actors: a turn's changes and what it sends are one write, and each message is processed
//! once.

use greenroom::prelude::*;

/// An account.
#[derive(Default, Actor)]
pub struct Account {
    balance: Register<i64>,
    /// What has come and gone, by order.
    bookings: Map<String, i64>,
}

#[actor(reliable)]
impl Account {
    /// Takes money in.
    pub async fn deposit(&mut self, order: String, amount: i64) -> i64 {
        *self.balance.get_mut() += amount;
        self.bookings.insert(order, amount);
        *self.balance.get()
    }

    /// Gives money to `to`, if there is enough, and tells the broker.
    pub async fn pay(&mut self, cx: &Cx, order: String, amount: i64, to: String, broker: String) {
        let enough = *self.balance.get() >= amount;
        if enough {
            *self.balance.get_mut() -= amount;
            self.bookings.insert(order.clone(), -amount);
            // It leaves when this turn is committed, and arrives once.
            AccountRef::of(cx, to).deposit(order.clone(), amount).send();
        }
        BrokerRef::of(cx, broker).settled(order, enough).send();
    }

    /// What is there, and the number of bookings.
    pub async fn look(&self) -> (i64, u64) {
        (*self.balance.get(), self.bookings.len() as u64)
    }
}

/// Passes orders on and remembers how they ended.
#[derive(Default, Actor)]
pub struct Broker {
    open: Set<String>,
    done: Map<String, bool>,
    /// Of this activation only: it is not kept.
    #[volatile]
    seen: u64,
}

#[actor(reliable)]
impl Broker {
    /// Takes an order. Answered when it is in the journal.
    pub async fn order(&mut self, cx: &Cx, order: String, from: String, to: String, amount: i64) -> u64 {
        self.open.insert(order.clone());
        self.seen += 1;
        AccountRef::of(cx, from).pay(order, amount, to, cx.key().to_string()).send();
        self.seen
    }

    /// An account says what has become of an order.
    pub async fn settled(&mut self, order: String, paid: bool) {
        self.open.remove(&order);
        self.done.insert(order, paid);
    }

    /// Orders that are under way, paid and refused.
    pub async fn counts(&self) -> (u64, u64, u64) {
        let paid = self.done.iter().filter(|(_, paid)| **paid).count();
        (self.open.len() as u64, paid as u64, (self.done.len() - paid) as u64)
    }
}

#[tokio::main]
async fn main() -> greenroom::Result<()> {
    let file = std::env::temp_dir().join("greenroom-bank.db");
    let node = Node::builder().journal(format!("sqlite:{}", file.display()));
    let node = node.register::<Account>().register::<Broker>().start().await?;
    // The key makes it one deposit, however often the program runs.
    AccountRef::of(&node, "ada").deposit("gift", 100).idempotent("gift").await?;
    let broker = BrokerRef::of(&node, "exchange");
    let (_, paid, refused) = broker.counts().await?;
    let order = format!("order {}", paid + refused + 1);
    broker.order(order, "ada", "bob", 30).await?;
    while broker.counts().await?.0 > 0 {
        tokio::time::sleep(std::time::Duration::from_millis(10)).await;
    }
    let (ada, bob) = (AccountRef::of(&node, "ada").look().await?, AccountRef::of(&node, "bob").look().await?);
    println!("ada has {}, bob has {}; run it again, or look at {}", ada.0, bob.0, file.display());
    node.stop().await;
    Ok(())
}
