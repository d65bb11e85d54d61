//! What went wrong says where: errors of late calls.

use std::time::Duration;

use greenroom::prelude::*;
use greenroom_protocols::wait_for::WaitFor;

use crate::scenario::calm;

/// Is busy for as long as it is told.
#[derive(Default, Actor)]
struct Busy {}

#[actor(placement = "random")]
impl Busy {
    pub async fn dawdle(&mut self, millis: u64) {
        tokio::time::sleep(Duration::from_millis(millis)).await;
    }

    pub async fn node(&self, cx: &Cx) -> String {
        cx.node_name().to_owned()
    }

    pub async fn poke(&mut self) {}

    /// Pokes another half a second later, while nobody may poke this one.
    pub async fn cross(&mut self, cx: &Cx, other: String) -> String {
        tokio::time::sleep(Duration::from_millis(500)).await;
        let end = BusyRef::of(cx, other).poke().await;
        end.map_or_else(|error| error.to_string(), |()| String::new())
    }

    /// Pokes another, and tells with what error that ends.
    pub async fn poke_other(&mut self, cx: &Cx, other: String, millis: u64) -> String {
        let end = BusyRef::of(cx, other).poke().by(Duration::from_millis(millis)).await;
        end.map_or_else(|error| error.to_string(), |()| String::new())
    }
}

#[test]
fn a_call_that_waited_in_a_mailbox_says_how_long_behind_what_and_where() {
    calm(
        20,
        |builder, _| builder.register::<Busy>(),
        |cluster| async move {
            let nodes = cluster.three();
            let at = BusyRef::of(&nodes[0], "lobby").node().await.unwrap();
            BusyRef::of(&nodes[0], "lobby").dawdle(20_000).send();
            tokio::time::sleep(Duration::from_secs(4)).await;
            for node in &nodes {
                let Err(error) = BusyRef::of(node, "lobby").poke().by(Duration::from_secs(2)).await else {
                    panic!("it is busy")
                };
                let CallError::Refused(Refusal::Expired(spent)) = &error else { panic!("{error}") };
                let queued = spent.queued.expect("it is known");
                assert!(queued > Duration::from_millis(1_700) && queued < Duration::from_millis(2_100), "{queued:?}");
                let behind = spent.behind.as_ref().expect("it is known");
                assert_eq!(behind.turn, "busy/lobby.dawdle");
                assert!(behind.running > Some(Duration::from_secs(5)), "{behind:?}");
                assert_eq!(spent.node.as_ref(), Some(&at));
                let text = error.to_string();
                let words = "1.9 s queued behind busy/lobby.dawdle, which has run for ";
                assert!(text.contains(words) && text.contains(&format!("on node {at}")), "{text}");
            }
        },
    );
}

#[test]
fn a_call_that_ran_too_long_says_where_it_was_sent() {
    calm(
        20,
        |builder, _| builder.register::<Busy>(),
        |cluster| async move {
            for node in cluster.three() {
                let at = BusyRef::of(&node, "lobby").node().await.unwrap();
                let end = BusyRef::of(&node, "lobby").dawdle(3_000).by(Duration::from_secs(1)).await;
                let Err(CallError::Unknown(Doubt::TimedOut(spent))) = &end else { panic!("{end:?}") };
                let limit = spent.limit.expect("the caller knows it");
                assert!(limit >= Duration::from_secs(1) && limit < Duration::from_millis(1_100), "{limit:?}");
                assert!(spent.queued.is_none(), "it had begun: {spent}");
                let _ = at;
                tokio::time::sleep(Duration::from_secs(3)).await;
            }
            // From actor to actor, the caller knows the node.
            let [a, ..] = cluster.three();
            let at = BusyRef::of(&a, "callee").node().await.unwrap();
            BusyRef::of(&a, "caller").poke_other("callee".to_owned(), 1_000).await.unwrap();
            BusyRef::of(&a, "callee").dawdle(5_000).send();
            tokio::time::sleep(Duration::from_millis(500)).await;
            let said = BusyRef::of(&a, "caller").poke_other("callee".to_owned(), 1_000).await.unwrap();
            assert!(said.contains("queued behind busy/callee.dawdle") && said.contains(&at), "{said}");
        },
    );
}

#[test]
fn a_call_for_which_there_was_no_node_says_so() {
    let faults = greenroom_sim::Faults { silent_crash: 1.0, ..greenroom_sim::Faults::none() };
    crate::scenario::run(
        20,
        faults,
        |builder, _| builder.register::<Busy>(),
        |cluster| async move {
            let [a, ..] = cluster.three();
            cluster.sim.crash("b");
            while a.members().len() > 2 {
                tokio::time::sleep(Duration::from_millis(50)).await;
            }
            // Its lease has to run out before anybody may have its actors.
            let mut said = Vec::new();
            for key in 0..40 {
                if let Err(error) = BusyRef::of(&a, key).poke().by(Duration::from_millis(150)).await {
                    said.push(error.to_string());
                }
            }
            let without = |text: &String| text.contains("without a node, as the directory was recovering");
            assert!(said.is_empty() || said.iter().any(without), "{said:?}");
        },
    );
}

#[test]
fn a_deadlock_that_no_chain_of_calls_can_see_is_in_the_report_of_all_nodes() {
    calm(
        20,
        |builder, _| builder.register::<Busy>(),
        |cluster| async move {
            let nodes = cluster.three();
            let [a, b, _] = &nodes;
            for key in ["left", "right", "bystander"] {
                BusyRef::of(a, key).poke().await.unwrap();
            }
            // Two chains that know nothing of each other: each holds what the other needs.
            let left = BusyRef::of(a, "left").cross("right".to_owned()).into_future();
            let right = BusyRef::of(b, "right").cross("left".to_owned()).into_future();
            let bystander = BusyRef::of(a, "bystander").cross("left".to_owned()).into_future();
            let look = async {
                tokio::time::sleep(Duration::from_secs(2)).await;
                let mut graph = WaitFor::default();
                let mut turns = Vec::new();
                for node in &nodes {
                    let waits = node.waits(Duration::from_secs(1)).await;
                    assert!(waits.stuck_shards.is_empty());
                    turns.extend(waits.turns);
                }
                for turn in &turns {
                    turn.waiters.iter().for_each(|waiter| graph.insert(waiter, &turn.actor));
                }
                assert_eq!(graph.cycles(), [["busy/left", "busy/right"]]);
                let mut names: Vec<_> = turns.iter().map(|turn| turn.turn.as_str()).collect();
                names.sort_unstable();
                assert_eq!(names, ["busy/bystander.cross", "busy/left.cross", "busy/right.cross"]);
            };
            let (left, _, _, ()) = tokio::join!(left, right, bystander, look);
            // The deadline ends it, and the error names the other one; which of them is first is chance.
            if let Ok(said) = left {
                assert!(said.is_empty() || said.contains("busy/right.cross"), "{said}");
            }
        },
    );
}
