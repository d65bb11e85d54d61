//! Activations that ask to be kept while nobody calls them.

use std::time::Duration;

use greenroom::prelude::*;
use tokio::time::sleep;

use crate::scenario::calm;

/// Idle after a second.
#[derive(Default, Actor)]
struct Keeper {}

#[actor(placement = "random", idle = "1s")]
impl Keeper {
    pub async fn keep(&mut self, cx: &Cx, secs: u64) -> u64 {
        cx.keep_alive(Duration::from_secs(secs));
        cx.epoch()
    }

    pub async fn epoch(&self, cx: &Cx) -> u64 {
        cx.epoch()
    }
}

#[test]
fn a_kept_activation_outlives_its_idle_time_and_no_more() {
    calm(
        10,
        |builder, _| builder.register::<Keeper>(),
        |cluster| async move {
            let [a, ..] = cluster.three();
            let (kept, other) = (KeeperRef::of(&a, "kept"), KeeperRef::of(&a, "other"));
            let (first, forgotten) = (kept.keep(20).await.unwrap(), other.epoch().await.unwrap());
            sleep(Duration::from_secs(15)).await;
            assert_eq!(kept.epoch().await, Ok(first));
            assert_ne!(other.epoch().await, Ok(forgotten), "one that is not kept is idle by then");
            sleep(Duration::from_secs(10)).await;
            assert_ne!(kept.epoch().await, Ok(first), "its time is over");
        },
    );
}

#[test]
fn keeping_an_activation_is_undone_by_zero() {
    calm(
        10,
        |builder, _| builder.register::<Keeper>(),
        |cluster| async move {
            let [a, ..] = cluster.three();
            let kept = KeeperRef::of(&a, "kept");
            let first = kept.keep(60 * 60).await.unwrap();
            sleep(Duration::from_secs(30)).await;
            assert_eq!(kept.keep(0).await, Ok(first));
            sleep(Duration::from_secs(5)).await;
            assert_ne!(kept.epoch().await, Ok(first));
        },
    );
}
