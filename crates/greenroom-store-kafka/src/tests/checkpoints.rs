//! Journals that begin anew from their checkpoints.

use greenroom_store::StoreError;
use rdkafka::producer::Producer;

use super::*;

/// How many commits a slice's topic holds no more.
async fn removed(store: &KafkaStore, slice: i32) -> i64 {
    let writer = store.core.writer.clone();
    let topic = store.core.shared.settings.commits();
    let ends = tokio::task::spawn_blocking(move || writer.client().fetch_watermarks(&topic, slice, BY));
    ends.await.unwrap().unwrap().0
}

#[tokio::test]
async fn who_comes_later_begins_with_the_checkpoint_and_finds_all() {
    let Some(kafka) = broker() else { return };
    let url = named(&kafka, "later", "&checkpoint_kib=8");
    let store = open(&url).await;
    let fence = store.create("fence", "1".into(), BY).await.unwrap();
    for n in 0..200 {
        let commit = Commit::new().hold("fence", &fence).put(format!("key/{}", n % 7), vec![n as u8; 300].into());
        store.commit(commit.append("log", n.to_string().into()), BY).await.unwrap();
        if n % 50 == 49 {
            store.trim("log", n - 20, BY).await.unwrap();
            store.delete("gone", &store.create("gone", "x".into(), BY).await.unwrap(), BY).await.unwrap();
        }
    }
    let begun = std::time::Instant::now();
    while removed(&store, 0).await == 0 {
        assert!(begun.elapsed() < BY, "no checkpoint was written");
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
    let later = open(&url).await;
    let seen = async |store: &KafkaStore| {
        let page = store.scan("", None, 100, BY).await.unwrap();
        let entries = store.entries("log", 1, 1000, BY).await.unwrap();
        (page, entries, store.end("log", BY).await.unwrap())
    };
    let (page, entries, end) = seen(&later).await;
    assert_eq!((page.items.len(), entries.len(), end), (8, 21, 201));
    assert_eq!(seen(&store).await, (page, entries, end));
    later.replace("fence", "2".into(), &fence, BY).await.unwrap();
    let late = store.commit(Commit::new().hold("fence", &fence).put("key/0", "x".into()), BY).await;
    assert!(late.unwrap_err().is_conflict(), "a successor has the fence");
}

#[tokio::test]
async fn a_process_that_lags_behind_a_checkpoint_reads_anew() {
    let Some(kafka) = broker() else { return };
    let url = named(&kafka, "lag", "&checkpoint_kib=4");
    let (one, other) = (open(&url).await, open(&url).await);
    one.create("a", "1".into(), BY).await.unwrap();
    assert!(other.read("a", BY).await.unwrap().is_some());
    for round in 0..20 {
        let write = |n: u32| one.commit(Commit::new().put(format!("k/{n}"), vec![7; 2000].into()), BY);
        futures_util::future::try_join_all((0..10).map(write)).await.unwrap();
        assert_eq!(other.scan("k/", None, 100, BY).await.unwrap().items.len(), 10, "in round {round}");
    }
}

#[tokio::test]
async fn a_record_of_a_newer_program_is_an_error_that_says_so() {
    let Some(kafka) = broker() else { return };
    let url = named(&kafka, "newer", "");
    let store = open(&url).await;
    store.create("a", "1".into(), BY).await.unwrap();
    let topic = store.core.shared.settings.commits();
    let newer = rdkafka::producer::BaseRecord::<'_, (), [u8], usize>::with_opaque_to(&topic, 0);
    store.core.writer.send(newer.partition(0).payload(&[9, 1, 2])).map_err(|(error, _)| error).unwrap();
    store.core.writer.flush(BY).unwrap();
    let later = open(&url).await;
    for store in [&store, &later] {
        let error = store.read("a", BY).await.unwrap_err();
        assert!(matches!(error, StoreError::Format { .. }) && error.to_string().contains("format 9"), "{error}");
    }
}

#[tokio::test]
async fn topics_that_forget_are_refused() {
    let Some(kafka) = broker() else { return };
    let settings = Settings::of(&match named(&kafka, "forget", "").parse().unwrap() {
        StoreUrl::Kafka(remote) => remote,
        other => panic!("{other}"),
    });
    let admin: rdkafka::admin::AdminClient<rdkafka::client::DefaultClientContext> =
        clients::common(&settings.unwrap()).create().unwrap();
    let topic = rdkafka::admin::NewTopic::new("forget-commits", 3, rdkafka::admin::TopicReplication::Fixed(1));
    admin.create_topics(&[topic], &rdkafka::admin::AdminOptions::new()).await.unwrap();
    let error = KafkaStore::open(&named(&kafka, "forget", "")).await.unwrap_err();
    assert!(matches!(error, StoreError::Configuration { .. }) && error.to_string().contains("retention.ms"), "{error}");
}

#[tokio::test]
async fn an_engine_that_is_not_there_is_said_so_in_time() {
    let error = KafkaStore::open("kafka://127.0.0.1:1/x").await.unwrap_err();
    assert!(matches!(error, StoreError::Unavailable { .. }), "{error}");
}
