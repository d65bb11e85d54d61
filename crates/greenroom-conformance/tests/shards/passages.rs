//! What goes wrong if a rule of passages is left out, trace by trace.

use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;

use greenroom_test::Cluster;

use super::ledger::{LedgerRef, Lives, MayflyRef, TellerRef, bring, equipped, shard_of};

/// Runs `scenario` over one node of so many shards.
#[track_caller]
fn on_shards<F>(shards: usize, seeds: u64, scenario: impl Fn(Cluster, Arc<Lives>) -> F + Sync)
where
    F: Future<Output = ()> + 'static,
{
    greenroom_sim::seeds(&greenroom_sim::test_name(), seeds, |seed| {
        let lives = Arc::new(Lives::default());
        let of = lives.clone();
        let setup = Cluster::of(1, move |builder| equipped(builder, shards, &of));
        setup.run(seed, |cluster| scenario(cluster, lives.clone()));
    });
}

async fn soon() {
    tokio::time::sleep(Duration::from_millis(50)).await;
}

#[test]
fn who_knows_the_old_slot_reaches_the_actor() {
    on_shards(3, 50, async |cluster, _| {
        let node = cluster.node("a");
        let (ledger, teller) = (LedgerRef::of(&node, "l"), TellerRef::of(&node, "t"));
        ledger.told(0).await.expect("it answers");
        teller.hello().await.expect("it answers");
        bring(&node, "ledger", "l", 0).await;
        bring(&node, "teller", "t", 1).await;
        teller.tell(7, "l".to_owned(), 4).await.expect("all came, in order");
        node.pass("ledger", "l", 2);
        // It has a reference with the slot that the ledger leaves, or has left.
        teller.tell(7, "l".to_owned(), 40).await.expect("all came, in order");
        soon().await;
        assert_eq!(shard_of(&node, "ledger", "l").await, Some(2));
        teller.tell(7, "l".to_owned(), 4).await.expect("all came, in order");
    });
}

#[test]
fn a_full_inbox_refuses_none_of_what_follows_an_actor() {
    on_shards(2, 20, async |cluster, _| {
        let node = cluster.node("a");
        let (ledger, other) = (LedgerRef::of(&node, "l"), LedgerRef::of(&node, "o"));
        ledger.told(0).await.expect("it answers");
        other.told(0).await.expect("it answers");
        bring(&node, "ledger", "l", 0).await;
        bring(&node, "ledger", "o", 1).await;
        node.pass("ledger", "l", 1);
        for number in 1..=100 {
            ledger.note(7, number).try_send().expect("there is room where it was");
        }
        // The shard that it goes to has no room for messages left.
        while other.note(1, 0).try_send().is_ok() {}
        soon().await;
        assert_eq!(ledger.told(7).await.expect("it answers"), (100, 0));
        assert_eq!(shard_of(&node, "ledger", "l").await, Some(1));
    });
}

#[test]
fn an_actor_that_goes_while_its_node_stops_has_its_last_hook() {
    on_shards(3, 100, async |cluster, lives| {
        let node = cluster.node("a");
        const FLIES: u64 = 30;
        for fly in 0..FLIES {
            MayflyRef::of(&node, fly.to_string()).hello().await.expect("it answers");
        }
        let moves = async {
            for round in 0..200_u64 {
                for fly in 0..FLIES {
                    node.pass("mayfly", &fly.to_string(), ((fly + round) % 3) as u16);
                }
                tokio::time::sleep(Duration::from_micros(20)).await;
            }
        };
        tokio::join!(node.stop(), moves);
        let (begun, ended) = (lives.begun.load(Ordering::Relaxed), lives.ended.load(Ordering::Relaxed));
        assert_eq!((begun, ended), (FLIES, FLIES));
    });
}

#[test]
fn an_actor_that_goes_while_its_node_drains_has_its_last_hook() {
    on_shards(3, 100, async |cluster, lives| {
        let node = cluster.node("a");
        const FLIES: u64 = 30;
        for fly in 0..FLIES {
            MayflyRef::of(&node, fly.to_string()).hello().await.expect("it answers");
        }
        let drains = node.drain();
        let moves = async {
            for round in 0..40_u64 {
                for fly in 0..FLIES {
                    node.pass("mayfly", &fly.to_string(), ((fly + round) % 3) as u16);
                }
                tokio::time::sleep(Duration::from_millis(5)).await;
            }
        };
        let (drained, ()) = tokio::join!(drains, moves);
        assert!(drained.is_whole(), "{drained:?}");
        let (begun, ended) = (lives.begun.load(Ordering::Relaxed), lives.ended.load(Ordering::Relaxed));
        assert_eq!((begun, ended), (FLIES, FLIES));
    });
}

#[test]
fn an_order_that_names_the_old_slot_follows_the_actor() {
    on_shards(2, 20, async |cluster, lives| {
        let node = cluster.node("a");
        let fly = MayflyRef::of(&node, "fly");
        fly.hello().await.expect("it answers");
        bring(&node, "mayfly", "fly", 0).await;
        node.pass("mayfly", "fly", 1);
        node.supersede("mayfly", "fly");
        soon().await;
        assert_eq!(lives.ended.load(Ordering::Relaxed), 1, "it was to end, wherever it is");
    });
}

#[test]
fn messages_stay_in_order_while_everybody_moves() {
    on_shards(4, 30, async |cluster, _| {
        let node = cluster.node("a");
        const TELLERS: u64 = 12;
        let tellers = (0..TELLERS).map(|teller| {
            let node = node.clone();
            async move {
                for _ in 0..60 {
                    let ledger = format!("l{}", teller % 3);
                    let told = TellerRef::of(&node, teller.to_string()).tell(teller, ledger, 16).await;
                    told.expect("all came, in order");
                }
            }
        });
        let moves = async {
            for round in 0..400_u64 {
                node.pass("ledger", &format!("l{}", round % 3), (round / 3 % 4) as u16);
                node.pass("teller", &(round % TELLERS).to_string(), (round / TELLERS % 4) as u16);
                tokio::time::sleep(Duration::from_micros(500)).await;
            }
        };
        futures_util::future::join(futures_util::future::join_all(tellers), moves).await;
    });
}
