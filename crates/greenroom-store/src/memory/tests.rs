use super::*;
use crate::conformance;

const BY: Duration = Duration::from_secs(1);

#[tokio::test]
async fn memory_keeps_every_claim_of_the_conformance_suite() {
    conformance::all(Arc::new(MemoryStore::new())).await;
}

#[test]
fn threads_that_increment_by_compare_and_swap_lose_nothing() {
    let store = MemoryStore::new();
    let increments = |_| {
        let store = store.clone();
        std::thread::spawn(move || {
            let runtime = tokio::runtime::Builder::new_current_thread().build().unwrap();
            runtime.block_on(async {
                for _ in 0..200 {
                    conformance::increment(&store, "count").await;
                }
            });
        })
    };
    let threads: Vec<_> = (0..4).map(increments).collect();
    threads.into_iter().for_each(|thread| thread.join().unwrap());
    assert_eq!(&store.table().rows["count"].value[..], b"800");
}

#[tokio::test]
async fn clones_share_one_table() {
    let store = MemoryStore::new();
    let clone = store.clone();
    let version = store.create("a", "1".into(), BY).await.unwrap();
    assert_eq!(clone.read("a", BY).await.unwrap().unwrap().version, version);
}
