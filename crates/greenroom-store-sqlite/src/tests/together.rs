//! Reads that wait for each other share a snapshot.

use futures_util::future::join_all;

use super::*;

#[tokio::test]
async fn who_reads_among_many_sees_what_was_acknowledged_before() {
    let (_directory, path) = fresh();
    let store = SqliteStore::open(&path).unwrap();
    join_all((0..CALLERS).map(|caller| {
        let (store, key) = (&store, format!("key/{caller:02}"));
        async move {
            for round in 0..ROUNDS {
                let value = round.to_string();
                store.commit(Commit::new().put(key.clone(), value.clone().into()), BY).await.unwrap();
                // Several at once, so that many wait while one is served.
                let reads = join_all((0..4).map(|_| store.read(&key, BY))).await;
                for read in reads {
                    let seen = read.unwrap().expect("it was written");
                    assert_eq!(&seen.value[..], value.as_bytes(), "{key}");
                }
            }
        }
    }))
    .await;
}

const CALLERS: usize = 32;
const ROUNDS: usize = 20;
