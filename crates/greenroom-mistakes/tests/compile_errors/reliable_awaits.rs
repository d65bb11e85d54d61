use std::time::Duration;

use greenroom::prelude::*;

#[derive(Default, Actor)]
struct Account {
    balance: i64,
}

#[actor(reliable)]
impl Account {
    pub async fn deposit(&mut self, amount: i64) {
        self.balance += amount;
    }

    pub async fn transfer(&mut self, cx: &Cx, to: String, amount: i64) {
        self.balance -= amount;
        let other = AccountRef::of(cx, to);
        if other.balance().await.is_ok() {
            let _ = other.deposit(amount).by(Duration::from_secs(1)).await;
        }
    }

    pub async fn remind(&mut self, cx: &Cx) {
        let _ = AccountRef::me(cx).deposit(1).after(Duration::from_secs(60)).await;
    }

    pub async fn balance(&self) -> i64 {
        self.balance
    }
}

fn main() {}
