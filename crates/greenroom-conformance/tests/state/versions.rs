//! Records of other versions of a type.

use std::sync::Arc;
use std::time::Duration;

use greenroom::prelude::*;
use greenroom::state::Old;
use greenroom_store::Store;
use greenroom_store::memory::MemoryStore;
use serde::{Deserialize, Serialize};

use super::{Account, AccountRef, node};

#[derive(Default, Serialize, Deserialize)]
struct NameV1 {
    full: String,
}

#[derive(Default, Serialize, Deserialize, Actor)]
struct Name {
    first: String,
    last: String,
}

#[actor(persistent, version = 2)]
impl Name {
    pub async fn parts(&self) -> (String, String) {
        (self.first.clone(), self.last.clone())
    }

    fn migrate(old: Old<'_>) -> Result<Self, String> {
        let full = old.read::<NameV1>()?.full;
        let (first, last) = full.split_once(' ').unwrap_or((&full, ""));
        Ok(Self { first: first.to_owned(), last: last.to_owned() })
    }
}

const BY: Duration = Duration::from_secs(5);

/// A record: format 1, epoch, writer, sequence, codec 1 (MessagePack), the type's version, the value.
fn record(version: u8, value: &[u8]) -> Vec<u8> {
    let mut record = vec![1];
    for word in [7_u64, 8, 9] {
        record.extend(word.to_le_bytes());
    }
    record.extend([1, version]);
    record.extend(value);
    record
}

async fn refusal<T: std::fmt::Debug>(call: impl IntoFuture<Output = Result<T, CallError>>) -> String {
    match call.await {
        Err(CallError::Refused(Refusal::Activation { message })) => message,
        other => panic!("{other:?}"),
    }
}

#[tokio::test]
async fn a_record_of_an_earlier_version_is_migrated() {
    let store: Arc<dyn Store> = Arc::new(MemoryStore::new());
    let ada = record(1, b"\x81\xa4full\xacAda Lovelace");
    store.create("state/name/self/ada", ada.into(), BY).await.unwrap();
    let node = node(store, |builder| builder.register::<Name>()).await;
    assert_eq!(NameRef::of(&node, "ada").parts().await, Ok(("Ada".to_owned(), "Lovelace".to_owned())));
}

#[tokio::test]
async fn a_record_of_a_newer_version_is_left_alone_and_said_to_be_one() {
    let store: Arc<dyn Store> = Arc::new(MemoryStore::new());
    let written = record(3, b"\x80");
    store.create("state/name/self/ada", written.clone().into(), BY).await.unwrap();
    let node = node(store.clone(), |builder| builder.register::<Name>()).await;
    let refused = NameRef::of(&node, "ada").parts().await;
    let Err(CallError::Refused(refusal)) = refused else { panic!("{refused:?}") };
    let message = refusal.to_string();
    assert!(message.contains("version 3") && message.contains("up to version 2"), "{message}");
    assert_eq!(refusal.retry_after(), None, "no retry helps");
    let found = store.read("state/name/self/ada", BY).await.unwrap().expect("it is still there");
    assert_eq!(found.value, written);
}

#[tokio::test]
async fn what_is_no_record_is_said_to_be_none() {
    let store: Arc<dyn Store> = Arc::new(MemoryStore::new());
    store.create("state/account/self/a", "".into(), BY).await.unwrap();
    store.create("state/account/self/b", "\u{9}garbage".into(), BY).await.unwrap();
    store.create("state/account/self/c", vec![1, 2, 3].into(), BY).await.unwrap();
    let node = node(store, |builder| builder.register::<Account>()).await;
    for (key, words) in [("a", "empty"), ("b", "format 9"), ("c", "ends early")] {
        let message = refusal(AccountRef::of(&node, key).balance()).await;
        assert!(message.contains(words), "{message}");
    }
}

#[tokio::test]
async fn a_saved_record_has_the_bytes_that_were_promised() {
    let store: Arc<dyn Store> = Arc::new(MemoryStore::new());
    let node = node(store.clone(), |builder| builder.register::<Account>()).await;
    AccountRef::of(&node, "ada").deposit(5).await.unwrap();
    let found = store.read("state/@greenroom/account/self/ada", BY).await.unwrap().expect("it is there");
    assert_eq!(found.value[0], 1, "the format");
    assert_ne!(found.value[1..9], [0; 8], "the activation's epoch");
    assert_ne!(found.value[9..17], [0; 8], "the writer");
    assert_eq!(found.value[17..25], 1_u64.to_le_bytes(), "the number of the write");
    assert_eq!(found.value[25..], *b"\x01\x01\x81\xa7balance\x05", "codec, version, value");
}

#[tokio::test]
async fn a_kind_whose_store_nobody_named_is_refused_with_names_like_it() {
    #[derive(Default, Serialize, Deserialize, Actor)]
    struct Lost {
        x: u8,
    }

    #[actor(persistent, store = "archiv")]
    impl Lost {
        pub async fn x(&self) -> u8 {
            self.x
        }
    }

    let store: Arc<dyn Store> = Arc::new(MemoryStore::new());
    let started = Node::builder().state_store("archive", store).register::<Lost>().start().await;
    let message = started.err().map(|error| error.to_string()).unwrap_or_default();
    assert!(message.contains("\"archiv\"") && message.contains("did you mean \"archive\""), "{message}");
}
