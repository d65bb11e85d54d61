//! A leader board of many regions, and one of the world.

// anchor: recipe
use std::collections::BTreeMap;
use std::time::Duration;

use greenroom::prelude::*;
use serde::{Deserialize, Serialize};

/// The best players of a region, by its name as key; those of all regions under the key `world`.
#[derive(Default, Serialize, Deserialize, Actor)]
pub struct Board {
    best: BTreeMap<String, u64>,
    #[serde(skip)]
    telling: bool,
}

#[actor(persistent, save = "2s")]
impl Board {
    /// A player has a score; the best one counts.
    pub async fn submit(&mut self, cx: &Cx, player: String, score: u64) -> Result<(), Refusal> {
        self.take(player, score);
        if cx.key().as_str() != WORLD && !self.telling {
            self.telling = true;
            cx.after(Duration::from_secs(1), BoardRef::me(cx).tell())?;
        }
        Ok(())
    }

    /// Tells the world of the best ones here: once a second at most, however many scores come.
    pub async fn tell(&mut self, cx: &Cx) {
        self.telling = false;
        BoardRef::of(cx, WORLD).merge(self.ranked()).send();
    }

    /// Takes the best ones of a region. To hear of one twice changes nothing.
    pub async fn merge(&mut self, best: Vec<(String, u64)>) {
        best.into_iter().for_each(|(player, score)| self.take(player, score));
    }

    /// The best ones, best first.
    pub async fn top(&self, count: usize) -> Vec<(String, u64)> {
        self.ranked().into_iter().take(count).collect()
    }

    fn take(&mut self, player: String, score: u64) {
        let best = self.best.entry(player).or_default();
        *best = score.max(*best);
        if self.best.len() > PLAYERS_MAX
            && let Some((last, _)) = self.ranked().pop()
        {
            self.best.remove(&last);
        }
    }

    fn ranked(&self) -> Vec<(String, u64)> {
        let mut ranked: Vec<_> = self.best.iter().map(|(player, score)| (player.clone(), *score)).collect();
        ranked.sort_by(|one, other| other.1.cmp(&one.1).then_with(|| one.0.cmp(&other.0)));
        ranked
    }
}

const WORLD: &str = "world";
const PLAYERS_MAX: usize = 100;
// end: recipe

#[cfg(test)]
mod tests {
    use greenroom_test::Cluster;

    use super::*;

    #[test]
    fn the_world_hears_of_the_best_of_each_region() {
        Cluster::of(3, |builder| builder.register::<Board>()).seeds(10, |cluster| async move {
            let node = cluster.node("a");
            for (region, player, score) in [("eu", "ada", 7), ("us", "bob", 9), ("eu", "ada", 3), ("eu", "eve", 8)] {
                BoardRef::of(&node, region).submit(player.to_owned(), score).await.expect("it counts");
            }
            tokio::time::sleep(Duration::from_secs(3)).await;
            let top = BoardRef::of(&node, WORLD).top(2).await;
            assert_eq!(top, Ok(vec![("bob".to_owned(), 9), ("eve".to_owned(), 8)]));
        });
    }
}
