//! What was refused from outside is tried again, within its time; what may have run never is.

use std::cell::RefCell;
use std::time::Duration;

use futures_util::future::join_all;
use greenroom::prelude::*;

use crate::scenario::calm;

thread_local! {
    /// The numbers of the turns that have begun in this scenario, which has its thread for itself.
    static BEGUN: RefCell<Vec<u64>> = const { RefCell::new(Vec::new()) };
}

#[derive(Default, Actor)]
struct Narrow {}

#[actor(placement = "random", mailbox = 1)]
impl Narrow {
    pub async fn node(&self, cx: &Cx) -> String {
        cx.node_name().to_owned()
    }

    pub async fn work(&mut self, number: u64, millis: u64) {
        BEGUN.with_borrow_mut(|begun| begun.push(number));
        tokio::time::sleep(Duration::from_millis(millis)).await;
    }

    /// Has others work; how many were refused.
    pub async fn pass_on(&self, cx: &Cx, to: String) -> u64 {
        let calls = (0..8).map(|number| NarrowRef::of(cx, to.clone()).work(number, 50).into_future());
        let refused = |end: &Result<_, _>| matches!(end, Err(CallError::Refused(Refusal::Overloaded { .. })));
        join_all(calls).await.iter().filter(|end| refused(end)).count() as u64
    }
}

#[test]
fn a_refused_call_from_outside_is_made_again_until_it_is_taken_and_runs_once() {
    calm(
        20,
        |builder, _| builder.register::<Narrow>(),
        |cluster| async move {
            BEGUN.with_borrow_mut(Vec::clear);
            let nodes = cluster.three();
            let calls = (0..12).map(|n| NarrowRef::of(&nodes[n as usize % 3], "x").work(n, 50).into_future());
            let ends = join_all(calls).await;
            assert!(ends.iter().all(Result::is_ok), "{ends:?}");
            let mut begun = BEGUN.with_borrow(Vec::clone);
            begun.sort_unstable();
            assert_eq!(begun, (0..12).collect::<Vec<_>>(), "each once");
        },
    );
}

#[test]
fn once_and_calls_between_actors_are_told_of_the_first_refusal() {
    calm(
        20,
        |builder, _| builder.register::<Narrow>(),
        |cluster| async move {
            let nodes = cluster.three();
            NarrowRef::of(&nodes[0], "x").work(0, 0).await.unwrap();
            let calls = (0..8).map(|n| NarrowRef::of(&nodes[0], "x").work(n, 50).once().into_future());
            let refused = |end: &&Result<_, _>| matches!(end, Err(CallError::Refused(Refusal::Overloaded { .. })));
            assert_eq!(join_all(calls).await.iter().filter(refused).count(), 6, "one runs, one waits");
            assert_eq!(NarrowRef::of(&nodes[0], "y").pass_on("x".to_owned()).await, Ok(6));
        },
    );
}

#[test]
fn a_refused_call_is_given_up_at_its_deadline() {
    calm(
        20,
        |builder, _| builder.register::<Narrow>(),
        |cluster| async move {
            let [a, ..] = cluster.three();
            NarrowRef::of(&a, "x").work(0, 0).await.unwrap();
            NarrowRef::of(&a, "x").work(1, 60_000).send();
            NarrowRef::of(&a, "x").work(2, 0).send();
            tokio::time::sleep(Duration::from_millis(100)).await;
            let began = cluster.sim.now();
            let end = NarrowRef::of(&a, "x").work(3, 0).by(Duration::from_secs(2)).await;
            assert!(matches!(end, Err(CallError::Refused(Refusal::Overloaded { .. }))), "{end:?}");
            let took = cluster.sim.now() - began;
            assert!(took > Duration::from_secs(1) && took < Duration::from_millis(2_100), "{took:?}");
        },
    );
}

#[test]
fn a_call_that_may_have_run_is_not_made_again() {
    calm(
        20,
        |builder, _| builder.register::<Narrow>(),
        |cluster| async move {
            BEGUN.with_borrow_mut(Vec::clear);
            let [a, ..] = cluster.three();
            let mut key = 0;
            while NarrowRef::of(&a, key).node().await.unwrap() != "b" {
                key += 1;
            }
            let (end, ()) = tokio::join!(NarrowRef::of(&a, key).work(7, 2_000).into_future(), async {
                tokio::time::sleep(Duration::from_millis(500)).await;
                cluster.sim.crash("b");
            });
            assert!(matches!(end, Err(CallError::Unknown(_))), "{end:?}");
            tokio::time::sleep(Duration::from_secs(20)).await;
            assert_eq!(BEGUN.with_borrow(Vec::clone), [7], "it ran once, on the node that died");
        },
    );
}
