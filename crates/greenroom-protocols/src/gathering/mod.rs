//! Gathering: the actors of one node come to the shards of those that they talk with (ActOp §4.2, within a node).
//! Pure: no clock, no I/O, no randomness.
//!
//! One [`Gathering`] a node plays all of its shards: nothing is asked or agreed, so there is one choice a second. It is the
//! [exchange](crate::exchange)'s: the highest score per cost first, after each of which the scores of its partners change; and
//! what it decides late or wrongly costs time and never safety.
//!
//! **Balance** is by the time that shards are busy. Locality fills a shard up to half of its time whatever the others do, and
//! beyond that up to the mean and [`TOLERANCE`], and to a difference of that from who gives. Balance itself acts where a shard
//! is busy for more than half of its time, and twice the tolerance more than another, back to the tolerance: by actors, and
//! groups of those that talk mostly with each other, whose messages are farther by less than a third. Who would wish to
//! come back stays.

mod groups;
#[cfg(test)]
mod tests;

use std::cmp::Reverse;
use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::time::Duration;

use self::groups::groups;
use crate::exchange::{wishes, worth};
use crate::time::Timestamp;

/// An actor of the node that may go to another of its shards. Flows are messages a minute.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct Actor {
    /// Names it.
    pub hash: u64,
    /// Where it is.
    pub shard: u16,
    /// All its messages.
    pub flow: u32,
    /// Those with actors of its shard.
    pub near: u32,
    /// Those with actors of other shards, each shard once.
    pub toward: Vec<(u16, u32)>,
    /// Whether so much was seen of it that a wish of its own counts. If not, it goes for balance alone.
    pub ready: bool,
    /// What its turns take: µs of CPU a second.
    pub cpu: u32,
    /// The actors that it talks with most, of any shard, and how much.
    pub edges: Vec<(u64, u32)>,
}

/// What is on a node's shards.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct Survey {
    /// How long each shard was busy of late, without spinning: µs a second, as a mean over the time since `since`.
    pub busy: Vec<u64>,
    /// When that was begun to be measured.
    pub since: Timestamp,
    /// The actors that may go: those that wish to, and all hot ones if [`is_uneven`] says so.
    pub actors: Vec<Actor>,
}

/// An actor is to go to another shard.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Order {
    /// The actor.
    pub hash: u64,
    /// Where it is.
    pub from: u16,
    /// Where it is to be.
    pub to: u16,
    /// Messages a minute that are nearer for it, less those that are farther.
    pub gain: i64,
}

/// What one node knows of the moves between its shards.
#[derive(Clone, Debug, Default)]
pub struct Gathering {
    /// The last moves, which are not yet in what is measured.
    moved: VecDeque<(Timestamp, Order, u32)>,
    rules: Rules,
}

/// Which rules are in force; all of them, unless a test says otherwise.
#[doc(hidden)]
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Rules {
    /// The scores of partners change with each choice (O2).
    pub scores_change: bool,
    /// Moves that are not measured yet count (O22).
    pub books: bool,
    /// Who would wish to come back stays (O19).
    pub stays: bool,
}

impl Default for Rules {
    fn default() -> Self {
        Self { scores_change: true, books: true, stays: true }
    }
}

/// Whether balance may want any actor of shards that are busy for so many µs a second each.
pub fn is_uneven(busy: &[u64]) -> bool {
    let (most, least) = (busy.iter().max(), busy.iter().min());
    most.zip(least).is_some_and(|(most, least)| *most > HALF && most - least > 2 * TOLERANCE)
}

impl Gathering {
    #[doc(hidden)]
    pub fn with_rules(rules: Rules) -> Self {
        Self { rules, ..Self::default() }
    }

    /// Who is to go where, in the order of choice: at most [`ORDERS_MAX`]. They are taken to have gone.
    pub fn choose(&mut self, now: Timestamp, survey: &Survey) -> Vec<Order> {
        self.moved.retain(|(at, ..)| *at >= survey.since);
        let mut board = Board::new(survey, self.rules);
        for (_, order, cpu) in self.moved.iter().filter(|_| self.rules.books) {
            board.shift(order.from, order.to, *cpu);
        }
        board.gather();
        board.even_out();
        let orders = board.orders;
        self.moved.extend(orders.iter().map(|(order, cpu)| (now, *order, *cpu)));
        orders.into_iter().map(|(order, _)| order).collect()
    }
}

/// The shards and their actors, while some go.
struct Board<'a> {
    actors: &'a [Actor],
    seats: BTreeMap<u64, usize>,
    /// What each actor has with each shard by what is chosen so far.
    parts: Vec<BTreeMap<u16, i64>>,
    at: Vec<u16>,
    gone: Vec<bool>,
    busy: Vec<i64>,
    /// Wishes, the best first: the actor and the shard.
    ranks: BTreeSet<(Reverse<i64>, usize, u16)>,
    orders: Vec<(Order, u32)>,
    rules: Rules,
}

impl<'a> Board<'a> {
    fn new(survey: &'a Survey, rules: Rules) -> Self {
        let shards = survey.busy.len() as u16;
        let here = |actor: &&Actor| actor.shard < shards;
        let actors = &survey.actors[..];
        let parts = actors.iter().map(|actor| {
            let toward = actor.toward.iter().filter(|(shard, _)| *shard < shards && *shard != actor.shard);
            let near = std::iter::once((actor.shard, i64::from(actor.near)));
            toward.map(|(shard, flow)| (*shard, i64::from(*flow))).chain(near).collect()
        });
        let mut board = Self {
            seats: actors.iter().enumerate().map(|(seat, actor)| (actor.hash, seat)).collect(),
            parts: parts.collect(),
            at: actors.iter().map(|actor| actor.shard).collect(),
            gone: actors.iter().map(|actor| !here(&actor)).collect(),
            busy: survey.busy.iter().map(|busy| i64::try_from(*busy).unwrap_or(i64::MAX / 4)).collect(),
            ranks: BTreeSet::new(),
            orders: Vec::new(),
            actors,
            rules,
        };
        (0..actors.len()).for_each(|seat| board.rank(seat, true));
        board
    }

    /// What an actor gains by being on `to`.
    fn gain(&self, seat: usize, to: u16) -> i64 {
        let part = |shard: u16| self.parts[seat].get(&shard).copied().unwrap_or_default();
        part(to) - part(self.at[seat])
    }

    /// Enters the wishes of an actor, or takes them out.
    fn rank(&mut self, seat: usize, enters: bool) {
        let actor = &self.actors[seat];
        if self.gone[seat] || !actor.ready {
            return;
        }
        let shards: Vec<u16> = self.parts[seat].keys().copied().filter(|shard| *shard != self.at[seat]).collect();
        for to in shards {
            let gain = self.gain(seat, to);
            let entry = (Reverse(worth(gain, COST)), seat, to);
            if !enters {
                self.ranks.remove(&entry);
            } else if wishes(gain, actor.flow) {
                self.ranks.insert(entry);
            }
        }
    }

    /// Brings actors to where they wish to be.
    fn gather(&mut self) {
        while self.orders.len() < ORDERS_MAX {
            let fits = |(_, seat, to): &&(Reverse<i64>, usize, u16)| self.fits(self.at[*seat], *to, self.cpu(&[*seat]));
            let Some(&(_, seat, to)) = self.ranks.iter().take(LOOK_AT_MAX).find(fits) else { return };
            self.go(seat, to);
        }
    }

    fn cpu(&self, seats: &[usize]) -> i64 {
        seats.iter().map(|seat| i64::from(self.actors[*seat].cpu)).sum()
    }

    /// Whether so much may go from one shard to another for locality.
    fn fits(&self, from: u16, to: u16, cpu: i64) -> bool {
        let (giver, taker) = (self.busy[usize::from(from)], self.busy[usize::from(to)]);
        taker + cpu <= HALF as i64 || cpu == 0 || self.evens(giver, taker, cpu)
    }

    /// Whether two shards are near enough afterwards, or nearer than they were.
    fn evens(&self, giver: i64, taker: i64, cpu: i64) -> bool {
        let tolerance = TOLERANCE as i64;
        let mean = self.busy.iter().sum::<i64>() / self.busy.len().max(1) as i64;
        taker + cpu <= taker.max(mean + tolerance) && taker - giver + 2 * cpu <= (taker - giver).max(tolerance)
    }

    fn shift(&mut self, from: u16, to: u16, cpu: u32) {
        if let Some(giver) = self.busy.get_mut(usize::from(from)) {
            *giver = (*giver - i64::from(cpu)).max(0);
        }
        if let Some(taker) = self.busy.get_mut(usize::from(to)) {
            *taker += i64::from(cpu);
        }
    }

    fn go(&mut self, seat: usize, to: u16) {
        let actors = self.actors;
        let (actor, from, gain) = (&actors[seat], self.at[seat], self.gain(seat, to));
        self.rank(seat, false);
        self.gone[seat] = true;
        self.at[seat] = to;
        self.shift(from, to, actor.cpu);
        self.orders.push((Order { hash: actor.hash, from, to, gain }, actor.cpu));
        if !self.rules.scores_change {
            return;
        }
        for (partner, flow) in self.edges_of(seat) {
            self.rank(partner, false);
            *self.parts[partner].entry(from).or_default() -= flow;
            *self.parts[partner].entry(to).or_default() += flow;
            self.rank(partner, true);
        }
    }

    /// The partners of an actor that are on the board, by what either of the two knows.
    fn edges_of(&self, seat: usize) -> Vec<(usize, i64)> {
        let actor = &self.actors[seat];
        let partners = actor.edges.iter().filter_map(|(partner, flow)| {
            let other = *self.seats.get(partner).filter(|other| **other != seat)?;
            let theirs =
                self.actors[other].edges.iter().find(|(hash, _)| *hash == actor.hash).map_or(0, |(_, flow)| *flow);
            Some((other, i64::from(theirs.max(*flow))))
        });
        partners.collect()
    }

    /// Takes load off shards that have much more to do than others.
    fn even_out(&mut self) {
        for _ in 0..self.busy.len() {
            let by_load = |shard: &u16| (self.busy[usize::from(*shard)], Reverse(*shard));
            let shards = 0..self.busy.len() as u16;
            let (Some(from), Some(to)) = (shards.clone().max_by_key(by_load), shards.min_by_key(by_load)) else {
                return;
            };
            let (most, least) = (self.busy[usize::from(from)], self.busy[usize::from(to)]);
            if most <= HALF as i64 || most - least <= 2 * TOLERANCE as i64 || !self.relieve(from, to) {
                return;
            }
        }
    }

    /// The same for two of them; whether anybody goes.
    fn relieve(&mut self, from: u16, to: u16) -> bool {
        let on_it: Vec<usize> =
            (0..self.actors.len()).filter(|seat| !self.gone[*seat] && self.at[*seat] == from).collect();
        let mut offered: Vec<(i64, Vec<usize>)> = Vec::new();
        for group in groups(self.actors, &on_it, &self.seats) {
            let (loss, cpu) = (self.loss(&group, to), self.cpu(&group));
            let flow: i64 = group.iter().map(|seat| i64::from(self.actors[*seat].flow)).sum();
            if cpu > 0 && (loss.saturating_mul(3) < flow || !self.rules.stays) {
                offered.push((worth(loss, cpu), group));
            }
        }
        offered.sort();
        let before = self.orders.len();
        for (_, group) in offered {
            let (giver, taker) = (self.busy[usize::from(from)], self.busy[usize::from(to)]);
            if giver - taker <= TOLERANCE as i64 || self.orders.len() + group.len() > ORDERS_MAX {
                break;
            }
            if self.evens(giver, taker, self.cpu(&group)) {
                group.into_iter().for_each(|seat| self.go(seat, to));
            }
        }
        self.orders.len() > before
    }

    /// The messages of a group that are farther once it is on `to`, less those that are nearer: with who is not in it.
    fn loss(&self, group: &[usize], to: u16) -> i64 {
        let inside = |seat: usize| {
            let within = self.edges_of(seat).into_iter().filter(|(other, _)| group.contains(other));
            within.map(|(_, flow)| flow).sum::<i64>()
        };
        group.iter().map(|seat| -self.gain(*seat, to) - inside(*seat)).sum()
    }
}

/// Load by which shards may differ, in µs of a second: 15 points.
pub const TOLERANCE: u64 = 150_000;
/// Load up to which a shard is filled whatever the others have to do, in µs of a second.
const HALF: u64 = 500_000;
/// Orders of one choice at most.
pub const ORDERS_MAX: usize = 2048;
/// Time over which a driver measures how busy shards are.
pub const MEASURED: Duration = Duration::from_secs(5);
/// What a move costs, in messages.
pub const COST: i64 = 3;
/// How many of the best wishes are looked at for one that the balance lets go.
const LOOK_AT_MAX: usize = 64;
