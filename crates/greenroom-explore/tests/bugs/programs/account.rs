//! Two turns where one would do: a deposit is lost, an account is in debt.

use greenroom::Builder;
use greenroom::prelude::*;
use greenroom_explore::World;

pub(super) fn register(builder: Builder) -> Builder {
    builder.register::<Account>().register::<Teller>()
}

#[derive(Default, Actor)]
struct Account {
    balance: i64,
}

#[actor]
impl Account {
    pub async fn balance(&self) -> i64 {
        self.balance
    }

    pub async fn set(&mut self, balance: i64) {
        self.balance = balance;
    }

    pub async fn add(&mut self, amount: i64) {
        self.balance += amount;
    }

    /// Takes it if it is there.
    pub async fn take(&mut self, amount: i64) -> bool {
        let is_there = self.balance >= amount;
        self.balance -= if is_there { amount } else { 0 };
        is_there
    }
}

#[derive(Default, Actor)]
struct Teller;

#[actor]
impl Teller {
    pub async fn deposit(&self, cx: &Cx, amount: i64) {
        let account = AccountRef::of(cx, "ada");
        let balance = account.balance().await.expect("the account answers");
        account.set(balance + amount).await.expect("the account answers");
    }

    pub async fn deposit_at_once(&self, cx: &Cx, amount: i64) {
        AccountRef::of(cx, "ada").add(amount).await.expect("the account answers");
    }

    pub async fn transfer(&self, cx: &Cx, amount: i64, is_repaired: bool) {
        let (from, to) = (AccountRef::of(cx, "ada"), AccountRef::of(cx, "bob"));
        let is_taken = if is_repaired {
            from.take(amount).await.expect("the account answers")
        } else {
            let is_there = from.balance().await.expect("the account answers") >= amount;
            if is_there {
                from.add(-amount).await.expect("the account answers");
            }
            is_there
        };
        if is_taken {
            to.add(amount).await.expect("the account answers");
        }
    }
}

pub(super) fn lost_update(world: &World, is_repaired: bool) {
    for desk in ["1", "2"] {
        let teller = TellerRef::of(world, desk);
        world.client(async move {
            let done = if is_repaired { teller.deposit_at_once(10).await } else { teller.deposit(10).await };
            done.expect("the teller answers");
        });
    }
    world.finally(|world| async move {
        assert_eq!(AccountRef::of(&world, "ada").balance().await, Ok(20), "a deposit is lost");
    });
}

pub(super) async fn bank(world: &World, is_repaired: bool) {
    AccountRef::of(world, "ada").add(10).await.expect("the account answers");
    for desk in ["1", "2"] {
        let teller = TellerRef::of(world, desk);
        world.client(async move { teller.transfer(10, is_repaired).await.expect("the teller answers") });
    }
    world.always("nobody is in debt", |now| now.all::<Account>().all(|(_, account)| account.balance >= 0));
}
