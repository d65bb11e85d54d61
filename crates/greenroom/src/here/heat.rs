//! Which actors of a shard have most turns, of so many that they cannot all be counted.
//!
//! Turns that are timed are counted here, each for those of its method that it stands for; so nothing is done for the others. A table of
//! sets of eight; who is new in a full set takes over the coldest place and adds to what it has, its name only by the share of that
//! (Ting, SIGMOD '18): what is said of an actor is right in the mean. Counts have a half-life of 30 s.

use greenroom_protocols::heavy_edges::decay::{Decay, a_second_within};
use greenroom_world::Timestamp;

use super::built_in::is_built_in;
use crate::actor::key::ActorId;

/// The hot actors of one shard.
pub(crate) struct Heat {
    /// Counts are those at the origin of `decay`.
    sets: Box<[Set]>,
    decay: Decay,
    begun: Timestamp,
}

type Set = [Option<Entry>; WAYS];

struct Entry {
    hash: u64,
    id: ActorId,
    turns: f64,
    failed: f64,
    /// How often it was met.
    samples: f64,
}

/// A hot actor.
pub(crate) struct Hot {
    pub(crate) hash: u64,
    pub(crate) id: ActorId,
    /// Its turns a second, and messages that failed.
    pub(crate) turns: f64,
    pub(crate) failed: f64,
}

impl Heat {
    pub(crate) fn new(now: Timestamp) -> Self {
        let sets = (0..SETS).map(|_| Set::default()).collect();
        Self { sets, decay: Decay::new(now), begun: now }
    }

    /// Counts a turn of an actor that stands for so many. `draw` is a random word.
    pub(crate) fn turned(&mut self, id: &ActorId, stands_for: u64, now: Timestamp, draw: u32) {
        self.renew(now);
        let factor = self.decay.factor(now);
        let (hash, turns) = (id.stable_hash(), stands_for as f64 * factor);
        let set = self.set(hash);
        if let Some(known) = set.iter_mut().flatten().find(|entry| entry.hash == hash) {
            (known.turns, known.samples) = (known.turns + turns, known.samples + factor);
            return;
        }
        let weight = |place: &Option<Entry>| place.as_ref().map_or(0.0, |entry| entry.turns);
        let Some(coldest) = set.iter_mut().min_by(|a, b| weight(a).total_cmp(&weight(b))) else { return };
        let sum = weight(coldest) + turns;
        match coldest {
            Some(stays) if f64::from(draw) / f64::from(u32::MAX) * sum >= turns => stays.turns = sum,
            _ => *coldest = Some(Entry { hash, id: id.clone(), turns: sum, failed: 0.0, samples: factor }),
        }
    }

    /// Counts a message of an actor that has failed, if that one is known.
    pub(crate) fn failed(&mut self, id: &ActorId, now: Timestamp) {
        let (hash, factor) = (id.stable_hash(), self.decay.factor(now));
        if let Some(known) = self.set(hash).iter_mut().flatten().find(|entry| entry.hash == hash) {
            known.failed += factor;
        }
    }

    /// Forgets an actor, which is not here any more.
    pub(crate) fn forget(&mut self, id: &ActorId) {
        let hash = id.stable_hash();
        let set = self.set(hash).iter_mut();
        set.filter(|place| place.as_ref().is_some_and(|entry| entry.hash == hash)).for_each(|place| *place = None);
    }

    /// The `n` hottest actors of the program's own kinds, the hottest first, of those that were met more than once; and how many more are known.
    pub(crate) fn hottest(&self, n: usize, now: Timestamp) -> (Vec<Hot>, usize) {
        let factor = self.decay.factor(now);
        let known = self.sets.iter().flatten().flatten();
        let known = known.filter(|entry| entry.is_counted(factor) && !is_built_in(entry.id.kind.name()));
        let mut known: Vec<&Entry> = known.collect();
        known.sort_unstable_by(|a, b| b.turns.total_cmp(&a.turns).then(a.hash.cmp(&b.hash)));
        (known.iter().take(n).map(|entry| self.hot(entry, now)).collect(), known.len().saturating_sub(n))
    }

    /// Those of the actors with these hashes that were met more than once.
    pub(crate) fn of(&self, hashes: &[u64], now: Timestamp) -> Vec<Hot> {
        let factor = self.decay.factor(now);
        let entry = |hash: &u64| self.sets[set_of(*hash)].iter().flatten().find(|entry| entry.hash == *hash);
        let known = hashes.iter().filter_map(entry).filter(|entry| entry.is_counted(factor));
        known.map(|entry| self.hot(entry, now)).collect()
    }

    fn hot(&self, entry: &Entry, now: Timestamp) -> Hot {
        let (factor, counted) = (self.decay.factor(now), now.since(self.begun));
        let rate = |count: f64| a_second_within(count / factor, counted);
        Hot { hash: entry.hash, id: entry.id.clone(), turns: rate(entry.turns), failed: rate(entry.failed) }
    }

    fn set(&mut self, hash: u64) -> &mut Set {
        &mut self.sets[set_of(hash)]
    }

    fn renew(&mut self, now: Timestamp) {
        let Some(factor) = self.decay.renew(now) else { return };
        for place in self.sets.iter_mut().flatten() {
            if let Some(Entry { turns, failed, samples, .. }) = place {
                [turns, failed, samples].into_iter().for_each(|count| *count *= factor);
            }
            place.take_if(|entry| entry.turns < FADED);
        }
    }
}

impl Entry {
    fn is_counted(&self, factor: f64) -> bool {
        self.samples >= SAMPLES_MIN * factor
    }
}

fn set_of(hash: u64) -> usize {
    hash as usize % SETS
}

const WAYS: usize = 8;
/// With eight ways, a thousand actors.
const SETS: usize = 128;
/// One sample alone says nothing of who is hot.
const SAMPLES_MIN: f64 = 2.0;
/// Turns below which an actor is forgotten, when the table is gone through.
const FADED: f64 = 1e-3;

#[cfg(test)]
mod tests {
    use super::*;
    use crate::actor::key::Kind;

    fn actor(key: u64) -> ActorId {
        ActorId::unchecked(Kind::intern("heated"), key)
    }

    fn at(seconds: u64) -> Timestamp {
        Timestamp::from_nanos(seconds * 1_000_000_000)
    }

    fn draws() -> impl Iterator<Item = u32> {
        std::iter::successors(Some(7_u32), |draw| Some(draw.wrapping_mul(1_664_525).wrapping_add(1_013_904_223)))
    }

    #[test]
    fn a_hot_actor_is_told_with_its_rate_among_a_hundred_thousand_others() {
        let mut heat = Heat::new(at(0));
        let mut draws = draws();
        for second in 0..100 {
            for n in 0..1000 {
                let key = if n % 10 == 0 { 0 } else { 1 + second * 1000 + n };
                heat.turned(&actor(key), 50, at(second), draws.next().unwrap());
            }
        }
        let (hottest, _) = heat.hottest(1, at(100));
        assert_eq!(hottest[0].id, actor(0));
        assert!((4_500.0..5_500.0).contains(&hottest[0].turns), "5,000 a second, and not {}", hottest[0].turns);
    }

    #[test]
    fn who_was_met_once_is_not_hot_and_who_is_gone_is_forgotten() {
        let mut heat = Heat::new(at(0));
        heat.turned(&actor(1), 1_000_000, at(1), 0);
        (0..10).for_each(|_| heat.turned(&actor(2), 1, at(1), 0));
        heat.failed(&actor(2), at(1));
        heat.failed(&actor(3), at(1));
        let (hottest, left_out) = heat.hottest(10, at(2));
        let told: Vec<_> = hottest.iter().map(|hot| (hot.id.clone(), hot.turns > 9.0 * hot.failed)).collect();
        assert_eq!((told, left_out), (vec![(actor(2), true)], 0));
        assert!(hottest[0].failed > 0.0);
        heat.forget(&actor(2));
        assert!(heat.hottest(10, at(2)).0.is_empty());
    }

    #[test]
    fn heat_fades_and_lasts_for_days() {
        let mut heat = Heat::new(at(0));
        let mut rate = 0.0;
        for second in (0..200_000).step_by(10) {
            (0..20).for_each(|_| heat.turned(&actor(1), 10, at(second), 0));
            rate = heat.hottest(1, at(second)).0[0].turns;
        }
        assert!((18.0..24.0).contains(&rate), "20 a second, and not {rate}");
        let quiet = heat.hottest(1, at(200_050)).0[0].turns;
        assert!(quiet < rate / 3.0, "{quiet} of {rate}");
        assert!(heat.hottest(1, at(201_000)).0.is_empty());
    }
}
