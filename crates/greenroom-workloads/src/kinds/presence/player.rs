//! Players.

use std::future::IntoFuture;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Mutex, PoisonError};

use futures_util::future::join_all;
use greenroom::prelude::*;
use serde::{Deserialize, Serialize};

use super::game::GameRef;
use super::{Spot, Way, Ways, player_key};

/// Is in one game at a time, and hears from it what its players do, himself among them.
///
/// All his turns are `&self`: his game tells him of what he does while he waits for its answer.
#[derive(Default, Serialize, Deserialize, Actor)]
pub struct Player {
    game: Mutex<Option<GameRef>>,
    requests: AtomicU64,
    heard: AtomicU64,
}

#[actor(kind = "presence_player", migrate, idle = "1h")]
impl Player {
    /// Joins a game, or leaves the one that he is in.
    pub async fn sit(&self, game: Option<GameRef>) {
        *self.game.lock().unwrap_or_else(PoisonError::into_inner) = game;
    }

    /// Does something that all of his game hear. How far the messages went that this took.
    pub async fn act(&self, cx: &Cx) -> Result<Ways, String> {
        self.requests.fetch_add(1, Ordering::Relaxed);
        let game = self.game.lock().unwrap_or_else(PoisonError::into_inner).clone();
        match game {
            Some(game) => game.update(Spot::of(cx)).await.map_err(|error| error.to_string()),
            None => Ok(Ways::default()),
        }
    }

    /// Talks with others than his game. How far the messages went that this took.
    pub async fn mingle(&self, cx: &Cx, others: Vec<u32>) -> Result<Ways, String> {
        self.requests.fetch_add(1, Ordering::Relaxed);
        let here = Spot::of(cx);
        let others = others.into_iter().map(|other| PlayerRef::of(cx, player_key(other)).hear(here).into_future());
        let mut ways = Ways::default();
        for way in join_all(others).await {
            ways.count(way.map_err(|error| error.to_string())?);
        }
        Ok(ways)
    }

    /// Hears from his game, or from another player. How far it is.
    pub async fn hear(&self, cx: &Cx, from: Spot) -> Way {
        self.heard.fetch_add(1, Ordering::Relaxed);
        from.way(Spot::of(cx))
    }

    /// Times that he was asked to act.
    pub async fn requests(&self) -> u64 {
        self.requests.load(Ordering::Relaxed)
    }
}
