//! Who would do better elsewhere.

use super::patience::Kinds;
use super::row::Row;
use super::{Cost, KindId, Level, Place, Rules};
use crate::heavy_edges::decay::a_second;

/// An actor would do better at another place.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct Wish {
    /// Its hash.
    pub actor: u64,
    /// Its kind.
    pub kind: KindId,
    /// Where it wishes to be: another shard of its node, or another node or cluster.
    pub to: Place,
    /// How much of its last messages would be nearer, less what would be farther: from a third to 1.
    pub gain: f32,
    /// Messages a second.
    pub rate: f64,
    /// Cores that it keeps busy.
    pub cpu: f64,
    /// What the move costs.
    pub cost: Cost,
}

impl Wish {
    /// Messages a second that would be nearer.
    pub fn gain_a_second(&self) -> f64 {
        f64::from(self.gain) * self.rate
    }
}

/// How moves were judged.
#[derive(Clone, Copy, PartialEq, Debug, Default)]
pub struct Judged {
    /// Moves that have saved at least what they cost.
    pub good: u64,
    /// Moves that have not.
    pub bad: u64,
    /// Messages that all of them have saved together, less than nothing if they were far more often wrong than right.
    pub profit: f64,
}

/// Judges the last move of an actor that wishes to move again, then appends those of its wishes that count. `factor` turns
/// what is in the row into what it is now, and `least` is what any actor remembers.
pub(super) fn consider(
    row: &mut Row,
    (factor, least): (f64, f32),
    kinds: &mut Kinds,
    judged: &mut Judged,
    rules: Rules,
    out: &mut Vec<Wish>,
) {
    if wished(row).next().is_none() {
        return;
    }
    // A move between nodes is not judged by a wish for another shard before it has paid: it had no time to.
    let price = kinds.price(row.kind, Cost(row.cost));
    let is_early = row.from.level() == Some(Level::Nodes)
        && wished(row).all(|(place, _)| place.level() == Some(Level::Shards))
        && row.profit < price.0;
    if rules.judged && row.from != Place::NEAR {
        if is_early {
            if f32::from(row.samples) < row.memory {
                return;
            }
        } else {
            judge(row, (price, least), kinds, judged);
        }
    }
    if row.wait > 0 {
        return;
    }
    let before = out.len();
    out.extend(wished(row).map(|(to, gain)| {
        let level = to.level().expect("a wish is for another place");
        let (rate, cpu) = (a_second(f64::from(row.rate) * factor), a_second(f64::from(row.cpu) * factor));
        Wish { actor: row.actor, kind: row.kind, to, gain, rate, cpu, cost: price.at(level) }
    }));
    out[before..].sort_by(|a, b| b.gain.total_cmp(&a.gain).then(a.to.cmp(&b.to)));
    if !rules.every_place {
        out.truncate(before + 1);
    }
}

/// The places that have a third more of its messages than where it is, and how much more.
fn wished(row: &Row) -> impl Iterator<Item = (Place, f32)> + use<> {
    let (node, shard) = (row.here(Level::Nodes), row.here(Level::Shards));
    row.away().filter_map(move |(place, part)| {
        let here = if place.level() == Some(Level::Shards) { shard } else { node };
        (part - here >= GAIN_MIN).then_some((place, part - here))
    })
}

fn judge(row: &mut Row, (price, least): (Cost, f32), kinds: &mut Kinds, judged: &mut Judged) {
    let level = row.from.level().expect("it was at another place");
    let paid = row.profit >= price.at(level).0;
    row.memory = kinds.judged(row.kind, price, row.memory.max(least), paid);
    row.wait = if paid { 0 } else { row.memory as u16 };
    row.from = Place::NEAR;
    judged.profit += f64::from(row.profit);
    *(if paid { &mut judged.good } else { &mut judged.bad }) += 1;
}

/// A wish is for a place that has so much more of an actor's messages than where it is.
pub const GAIN_MIN: f32 = 1.0 / 3.0;
