//! Who plays with whom, and until when.

use std::cmp::Reverse;
use std::collections::BinaryHeap;
use std::time::Duration;

use super::GAME_LEN;
use crate::dice::Dice;

/// Games come and go: each lives for 20 to 30 minutes, and its players wait with others who are idle, one in a hundred, before
/// they are drawn for another one.
pub(super) struct Season {
    dice: Dice,
    /// Ends of games, the next one first, and who is in them.
    games: BinaryHeap<Reverse<(Duration, u64, Table)>>,
    idle: Vec<u32>,
    idle_len: usize,
    /// Times as fast as the world's.
    time_scale: f64,
    next: u64,
}

/// The players of a game.
pub(super) type Table = [u32; GAME_LEN];

/// What happens in a season.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Change {
    /// A game begins.
    Open {
        /// Its number, which no other one has.
        game: u64,
        /// Who plays.
        table: Table,
    },
    /// A game ends.
    Close {
        /// Its number.
        game: u64,
        /// Who has played.
        table: Table,
    },
}

impl Season {
    /// A season of players who all wait.
    pub(super) fn new(players: u32, seed: u64, time_scale: f64) -> Self {
        let idle_len = (players / 100) as usize;
        let idle = (0..players).collect();
        Self { dice: Dice::new(seed), games: BinaryHeap::new(), idle, idle_len, time_scale, next: 0 }
    }

    /// The first games, at time 0. They have been going on for a while: each ends after a part of its life.
    pub(super) fn begin(&mut self) -> Vec<Change> {
        let mut changes = Vec::new();
        while let Some(change) = self.open(Duration::ZERO, true) {
            changes.push(change);
        }
        changes
    }

    /// When the next game ends.
    pub(super) fn next_at(&self) -> Option<Duration> {
        self.games.peek().map(|Reverse((end, ..))| *end)
    }

    /// What happens up to `now`, since the last time that it was asked.
    pub(super) fn until(&mut self, now: Duration) -> Vec<Change> {
        let mut changes = Vec::new();
        while self.next_at().is_some_and(|end| end <= now) {
            let Some(Reverse((_, game, table))) = self.games.pop() else { break };
            self.idle.extend(table);
            changes.push(Change::Close { game, table });
            changes.extend(self.open(now, false));
        }
        changes
    }

    /// A game of players who are drawn, if enough of them wait.
    fn open(&mut self, now: Duration, is_under_way: bool) -> Option<Change> {
        if self.idle.len() < self.idle_len + GAME_LEN {
            return None;
        }
        let table = std::array::from_fn(|_| {
            let drawn = self.dice.below(self.idle.len() as u64) as usize;
            self.idle.swap_remove(drawn)
        });
        let whole = LIFE_MIN.mul_f64((1.0 + self.dice.part() / 2.0) / self.time_scale);
        let life = if is_under_way { whole.mul_f64(self.dice.part()) } else { whole };
        let game = self.next;
        self.next += 1;
        self.games.push(Reverse((now + life, game, table)));
        Some(Change::Open { game, table })
    }
}

/// The shortest life of a game.
const LIFE_MIN: Duration = Duration::from_secs(20 * 60);

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;

    #[test]
    fn nobody_is_in_two_games_at_once_and_games_go_on_for_ever() {
        let mut season = Season::new(1000, 7, 60.0);
        let mut seated = BTreeSet::new();
        let mut games = BTreeSet::new();
        let mut apply = |changes: Vec<Change>| {
            for change in changes {
                match change {
                    Change::Open { game, table } => {
                        assert!(games.insert(game), "game {game} begins twice");
                        table.iter().for_each(|player| assert!(seated.insert(*player), "{player} is in two games"));
                    }
                    Change::Close { game, table } => {
                        assert!(games.remove(&game));
                        table.iter().for_each(|player| assert!(seated.remove(player)));
                    }
                }
            }
            (games.len(), seated.len())
        };
        assert_eq!(apply(season.begin()), (123, 984), "ten wait, and six more who make no game");
        let mut ended = 0;
        for second in 1..=120 {
            let changes = season.until(Duration::from_secs(second));
            ended += changes.iter().filter(|change| matches!(change, Change::Close { .. })).count();
            assert_eq!(apply(changes), (123, 984), "second {second}");
        }
        // Lives are of 20 to 30 seconds: in two minutes four to six of each table.
        assert!((123 * 4..=123 * 6).contains(&ended), "{ended}");
    }

    #[test]
    fn a_season_is_its_seeds() {
        let of = |seed| {
            let mut season = Season::new(100, seed, 1.0);
            let first = season.begin();
            (first, season.until(Duration::from_secs(1000)))
        };
        assert_eq!(of(3), of(3));
        assert_ne!(of(3), of(4));
    }
}
