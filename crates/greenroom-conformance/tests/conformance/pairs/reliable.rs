//! Reliable actors and what else an actor may use.

use std::time::Duration;

use greenroom::prelude::*;
use greenroom::{Builder, Topic};

use super::{SEEDS, pair, until};

/// A sum in the journal.
#[derive(Default, Actor)]
struct Ledger {
    total: Register<u64>,
}

#[actor(reliable, idle = "2s")]
impl Ledger {
    async fn activated(&mut self, cx: &Cx) {
        let me = LedgerRef::of(cx, cx.key());
        Topic::<u64>::of(cx, "entries").subscribe(cx, me, |me, more| me.add(more));
    }

    pub async fn add(&mut self, more: u64) -> u64 {
        *self.total.get_mut() += more;
        *self.total.get()
    }

    pub async fn total(&self) -> u64 {
        *self.total.get()
    }

    /// Publishes before its commit, which is refused.
    pub async fn publish(&mut self, cx: &Cx) -> String {
        match Topic::<u64>::of(cx, "entries").publish(&1).await {
            Ok(published) => format!("{published:?}"),
            Err(error) => error.to_string(),
        }
    }
}

fn equip(builder: Builder) -> Builder {
    builder.register::<Ledger>()
}

#[test]
fn a_reliable_actor_hears_a_topic_from_its_hook_and_publishes_nothing_before_its_commit() {
    pair(equip).seeds(SEEDS, |cluster| async move {
        let (a, b) = (cluster.node("a"), cluster.node("b"));
        assert_eq!(LedgerRef::of(&a, "x").add(1).await, Ok(1));
        let topic = Topic::<u64>::of(&b, "entries");
        until(|| topic.subscribers(), |count| *count == 1).await;
        assert_eq!(topic.publish(&10).await.unwrap().subscribers, 1);
        until(|| LedgerRef::of(&b, "x").total(), |total| *total == 11).await;
        let refused = LedgerRef::of(&a, "x").publish().await.unwrap();
        assert!(refused.contains("commit"), "{refused}");
        assert_eq!(LedgerRef::of(&a, "x").total().await, Ok(11), "nothing was published");
    });
}

#[test]
fn a_drain_hands_over_partitions_with_their_actors() {
    pair(equip).seeds(SEEDS, |cluster| async move {
        for key in ["x", "y", "z"] {
            assert_eq!(LedgerRef::of(&cluster.node("a"), key).add(2).await, Ok(2));
        }
        assert!(cluster.drain("b").await.is_whole());
        for key in ["x", "y", "z"] {
            let add = || LedgerRef::of(&cluster.node("a"), key).add(1).idempotent("second");
            assert_eq!(until(add, |_| true).await, 3);
        }
        tokio::time::sleep(Duration::from_secs(1)).await;
        assert_eq!(LedgerRef::of(&cluster.node("a"), "x").total().await, Ok(3));
    });
}
