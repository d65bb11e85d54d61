//! A server that is killed with its etcd.

use std::time::Instant;

use greenroom_store::Applied;

use super::*;

/// Adds one to the number under `key` until `end`, and answers how many increments were acknowledged, and how many may
/// have been applied.
async fn count(store: KubeStore, key: String, end: Instant) -> (u64, u64) {
    let (mut acknowledged, mut possible) = (0, 0);
    while Instant::now() < end {
        let Ok(found) = store.read(&key, BY).await else {
            tokio::time::sleep(Duration::from_millis(20)).await;
            continue;
        };
        let written = match found {
            None => store.create(&key, "1".into(), BY).await,
            Some(found) => {
                let next = str::from_utf8(&found.value).unwrap().parse::<u64>().unwrap() + 1;
                store.replace(&key, next.to_string().into(), &found.version, BY).await
            }
        };
        match written {
            Ok(_) => (acknowledged, possible) = (acknowledged + 1, possible + 1),
            Err(error) if error.applied() == Applied::Maybe => possible += 1,
            Err(_) => tokio::time::sleep(Duration::from_millis(20)).await,
        }
    }
    (acknowledged, possible)
}

#[tokio::test]
async fn no_acknowledged_increment_is_lost_when_the_server_and_its_etcd_are_killed() {
    let Some(mut server) = prepared() else { return };
    let store = open(&server, KubeApiserver::ADMIN, "killed").await.unwrap();
    let end = Instant::now() + Duration::from_secs(25);
    let key = |n: usize| format!("count/{}", n % 4);
    let counters: Vec<_> = (0..8).map(|n| tokio::spawn(count(store.clone(), key(n), end))).collect();
    let server = tokio::task::spawn_blocking(move || {
        for _ in 0..2 {
            std::thread::sleep(Duration::from_secs(2));
            server.kill();
            server.restart().unwrap();
        }
        server
    });
    let _server = server.await.unwrap();
    let mut totals = [(0, 0); 4];
    for (n, counter) in counters.into_iter().enumerate() {
        let (acknowledged, possible) = counter.await.unwrap();
        totals[n % 4].0 += acknowledged;
        totals[n % 4].1 += possible;
    }
    for (n, (acknowledged, possible)) in totals.into_iter().enumerate() {
        let found = store.read(&key(n), BY).await.unwrap().unwrap();
        let value: u64 = str::from_utf8(&found.value).unwrap().parse().unwrap();
        assert!((acknowledged..=possible).contains(&value), "{acknowledged}..={possible} increments made {value}");
        assert!(acknowledged > 10, "too few to mean anything: {acknowledged}");
    }
}
