//! The lobby: opens games, and closes them.

use std::time::Duration;

use futures_util::StreamExt;
use futures_util::future::join_all;
use futures_util::stream;
use greenroom::prelude::*;
use serde::{Deserialize, Serialize};
use tokio::time::Instant;

use super::clock::Clock;
use super::game::GameRef;
use super::player::PlayerRef;
use super::player_key;
use super::season::{Change, Season, Table};
use crate::cli::Graph;

/// Seats the players of a run.
#[derive(Default, Actor)]
pub struct Lobby {
    clock: Clock,
    season: Option<Season>,
    kept: Kept,
}

impl Lobby {
    /// One that goes by this clock.
    pub(super) fn by(clock: Clock) -> Self {
        Self { clock, ..Self::default() }
    }
}

/// What a lobby has seen.
#[derive(Clone, Default, Debug, Serialize, Deserialize)]
pub struct Kept {
    /// Games that were opened, those of the beginning not among them.
    pub opened: u64,
    /// Calls of games and players that failed.
    pub errors: u64,
    /// The first failure.
    pub complaint: Option<String>,
}

/// How a lobby works.
#[derive(Clone, Copy, Debug, Serialize, Deserialize)]
pub struct LobbyOrder {
    /// Players.
    pub players: u32,
    /// What games are drawn from.
    pub seed: u64,
    /// Times as fast as the world's.
    pub time_scale: f64,
    /// Who talks with whom: where it is not by games, there are none.
    pub graph: Graph,
}

#[actor(kind = "presence_lobby", idle = "1h")]
impl Lobby {
    /// Activates all players and seats them. How many games there are.
    pub async fn open(&mut self, cx: &Cx, order: LobbyOrder) -> Result<u64, String> {
        let mut season = Season::new(order.players, order.seed, order.time_scale);
        let players: Vec<u32> = (0..order.players).collect();
        let mut greeted = stream::iter(players)
            .map(|player| PlayerRef::of(cx, player_key(player)).sit(None).into_future())
            .buffer_unordered(AT_ONCE);
        while let Some(done) = greeted.next().await {
            done.map_err(|error| error.to_string())?;
        }
        drop(greeted);
        if order.graph != Graph::Games {
            return Ok(0);
        }
        let first = season.begin();
        let games = first.len() as u64;
        let kept = apply(cx, first).await;
        self.season = Some(season);
        kept.complaint.map_or(Ok(games), Err)
    }

    /// Lets games come and go from now on until `until_ns`, and returns at once.
    pub async fn start(&mut self, cx: &Cx, until_ns: u64) {
        LobbyRef::of(cx, cx.key()).run(until_ns).send();
    }

    /// Lets games come and go until `until_ns`.
    pub async fn run(&mut self, cx: &Cx, until_ns: u64) {
        let Some(season) = &mut self.season else { return };
        let begun = Instant::now();
        let left = Duration::from_nanos(until_ns.saturating_sub(self.clock.now_ns()));
        while let Some(next) = season.next_at().filter(|next| *next < left) {
            tokio::time::sleep(next.saturating_sub(begun.elapsed())).await;
            let seen = apply(cx, season.until(begun.elapsed())).await;
            self.kept.opened += seen.opened;
            self.kept.errors += seen.errors;
            self.kept.complaint = self.kept.complaint.take().or(seen.complaint);
        }
    }

    /// What it has seen, once the run is over.
    pub async fn kept(&mut self) -> Kept {
        self.kept.clone()
    }

    /// Times that the players were asked to act, all of them together.
    pub async fn requests(&mut self, cx: &Cx, players: u32) -> Result<u64, String> {
        let all: Vec<u32> = (0..players).collect();
        let mut asked = stream::iter(all)
            .map(|player| PlayerRef::of(cx, player_key(player)).requests().into_future())
            .buffer_unordered(AT_ONCE);
        let mut sum = 0;
        while let Some(requests) = asked.next().await {
            sum += requests.map_err(|error| error.to_string())?;
        }
        Ok(sum)
    }
}

/// Opens and closes games, several at once. Games that end do so before others begin: their players may be in those.
async fn apply(cx: &Cx, changes: Vec<Change>) -> Kept {
    let (closed, opened): (Vec<Change>, Vec<Change>) =
        changes.into_iter().partition(|change| matches!(change, Change::Close { .. }));
    let mut kept = Kept { opened: opened.len() as u64, ..Kept::default() };
    for step in [closed, opened] {
        let mut done = stream::iter(step).map(|change| seat(cx, change)).buffer_unordered(GAMES_AT_ONCE);
        while let Some(done) = done.next().await {
            if let Err(complaint) = done {
                kept.errors += 1;
                kept.complaint.get_or_insert(complaint);
            }
        }
    }
    kept
}

async fn seat(cx: &Cx, change: Change) -> Result<(), String> {
    match change {
        Change::Open { game, table } => {
            let game = game_of(cx, game);
            game.open(players_of(cx, table)).await.map_err(|error| error.to_string())?;
            sit(cx, table, Some(game)).await
        }
        Change::Close { game, table } => {
            sit(cx, table, None).await?;
            game_of(cx, game).close().await.map_err(|error| error.to_string())
        }
    }
}

async fn sit(cx: &Cx, table: Table, game: Option<GameRef>) -> Result<(), String> {
    let calls = players_of(cx, table).into_iter().map(|player| player.sit(game.clone()).into_future());
    join_all(calls).await.into_iter().collect::<Result<Vec<()>, _>>().map(|_| ()).map_err(|error| error.to_string())
}

fn players_of(cx: &Cx, table: Table) -> Vec<PlayerRef> {
    table.iter().map(|player| PlayerRef::of(cx, player_key(*player))).collect()
}

fn game_of(cx: &Cx, game: u64) -> GameRef {
    GameRef::of(cx, format!("game-{game}"))
}

/// Players that are called at once.
const AT_ONCE: usize = 256;
/// Games that are opened or closed at once.
const GAMES_AT_ONCE: usize = 32;
