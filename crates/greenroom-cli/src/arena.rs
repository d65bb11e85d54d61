//! The demo's arena: matches of ten players who meet others after a while, with prizes, letters and talk in the halls.

use std::collections::{BTreeMap, VecDeque};
use std::ops::AddAssign;

use futures_util::future::join_all;
use greenroom::Builder;
use greenroom::prelude::*;
use serde::{Deserialize, Serialize};

use crate::kinds::ChatRoomRef;
use crate::wallet::WalletRef;

/// Registers the kinds.
pub(crate) fn register(builder: Builder) -> Builder {
    builder.register::<Arena>().register::<Match>().register::<Player>().register::<Inbox>()
}

/// Their names.
pub(crate) const NAMES: [&str; 4] = ["arena", "match", "player", "inbox"];

/// Matches that are played at once, each by [`SEATS`] players.
pub(crate) const MATCHES: u32 = 2000;

/// What came of some matches.
#[derive(Clone, Copy, Default, Serialize, Deserialize)]
pub(crate) struct Played {
    /// Calls and messages of actors to actors.
    pub(crate) calls: u64,
    /// Those that failed.
    pub(crate) failed: u64,
}

impl Played {
    /// Counts a call, and gives its answer if there is one.
    fn count<T, E>(&mut self, answer: Result<T, E>) -> Option<T> {
        self.calls += 1;
        self.failed += u64::from(answer.is_err());
        answer.ok()
    }
}

impl AddAssign for Played {
    fn add_assign(&mut self, other: Self) {
        self.calls += other.calls;
        self.failed += other.failed;
    }
}

/// The arena's clock on each node: lets matches be played.
#[derive(Default, Actor)]
pub(crate) struct Arena;

#[actor(workers = 16)]
impl Arena {
    /// Lets `count` matches from `first` on be played once. `round` says how often each of them was played before; with `scatter`, nodes'
    /// names, the players go there by chance instead.
    pub async fn play(&self, cx: &Cx, first: u32, count: u32, round: u64, scatter: Vec<String>) -> Played {
        let numbers = (first..MATCHES).take(count as usize);
        let matches = numbers.map(|number| MatchRef::of(cx, number).play(number, round, scatter.clone()).into_future());
        let mut all = Played::default();
        for answer in join_all(matches).await {
            if let Some(played) = all.count(answer) {
                all += played;
            }
        }
        all
    }
}

/// A match: asks each of its players for his points in turn, until its season ends and the best one gets a prize.
#[derive(Default, Serialize, Deserialize, Actor)]
pub(crate) struct Match {
    season: u64,
    points: BTreeMap<u32, u64>,
}

#[actor(migrate)]
impl Match {
    /// Plays once more.
    pub async fn play(&mut self, cx: &Cx, number: u32, round: u64, scatter: Vec<String>) -> Played {
        let mut played = Played::default();
        let season = season(number, round);
        if season != self.season {
            played += self.end(cx, number).await;
            *self = Self { season, points: BTreeMap::new() };
        }
        if scatter.is_empty() {
            let turns = seats(number, season).map(async |player| (player, PlayerRef::of(cx, player).play().await));
            for (player, points) in join_all(turns).await {
                *self.points.entry(player).or_default() += played.count(points).unwrap_or_default();
            }
        } else {
            for player in seats(number, season) {
                let node = &scatter[mixed(player, round) as usize % scatter.len()];
                PlayerRef::of(cx, player).go(node).send();
                played.calls += 1;
            }
        }
        played
    }

    /// Points of its players.
    pub async fn points(&self) -> BTreeMap<u32, u64> {
        self.points.clone()
    }

    /// Gives the best player a prize, and tells him and those in the hall.
    async fn end(&self, cx: &Cx, number: u32) -> Played {
        let mut played = Played::default();
        let Some((winner, points)) = self.points.iter().max_by_key(|(_, points)| **points) else { return played };
        let hall = number / MATCHES_A_HALL;
        let told = format!("player {winner} wins match {number} with {points} points");
        InboxRef::of(cx, *winner).deliver(told.as_str()).send();
        played.calls += 1;
        let said = ChatRoomRef::of(cx, format!("hall-{hall}")).post("herald", told).await;
        played.count(said);
        let paid = WalletRef::of(cx, format!("hall-{hall}")).pay("prize", winner.to_string(), PRIZE).await;
        played.count(paid);
        played
    }
}

/// A player: is asked for his points by the match that he is in.
#[derive(Default, Serialize, Deserialize, Actor)]
pub(crate) struct Player {
    turns: u32,
}

#[actor(migrate)]
impl Player {
    /// Throws the dice.
    pub async fn play(&mut self) -> u64 {
        self.turns = self.turns.wrapping_add(1);
        u64::from(mixed(self.turns, 0) % 6) + 1
    }

    /// Goes to another node, if there is one of that name.
    pub async fn go(&mut self, cx: &Cx, node: String) {
        // He stays where there is none.
        let _ = cx.migrate_to(&node);
    }

    /// How often he has played.
    pub async fn turns(&self) -> u32 {
        self.turns
    }
}

/// A player's inbox: the last letters.
#[derive(Default, Serialize, Deserialize, Actor)]
pub(crate) struct Inbox {
    letters: VecDeque<String>,
}

#[actor(migrate)]
impl Inbox {
    /// Takes a letter.
    pub async fn deliver(&mut self, text: String) {
        self.letters.push_back(text);
        if self.letters.len() > LETTERS_MAX {
            self.letters.pop_front();
        }
    }

    /// The last letters.
    pub async fn read(&self) -> Vec<String> {
        self.letters.iter().cloned().collect()
    }
}

/// The season that a match is in: all of a hall change at once, and one hall after the other.
fn season(number: u32, round: u64) -> u64 {
    let hall = u64::from(number / MATCHES_A_HALL);
    (round + hall * ROUNDS_A_SEASON / u64::from(MATCHES / MATCHES_A_HALL)) / ROUNDS_A_SEASON
}

/// Who plays in a match: nobody is in two of one season, and who were in one are apart in the next.
fn seats(number: u32, season: u64) -> impl Iterator<Item = u32> {
    let (hall, place) = (number / MATCHES_A_HALL, u64::from(number % MATCHES_A_HALL));
    (0..SEATS).map(move |seat| {
        let row = (place + u64::from(seat) * season) % u64::from(MATCHES_A_HALL);
        (hall * MATCHES_A_HALL + row as u32) * SEATS + seat
    })
}

/// A number that looks like chance, and is the same for the same two.
fn mixed(one: u32, other: u64) -> u32 {
    let mixed = (u64::from(one) << 32 ^ other).wrapping_add(1).wrapping_mul(0x9E37_79B9_7F4A_7C15);
    ((mixed ^ mixed >> 29).wrapping_mul(0xBF58_476D_1CE4_E5B9) >> 32) as u32
}

const SEATS: u32 = 10;
const MATCHES_A_HALL: u32 = 100;
/// Five minutes at one round each five seconds.
const ROUNDS_A_SEASON: u64 = 60;
const PRIZE: i64 = 10;
const LETTERS_MAX: usize = 20;

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;

    #[test]
    fn in_each_season_every_player_is_in_one_match() {
        for season in [0, 1, 7, 100, 12_345] {
            let all: Vec<u32> = (0..MATCHES).flat_map(|number| seats(number, season)).collect();
            let each: BTreeSet<u32> = all.iter().copied().collect();
            assert_eq!((all.len(), each.len()), (20_000, 20_000), "season {season}");
            assert_eq!(each.last(), Some(&19_999));
        }
    }

    #[test]
    fn who_were_together_are_apart_in_the_next_season() {
        let together: BTreeSet<u32> = seats(321, 3).collect();
        for number in 300..400 {
            assert!(seats(number, 4).filter(|player| together.contains(player)).count() <= 1, "match {number}");
        }
    }

    #[test]
    fn halls_change_one_after_the_other() {
        let changes: BTreeSet<u64> = (0..MATCHES)
            .step_by(MATCHES_A_HALL as usize)
            .map(|number| (0..).find(|round| season(number, *round) != season(number, round + 1)).expect("it ends"))
            .collect();
        assert_eq!(changes.len(), 20);
        assert_eq!(season(0, 0), season(99, ROUNDS_A_SEASON - 1));
    }
}
