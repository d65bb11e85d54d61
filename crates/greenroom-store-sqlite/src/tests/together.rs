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

#[tokio::test]
async fn a_reader_that_stays_open_shows_in_the_log_that_grows() {
    let (_directory, path) = fresh();
    let store = SqliteStore::open(&path).unwrap();
    let opened = Instant::now();
    store.create("first", "x".into(), BY).await.unwrap();
    let reader = raw(&path);
    reader.execute_batch("BEGIN; SELECT count(*) FROM greenroom_store").unwrap();
    // More than the log's usual size, after which it is copied.
    let fill = async |name: &str| {
        for n in 0..48 {
            store.create(&format!("{name}/{n}"), vec![7; VALUE_BYTES_MAX.min(1 << 20)].into(), BY).await.unwrap();
        }
    };
    fill("held").await;
    let held = store.disk_usage().unwrap();
    assert!(held.log_bytes > 40 << 20 && held.free_bytes > 0, "{held:?}");
    assert!(held.since_checkpoint + Duration::from_secs(1) > opened.elapsed(), "nothing was copied whole: {held:?}");
    assert_eq!(held.name, format!("sqlite:{}", path.display()));
    reader.execute_batch("COMMIT").unwrap();
    let ended = Instant::now();
    fill("free").await;
    let free = store.disk_usage().unwrap();
    assert!(free.since_checkpoint <= ended.elapsed() && free.bytes > 80 << 20, "{free:?}");
}
