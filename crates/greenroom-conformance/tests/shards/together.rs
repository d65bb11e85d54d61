//! The optimiser brings actors that talk with each other to one shard, and then leaves them there.

use std::time::Duration;

use greenroom::Node;
use greenroom::optimiser::OptimiserMode;
use greenroom::prelude::*;
use greenroom_test::Cluster;

use super::ledger::{bring, shard_of};

/// Hits the ball back.
#[derive(Default, Actor)]
struct Player {
    hits: u64,
}

#[actor]
impl Player {
    /// Plays so many balls with `other`; each must be the next one.
    pub async fn play(&mut self, cx: &Cx, other: String, balls: u64) -> Result<u64, String> {
        for _ in 0..balls {
            self.hits += 1;
            let back = PlayerRef::of(cx, other.as_str()).hit(self.hits).await.map_err(|error| error.to_string())?;
            if back != self.hits {
                return Err(format!("{back} came back for {}", self.hits));
            }
        }
        Ok(self.hits)
    }

    pub async fn hit(&mut self, ball: u64) -> u64 {
        self.hits += 1;
        if ball == self.hits { ball } else { 0 }
    }
}

const PAIRS: usize = 6;

fn names(pair: usize) -> [String; 2] {
    [format!("ada{pair}"), format!("bob{pair}")]
}

/// Lets all pairs play for a while.
async fn play(node: &Node, rounds: u64) {
    for _ in 0..rounds {
        for pair in 0..PAIRS {
            let [ada, bob] = names(pair);
            PlayerRef::of(node, ada.as_str()).play(bob, 5).await.expect("all came, in order");
        }
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
}

async fn apart(node: &Node) -> usize {
    let mut apart = 0;
    for pair in 0..PAIRS {
        let [ada, bob] = names(pair);
        apart += usize::from(shard_of(node, "player", &ada).await != shard_of(node, "player", &bob).await);
    }
    apart
}

fn moves(node: &Node) -> u64 {
    let moves =
        node.figures().into_iter().find(|figure| figure.name() == "greenroom_optimiser_moves_between_shards_total");
    moves.map(|figure| figure.value() as u64).unwrap_or_default()
}

#[track_caller]
fn pairs_apart<F>(optimised: bool, seeds: u64, scenario: impl Fn(Cluster) -> F + Sync)
where
    F: Future<Output = ()> + 'static,
{
    let setup = Cluster::of(1, move |builder| {
        builder.register::<Player>().configure(|config| {
            config.shards = 2;
            config.optimiser.mode = OptimiserMode::On;
            config.kinds.entry("player".to_owned()).or_default().optimise = (!optimised).then_some(false);
        })
    });
    setup.seeds(seeds, |cluster| {
        let scenario = scenario(cluster.clone());
        async move {
            let node = cluster.node("a");
            for pair in 0..PAIRS {
                let [ada, bob] = names(pair);
                PlayerRef::of(&node, ada.as_str()).play(bob.clone(), 1).await.expect("all came, in order");
                bring(&node, "player", &ada, 0).await;
                bring(&node, "player", &bob, 1).await;
            }
            scenario.await;
        }
    });
}

#[test]
fn pairs_on_different_shards_come_together_and_then_nobody_moves() {
    pairs_apart(true, 20, async |cluster| {
        let node = cluster.node("a");
        let begun = moves(&node);
        play(&node, 500).await;
        let before = moves(&node);
        assert_eq!(apart(&node).await, 0, "after {} moves", before - begun);
        assert!(before - begun >= PAIRS as u64, "{} moves", before - begun);
        play(&node, 500).await;
        assert_eq!((apart(&node).await, moves(&node)), (0, before));
    });
}

#[test]
fn a_kind_that_is_not_to_be_optimised_stays_on_its_shard() {
    pairs_apart(false, 5, async |cluster| {
        let node = cluster.node("a");
        let before = moves(&node);
        play(&node, 300).await;
        assert_eq!((apart(&node).await, moves(&node)), (PAIRS, before));
    });
}

#[test]
fn nobody_goes_while_the_optimiser_pauses() {
    pairs_apart(true, 5, async |cluster| {
        let node = cluster.node("a");
        node.pause_optimiser(true);
        let before = moves(&node);
        play(&node, 300).await;
        assert_eq!((apart(&node).await, moves(&node)), (PAIRS, before));
        node.pause_optimiser(false);
        play(&node, 500).await;
        assert_eq!(apart(&node).await, 0);
    });
}
