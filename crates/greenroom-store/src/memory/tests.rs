use super::*;

const BY: Duration = Duration::from_secs(1);

#[test]
fn threads_that_increment_by_compare_and_swap_lose_nothing() {
    let store = MemoryStore::new();
    let increments = |_| {
        let store = store.clone();
        std::thread::spawn(move || {
            for _ in 0..200 {
                while !increment(&store) {}
            }
        })
    };
    let threads: Vec<_> = (0..4).map(increments).collect();
    threads.into_iter().for_each(|thread| thread.join().unwrap());
    assert_eq!(&store.table().rows["count"].value[..], b"800");
}

/// False if another thread was faster.
fn increment(store: &MemoryStore) -> bool {
    let found = store.table().rows.get("count").cloned();
    let key = "count".to_owned();
    let written = match found {
        None => store.put(Write::Create { key, value: "1".into() }),
        Some(Versioned { value, version: expected }) => {
            let next = str::from_utf8(&value).unwrap().parse::<u64>().unwrap() + 1;
            store.put(Write::Replace { key, value: next.to_string().into(), expected })
        }
    };
    written.is_ok()
}

#[tokio::test]
async fn clones_share_one_table() {
    let store = MemoryStore::new();
    let clone = store.clone();
    let version = store.create("a", "1".into(), BY).await.unwrap();
    assert_eq!(clone.read("a", BY).await.unwrap().unwrap().version, version);
}
