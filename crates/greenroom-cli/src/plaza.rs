//! An application over several clusters: rooms where people chat, and boards of who wins. Each has one instance over all clusters and
//! is kept in a store that all of them reach. While clusters cannot hear each other there may be two instances: both go on, and
//! whichever saves second takes in what the first one saved before it says its own again.

use std::collections::{BTreeMap, VecDeque};

use greenroom::Builder;
use greenroom::prelude::*;
use serde::{Deserialize, Serialize};

/// Registers the kinds.
pub(crate) fn register(builder: Builder) -> Builder {
    builder.register::<Room>().register::<Board>()
}

/// Their names.
pub(crate) const NAMES: [&str; 2] = ["plaza_room", "plaza_board"];

/// A room on the plaza: what was said there last.
#[derive(Default, Serialize, Deserialize, Actor)]
pub(crate) struct Room {
    posts: VecDeque<String>,
}

#[actor(persistent, kind = "plaza_room")]
impl Room {
    /// Says something, and returns once it is kept.
    pub async fn post(&mut self, cx: &Cx, user: String, text: String) -> Result<(), StateError> {
        let mut text = text;
        text.truncate(text.floor_char_boundary(TEXT_LEN_MAX));
        let mut tries = 0;
        loop {
            self.posts.push_back(format!("{user}: {text}"));
            if self.posts.len() > POSTS_MAX {
                self.posts.pop_front();
            }
            match cx.save(self).await {
                // Another instance was first, and the room is as that one left it.
                Err(StateError::Conflict { .. }) if tries < TRIES_MAX => tries += 1,
                saved => return saved,
            }
        }
    }

    /// What was said last, as it is known here.
    pub async fn read(&self) -> Vec<String> {
        self.posts.iter().cloned().collect()
    }

    /// What was said last by anybody.
    pub async fn read_latest(&mut self, cx: &Cx) -> Result<Vec<String>, StateError> {
        cx.reload(self).await?;
        Ok(self.posts.iter().cloned().collect())
    }

    /// The node that the room is on, as it is known here.
    pub async fn node(&self, cx: &Cx) -> String {
        cx.node_name().to_owned()
    }
}

/// A board: points by player.
#[derive(Default, Serialize, Deserialize, Actor)]
pub(crate) struct Board {
    points: BTreeMap<String, u64>,
}

#[actor(persistent, kind = "plaza_board")]
impl Board {
    /// Counts points, and returns once they are kept.
    pub async fn won(&mut self, cx: &Cx, player: String, points: u64) -> Result<(), StateError> {
        let mut tries = 0;
        loop {
            if self.points.len() < PLAYERS_MAX || self.points.contains_key(&player) {
                let known = self.points.entry(player.clone()).or_default();
                *known = known.saturating_add(points);
            }
            match cx.save(self).await {
                Err(StateError::Conflict { .. }) if tries < TRIES_MAX => tries += 1,
                saved => return saved,
            }
        }
    }

    /// The first players by their points, with all that anybody has won.
    pub async fn top(&mut self, cx: &Cx) -> Result<Vec<(String, u64)>, StateError> {
        cx.reload(self).await?;
        let mut players: Vec<(String, u64)> = self.points.clone().into_iter().collect();
        players.sort_by_key(|(_, points)| std::cmp::Reverse(*points));
        players.truncate(TOP_LEN);
        Ok(players)
    }
}

const POSTS_MAX: usize = 50;
const TEXT_LEN_MAX: usize = 2000;
const PLAYERS_MAX: usize = 10_000;
const TOP_LEN: usize = 10;
/// Lost races after which a change is given up.
const TRIES_MAX: u32 = 5;
