//! Saves that fail, and saves of which nobody knows.

use std::sync::atomic::Ordering;
use std::time::Duration;

use greenroom::{CallError, Refusal, StateError};

use super::faulty::{Fault, Faulty};
use super::{Account, AccountRef, node};

#[tokio::test]
async fn an_activation_costs_one_read_and_a_save_one_write() {
    let store = Faulty::new();
    let node = node(store.clone(), |builder| builder.register::<Account>()).await;
    let account = AccountRef::of(&node, "ada");
    assert_eq!(account.balance().await, Ok(0));
    assert_eq!((store.reads.load(Ordering::Relaxed), store.writes.load(Ordering::Relaxed)), (1, 0));
    assert_eq!(account.deposit(5).await, Ok(5));
    assert_eq!((store.reads.load(Ordering::Relaxed), store.writes.load(Ordering::Relaxed)), (1, 1));
    account.leave().await.unwrap();
    assert_eq!(account.balance().await, Ok(5));
    assert_eq!((store.reads.load(Ordering::Relaxed), store.writes.load(Ordering::Relaxed)), (2, 1));
}

#[tokio::test]
async fn a_save_whose_answer_is_lost_is_found_and_counted_once() {
    for faults in [
        &[Fault::Lost][..],
        &[Fault::Unacknowledged],
        &[Fault::Unacknowledged, Fault::Lost],
        &[Fault::Lost, Fault::Lost, Fault::Lost],
    ] {
        let store = Faulty::new();
        let node = node(store.clone(), |builder| builder.register::<Account>()).await;
        let account = AccountRef::of(&node, "ada");
        assert_eq!(account.deposit(5).await, Ok(5));
        store.next(faults);
        assert_eq!(account.deposit(1).await, Ok(6), "{faults:?}");
        account.leave().await.unwrap();
        assert_eq!(account.balance().await, Ok(6), "{faults:?}");
    }
}

#[tokio::test]
async fn a_refusal_after_a_lost_answer_leaves_the_save_in_doubt() {
    let store = Faulty::new();
    let node = node(store.clone(), |builder| builder.register::<Account>()).await;
    let account = AccountRef::of(&node, "ada");
    assert_eq!(account.deposit(5).await, Ok(5));
    store.next(&[Fault::Refused, Fault::Lost]);
    let doubtful = account.deposit(1).await;
    assert!(matches!(doubtful, Err(CallError::Actor(StateError::Unknown { .. }))), "{doubtful:?}");
    assert_eq!(account.balance().await, Ok(5), "what is there counts");
}

#[tokio::test]
async fn nobody_sees_what_was_not_saved() {
    let store = Faulty::new();
    let node = node(store.clone(), |builder| builder.register::<Account>()).await;
    let account = AccountRef::of(&node, "ada");
    assert_eq!(account.deposit(5).await, Ok(5));
    store.next(&[Fault::Refused]);
    let refused = account.deposit(1).await;
    assert!(matches!(refused, Err(CallError::Actor(StateError::NotSaved { .. }))), "{refused:?}");
    assert_eq!(account.balance().await, Ok(5));
    assert_eq!(account.deposit(2).await, Ok(7));
}

#[tokio::test]
async fn a_store_that_is_down_is_an_error_that_passes() {
    let store = Faulty::new();
    let node = node(store.clone(), |builder| {
        builder.register::<Account>().configure(|config| config.store_timeout = Duration::from_millis(200))
    })
    .await;
    let account = AccountRef::of(&node, "ada");
    assert_eq!(account.deposit(5).await, Ok(5));
    store.down(true);
    assert!(matches!(account.deposit(1).await, Err(CallError::Actor(StateError::NotSaved { .. }))));
    let refused = account.balance().await;
    let Err(CallError::Refused(Refusal::Activation { message })) = &refused else { panic!("{refused:?}") };
    assert!(message.contains("state/@greenroom/account/self/ada") && message.contains("it is down"), "{message}");
    store.down(false);
    assert_eq!(account.balance().await, Ok(5));
}
