//! Games.

use futures_util::future::join_all;
use greenroom::prelude::*;
use serde::{Deserialize, Serialize};

use super::player::PlayerRef;
use super::{Spot, Ways};

/// Tells its players what each of them does.
#[derive(Default, Serialize, Deserialize, Actor)]
pub struct Game {
    players: Vec<PlayerRef>,
}

#[actor(kind = "presence_game", migrate, idle = "1h")]
impl Game {
    /// Begins with these players.
    pub async fn open(&mut self, players: Vec<PlayerRef>) {
        self.players = players;
    }

    /// Hears of what a player does, and tells all of them. How far all these messages went.
    pub async fn update(&self, cx: &Cx, from: Spot) -> Result<Ways, String> {
        let here = Spot::of(cx);
        let mut ways = Ways::default();
        ways.count(from.way(here));
        for way in join_all(self.players.iter().map(|player| player.hear(here).into_future())).await {
            ways.count(way.map_err(|error| error.to_string())?);
        }
        Ok(ways)
    }

    /// Ends.
    pub async fn close(&mut self, cx: &Cx) {
        self.players.clear();
        cx.deactivate();
    }
}
