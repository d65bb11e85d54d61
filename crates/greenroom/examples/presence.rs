//! Who is online: each player's actor tells its game's actor one-way, and a game that nobody plays forgets itself.
//!
//! `cargo run --example presence`

use std::collections::BTreeSet;
use std::time::Duration;

use greenroom::prelude::*;

/// A player, somewhere in the cluster.
#[derive(Default, Actor)]
pub struct Player {
    game: Option<String>,
}

#[actor]
impl Player {
    /// Leaves the game that the player is in, and joins `game`.
    pub async fn join(&mut self, cx: &Cx, game: String) {
        if let Some(left) = self.game.replace(game.clone()) {
            GameRef::of(cx, left).left(cx.key().clone()).send();
        }
        GameRef::of(cx, game).joined(cx.key().clone()).send();
    }

    /// The game that the player is in.
    pub async fn game(&self) -> Option<String> {
        self.game.clone()
    }
}

/// A game and who plays it.
#[derive(Default, Actor)]
pub struct Game {
    players: BTreeSet<String>,
}

#[actor(idle = "10m")]
impl Game {
    /// Counts `player` in.
    pub async fn joined(&mut self, player: Key) {
        self.players.insert(player.to_string());
    }

    /// Counts `player` out.
    pub async fn left(&mut self, cx: &Cx, player: Key) {
        self.players.remove(player.as_str());
        if self.players.is_empty() {
            cx.deactivate();
        }
    }

    /// How many play.
    pub async fn online(&self) -> usize {
        self.players.len()
    }
}

#[tokio::main]
async fn main() -> greenroom::Result<()> {
    let node = Node::builder().register::<Player>().register::<Game>().start().await?;
    for number in 0..8 {
        let game = if number % 2 == 0 { "chess" } else { "go" };
        PlayerRef::of(&node, number).join(game).await?;
    }
    PlayerRef::of(&node, 0).join("go").await?;
    // What was sent one-way arrives soon, not at once.
    tokio::time::sleep(Duration::from_millis(100)).await;
    for game in ["chess", "go"] {
        println!("{} play {game}", GameRef::of(&node, game).online().await?);
    }
    node.stop().await;
    Ok(())
}
