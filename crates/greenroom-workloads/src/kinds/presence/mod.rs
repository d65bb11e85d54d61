//! Presence (ActOp §6.1): players, and games of eight of them that end after a while. What a player does his game hears, and
//! tells each of its players.
//!
//! The actors find out themselves how far their messages go, so that it is seen alike with an optimiser and without one.

pub mod client;
pub mod clock;
pub mod game;
pub mod home;
pub mod lobby;
pub mod player;
mod season;

use std::hash::{DefaultHasher, Hash, Hasher};
use std::ops::AddAssign;
use std::sync::atomic::{AtomicU64, Ordering};

use greenroom::{Builder, Cx};
use serde::{Deserialize, Serialize};

use self::clock::Clock;

/// Registers the kinds of presence.
pub fn register(builder: Builder) -> Builder {
    register_by(builder, Clock::default())
}

/// The same, where clients and lobbies go by this clock.
pub(crate) fn register_by(builder: Builder, clock: Clock) -> Builder {
    builder
        .register_with(move |_| client::Client::by(clock))
        .register::<game::Game>()
        .register::<home::Home>()
        .register_with(move |_| lobby::Lobby::by(clock))
        .register::<player::Player>()
}

/// Players of a game.
pub const GAME_LEN: usize = 8;

/// Where an actor's turn runs.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct Spot {
    node: u64,
    thread: u64,
}

impl Spot {
    /// Where the turn of `cx` runs.
    pub(crate) fn of(cx: &Cx) -> Self {
        let mut name = DefaultHasher::new();
        cx.node_name().hash(&mut name);
        Self { node: name.finish(), thread: THREAD.with(|thread| *thread) }
    }

    /// How far a message from here to `there` goes.
    pub(crate) fn way(self, there: Self) -> Way {
        match self {
            _ if self.node != there.node => Way::Away,
            _ if self.thread != there.thread => Way::Beside,
            _ => Way::Near,
        }
    }
}

/// How far a message goes.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub enum Way {
    /// It stays on its shard.
    Near,
    /// To another shard of its node.
    Beside,
    /// To another node.
    Away,
}

/// Messages by how far they go.
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug, Serialize, Deserialize)]
pub struct Ways {
    /// On one shard.
    pub near: u64,
    /// From shard to shard.
    pub beside: u64,
    /// From node to node.
    pub away: u64,
}

impl Ways {
    /// Counts a call and its answer.
    pub(crate) fn count(&mut self, way: Way) {
        *match way {
            Way::Near => &mut self.near,
            Way::Beside => &mut self.beside,
            Way::Away => &mut self.away,
        } += 2;
    }

    /// All of them.
    pub fn messages(&self) -> u64 {
        self.near + self.beside + self.away
    }
}

impl AddAssign for Ways {
    fn add_assign(&mut self, other: Self) {
        self.near += other.near;
        self.beside += other.beside;
        self.away += other.away;
    }
}

/// The key of a player.
pub(crate) fn player_key(player: u32) -> String {
    format!("player-{player}")
}

/// The key of a home.
pub(crate) fn home_key(home: u32) -> String {
    format!("home-{home}")
}

thread_local! {
    /// A number that no other thread of this process has.
    static THREAD: u64 = {
        static NEXT: AtomicU64 = AtomicU64::new(0);
        NEXT.fetch_add(1, Ordering::Relaxed)
    };
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_message_is_away_by_its_node_and_beside_by_its_thread() {
        let here = Spot { node: 1, thread: 1 };
        let mut ways = Ways::default();
        for there in [here, Spot { thread: 2, ..here }, Spot { node: 2, ..here }] {
            ways.count(here.way(there));
        }
        assert_eq!(ways, Ways { near: 2, beside: 2, away: 2 });
    }
}
