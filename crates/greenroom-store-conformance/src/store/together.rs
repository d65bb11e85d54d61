//! Many callers at once, on threads of their own.

use crate::elsewhere::side_by_side;
use crate::plain::{increment, number, read};
use crate::{BY, Harness};

/// A write that was acknowledged through one opening is seen by a read that begins afterwards through any other.
pub async fn what_one_opening_writes_the_others_read_at_once(harness: &Harness) {
    let mut version = harness.first().create("seen/a", "0".into(), BY).await.expect("it is new");
    for n in 1..=30 {
        let writer = &harness.openings[n % harness.openings.len()];
        let value = n.to_string();
        version = writer.replace("seen/a", value.clone().into(), &version, BY).await.expect("the version is current");
        for reader in &harness.openings {
            assert_eq!(read(&**reader, "seen/a").await, Some((value.clone().into(), version.clone())));
        }
    }
}

/// Read, add one, replace, again on conflict: no increment is lost and none is made twice.
pub async fn concurrent_increments_lose_none(harness: &Harness) {
    const WRITERS: usize = 8;
    const INCREMENTS: usize = 10;
    let writers = harness.openings.iter().cycle().take(WRITERS).cloned().map(|store| {
        move || async move {
            for _ in 0..INCREMENTS {
                increment(&*store, "count/a").await;
            }
        }
    });
    side_by_side(writers).await;
    assert_eq!(number(harness.first(), "count/a").await, (WRITERS * INCREMENTS) as u64);
}

/// Of many who create one key, one is told that it did, and its value is there.
pub async fn of_concurrent_creates_one_wins(harness: &Harness) {
    for round in 0..10 {
        let key = format!("race/{round}");
        let creators = harness.openings.iter().cycle().take(8).cloned().enumerate().map(|(n, store)| {
            let key = key.clone();
            move || async move { store.create(&key, n.to_string().into(), BY).await }
        });
        let created = side_by_side(creators).await;
        let winners: Vec<_> =
            created.into_iter().enumerate().filter_map(|(n, created)| Some((n, created.ok()?))).collect();
        let [(winner, version)] = &winners[..] else { panic!("{} creations have won", winners.len()) };
        assert_eq!(read(harness.first(), &key).await, Some((winner.to_string().into(), version.clone())));
    }
}
