//! A game that goes on where it stands when its table is carried into another room.
//!
//! `cargo run --example migration`

use std::sync::Arc;
use std::time::Duration;

use greenroom::prelude::*;
use greenroom::{Builder, Unmoved};
use greenroom_store::memory::MemoryStore;
use serde::{Deserialize, Serialize};

/// A game whose moves are in memory only. They go along when it migrates.
#[derive(Default, Serialize, Deserialize, Actor)]
pub struct Game {
    moves: Vec<String>,
}

#[actor(migrate)]
impl Game {
    /// Makes a move and gives its number.
    pub async fn play(&mut self, text: String) -> usize {
        self.moves.push(text);
        self.moves.len()
    }

    /// The node that the game is on.
    pub async fn room(&self, cx: &Cx) -> String {
        cx.node_name().to_owned()
    }

    /// Lets the game go to `node` once this turn is over.
    pub async fn carry_to(&mut self, cx: &Cx, node: String) -> Result<(), String> {
        cx.migrate_to(&node).map_err(|unmoved: Unmoved| unmoved.to_string())
    }
}

/// Two nodes of one cluster, in one process for the example's sake.
pub async fn rooms() -> greenroom::Result<[Node; 2]> {
    let table = Arc::new(MemoryStore::new());
    let room = |name: &str| -> Builder {
        Node::builder().name(name).listen("127.0.0.1:0").store(table.clone()).register::<Game>()
    };
    let rooms = [room("red").start().await?, room("blue").start().await?];
    while rooms.iter().any(|room| room.members().len() < 2) {
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
    Ok(rooms)
}

#[tokio::main]
async fn main() -> greenroom::Result<()> {
    let [red, blue] = rooms().await?;
    let game = GameRef::of(&red, "final");
    game.play("e4").await?;
    game.play("e5").await?;
    for room in ["blue", "red", "blue"] {
        if let Err(error) = game.carry_to(room).await {
            eprintln!("it stays: {error}");
        }
        // Who calls it notices nothing of where it is.
        let number = game.play("…").await?;
        println!("move {number} is made in the {} room", game.room().await?);
    }
    red.stop().await;
    blue.stop().await;
    Ok(())
}
