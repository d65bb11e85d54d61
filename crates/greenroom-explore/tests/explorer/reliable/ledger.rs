use std::time::Duration;

use greenroom_explore::prelude::*;

/// An account whose deposits are told to a book.
#[derive(Default, Debug, Actor)]
struct Account {
    balance: Register<i64>,
}

#[actor(reliable)]
impl Account {
    pub async fn deposit(&mut self, cx: &Cx, amount: i64) -> i64 {
        *self.balance.get_mut() += amount;
        BookRef::of(cx, "book").note(amount).send();
        *self.balance.get()
    }

    pub async fn balance(&self) -> i64 {
        *self.balance.get()
    }

    pub async fn deposit_later(&mut self, cx: &Cx, amount: i64) {
        AccountRef::me(cx).deposit(amount).after(DUE_IN).send();
    }
}

#[derive(Default, Debug, Actor)]
struct Book {
    noted: i64,
    #[volatile]
    seen: i64,
}

#[actor(reliable)]
impl Book {
    pub async fn note(&mut self, amount: i64) {
        self.noted += amount;
    }

    /// The mistake: what it has seen is gone with its node.
    pub async fn count(&mut self) -> i64 {
        self.seen += 1;
        self.noted = self.seen;
        self.seen
    }

    pub async fn noted(&self) -> i64 {
        self.noted
    }
}

fn accounts() -> Explore {
    Explore::of(|builder| builder.register::<Account>().register::<Book>())
}

async fn agreed(world: &World, least: i64) {
    let balance = AccountRef::of(world, "ada").balance().await.expect("it answers");
    assert_eq!(BookRef::of(world, "book").noted().await, Ok(balance));
    assert!(balance >= least, "{balance} are less than {least}");
}

#[test]
fn what_is_committed_is_delivered_once_whatever_crashes() {
    for faults in ["", "crash:2", "lose:2", "all:2"] {
        let explored = accounts().faults(faults).check(|world| async move {
            for amount in [1, 10] {
                let account = AccountRef::of(&world, "ada");
                world.client(async move { drop(account.deposit(amount).await) });
            }
            world.finally(|world| async move { agreed(&world, 0).await });
        });
        println!("{faults}: {}", explored.unwrap_or_else(|failure| panic!("{failure}")));
    }
}

#[test]
fn a_call_that_nothing_is_in_the_way_of_is_answered() {
    accounts().run(|world| async move {
        for amount in [1, 10] {
            let account = AccountRef::of(&world, "ada");
            world.client(async move { assert!(account.deposit(amount).await.is_ok()) });
        }
        world.finally(|world| async move { agreed(&world, 11).await });
    });
}

#[test]
fn a_timer_that_is_committed_fires_once() {
    accounts().faults("crash:2").run(|world| async move {
        let account = AccountRef::of(&world, "ada");
        account.deposit_later(5).await.expect("it answers");
        world.client(async move { drop(account.deposit(10).await) });
        world.finally(|world| async move {
            // The timer was due a second ago, whatever crashed meanwhile.
            tokio::time::sleep(DUE_IN + Duration::from_secs(1)).await;
            agreed(&world, 5).await;
            let balance = AccountRef::of(&world, "ada").balance().await;
            assert!(matches!(balance, Ok(5 | 15)), "5 came by the timer, once: {balance:?}");
        });
    });
}

#[test]
fn what_a_turn_decides_by_volatile_fields_is_found() {
    let failure = accounts().check(|world| async move {
        for _ in 0..2 {
            let book = BookRef::of(&world, "book");
            world.client(async move { drop(book.count().await) });
        }
    });
    let failure = failure.expect_err("run again, it counts from the beginning");
    println!("{failure}");
    assert!(failure.violated().contains("volatile"), "{failure}");
}

/// When a deposit for later comes.
const DUE_IN: Duration = Duration::from_secs(3);
