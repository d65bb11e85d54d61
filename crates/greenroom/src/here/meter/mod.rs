//! What a shard counts of its actors' turns, by kind and method: how many, how many failed and how, how long they took, and how long
//! their messages waited.
//!
//! A shard writes its own meters, with no lock and no exchange; any thread reads them. Each turn is counted; of how long they take
//! about a thousand a second are timed, and each stands for the turns of its method since the one before.

mod histogram;
mod places;

use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, OnceLock};
use std::time::Duration;

pub(crate) use self::histogram::{Distribution, Histogram};
pub(crate) use self::places::Place;
use super::by_kind::ByKind;
use crate::actor::error::Refusal;
use crate::actor::key::Kind;

/// The meters of one shard.
pub(crate) struct Meters {
    of_kinds: ByKind<OfKind>,
    places: Places,
}

/// The turns of methods that have a place.
pub(crate) type Places = Arc<[AtomicU64]>;

struct OfKind {
    kind: Kind,
    active: AtomicU64,
    /// The place of the first method, if they have any.
    first: Option<usize>,
    /// By the methods' numbers.
    methods: Box<[Meter]>,
}

/// What is counted of one method.
#[derive(Default)]
pub(crate) struct Meter {
    turns: Turns,
    failed: [AtomicU64; Class::ALL.len()],
    /// How many of the turns `took` stands for.
    told: AtomicU64,
    took: OnceLock<Box<Histogram>>,
    /// Messages that waited for a millisecond or more, which is what their queue tells apart.
    waited: OnceLock<Box<Histogram>>,
}

/// Where a method's turns are counted.
enum Turns {
    Here(AtomicU64),
    There(Places, usize),
}

/// How a message failed.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Class {
    /// Its handler answered an error.
    Error,
    /// Its handler panicked.
    Broken,
    /// It was refused where its actor is, and nothing has run.
    Refused,
    /// Its time ran out before it could begin.
    Late,
}

/// What is known of a method's turns.
#[derive(Clone, Default)]
pub(crate) struct MethodFigures {
    pub(crate) turns: u64,
    failed: [u64; Class::ALL.len()],
    pub(crate) took: Distribution,
    pub(crate) waited: Distribution,
}

impl Class {
    pub(crate) const ALL: [Self; 4] = [Self::Error, Self::Broken, Self::Refused, Self::Late];

    pub(crate) fn name(self) -> &'static str {
        match self {
            Self::Error => "error",
            Self::Broken => "broken",
            Self::Refused => "refused",
            Self::Late => "late",
        }
    }
}

impl From<&Refusal> for Class {
    fn from(refusal: &Refusal) -> Self {
        match refusal {
            Refusal::Expired(_) => Self::Late,
            _ => Self::Refused,
        }
    }
}

impl Default for Meters {
    fn default() -> Self {
        Self { of_kinds: ByKind::default(), places: (0..places::PLACES).map(|_| AtomicU64::default()).collect() }
    }
}

impl Meters {
    /// The meter of a method, if the kind has been met.
    pub(crate) fn find(&self, kind: Kind, method: u16) -> Option<&Meter> {
        let methods = &self.of_kinds.find(kind)?.methods;
        methods.get(usize::from(method)).or_else(|| methods.last())
    }

    /// The same for a kind that is met now, with so many methods, which have places if this program has their code; those
    /// beyond are counted with the last one.
    pub(crate) fn meet(&self, kind: Kind, methods: usize, linked: bool, method: u16) -> Option<&Meter> {
        let len = methods.clamp(1, METHODS_MAX);
        let first = if linked { places::first_place(kind, len) } else { None };
        let meter = |at| Meter { turns: self.turns_of(first.map(|first| first + at)), ..Meter::default() };
        let methods = (0..len).map(meter).collect();
        self.of_kinds.insert(kind, OfKind { kind, active: AtomicU64::default(), first, methods });
        self.find(kind, method)
    }

    fn turns_of(&self, place: Option<usize>) -> Turns {
        place.map_or_else(Turns::default, |place| Turns::There(self.places.clone(), place))
    }

    /// Where turns are counted by their methods' places.
    pub(crate) fn places(&self) -> &Places {
        &self.places
    }

    /// Tells a kind's entry of its place, if it has one.
    pub(crate) fn show(&self, kind: Kind, place: &Place) {
        if let Some(OfKind { first: Some(first), methods, .. }) = self.of_kinds.find(kind) {
            place.learn(*first, methods.len());
        }
    }

    /// Takes in that an activation of a kind that has been met has come, or else has gone.
    pub(crate) fn count_active(&self, kind: Kind, came: bool) {
        if let Some(OfKind { active, .. }) = self.of_kinds.find(kind) {
            let now = active.load(Ordering::Relaxed);
            active.store(if came { now + 1 } else { now.saturating_sub(1) }, Ordering::Relaxed);
        }
    }

    /// How many activations there are of each kind that has been met.
    pub(crate) fn active(&self) -> impl Iterator<Item = (Kind, u64)> {
        self.of_kinds.iter().map(|of_kind| (of_kind.kind, of_kind.active.load(Ordering::Relaxed)))
    }

    /// Shows each meter, with its kind and the method's number.
    pub(crate) fn read(&self, mut look: impl FnMut(Kind, usize, &Meter)) {
        for of_kind in self.of_kinds.iter() {
            for (method, meter) in of_kind.methods.iter().enumerate() {
                look(of_kind.kind, method, meter);
            }
        }
    }
}

impl Meter {
    /// Counts a turn that begins.
    pub(crate) fn count(&self) {
        rise(self.turns.get(), 1);
    }

    /// Whether anything has been counted.
    pub(crate) fn is_used(&self) -> bool {
        self.turns() > 0 || self.failed.iter().any(|failed| failed.load(Ordering::Relaxed) > 0)
    }

    pub(crate) fn turns(&self) -> u64 {
        self.turns.get().load(Ordering::Relaxed)
    }

    /// How many have failed in one of these ways.
    pub(crate) fn failed(&self, classes: &[Class]) -> u64 {
        classes.iter().map(|class| self.failed[*class as usize].load(Ordering::Relaxed)).sum()
    }

    /// Messages that have waited for longer than `bound`, which ends a class.
    pub(crate) fn waited_over(&self, bound: Duration) -> u64 {
        self.waited.get().map_or(0, |waited| {
            let waited = waited.read();
            waited.count() - waited.up_to(bound)
        })
    }

    /// What its turns have taken together.
    pub(crate) fn took_in_all(&self) -> Duration {
        self.took.get().map_or(Duration::ZERO, |took| took.read().sum())
    }

    /// Counts a message that failed.
    pub(crate) fn count_failed(&self, class: Class) {
        rise(&self.failed[class as usize], 1);
    }

    /// Takes in that a turn has ended which was timed; for how many of its method it stands.
    pub(crate) fn took(&self, took: Duration) -> u64 {
        // Nested turns of the method may have been timed before.
        let stands_for = self.turns().saturating_sub(self.told.load(Ordering::Relaxed));
        self.took.get_or_init(Box::default).add(took, stands_for);
        rise(&self.told, stands_for);
        stands_for
    }

    /// Takes in how long a message has waited whose turn begins.
    pub(crate) fn waited(&self, waited: Duration) {
        self.waited.get_or_init(Box::default).add(waited, 1);
    }
}

impl Default for Turns {
    fn default() -> Self {
        Self::Here(AtomicU64::default())
    }
}

impl Turns {
    fn get(&self) -> &AtomicU64 {
        match self {
            Self::Here(turns) => turns,
            Self::There(places, place) => &places[*place],
        }
    }
}

impl MethodFigures {
    /// Takes in what a shard knows of the method.
    pub(crate) fn add(&mut self, meter: &Meter) {
        self.count(meter);
        if let Some(took) = meter.took.get() {
            self.took.add(&took.read());
        }
        if let Some(waited) = meter.waited.get() {
            self.waited.add(&waited.read());
        }
    }

    /// Takes in how many turns a shard has counted of the method, and nothing of how long they took.
    pub(crate) fn count(&mut self, meter: &Meter) {
        self.turns += meter.turns();
        self.failed.iter_mut().zip(&meter.failed).for_each(|(sum, failed)| *sum += failed.load(Ordering::Relaxed));
    }

    pub(crate) fn failed(&self, class: Class) -> u64 {
        self.failed[class as usize]
    }

    /// Takes in what is known of another method.
    pub(crate) fn join(&mut self, other: &Self) {
        self.turns += other.turns;
        self.failed.iter_mut().zip(other.failed).for_each(|(sum, failed)| *sum += failed);
        self.took.add(&other.took);
        self.waited.add(&other.waited);
    }

    /// How long messages waited before their turns began, those among them that did not.
    pub(crate) fn mailbox(&self) -> Distribution {
        let mut all = self.waited.clone();
        all.add_quick(self.turns.saturating_sub(all.count()));
        all
    }
}

/// Counts by the one thread that writes.
#[inline]
pub(crate) fn rise(count: &AtomicU64, by: u64) {
    count.store(count.load(Ordering::Relaxed) + by, Ordering::Relaxed);
}

/// Methods of a kind that are told apart.
const METHODS_MAX: usize = 1024;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_turn_that_is_timed_stands_for_those_before_it() {
        let meter = Meter::default();
        (0..64).for_each(|_| meter.count());
        meter.took(Duration::from_micros(3));
        (0..36).for_each(|_| meter.count());
        meter.took(Duration::from_millis(3));
        let mut figures = MethodFigures::default();
        figures.add(&meter);
        assert_eq!((figures.turns, figures.took.count()), (100, 100));
        assert!(figures.took.quantile(0.64).unwrap() < Duration::from_micros(4));
        assert!(figures.took.quantile(0.65).unwrap() > Duration::from_millis(3));
    }

    #[test]
    fn who_waited_for_less_than_a_millisecond_is_among_those_that_waited() {
        let meter = Meter::default();
        (0..10).for_each(|_| meter.count());
        meter.waited(Duration::from_millis(20));
        let mut figures = MethodFigures::default();
        figures.add(&meter);
        let mailbox = figures.mailbox();
        assert_eq!(mailbox.count(), 10);
        assert_eq!(mailbox.up_to(Duration::from_micros(1_024)), 9, "less than what can be told from nothing");
        assert!(mailbox.quantile(1.0).unwrap() > Duration::from_millis(20));
    }

    #[test]
    fn turns_of_methods_that_have_places_are_told_of_as_all_others() {
        let (meters, kind) = (Meters::default(), Kind::intern("metered-at-places"));
        let (entry, wider) = (Place::new(2), Place::new(3));
        assert!(meters.places().get(entry.of(1)).is_none(), "nobody has met the kind");
        meters.meet(kind, 2, true, 1).unwrap().count();
        meters.show(kind, &entry);
        rise(&meters.places()[entry.of(1)], 2);
        assert_eq!(meters.find(kind, 1).unwrap().turns(), 3);
        assert_eq!(meters.find(kind, 0).unwrap().turns(), 0);
        meters.show(kind, &wider);
        assert!(meters.places().get(wider.of(0)).is_none(), "its last method would have the place of another kind's");
    }

    #[test]
    fn a_kind_of_hosts_has_no_places() {
        let (meters, kind) = (Meters::default(), Kind::intern("metered-of-hosts"));
        let entry = Place::none();
        meters.meet(kind, 64, false, 1).unwrap().count();
        meters.show(kind, &entry);
        assert!(meters.places().get(entry.of(1)).is_none());
        assert_eq!(meters.find(kind, 1).unwrap().turns(), 1);
    }

    #[test]
    fn methods_beyond_those_that_were_met_are_counted_with_the_last_one() {
        let meters = Meters::default();
        let kind = Kind::intern("metered");
        assert!(meters.find(kind, 0).is_none());
        meters.meet(kind, 2, false, 7).unwrap().count();
        meters.find(kind, 1).unwrap().count();
        let mut seen = Vec::new();
        meters.read(|_, _, meter| {
            let mut figures = MethodFigures::default();
            figures.add(meter);
            seen.push(figures.turns);
        });
        assert_eq!(seen, [0, 2]);
    }
}
