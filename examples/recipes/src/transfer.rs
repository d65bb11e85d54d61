//! A bank transfer: money leaves one account and comes to another, or comes back.

// anchor: recipe
use greenroom::prelude::*;
use serde::{Deserialize, Serialize};

/// An account, by its number as key.
#[derive(Default, Actor)]
pub struct Account {
    balance: Register<i64>,
    closed: Register<bool>,
    /// What has left and was not confirmed, by the transfer's name.
    under_way: Map<String, i64>,
}

/// Why nothing was transferred.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub enum NoTransfer {
    /// The balance is too small.
    TooLittle,
    /// A transfer of this name is under way.
    UnderWay,
}

#[actor(reliable)]
impl Account {
    /// Money from outside.
    pub async fn deposit(&mut self, cents: i64) {
        *self.balance.get_mut() += cents;
    }

    /// Sends money to another account; tells what is left.
    pub async fn transfer(&mut self, cx: &Cx, name: String, to: String, cents: i64) -> Result<i64, NoTransfer> {
        if *self.balance.get() < cents {
            return Err(NoTransfer::TooLittle);
        }
        if self.under_way.contains_key(&name) {
            return Err(NoTransfer::UnderWay);
        }
        *self.balance.get_mut() -= cents;
        self.under_way.insert(name.clone(), cents);
        AccountRef::of(cx, to).receive(AccountRef::me(cx), name, cents).send();
        Ok(*self.balance.get())
    }

    /// Money comes. An account that is closed sends word back instead.
    pub async fn receive(&mut self, cx: &Cx, from: AccountRef, name: String, cents: i64) {
        let taken = !*self.closed.get();
        if taken {
            *self.balance.get_mut() += cents;
        }
        from.bind(cx).settled(name, taken).send();
    }

    /// The other account has taken the money, or has not: then it is here again.
    pub async fn settled(&mut self, name: String, taken: bool) {
        if let Some(cents) = self.under_way.remove(&name)
            && !taken
        {
            *self.balance.get_mut() += cents;
        }
    }

    /// Takes no more.
    pub async fn close(&mut self) {
        self.closed.set(true);
    }

    /// What there is, and what is under way.
    pub async fn look(&self) -> (i64, i64) {
        (*self.balance.get(), self.under_way.iter().map(|(_, cents)| cents).sum())
    }
}
// end: recipe

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use greenroom_test::{Cluster, Moment};

    use super::*;

    #[test]
    fn no_cent_is_lost_or_doubled_whenever_a_node_dies() {
        Cluster::of(3, |builder| builder.register::<Account>()).seeds(40, |cluster| async move {
            let account = |name: &str| AccountRef::of(&cluster.any(), name);
            cluster.eventually(|| account("ada").deposit(100).idempotent("wages")).await;
            cluster.eventually(|| account("closed").close().idempotent("close")).await;
            let mut random = cluster.sim().random();
            cluster.crash_at("b", Moment::ALL[random.index(Moment::ALL.len())], 1 + random.below(12));
            for (name, to) in [("rent", "bob"), ("gift", "closed"), ("food", "eve")] {
                let pay = || account("ada").transfer(name.to_owned(), to.to_owned(), 10);
                cluster.eventually(|| pay().idempotent(name).by(Duration::from_secs(3))).await;
            }
            tokio::time::sleep(Duration::from_secs(60)).await;
            for (name, cents) in [("ada", 80), ("bob", 10), ("closed", 0), ("eve", 10)] {
                assert_eq!(cluster.eventually(|| account(name).look()).await, (cents, 0), "{name}");
            }
        });
    }
}
