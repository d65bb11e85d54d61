//! State machines and what else an actor may use.

use greenroom::prelude::*;
use greenroom::{Builder, Topic};

use super::{SEEDS, pair, until};

/// A gate whose visitors wait in the journal until it opens.
#[derive(Default, Actor)]
struct Gate {
    passed: Register<u64>,
}

#[actor(reliable, start = "Shut")]
impl Gate {
    async fn activated(&mut self, cx: &Cx) {
        let me = GateRef::of(cx, cx.key());
        Topic::<u64>::of(cx, "visitors").subscribe(cx, me, |me, _| me.pass());
    }

    #[on(open, state = "Shut", ignore = "Open")]
    async fn open(&mut self, cx: &Cx) {
        cx.jump("Open");
    }

    #[on(pass, state = "Open", defer = "Shut")]
    async fn pass(&mut self) -> u64 {
        *self.passed.get_mut() += 1;
        *self.passed.get()
    }

    /// The number of visitors that have passed, in all states.
    pub async fn passed(&self) -> u64 {
        *self.passed.get()
    }
}

fn equip(builder: Builder) -> Builder {
    builder.register::<Gate>()
}

#[test]
fn a_call_that_its_state_defers_is_answered_once_under_its_key() {
    pair(equip).seeds(SEEDS, |cluster| async move {
        let (a, b) = (cluster.node("a"), cluster.node("b"));
        let waiting =
            tokio::spawn(async move { until(|| GateRef::of(&a, "x").pass().idempotent("one"), |_| true).await });
        until(|| GateRef::of(&b, "x").passed(), |passed| *passed == 0).await;
        until(|| GateRef::of(&b, "x").open(), |()| true).await;
        assert_eq!(waiting.await.unwrap(), 1);
        assert_eq!(GateRef::of(&b, "x").pass().idempotent("one").await, Ok(1), "the recorded answer");
        assert_eq!(GateRef::of(&b, "x").pass().idempotent("two").await, Ok(2));
    });
}

#[test]
fn a_state_machine_keeps_its_state_through_a_drain() {
    pair(equip).seeds(SEEDS, |cluster| async move {
        for key in ["x", "y", "z"] {
            GateRef::of(&cluster.node("a"), key).open().await.unwrap();
        }
        assert!(cluster.drain("b").await.is_whole());
        for key in ["x", "y", "z"] {
            let pass = || GateRef::of(&cluster.node("a"), key).pass().idempotent("one");
            assert_eq!(until(pass, |_| true).await, 1);
        }
    });
}

#[test]
fn a_state_machine_hears_a_topic_from_its_hook() {
    pair(equip).seeds(SEEDS, |cluster| async move {
        let (a, b) = (cluster.node("a"), cluster.node("b"));
        GateRef::of(&a, "x").open().await.unwrap();
        let topic = Topic::<u64>::of(&b, "visitors");
        until(|| topic.subscribers(), |count| *count == 1).await;
        topic.publish(&1).await.unwrap();
        until(|| GateRef::of(&b, "x").passed(), |passed| *passed == 1).await;
    });
}
