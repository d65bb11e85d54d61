//! Cycles of calls through activation hooks, with the actors on one shard or on several.

use std::time::Duration;

use greenroom::prelude::*;
use greenroom_test::Cluster;

use super::ledger::{bring, shard_of};

/// Greets the hall of its own name as it is activated, and takes its leave of it as it ends.
#[derive(Default, Actor)]
struct Guest {}

#[actor]
impl Guest {
    async fn activated(&mut self, cx: &Cx) -> Result<(), String> {
        match cx.key().rsplit_once(' ') {
            Some(("enters", hall)) => {
                HallRef::of(cx, hall).enter(cx.key().to_string()).await.map_err(|e| e.to_string())
            }
            Some(("looks at", hall)) => HallRef::of(cx, hall).look().await.map_err(|e| e.to_string()),
            Some(("rests before", hall)) => {
                tokio::time::sleep(Duration::from_millis(300)).await;
                HallRef::of(cx, hall).open().await.map_err(|e| e.to_string())
            }
            Some(("asks for", hall)) => HallRef::of(cx, hall).open().await.map_err(|e| e.to_string()),
            _ => Ok(()),
        }
    }

    async fn deactivating(&mut self, cx: &Cx, _: Why) {
        if let Some(("leaves", hall)) = cx.key().rsplit_once(' ') {
            let _ = HallRef::of(cx, hall).enter(cx.key().to_string()).await;
        }
    }

    pub async fn hello(&mut self) {}

    pub async fn go(&mut self, cx: &Cx) {
        cx.deactivate();
    }
}

/// Calls guests by their names, and keeps what that has come to.
#[derive(Default, Actor)]
struct Hall {
    said: String,
}

#[actor]
impl Hall {
    pub async fn enter(&mut self, cx: &Cx, guest: String) -> Result<(), String> {
        let came = GuestRef::of(cx, guest).hello().await.map_err(|error| error.to_string());
        self.said = came.clone().err().unwrap_or_default();
        came
    }

    /// As `enter`, by a read.
    pub async fn invite(&self, cx: &Cx, guest: String) -> Result<(), String> {
        GuestRef::of(cx, guest).hello().await.map_err(|error| error.to_string())
    }

    /// Waits for a guest for a tenth of a second, and is busy for longer.
    pub async fn expect(&mut self, cx: &Cx, guest: String) -> bool {
        let came = GuestRef::of(cx, guest).hello().by(Duration::from_millis(100)).await;
        tokio::time::sleep(Duration::from_millis(400)).await;
        came.is_ok()
    }

    pub async fn open(&mut self) {}

    pub async fn look(&self) {}

    pub async fn said(&self) -> String {
        self.said.clone()
    }
}

/// Runs `scenario` over one node of so many shards. In the time of the simulated world a call that waits for itself ends after ten
/// seconds, and nothing else takes one.
#[track_caller]
fn at_once<F>(shards: usize, scenario: impl Fn(Node, String) -> F + Sync + Copy + 'static)
where
    F: Future<Output = ()> + 'static,
{
    greenroom_sim::seeds(&greenroom_sim::test_name(), 10, |seed| {
        let setup = Cluster::of(1, move |builder| {
            builder.register::<Guest>().register::<Hall>().configure(|config| config.shards = shards)
        });
        setup.run(seed, async move |cluster| {
            let node = cluster.node("a");
            for hall in ["h0", "h1", "h2", "h3"] {
                let began = cluster.sim().now();
                HallRef::of(&node, hall).open().await.expect("it answers");
                scenario(node.clone(), hall.to_owned()).await;
                assert!(cluster.sim().now() - began < Duration::from_secs(1), "{hall}: it waited for a deadline");
            }
        });
    });
}

fn names(said: &str, path: &[&str]) {
    let path = path.join(" -> ");
    assert!(said.contains(&path), "{said:?} does not name {path}");
}

#[test]
fn a_hook_whose_call_comes_back_to_its_actor_is_a_cycle_that_is_named_at_once() {
    for shards in [1, 3] {
        at_once(shards, async |node, hall| {
            let guest = format!("enters {hall}");
            let said = GuestRef::of(&node, &*guest).hello().await.expect_err("it cannot be activated").to_string();
            let (guest, hall) = (format!("guest/{guest}"), format!("hall/{hall}"));
            names(&said, &[&guest, &hall, &guest]);
        });
    }
}

#[test]
fn a_hook_that_calls_who_waits_for_the_activation_is_a_cycle_that_is_named_at_once() {
    for shards in [1, 3] {
        at_once(shards, async |node, hall| {
            let guest = format!("asks for {hall}");
            let end = HallRef::of(&node, &*hall).enter(guest.clone()).await;
            let said = end.expect_err("its guest cannot be activated").to_string();
            let (guest, hall) = (format!("guest/{guest}"), format!("hall/{hall}"));
            names(&said, &[&hall, &guest, &hall]);
        });
    }
}

#[test]
fn a_caller_that_has_given_an_activation_up_is_no_part_of_its_hooks_chain() {
    for shards in [1, 3] {
        at_once(shards, async |node, hall| {
            let guest = format!("rests before {hall}");
            let expects = HallRef::of(&node, &*hall).expect(guest.clone()).into_future();
            let waits = async {
                tokio::time::sleep(Duration::from_millis(50)).await;
                GuestRef::of(&node, &*guest).hello().await
            };
            let (came, hello) = tokio::join!(expects, waits);
            assert_eq!(came, Ok(false), "its hook takes too long");
            hello.expect("the hook has waited until the hall was no more busy");
        });
    }
}

#[test]
fn a_last_hook_whose_call_comes_back_to_its_actor_is_a_cycle_that_is_named_at_once() {
    for shards in [1, 3] {
        at_once(shards, async |node, hall| {
            let guest = format!("leaves {hall}");
            GuestRef::of(&node, &*guest).go().await.expect("it is active");
            // A call that comes after the end is answered by the next activation.
            GuestRef::of(&node, &*guest).hello().await.expect("it is active again");
            let said = HallRef::of(&node, &*hall).said().await.expect("it answers");
            let (guest, hall) = (format!("guest/{guest}"), format!("hall/{hall}"));
            names(&said, &[&guest, &hall, &guest]);
        });
    }
}

#[test]
fn a_hook_that_reads_an_actor_whose_read_waits_for_the_activation_is_answered() {
    for shards in [1, 3] {
        at_once(shards, async |node, hall| {
            HallRef::of(&node, &*hall).invite(format!("looks at {hall}")).await.expect("reads interleave");
        });
    }
}

#[test]
fn a_cycle_is_named_wherever_its_actors_were_brought() {
    at_once(3, async |node, hall| {
        let guest = format!("leaves {hall}");
        GuestRef::of(&node, &*guest).hello().await.expect("it is active");
        for shard in 0..3 {
            bring(&node, "hall", &hall, shard).await;
            assert_eq!(shard_of(&node, "hall", &hall).await, Some(shard));
            GuestRef::of(&node, &*guest).go().await.expect("it is active");
            GuestRef::of(&node, &*guest).hello().await.expect("it is active again");
            let said = HallRef::of(&node, &*hall).said().await.expect("it answers");
            names(&said, &[&format!("guest/{guest}"), &format!("hall/{hall}"), &format!("guest/{guest}")]);
        }
    });
}
