//! What goes wrong where it may: nodes, messages, deadlines, idle actors; and time, which may pass however slow messages are.

use std::future::IntoFuture;
use std::time::Duration;

use greenroom_explore::prelude::*;

#[derive(Default, Debug, Actor)]
struct Account {
    balance: i64,
}

#[actor]
impl Account {
    pub async fn add(&mut self, amount: i64) -> i64 {
        self.balance += amount;
        self.balance
    }

    pub async fn balance(&self) -> i64 {
        self.balance
    }
}

#[derive(Default, Actor)]
struct Teller;

#[actor]
impl Teller {
    /// The mistake: what may have happened is done again.
    pub async fn deposit(&self, cx: &Cx) {
        let account = AccountRef::of(cx, "ada");
        if let Err(CallError::Unknown(_)) = account.add(10).await {
            drop(account.add(10).await);
        }
    }
}

#[derive(Default, Actor)]
struct Noise;

#[actor]
impl Noise {
    pub async fn make(&self) {}
}

fn bank() -> Explore {
    Explore::of(|builder| builder.register::<Account>().register::<Teller>().register::<Noise>())
}

fn one_deposit(world: &World) {
    let teller = TellerRef::of(world, "1");
    world.client(async move { drop(teller.deposit().await) });
    world.always("one deposit at most", |now| now.all::<Account>().all(|(_, account)| account.balance <= 10));
}

#[test]
fn a_message_between_nodes_may_be_lost_and_its_answer() {
    let failure = bank().faults("lose").check(|world| async move { one_deposit(&world) });
    let failure = failure.expect_err("the answer is lost, and the deposit is made again");
    println!("{failure}");
    assert!(failure.replay().contains("lose teller/1<account/ada.add"), "{failure}");
    assert!(failure.matters().any(|what| what == "lose teller/1<account/ada.add came"), "{failure}");
    let again = bank().faults("lose").replay(failure.replay()).check(|world| async move { one_deposit(&world) });
    assert_eq!(again.expect_err("it breaks again").violated(), failure.violated());
}

#[test]
fn what_stays_on_a_node_is_not_lost() {
    bank().faults("lose:2").nodes(1).run(|world| async move { one_deposit(&world) });
    bank().run(|world| async move { one_deposit(&world) });
}

/// Asks until somebody says something, three times at most.
async fn insist(account: &AccountRef) -> Result<i64, CallError> {
    let mut said = account.balance().await;
    for _ in 0..2 {
        if said.is_err() {
            said = account.balance().await;
        }
    }
    said
}

#[test]
fn no_more_goes_wrong_than_may() {
    let explore = |faults: &str| {
        bank().faults(faults).check(|world| async move {
            let account = AccountRef::of(&world, "ada");
            world.client(async move { assert!(insist(&account).await.is_ok(), "one of three is answered") });
        })
    };
    let explored = explore("lose:2").unwrap_or_else(|failure| panic!("{failure}"));
    println!("{explored}");
    let failure = explore("lose:3").expect_err("all are lost");
    assert_eq!(failure.replay().matches("lose").count(), 3, "{failure}");
}

#[test]
fn a_crash_takes_what_actors_have_in_memory_and_the_calls_that_are_under_way() {
    let failure = bank().faults("crash").check(|world| async move {
        let (account, other) = (AccountRef::of(&world, "ada"), NoiseRef::of(&world, "1"));
        world.client(async move {
            let before = account.add(10).await;
            drop(other.make().await);
            let after = account.balance().await;
            assert!(before.is_err() || after.is_err() || before == after, "it is forgotten");
        });
    });
    let failure = failure.expect_err("the account begins anew");
    assert!(failure.violated().contains("it is forgotten") && failure.replay().contains("crash "), "{failure}");
    let crash = failure.to_string().lines().find(|line| line.contains("crash ")).map(str::to_owned);
    assert!(crash.is_some_and(|line| line.contains("with account/ada")), "who sat there is told: {failure}");
    assert!(failure.mermaid().contains("with account/ada"), "{}", failure.mermaid());
    assert!(failure.page().contains("gone with its node"), "an actor is not what it was before it was lost");
    let failure = bank().faults("crash").check(|world| async move {
        let account = AccountRef::of(&world, "ada");
        world.client(async move {
            if let Err(error) = account.add(10).await {
                assert!(!matches!(error, CallError::Unknown(Doubt::Disconnected { .. })), "it may have run");
            }
        });
    });
    assert!(failure.expect_err("the node is gone").violated().contains("it may have run"));
    bank().run(|world| async move {
        let account = AccountRef::of(&world, "ada");
        world.client(async move { assert_eq!(account.add(10).await, Ok(10)) });
    });
}

#[test]
fn a_deadline_passes_before_a_turn_or_while_it_runs() {
    let told = |pattern: fn(&CallError) -> bool| {
        let failure = bank().faults("late").check(move |world| async move {
            let account = AccountRef::of(&world, "ada");
            world.client(async move {
                if let Err(error) = account.add(10).await {
                    assert!(!pattern(&error), "it is late");
                }
            });
            world.finally(|_| async {});
        });
        failure.map(drop).map_err(|failure| failure.replay().to_owned())
    };
    assert!(
        told(|error| matches!(error, CallError::Refused(Refusal::Expired(_)))).is_err_and(|how| how.contains("late"))
    );
    assert!(told(|error| matches!(error, CallError::Unknown(_))).is_ok(), "its turn waits for nothing");
    // The teller's turn waits for the account: it goes on when its caller has given up.
    let failure = bank().faults("late").check(|world| async move {
        let teller = TellerRef::of(&world, "1");
        let looks = world.clone();
        world.client(async move {
            if let Err(CallError::Unknown(_)) = teller.deposit().await {
                let balance = AccountRef::of(&looks, "ada").balance().await;
                assert_ne!(balance, Ok(10), "it ran on");
            }
        });
    });
    let failure = failure.expect_err("the turn goes on");
    assert!(
        failure.violated().contains("it ran on") && failure.replay().contains("late client 1<teller/1"),
        "{failure}"
    );
}

#[test]
fn what_went_wrong_is_not_judged_by_runs_in_which_nothing_does() {
    bank().faults("lose").run(|world| async move {
        let account = AccountRef::of(&world, "ada");
        world.client(async move {
            drop(account.add(10).await);
            drop(account.balance().await);
        });
        world.linearizable();
    });
}

#[test]
fn an_actor_may_be_idle_at_any_moment() {
    let failure = bank().faults("idle").check(|world| async move {
        let account = AccountRef::of(&world, "ada");
        world.client(async move {
            account.add(10).await.expect("it answers");
            assert_eq!(account.balance().await, Ok(10));
        });
    });
    let failure = failure.expect_err("nobody has used it");
    assert!(failure.replay().contains("idle account/ada"), "{failure}");
}

#[test]
#[should_panic(expected = "some of crash, lose")]
fn what_is_no_fault_is_refused_by_name() {
    drop(bank().faults("flood"));
}

#[explore(Account, Teller, faults = "crash, lose:2", nodes = 2, timers = "in_time", schedules = 200)]
async fn options_say_what_may_go_wrong(world: World) {
    let account = AccountRef::of(&world, "ada");
    world.client(async move { drop(account.add(10).await) });
    world.always("one deposit", |now| now.all::<Account>().all(|(_, account)| account.balance <= 10));
}

#[test]
fn clients_that_have_nothing_to_do_with_it_are_left_out() {
    let noisy = |world: World| async move {
        for client in 0..4_u64 {
            let noise = NoiseRef::of(&world, client % 2);
            world.client(async move {
                for _ in 0..3 {
                    drop(noise.make().await);
                }
            });
        }
        one_deposit(&world);
    };
    let failure = bank().faults("lose, idle").schedules(3_000).check(noisy).expect_err("the answer is lost");
    println!("{failure}");
    assert!(failure.steps().all(|step| !step.contains("noise")), "{failure}");
    assert!(failure.replay().starts_with("0:without client 1; 0:without client 2;"), "{failure}");
    assert!(!failure.replay().contains("idle"), "{failure}");
    let again = bank().faults("lose, idle").replay(failure.replay()).check(noisy);
    assert_eq!(again.expect_err("it breaks again").violated(), failure.violated());
}

/// Gives up after a second, and deposits again.
fn impatient(world: &World) {
    let account = AccountRef::of(world, "ada");
    world.client(async move {
        if tokio::time::timeout(Duration::from_secs(1), account.add(10).into_future()).await.is_err() {
            drop(account.add(10).await);
        }
    });
    world.finally(|world| async move {
        assert_eq!(AccountRef::of(&world, "ada").balance().await, Ok(10));
    });
}

#[test]
fn time_may_pass_however_slow_messages_are() {
    let failure = bank().check(|world| async move { impatient(&world) }).expect_err("the message is slow");
    assert!(failure.replay().contains(":time"), "{failure}");
    let again = bank().replay(failure.replay()).check(|world| async move { impatient(&world) });
    assert_eq!(again.expect_err("it breaks again").violated(), failure.violated());
    bank().timers("in_time").run(|world| async move { impatient(&world) });
}

#[test]
fn calls_do_not_run_out_of_time_because_others_sleep() {
    bank().schedules(300).run(|world| async move {
        let account = AccountRef::of(&world, "ada");
        world.client(async move { assert_eq!(account.add(10).await, Ok(10)) });
        for _ in 0..2 {
            world.client(async { tokio::time::sleep(Duration::from_secs(30)).await });
        }
    });
}
