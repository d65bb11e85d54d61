//! An account, and tellers who read it, add, and write it back.

use greenroom_explore::prelude::*;

#[derive(Default, Debug, Actor)]
pub(crate) struct Account {
    pub(crate) balance: i64,
}

#[actor]
impl Account {
    pub async fn balance(&self) -> i64 {
        self.balance
    }

    pub async fn set(&mut self, balance: i64) {
        self.balance = balance;
    }

    pub async fn add(&mut self, amount: i64) -> i64 {
        self.balance += amount;
        self.balance
    }
}

#[derive(Default, Actor)]
pub(crate) struct Teller;

#[actor]
impl Teller {
    pub async fn deposit(&self, cx: &Cx, amount: i64) -> i64 {
        let account = AccountRef::of(cx, "ada");
        let balance = account.balance().await.expect("the account answers");
        account.set(balance + amount).await.expect("the account answers");
        balance + amount
    }

    pub async fn deposit_at_once(&self, cx: &Cx, amount: i64) -> i64 {
        AccountRef::of(cx, "ada").add(amount).await.expect("the account answers")
    }
}

pub(crate) fn bank() -> Explore {
    Explore::of(|builder| builder.register::<Account>().register::<Teller>())
}
