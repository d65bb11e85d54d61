//! Players.

use std::sync::atomic::{AtomicU32, AtomicU64, Ordering};
use std::sync::{Mutex, PoisonError};

use futures_util::future::join_all;
use greenroom::prelude::*;
use serde::{Deserialize, Serialize};

use super::game::GameRef;
use super::home::HomeRef;
use super::{GAME_LEN, Spot, Way, Ways, home_key, player_key};

/// Is in one game at a time, and hears from it what its players do, himself among them.
///
/// All his turns are `&self`: his game tells him of what he does while he waits for its answer.
#[derive(Default, Serialize, Deserialize, Actor)]
pub struct Player {
    game: Mutex<Option<GameRef>>,
    requests: AtomicU64,
    heard: AtomicU64,
    /// How often he has left one home for another.
    strayed: AtomicU32,
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
        let others = others.into_iter().map(|other| PlayerRef::of(cx, player_key(other)).hear(here));
        sum(join_all(others.map(IntoFuture::into_future)).await)
    }

    /// Talks with homes. How far the messages went that this took.
    pub async fn visit(&self, cx: &Cx, homes: Vec<u32>) -> Result<Ways, String> {
        self.requests.fetch_add(1, Ordering::Relaxed);
        let here = Spot::of(cx);
        let homes = homes.into_iter().map(|home| HomeRef::of(cx, home_key(home)).hear(here));
        sum(join_all(homes.map(IntoFuture::into_future)).await)
    }

    /// Talks with one of so many homes, which is on another node than the next one, until he is on its node, and from then on
    /// with the next one: `first` is the one that he began with. How far the messages went that this took.
    pub async fn stray(&self, cx: &Cx, first: u32, homes: u32) -> Result<Ways, String> {
        let home = first.wrapping_add(self.strayed.load(Ordering::Relaxed)).checked_rem(homes).unwrap_or(0);
        let ways = self.visit(cx, vec![home; GAME_LEN]).await?;
        if ways.away == 0 {
            self.strayed.fetch_add(1, Ordering::Relaxed);
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

/// All of these messages, if they were answered.
fn sum<E: std::fmt::Display>(answers: Vec<Result<Way, E>>) -> Result<Ways, String> {
    let mut ways = Ways::default();
    for way in answers {
        ways.count(way.map_err(|error| error.to_string())?);
    }
    Ok(ways)
}
