//! Two who write the same state.

use std::sync::Arc;
use std::time::Duration;

use greenroom::{CallError, StateError};
use greenroom_store::memory::MemoryStore;
use greenroom_store::{Store, StoreError};

use super::{Account, AccountRef, node};

const BY: Duration = Duration::from_secs(5);

#[tokio::test]
async fn what_was_saved_is_there_after_the_node_has_gone() {
    let store: Arc<dyn Store> = Arc::new(MemoryStore::new());
    let first = node(store.clone(), |builder| builder.register::<Account>()).await;
    assert_eq!(AccountRef::of(&first, "ada").deposit(5).await, Ok(5));
    first.stop().await;
    let second = node(store, |builder| builder.register::<Account>()).await;
    assert_eq!(AccountRef::of(&second, "ada").balance().await, Ok(5));
    assert_eq!(AccountRef::of(&second, "bob").balance().await, Ok(0));
}

#[tokio::test]
async fn who_loses_a_race_hears_of_it_and_goes_on_with_what_is_there() {
    let store: Arc<dyn Store> = Arc::new(MemoryStore::new());
    // Two clusters that know nothing of each other: each has an activation of its own.
    let one = node(store.clone(), |builder| builder.register::<Account>()).await;
    let other = node(store, |builder| builder.register::<Account>()).await;
    let (here, there) = (AccountRef::of(&one, "ada"), AccountRef::of(&other, "ada"));
    assert_eq!(here.deposit(5).await, Ok(5));
    assert_eq!(there.deposit(10).await, Ok(15));
    let lost = here.deposit(1).await;
    assert!(
        matches!(lost, Err(CallError::Actor(StateError::Conflict { .. } | StateError::Superseded { .. }))),
        "{lost:?}"
    );
    assert_eq!(here.balance().await, Ok(15));
    assert_eq!(here.deposit(1).await, Ok(16));
    assert_eq!(there.reload().await, Ok(16));
}

#[tokio::test]
async fn a_state_that_somebody_removed_is_fresh_after_the_conflict() {
    let store: Arc<dyn Store> = Arc::new(MemoryStore::new());
    let node = node(store.clone(), |builder| builder.register::<Account>()).await;
    let account = AccountRef::of(&node, "ada");
    assert_eq!(account.deposit(5).await, Ok(5));
    let found = store.read("state/@greenroom/account/self/ada", BY).await.unwrap().expect("it is there");
    store.delete("state/@greenroom/account/self/ada", &found.version, BY).await.unwrap();
    assert!(matches!(account.deposit(1).await, Err(CallError::Actor(StateError::Conflict { .. }))));
    assert_eq!(account.deposit(1).await, Ok(1));
}

#[tokio::test]
async fn a_cleared_state_is_gone_from_the_store_and_the_actor_fresh() {
    let store: Arc<dyn Store> = Arc::new(MemoryStore::new());
    let node = node(store.clone(), |builder| builder.register::<Account>()).await;
    let account = AccountRef::of(&node, "ada");
    assert_eq!(account.deposit(5).await, Ok(5));
    assert_eq!(account.close().await, Ok(()));
    assert_eq!(store.read("state/@greenroom/account/self/ada", BY).await, Ok::<_, StoreError>(None));
    assert_eq!(account.balance().await, Ok(0));
    assert_eq!(account.close().await, Ok(()));
    assert_eq!(account.deposit(2).await, Ok(2));
}
