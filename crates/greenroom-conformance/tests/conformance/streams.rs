//! Streams of replies: in order, held back by whoever consumes them, and over when either end is.

use std::cell::RefCell;
use std::collections::BTreeMap;
use std::rc::Rc;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use futures_util::{StreamExt, stream};
use greenroom::prelude::*;
use greenroom::{Builder, CallError, Doubt};
use greenroom_sim::Faults;

use crate::cluster::Cluster;
use crate::scenario::{calm, rough, run};

/// Makes numbers, and says how many it has made and how many of its streams are open.
#[derive(Default, Actor)]
struct Source;

/// What the streams of one key have done.
#[derive(Default)]
struct Tally {
    made: AtomicU64,
    open: AtomicU64,
}

thread_local! {
    /// A simulated world is one thread.
    static TALLIES: RefCell<BTreeMap<String, Arc<Tally>>> = const { RefCell::new(BTreeMap::new()) };
}

fn tally(key: &str) -> Arc<Tally> {
    TALLIES.with_borrow_mut(|tallies| tallies.entry(key.to_owned()).or_default().clone())
}

struct Open(Arc<Tally>);

impl Drop for Open {
    fn drop(&mut self) {
        self.0.open.fetch_sub(1, Ordering::SeqCst);
    }
}

#[actor(placement = "random", idle = "2s")]
impl Source {
    pub async fn node(&self, cx: &Cx) -> String {
        cx.node_name().to_owned()
    }

    pub async fn leave(&self, cx: &Cx) {
        cx.deactivate();
    }

    /// So many numbers, each after a pause.
    pub fn count(&self, cx: &Cx, to: u64, pause_ms: u64) -> impl Stream<Item = u64> {
        let tally = tally(cx.key());
        tally.open.fetch_add(1, Ordering::SeqCst);
        let open = Open(tally);
        stream::unfold((0, open), move |(at, open)| async move {
            if at == to {
                return None;
            }
            if pause_ms > 0 {
                tokio::time::sleep(Duration::from_millis(pause_ms)).await;
            }
            open.0.made.fetch_add(1, Ordering::SeqCst);
            Some((at, (at + 1, open)))
        })
    }

    /// Texts of this many bytes, for ever.
    pub async fn flood(&mut self, cx: &Cx, len: u64) -> Result<impl Stream<Item = String>, String> {
        if len == 0 {
            return Err("nothing to flood with".to_owned());
        }
        let tally = tally(cx.key());
        Ok(stream::repeat_with(move || {
            tally.made.fetch_add(1, Ordering::SeqCst);
            "x".repeat(len as usize)
        }))
    }

    pub fn break_at(&self, at: u64) -> impl Stream<Item = u64> {
        stream::iter(0..).inspect(move |number| assert!(*number < at, "no further than {at}"))
    }

    /// The stream of another, passed on.
    pub async fn through(&self, cx: &Cx, other: String, to: u64) -> Result<ReplyStream<u64>, String> {
        SourceRef::of(cx, other).count(to, 0).await.map_err(|error| error.to_string())
    }

    /// What is in a stream that somebody else makes.
    pub async fn sum(&self, mut numbers: ReplyStream<u64>) -> u64 {
        let mut sum = 0;
        while let Some(Ok(number)) = numbers.next().await {
            sum += number;
        }
        sum
    }
}

fn equip(builder: Builder, name: &str) -> Builder {
    if name == "a" {
        // The first node of the next seed's world.
        TALLIES.take();
    }
    builder.register::<Source>()
}

/// A key that is active on a node other than `near`, and its node.
async fn elsewhere(cluster: &Cluster, near: &str) -> (String, String) {
    for number in 0.. {
        let key = format!("{near}-{number}");
        let node = cluster.node(near).expect("it is there");
        let host = SourceRef::of(&node, key.as_str()).node().await.expect("somebody hosts it");
        if host != near {
            return (key, host);
        }
    }
    unreachable!("placement is random")
}

async fn all<T: Send>(mut stream: impl Stream<Item = Result<T, CallError>> + Unpin) -> (Vec<T>, Option<CallError>) {
    let mut items = Vec::new();
    while let Some(item) = stream.next().await {
        match item {
            Ok(item) => items.push(item),
            Err(error) => return (items, Some(error)),
        }
    }
    (items, None)
}

#[test]
fn items_arrive_in_order_across_nodes() {
    calm(20, equip, |cluster| async move {
        let (key, _) = elsewhere(&cluster, "a").await;
        let source = SourceRef::of(&cluster.three()[0], key);
        let (items, end) = all(source.count(1000, 0).await.unwrap()).await;
        assert_eq!((items, end), ((0..1000).collect(), None));
    });
}

#[test]
fn two_streams_of_one_actor_are_two() {
    calm(5, equip, |cluster| async move {
        let (key, _) = elsewhere(&cluster, "a").await;
        let source = SourceRef::of(&cluster.three()[0], key);
        let (one, two) = (source.count(300, 1).await.unwrap(), source.count(200, 2).await.unwrap());
        let ((one, _), (two, _)) = tokio::join!(all(one), all(two));
        assert_eq!((one.len(), two.len()), (300, 200));
    });
}

#[test]
fn a_slow_consumer_holds_the_producer_back() {
    calm(10, equip, |cluster| async move {
        let (key, _) = elsewhere(&cluster, "a").await;
        let tally = tally(&key);
        let mut items = SourceRef::of(&cluster.three()[0], key).count(100_000, 0).await.unwrap();
        for taken in 1..=500 {
            items.next().await.unwrap().unwrap();
            tokio::time::sleep(Duration::from_millis(50)).await;
            let ahead = tally.made.load(Ordering::SeqCst) - taken;
            assert!(ahead <= 65, "{ahead} items are ahead of the consumer");
        }
    });
}

#[test]
fn large_items_are_held_back_by_their_bytes() {
    calm(5, equip, |cluster| async move {
        let (key, _) = elsewhere(&cluster, "a").await;
        let tally = tally(&key);
        let mut items = SourceRef::of(&cluster.three()[0], key).flood(100_000).await.unwrap();
        for taken in 1..=30 {
            assert_eq!(items.next().await.unwrap().unwrap().len(), 100_000);
            tokio::time::sleep(Duration::from_millis(50)).await;
            let ahead = tally.made.load(Ordering::SeqCst) - taken;
            assert!(ahead <= 4, "{ahead} items of 100 kB are ahead of the consumer");
        }
    });
}

#[test]
fn a_dropped_stream_is_cancelled_at_its_producer() {
    calm(10, equip, |cluster| async move {
        let (key, _) = elsewhere(&cluster, "a").await;
        let tally = tally(&key);
        let source = SourceRef::of(&cluster.three()[0], key);
        let mut items = source.count(1_000_000, 10).await.unwrap();
        items.next().await.unwrap().unwrap();
        assert_eq!(tally.open.load(Ordering::SeqCst), 1);
        drop(items);
        tokio::time::sleep(Duration::from_millis(100)).await;
        assert_eq!(tally.open.load(Ordering::SeqCst), 0, "it was told");
        // One that was never polled is cancelled as well.
        drop(source.count(1_000_000, 10).await.unwrap());
        tokio::time::sleep(Duration::from_millis(100)).await;
        assert_eq!(tally.open.load(Ordering::SeqCst), 0);
    });
}

#[test]
fn a_stream_is_cancelled_when_its_consumers_node_dies() {
    calm(10, equip, |cluster| async move {
        let (key, host) = elsewhere(&cluster, "a").await;
        let tally = tally(&key);
        let other = if host == "b" { "c" } else { "b" };
        let mut items = SourceRef::of(&cluster.node(other).unwrap(), key).count(1_000_000, 10).await.unwrap();
        items.next().await.unwrap().unwrap();
        cluster.sim.crash(other);
        while tally.open.load(Ordering::SeqCst) > 0 {
            tokio::time::sleep(Duration::from_millis(100)).await;
        }
        drop(items);
    });
}

#[test]
fn a_stream_whose_producers_node_dies_ends_as_unknown() {
    calm(10, equip, |cluster| async move {
        let (key, host) = elsewhere(&cluster, "a").await;
        let mut items = SourceRef::of(&cluster.three()[0], key).count(1_000_000, 10).await.unwrap();
        items.next().await.unwrap().unwrap();
        cluster.sim.crash(&host);
        let (_, end) = all(&mut items).await;
        assert!(matches!(end, Some(CallError::Unknown(Doubt::Disconnected { .. }))), "{end:?}");
        assert!(items.next().await.is_none(), "an error is the last item");
    });
}

#[test]
fn a_stream_across_a_cut_ends_as_unknown_at_both_ends() {
    calm(5, equip, |cluster| async move {
        let (key, host) = elsewhere(&cluster, "a").await;
        let tally = tally(&key);
        let mut items = SourceRef::of(&cluster.three()[0], key).count(1_000_000, 10).await.unwrap();
        items.next().await.unwrap().unwrap();
        cluster.sim.partition(&["a"], &[&host]);
        let (_, end) = all(&mut items).await;
        assert!(matches!(end, Some(CallError::Unknown(_))), "{end:?}");
        while tally.open.load(Ordering::SeqCst) > 0 {
            tokio::time::sleep(Duration::from_millis(100)).await;
        }
    });
}

#[test]
fn a_stream_ends_with_the_activation_that_it_came_from() {
    calm(10, equip, |cluster| async move {
        let (key, _) = elsewhere(&cluster, "a").await;
        let source = SourceRef::of(&cluster.three()[0], key);
        let mut items = source.count(1_000_000, 10).await.unwrap();
        items.next().await.unwrap().unwrap();
        source.leave().await.unwrap();
        let (_, end) = all(items).await;
        assert!(matches!(end, Some(CallError::Unknown(Doubt::Ended { .. }))), "{end:?}");
        // The next activation gives another.
        assert_eq!(all(source.count(3, 0).await.unwrap()).await, (vec![0, 1, 2], None));
    });
}

#[test]
fn a_stream_ends_when_its_node_stops_in_order() {
    calm(5, equip, |cluster| async move {
        let (key, host) = elsewhere(&cluster, "a").await;
        let mut items = SourceRef::of(&cluster.three()[0], key).count(1_000_000, 10).await.unwrap();
        items.next().await.unwrap().unwrap();
        let stopping = cluster.node(&host).unwrap();
        cluster.sim.spawn(async move { stopping.stop().await });
        let (_, end) = all(items).await;
        assert!(matches!(end, Some(CallError::Unknown(_))), "{end:?}");
    });
}

#[test]
fn an_open_stream_keeps_its_activation() {
    calm(5, equip, |cluster| async move {
        let (key, _) = elsewhere(&cluster, "a").await;
        let source = SourceRef::of(&cluster.three()[0], key);
        let (items, end) = all(source.count(100, 200).await.unwrap()).await;
        assert_eq!((items.len(), end), (100, None), "20 s of items from a kind that is idle after 2 s");
    });
}

#[test]
fn a_panic_in_a_stream_ends_it_and_nothing_else() {
    calm(5, equip, |cluster| async move {
        let (key, host) = elsewhere(&cluster, "a").await;
        let source = SourceRef::of(&cluster.three()[0], key);
        let (items, end) = all(source.break_at(5).await.unwrap()).await;
        assert_eq!(items, [0, 1, 2, 3, 4]);
        assert!(
            matches!(&end, Some(CallError::Unknown(Doubt::Panicked { message })) if message.contains("further")),
            "{end:?}"
        );
        assert_eq!(source.node().await.unwrap(), host);
    });
}

#[test]
fn a_method_may_refuse_instead_of_streaming() {
    calm(3, equip, |cluster| async move {
        let (key, _) = elsewhere(&cluster, "a").await;
        let refused = SourceRef::of(&cluster.three()[0], key).flood(0).await.unwrap_err();
        assert_eq!(refused, CallError::Actor("nothing to flood with".to_owned()));
    });
}

#[test]
fn a_stream_travels_on_as_a_reply_and_as_an_argument() {
    calm(10, equip, |cluster| async move {
        let (one, _) = elsewhere(&cluster, "a").await;
        let (two, _) = elsewhere(&cluster, "b").await;
        let node = &cluster.three()[0];
        let relayed = SourceRef::of(node, one.as_str()).through(two.as_str(), 200).await.unwrap();
        assert_eq!(all(relayed).await, ((0..200).collect(), None));
        let again = SourceRef::of(node, one.as_str()).through(two.as_str(), 200).await.unwrap();
        drop(again);
        let tally = tally(&two);
        while tally.open.load(Ordering::SeqCst) > 0 {
            tokio::time::sleep(Duration::from_millis(100)).await;
        }
    });
}

#[test]
fn whatever_happens_a_streams_items_are_a_prefix_without_gaps() {
    rough(40, equip, |cluster| async move {
        let broken = Rc::new(RefCell::new(0));
        for round in 0..5_u64 {
            for name in ["a", "b", "c"] {
                let Some(node) = cluster.node(name).filter(|node| !node.is_stopped()) else { continue };
                let source = SourceRef::of(&node, format!("rough-{round}"));
                let Ok(items) = source.count(200, 5).by(Duration::from_secs(2)).await else { continue };
                let (items, end) = all(items).await;
                assert!(items.iter().copied().eq(0..items.len() as u64), "{items:?}");
                match end {
                    None => assert_eq!(items.len(), 200, "a stream that ends well is whole"),
                    Some(_) => *broken.borrow_mut() += 1,
                }
            }
        }
        cluster.sim.note(format_args!("{} broke off", broken.borrow()));
    });
}

#[test]
fn a_node_whose_lease_has_run_out_streams_no_more() {
    run(5, Faults::none(), equip, |cluster| async move {
        // The consumer is on the producer's own node: no connection tells it.
        let (key, host) = elsewhere(&cluster, "a").await;
        let node = cluster.node(&host).unwrap();
        let mut items = SourceRef::of(&node, key).count(1_000_000, 10).await.unwrap();
        items.next().await.unwrap().unwrap();
        cluster.store.serve(false);
        let (_, end) = all(items).await;
        assert!(
            matches!(end, Some(CallError::Unknown(Doubt::Fenced | Doubt::Dropped | Doubt::Ended { .. }))),
            "{end:?}"
        );
    });
}
