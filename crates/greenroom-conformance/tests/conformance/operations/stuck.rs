//! Hooks and turns that do not end: nobody waits for them for ever.

use std::time::Duration;

use greenroom::prelude::*;
use greenroom::{Builder, CallError};

use crate::scenario::calm;

/// Its hooks take their time.
#[derive(Default, Actor)]
struct Sluggish {
    calls: u64,
}

#[actor]
impl Sluggish {
    async fn activated(&mut self, cx: &Cx) -> Result<(), String> {
        if cx.key().starts_with("slow") {
            tokio::time::sleep(Duration::from_secs(2)).await;
        }
        Ok(())
    }

    async fn deactivating(&mut self, cx: &Cx, _why: Why) {
        if cx.key().starts_with("stuck") {
            std::future::pending().await
        }
    }

    pub async fn call(&mut self) -> u64 {
        self.calls += 1;
        self.calls
    }

    pub async fn go(&mut self, cx: &Cx) {
        cx.deactivate();
    }

    pub async fn hang(&mut self) {
        std::future::pending().await
    }
}

fn equip(builder: Builder, _: &str) -> Builder {
    builder.register::<Sluggish>().configure(|config| config.call_timeout = Duration::from_secs(60))
}

#[test]
fn a_stuck_deactivation_is_abandoned_and_who_waits_is_served_by_the_next_activation() {
    calm(30, equip, async |cluster| {
        let [a, ..] = cluster.three();
        let actor = SluggishRef::of(&a, "stuck");
        assert_eq!(actor.call().await, Ok(1));
        actor.go().await.expect("it asks only");
        let asked = cluster.sim.now();
        assert_eq!(actor.call().await, Ok(1), "by a new activation");
        let waited = cluster.sim.now() - asked;
        assert!((4..12).contains(&waited.as_secs()), "{waited:?}");
    });
}

#[test]
fn a_stuck_deactivation_does_not_hold_a_drain() {
    calm(30, equip, async |cluster| {
        let [a, b, c] = cluster.three();
        for key in 0..6 {
            SluggishRef::of(&a, format!("stuck-{key}")).call().await.expect("nothing is wrong");
        }
        let begun = cluster.sim.now();
        let drained = b.drain().await;
        assert!(drained.is_whole(), "{drained:?}");
        assert!(cluster.sim.now() - begun < Duration::from_secs(15));
        assert_eq!(SluggishRef::of(&c, "stuck-0").call().await.map(|calls| calls > 0), Ok(true));
    });
}

#[test]
fn what_does_not_end_is_cut_at_the_drains_bound_and_said() {
    calm(30, equip, async |cluster| {
        let [a, b, _] = cluster.three();
        let mut hung = Vec::new();
        for key in 0..20 {
            hung.push(tokio::task::spawn_local(SluggishRef::of(&a, format!("hung-{key}")).hang().into_future()));
        }
        tokio::time::sleep(Duration::from_millis(200)).await;
        let begun = cluster.sim.now();
        let drained = b.drain().await;
        let took = cluster.sim.now() - begun;
        assert!((30..35).contains(&took.as_secs()), "{took:?}");
        assert!(drained.cut > 0 && !drained.cut_names.is_empty(), "{drained:?}");
        assert!(drained.cut_names.iter().all(|name| name.starts_with("sluggish/hung-")), "{drained:?}");
        tokio::time::sleep(Duration::from_secs(1)).await;
        let ended: Vec<_> = hung.iter().filter(|call| call.is_finished()).collect();
        // Calls that it had passed on count as lost with it, too.
        assert!(ended.len() as u64 >= drained.cut, "their callers are told at once");
        for call in hung.into_iter().filter(|call| call.is_finished()) {
            assert!(matches!(call.await.unwrap(), Err(CallError::Unknown(_))));
        }
    });
}

#[test]
fn an_actor_that_is_to_end_while_it_is_being_activated_ends_after_its_first_hook() {
    calm(60, equip, async |cluster| {
        let [a, b, c] = cluster.three();
        let calls: Vec<_> = (0..12)
            .map(|key| tokio::task::spawn_local(SluggishRef::of(&a, format!("slow-{key}")).call().into_future()))
            .collect();
        tokio::time::sleep(Duration::from_millis(500)).await;
        let drained = b.drain().await;
        assert!(drained.is_whole(), "{drained:?}");
        for call in calls {
            assert_eq!(call.await.unwrap(), Ok(1), "it waited, and was served here or there");
        }
        let _ = c;
    });
}
