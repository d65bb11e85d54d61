//! Flows: where the last messages of hot actors went, and who wishes to be elsewhere (after ActOp, EuroSys '16, §4).
//!
//! One [`Flows`] a shard, a row for each hot activation. A sample takes 1/N off each part of its actor's row and adds 1/N to the
//! part of its place: so parts speak of the last N messages, not of some seconds, and slow actors are judged like fast ones. An
//! actor wishes to be where a third more of them went than where it is, and is told all such places, as the best may be full.
//!
//! **Memory is patience.** N begins at what the kind has learnt. The wish after a move judges that move, once: one that has
//! saved what it cost halves N, another doubles it, and then N samples must be seen before a wish counts. So who has a new
//! partner follows after a few messages, and who is torn between two places stays.
//!
//! A row knows the parts of four single places beside its own shard, the other shards together, and who is no actor and on its node; these may be other
//! shards of the node, other nodes and clusters. That is enough, as whoever has a wish has at least a third for it.
//!
//! [`gap`] says which messages are sampled, [`budget`] how many, and [`sets`] finds actors that are to move together. All of it is advice: what is
//! counted twice, late or not at all costs time and never safety.
//!
//! Pure: no clock, no I/O, no randomness. Nothing is allocated for a sample of a known kind.

pub mod budget;
pub mod gap;
mod patience;
mod place;
mod row;
pub mod sets;
#[cfg(test)]
mod tests;
mod wishes;

use std::time::Duration;

use self::budget::Savings;
use self::patience::Kinds;
pub use self::patience::{Cost, MEMORY_MAX, MEMORY_MIN};
pub use self::place::{Level, PLACES_MAX, Place};
pub use self::row::{Known, PARTS};
use self::row::{Row, pairs};
pub use self::wishes::{GAIN_MIN, Judged, Wish};
use crate::heavy_edges::decay::{Decay, a_second};
use crate::heavy_edges::part;
use crate::mix::mix;
use crate::time::Timestamp;
use crate::ways::{WAYS, Ways};

/// A kind of actor, by a small number that its node gives it.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug, Default)]
pub struct KindId(pub u16);

/// A message that was sampled, as one of its two ends sees it.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct Sample {
    /// The hash of the actor at this end, which is active on this shard.
    pub actor: u64,
    /// Its kind.
    pub kind: KindId,
    /// Where the other end is.
    pub place: Place,
    /// How many messages it stands for: the gap's weight, times what one such message weighs.
    pub weight: f32,
}

/// Where the messages of one shard's hot actors go.
#[derive(Clone, Debug)]
pub struct Flows {
    rows: Ways<Row>,
    decay: Decay,
    kinds: Kinds,
    judged: Judged,
    savings: Savings,
    /// The set that [`Flows::look_on`] looks at next.
    next: usize,
    /// Messages that one sample stands for at most.
    grain: f32,
    rules: Rules,
}

/// How an actor stands, for people.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct Standing {
    /// Its hash.
    pub actor: u64,
    /// What is known of it.
    pub known: Known,
    /// Samples since it came to this shard or was first seen; 65,535 for all that are more.
    pub samples: u16,
    /// Samples that must come before a wish of it counts.
    pub wait: u16,
}

/// Which rules are in force; all of them, unless a test says otherwise.
#[doc(hidden)]
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub struct Rules {
    /// Parts are of the last N messages, not of the last half minutes (O16).
    pub by_messages: bool,
    /// Moves are judged, and N changes (O18).
    pub judged: bool,
    /// An actor has a wish for each place that is better, not for the best one alone (O20).
    pub every_place: bool,
    /// No sample alone is what an actor remembers, however many messages it stands for (O25).
    pub by_grain: bool,
}

impl Default for Rules {
    fn default() -> Self {
        Self { by_messages: true, judged: true, every_place: true, by_grain: true }
    }
}

impl Flows {
    /// A table without rows, with room for `capacity` of them: the next power of two within [`ROWS_MIN`] and [`ROWS_MAX`],
    /// 72 bytes each, all allocated here.
    pub fn new(capacity: usize, now: Timestamp) -> Self {
        Self::with_rules(capacity, now, Rules::default())
    }

    /// The same, under other rules.
    #[doc(hidden)]
    pub fn with_rules(capacity: usize, now: Timestamp, rules: Rules) -> Self {
        let rows = Ways::new(capacity.clamp(ROWS_MIN, ROWS_MAX).next_power_of_two());
        let (kinds, judged, savings) = Default::default();
        Self { rows, decay: Decay::new(now), kinds, judged, savings, next: 0, grain: 1.0, rules }
    }

    /// How many rows there is room for.
    pub fn capacity(&self) -> usize {
        self.rows.capacity()
    }

    /// Makes room for twice as many rows, if that is not more than [`ROWS_MAX`]. Goes through all rows.
    pub fn grow(&mut self) {
        if self.capacity() < ROWS_MAX {
            self.rows = self.rows.grown(|row, sets| set_of(row.actor, sets));
        }
    }

    /// What an actor of this kind carries that says nothing else of itself, as a cost. Rows that there are keep theirs.
    pub fn set_cost(&mut self, kind: KindId, cost: Cost) {
        self.kinds.set_cost(kind, cost);
    }

    /// An activation of this kind takes so long where it loads something: that is in the price of all moves of its actors from now on.
    pub fn set_loading(&mut self, kind: KindId, activation: Duration) {
        self.kinds.set_loading(kind, activation);
    }

    /// The memory that actors of this kind begin with now.
    pub fn memory(&self, kind: KindId) -> f32 {
        self.kinds.memory(kind, self.kinds.cost(kind))
    }

    /// How moves were judged, since this was made.
    pub fn judged(&self) -> Judged {
        self.judged
    }

    /// What was counted and saved since this was last asked.
    pub fn take_savings(&mut self) -> Savings {
        std::mem::take(&mut self.savings)
    }

    /// Samples stand for so many messages at most from now on: all of this shard, near and far, which are sampled unlike each other.
    pub fn set_grain(&mut self, grain: u32) {
        self.grain = grain.max(1) as f32;
    }

    /// Counts a sample. An actor without a row gets one; if its set is full, it takes the coldest one's by the share of its
    /// weight, and else the coldest has that weight too, so that sums of rates stay right in the mean. `draw` is a random word
    /// of its own.
    ///
    /// # Panics
    /// If the weight is not a positive number.
    pub fn sample(&mut self, sample: &Sample, now: Timestamp, draw: u64) {
        let Sample { actor, kind, place, weight } = *sample;
        assert!(weight > 0.0 && weight.is_finite(), "a sample has no weight: {weight}");
        let factor = self.factor(now);
        let scaled = (f64::from(weight) * factor) as f32;
        let rules = self.rules;
        self.grain = self.grain.max(weight);
        self.savings.counted += f64::from(weight);
        let least = self.least();
        let Some(row) = self.row_or_coldest(actor, kind, scaled, draw) else { return };
        let by = match rules.by_messages {
            true => -(weight * (-1.0 / row.memory.max(least)).ln_1p()).exp_m1(),
            false => scaled / row.rate,
        };
        row.shift(place, by, mix(draw));
        row.samples = row.samples.saturating_add(1);
        row.wait = row.wait.saturating_sub(1);
        if let Some(level) = row.from.level() {
            let is_here = place == Place::NEAR || level == Level::Nodes && place.level() != Some(Level::Nodes);
            let saved = if is_here { weight } else { 0.0 } - if place == row.from { weight } else { 0.0 };
            row.profit += saved;
            self.savings.saved += f64::from(saved);
        }
    }

    /// Counts a turn of an actor that was sampled: it took so much CPU, turns within it left out, and stands for `weight` turns.
    pub fn ran(&mut self, actor: u64, cpu: Duration, weight: f32, now: Timestamp) {
        let cores = (cpu.as_secs_f64() * f64::from(weight) * self.factor(now)) as f32;
        if let Some(row) = self.row_mut(actor) {
            row.cpu += cores;
        }
    }

    /// An actor says itself what it carries, as a cost.
    pub fn costs(&mut self, actor: u64, cost: Cost) {
        let set = self.set_of(actor);
        let Self { rows, kinds, .. } = self;
        if let Some(row) = rows.set_mut(set).iter_mut().find(|row| row.is(actor)) {
            row.cost = cost.0;
            row.memory = patience::bounded(row.memory, kinds.price(row.kind, cost));
        }
    }

    /// Judges the last move of an actor if it wishes to move again, and appends its wishes to `out`, the best first.
    pub fn wishes(&mut self, actor: u64, now: Timestamp, out: &mut Vec<Wish>) {
        let factors = (1.0 / self.factor(now), self.least());
        let set = self.set_of(actor);
        let Self { rows, kinds, judged, rules, .. } = self;
        if let Some(row) = rows.set_mut(set).iter_mut().find(|row| row.is(actor)) {
            wishes::consider(row, factors, kinds, judged, *rules, out);
        }
    }

    /// The same for all actors with a row in the next `rows` places of the table. The table is looked at from its beginning
    /// again when its end was reached; whether it was.
    pub fn look_on(&mut self, rows: usize, now: Timestamp, out: &mut Vec<Wish>) -> bool {
        let factors = (1.0 / self.factor(now), self.least());
        let Self { rows: table, kinds, judged, rules, next, .. } = self;
        let end = (*next + rows.div_ceil(WAYS)).min(table.sets());
        table.visit(*next..end, |row| wishes::consider(row, factors, kinds, judged, *rules, out));
        let is_all = end == table.sets();
        *next = if is_all { 0 } else { end };
        is_all
    }

    /// An actor leaves this shard: what is known of it, to go along, and its row is free. [`Known::from_shard`] and
    /// [`Known::from_node`] say the same in the words of where it goes.
    pub fn moved(&mut self, actor: u64, now: Timestamp) -> Option<Known> {
        let factor = 1.0 / self.factor(now);
        let set = self.set_of(actor);
        let Self { rows, kinds, .. } = self;
        let row = rows.set_mut(set).iter_mut().find(|row| row.is(actor))?;
        let known = known(row, kinds, factor);
        *row = Row::default();
        Some(known)
    }

    /// An actor has come to this shard from the place `from`: from now on it is counted what that saves. Its row takes the
    /// coldest one's place as if by a sample of its rate. `draw` is a random word of its own.
    ///
    /// # Panics
    /// If `from` is [`Place::NEAR`].
    pub fn arrived(&mut self, actor: u64, known: &Known, from: Place, now: Timestamp, draw: u64) {
        assert_ne!(from, Place::NEAR, "an actor comes from where it is");
        let factor = self.factor(now);
        let sum = |a_second_now: f64| {
            let sum = a_second_now.clamp(0.0, RATE_MAX) / a_second(1.0) * factor;
            if sum.is_nan() { 0.0 } else { sum as f32 }
        };
        let (rate, cpu) = (sum(known.rate).max(factor as f32), sum(known.cpu));
        let learnt = self.kinds.memory(known.kind, known.cost);
        let Some(row) = self.row_or_coldest(actor, known.kind, rate, draw) else { return };
        // A move between nodes that had no time to pay is judged before one between shards.
        let pending = known.unjudged.filter(|(old, _)| from.level() == Some(Level::Shards) && *old != Place::NEAR);
        let (from, profit) = pending.unwrap_or((from, 0.0));
        *row = Row { rate: row.rate, cpu, from, profit, ..known.as_row(actor) };
        if known.memory <= 0.0 {
            row.memory = learnt;
        }
    }

    /// A partner of an actor has moved: `share` of the actor's messages, as far as they went to `from`, count as gone to `to`.
    pub fn carry_over(&mut self, actor: u64, share: f32, from: Place, to: Place) {
        debug_assert!((0.0..=1.0).contains(&share), "more than all messages are carried over: {share}");
        if let Some(row) = self.row_mut(actor) {
            row.carry_over(share, from, to);
        }
    }

    /// What an actor is thought to have at a place is not there.
    pub fn clear(&mut self, actor: u64, place: Place) {
        if let Some(row) = self.row_mut(actor) {
            row.clear(place);
        }
    }

    /// A place is no more: nobody wishes to be there. Goes through all rows.
    pub fn lost(&mut self, place: Place) {
        self.rows.visit(0..self.rows.sets(), |row| row.clear(place));
    }

    /// An actor has ended.
    pub fn forget(&mut self, actor: u64) {
        if let Some(row) = self.row_mut(actor) {
            *row = Row::default();
        }
    }

    /// How an actor stands, if it has a row.
    pub fn standing(&self, actor: u64, now: Timestamp) -> Option<Standing> {
        let row = self.rows.set(self.set_of(actor)).iter().find(|row| row.is(actor))?;
        Some(standing(row, &self.kinds, 1.0 / self.decay.factor(now)))
    }

    /// How all actors with rows stand.
    pub fn standings(&self, now: Timestamp) -> impl Iterator<Item = Standing> {
        let factor = 1.0 / self.decay.factor(now);
        self.rows.entries().map(move |row| standing(row, &self.kinds, factor))
    }

    /// Whether some actor has so large a part of its messages with one other node or cluster that it, or a set with it, might wish
    /// to be there. Goes through all rows.
    pub fn is_torn(&self) -> bool {
        let mut far = self.rows.entries().flat_map(Row::away).filter(|(place, _)| place.level() == Some(Level::Nodes));
        far.any(|(_, part)| f64::from(part) > sets::GAIN_OF_FLOW)
    }

    /// Messages that any actor remembers, however few it began with.
    fn least(&self) -> f32 {
        if self.rules.by_grain { MEMORY_MIN * self.grain } else { 0.0 }
    }

    /// The row of an actor, which has this much more rate; a new one if there is room, or room is made.
    fn row_or_coldest(&mut self, actor: u64, kind: KindId, rate: f32, draw: u64) -> Option<&mut Row> {
        let set = self.set_of(actor);
        let rows = self.rows.set_to_fill(set);
        if let Some(known) = rows.iter().position(|row| row.is(actor)) {
            rows[known].rate += rate;
            return Some(&mut rows[known]);
        }
        let coldest = rows.iter_mut().min_by(|a, b| a.rate.total_cmp(&b.rate)).expect("a set has ways");
        coldest.rate += rate;
        if part(draw) * f64::from(coldest.rate) >= f64::from(rate) {
            return None;
        }
        *coldest = Row { rate: coldest.rate, ..Row::new(actor, kind, &self.kinds) };
        Some(coldest)
    }

    fn row_mut(&mut self, actor: u64) -> Option<&mut Row> {
        let set = self.set_of(actor);
        self.rows.set_mut(set).iter_mut().find(|row| row.is(actor))
    }

    fn set_of(&self, actor: u64) -> usize {
        set_of(actor, self.rows.sets())
    }

    /// How much a weight of `now` is worth at the origin, which is brought up to date about once in half an hour.
    fn factor(&mut self, now: Timestamp) -> f64 {
        if let Some(factor) = self.decay.renew(now) {
            self.rows.visit(0..self.rows.sets(), |row| {
                row.rate *= factor as f32;
                row.cpu *= factor as f32;
                if row.rate < FADED {
                    *row = Row::default();
                }
            });
        }
        self.decay.factor(now)
    }
}

fn set_of(actor: u64, sets: usize) -> usize {
    mix(actor) as usize & (sets - 1)
}

fn standing(row: &Row, kinds: &Kinds, factor: f64) -> Standing {
    let Row { actor, samples, wait, .. } = *row;
    Standing { actor, known: known(row, kinds, factor), samples, wait }
}

fn known(row: &Row, kinds: &Kinds, factor: f64) -> Known {
    let now = |sum: f32| a_second(f64::from(sum) * factor);
    Known {
        kind: row.kind,
        cost: Cost(row.cost),
        loading: kinds.loading(row.kind),
        memory: row.memory,
        rate: now(row.rate),
        cpu: now(row.cpu),
        near: row.near,
        beside: row.beside,
        outside: row.outside,
        parts: pairs(row),
        unjudged: (row.from != Place::NEAR).then_some((row.from, row.profit)),
    }
}

/// Rows at least that a table has room for.
pub const ROWS_MIN: usize = 8 * 1024;
/// Rows at most that a table has room for.
pub const ROWS_MAX: usize = 256 * 1024;
/// Messages below which an actor is not hot at all, when the table is gone through.
const FADED: f32 = 1e-6;
/// More comes to no actor in a second, whatever another node says.
const RATE_MAX: f64 = 1e9;
