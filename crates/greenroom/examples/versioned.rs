//! A leaderboard whose every change is kept: scores that count at once, a bookmark that clients carry, a stream of leaders, and
//! the table as it stood at any time.

use std::collections::BTreeMap;

use futures_util::StreamExt;
use greenroom::prelude::*;
use greenroom::versioned::{Rejected, UpdateError, Version};
use serde::{Deserialize, Serialize};

/// Points by player.
#[derive(Default, Clone, Serialize, Deserialize)]
pub struct Table {
    points: BTreeMap<String, u64>,
}

/// What changes the table.
#[derive(Clone, Serialize, Deserialize)]
pub enum Change {
    /// A player has won points.
    Won(String, u64),
    /// A player was caught cheating.
    Disqualified(String),
}

impl Table {
    fn leader(&self) -> Option<String> {
        self.points.iter().max_by_key(|(_, points)| **points).map(|(player, _)| player.clone())
    }
}

impl VersionedStateWithOutput for Table {
    type Update = Change;
    /// The player's points then.
    type Output = u64;

    fn apply(&mut self, change: &Change) -> Result<u64, Rejected> {
        match change {
            Change::Won(player, points) => {
                let total = self.points.entry(player.clone()).or_default();
                *total += points;
                Ok(*total)
            }
            Change::Disqualified(player) => {
                self.points.remove(player).ok_or_else(|| Rejected::new(format!("{player} does not play")))
            }
        }
    }
}

/// The table of one game.
#[derive(Default, Actor)]
pub struct Leaderboard {
    table: Versioned<Table>,
}

#[actor(protocol = "log")]
impl Leaderboard {
    /// Counts at once here; it is confirmed in the background.
    #[update]
    pub async fn won(&self, player: String, points: u64) {
        self.table.enqueue(Change::Won(player, points));
    }

    /// Answers when it is confirmed, with the points that the player loses and a bookmark.
    #[update]
    pub async fn disqualify(&self, player: String) -> Result<(u64, Version), UpdateError> {
        let lost = self.table.confirm(Change::Disqualified(player)).await?;
        Ok((lost, self.table.confirmed().1))
    }

    /// The leader in this instance's view.
    pub async fn leader(&self) -> Option<String> {
        self.table.tentative().leader()
    }

    /// The leader, as of the bookmark or later.
    pub async fn leader_since(&self, seen: Version) -> Result<Option<String>, StateError> {
        Ok(self.table.read_at_least(seen).await?.0.leader())
    }

    /// The leader after the first `changes` changes.
    pub async fn leader_after(&self, changes: u64) -> Result<Option<String>, StateError> {
        Ok(self.table.state_at(changes).await?.0.leader())
    }

    /// The leaders from now on.
    pub async fn leaders(&self) -> impl Stream<Item = Option<String>> + use<> {
        self.table.versions().map(|(table, _)| table.leader())
    }
}

#[tokio::main]
async fn main() -> greenroom::Result<()> {
    let node = Node::builder().register::<Leaderboard>().start().await?;
    let board = LeaderboardRef::of(&node, "chess");
    board.won("ada", 30).await?;
    board.won("bob", 50).await?;
    println!("leads: {:?}", board.leader().await?);
    let (lost, seen) = board.disqualify("bob").await?;
    println!("bob loses {lost}; leads: {:?}", board.leader_since(seen).await?);
    println!("led before: {:?}", board.leader_after(2).await?);
    node.stop().await;
    Ok(())
}
