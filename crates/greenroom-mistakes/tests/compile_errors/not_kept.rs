use greenroom::prelude::*;

#[derive(Default)]
struct Cache(u64);

#[derive(Default, Actor)]
struct Account {
    balance: i64,
    cache: Cache,
}

#[actor(reliable)]
impl Account {
    pub async fn deposit(&mut self, amount: i64) {
        self.balance += amount;
        self.cache.0 += 1;
    }
}

fn main() {}
