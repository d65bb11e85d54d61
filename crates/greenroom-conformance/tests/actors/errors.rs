//! What calls end with when they do not end well.

use std::time::Duration;

use greenroom::prelude::*;
use serde::{Deserialize, Serialize};

use super::node;

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, thiserror::Error)]
#[error("{0} is too much")]
struct TooMuch(u64);

#[derive(Default, Actor)]
struct Account {
    balance: u64,
}

#[actor(mailbox = 4)]
impl Account {
    pub async fn deposit(&mut self, amount: u64) -> u64 {
        self.balance += amount;
        self.balance
    }

    pub async fn withdraw(&mut self, amount: u64) -> Result<u64, TooMuch> {
        self.balance = self.balance.checked_sub(amount).ok_or(TooMuch(amount))?;
        Ok(self.balance)
    }

    pub async fn explode(&mut self) -> u64 {
        panic!("boom with {}", self.balance)
    }

    pub async fn explode_reading(&self) -> u64 {
        panic!("a read went wrong")
    }

    pub async fn dawdle(&mut self, millis: u64) {
        tokio::time::sleep(Duration::from_millis(millis)).await;
    }
}

#[derive(Default, Actor)]
struct Misnamed {}

#[actor(kind = "accountant")]
impl Misnamed {
    pub async fn count(&self) -> u64 {
        1
    }
}

#[tokio::test]
async fn the_handlers_own_error_comes_back_typed() {
    let node = node(|builder| builder.register::<Account>()).await;
    let account = AccountRef::of(&node, "ada");
    assert_eq!(account.withdraw(5).await, Err(CallError::Actor(TooMuch(5))));
    assert_eq!(account.deposit(7).await, Ok(7));
    assert_eq!(account.withdraw(5).await, Ok(2));
}

#[tokio::test]
async fn a_panic_is_named_as_one_and_the_activation_restarts_clean() {
    let node = node(|builder| builder.register::<Account>()).await;
    let account = AccountRef::of(&node, "ada");
    account.deposit(7).await.unwrap();
    let Err(CallError::Unknown(Doubt::Panicked { message })) = account.explode().await else { panic!("no panic") };
    assert_eq!(message, "boom with 7");
    assert_eq!(account.deposit(1).await, Ok(1), "what it had is gone");
    let Err(error) = account.explode_reading().await else { panic!("no panic") };
    assert!(error.to_string().contains("a read went wrong"), "{error}");
    assert_eq!(account.deposit(1).await, Ok(1));
}

#[tokio::test]
async fn a_call_that_is_late_ends_at_its_deadline_and_what_waited_behind_it_never_runs() {
    let node = node(|builder| builder.register::<Account>()).await;
    let account = AccountRef::of(&node, "ada");
    account.dawdle(300).send();
    let late = account.deposit(1).by(Duration::from_millis(20)).await;
    let in_time = matches!(late, Err(CallError::Refused(Refusal::Expired(_)) | CallError::Unknown(Doubt::TimedOut(_))));
    assert!(in_time, "{late:?}");
    assert_eq!(account.deposit(1).await, Ok(1), "the late deposit did not run after all");
}

#[tokio::test]
async fn a_full_mailbox_refuses() {
    let node = node(|builder| builder.register::<Account>()).await;
    let account = AccountRef::of(&node, "ada");
    account.dawdle(200).send();
    let calls: Vec<_> = (0..20).map(|_| tokio::spawn(account.deposit(1).once().into_future())).collect();
    let mut refused = 0;
    for call in calls {
        match call.await.unwrap() {
            Ok(_) => {}
            Err(CallError::Refused(refusal @ Refusal::Overloaded { .. })) => {
                assert!(refusal.retry_after().is_some());
                refused += 1;
            }
            Err(other) => panic!("{other}"),
        }
    }
    assert_eq!(refused, 16, "four may wait");
}

#[tokio::test]
async fn a_kind_that_no_node_hosts_is_refused_with_near_names() {
    let node = node(|builder| builder.register::<Account>()).await;
    let Err(CallError::Refused(refusal)) = MisnamedRef::of(&node, "x").count().await else { panic!("nobody hosts it") };
    assert_eq!(refusal, Refusal::UnknownKind { kind: "accountant".into(), near: vec!["account".into()] });
    assert!(refusal.to_string().ends_with("did you mean \"account\"?"), "{refusal}");
}

#[tokio::test]
async fn an_empty_key_and_one_that_is_too_long_are_refused() {
    let node = node(|builder| builder.register::<Account>()).await;
    for key in [String::new(), "x".repeat(greenroom::KEY_LEN_MAX + 1)] {
        let refused = AccountRef::of(&node, key).deposit(1).await;
        assert!(matches!(refused, Err(CallError::Refused(Refusal::InvalidKey { .. }))), "{refused:?}");
    }
}

#[tokio::test]
async fn a_stopped_node_refuses() {
    let node = node(|builder| builder.register::<Account>()).await;
    let account = AccountRef::of(&node, "ada");
    account.deposit(1).await.unwrap();
    node.stop().await;
    let refused = account.deposit(1).await;
    assert!(matches!(refused, Err(CallError::Refused(_))), "{refused:?}");
}

#[tokio::test]
async fn a_kind_registered_twice_is_refused_at_the_start() {
    let started = Node::builder().register::<Account>().register::<Account>().start().await;
    assert!(started.unwrap_err().to_string().contains("registered twice"));
}

#[tokio::test]
async fn listening_beyond_loopback_is_refused() {
    let started = Node::builder().register::<Account>().listen("0.0.0.0:0").start().await;
    let error = started.unwrap_err().to_string();
    assert!(error.contains("insecure_listen"), "{error}");
}

#[tokio::test]
async fn a_lease_that_cannot_be_kept_is_refused_with_the_remedy() {
    for lease in [Duration::from_millis(10), Duration::from_secs(3600)] {
        let refused = Node::builder().configure(|config| config.lease = lease).start().await;
        let Err(error) = refused else { panic!("a node with a lease of {lease:?} starts") };
        assert!(error.to_string().contains("--lease"), "{error}");
    }
}
