//! What is known of one actor: 72 bytes.

use super::patience::{Kinds, bounded};
use super::{Cost, KindId, Level, Place};
use crate::heavy_edges::part;
use crate::ways::Entry;

/// A row of the table; free while its rate is zero. Rate and CPU are those at the origin of the table's decay.
#[derive(Clone, Copy, PartialEq, Debug, Default)]
pub(super) struct Row {
    pub(super) actor: u64,
    pub(super) rate: f32,
    pub(super) cpu: f32,
    pub(super) near: f32,
    /// The part of all other shards of the node, those among `parts` included.
    pub(super) beside: f32,
    /// The part of who is no actor and on this node.
    pub(super) outside: f32,
    pub(super) parts: [f32; PARTS],
    /// [`Place::NEAR`] where none is known.
    pub(super) places: [Place; PARTS],
    pub(super) memory: f32,
    pub(super) cost: f32,
    pub(super) profit: f32,
    /// Since it arrived or was first seen.
    pub(super) samples: u16,
    /// Samples to come before a wish counts.
    pub(super) wait: u16,
    /// Where it was before its last move, if that is still to be judged; else [`Place::NEAR`].
    pub(super) from: Place,
    pub(super) kind: KindId,
}

impl Entry for Row {
    fn is_free(&self) -> bool {
        self.rate <= 0.0
    }
}

impl Row {
    /// Whether it is this actor's.
    pub(super) fn is(&self, actor: u64) -> bool {
        self.actor == actor && !self.is_free()
    }

    pub(super) fn new(actor: u64, kind: KindId, kinds: &Kinds) -> Self {
        let cost = kinds.cost(kind);
        Self { actor, kind, cost: cost.0, memory: kinds.memory(kind, cost), ..Self::default() }
    }

    /// The part of a place; that of the whole node for `Level::Nodes`, of the shard alone for `Level::Shards`.
    pub(super) fn here(&self, level: Level) -> f32 {
        match level {
            Level::Shards => self.near,
            Level::Nodes => self.near + self.beside + self.outside,
        }
    }

    /// The places with their parts.
    pub(super) fn away(&self) -> impl Iterator<Item = (Place, f32)> + use<> {
        self.places.into_iter().zip(self.parts).filter(|(place, _)| *place != Place::NEAR)
    }

    /// Takes this much off each part and adds it to that of `place`.
    pub(super) fn shift(&mut self, place: Place, by: f32, draw: u64) {
        let keep = 1.0 - by;
        self.near *= keep;
        self.beside *= keep;
        self.outside *= keep;
        self.parts.iter_mut().for_each(|part| *part *= keep);
        self.add(place, by, |smallest| part(draw) * f64::from(smallest + by) < f64::from(by));
    }

    /// Lets `by` of all messages, as far as they went to `from`, have gone to `to`.
    pub(super) fn carry_over(&mut self, by: f32, from: Place, to: Place) {
        let by = by.min(self.part(from));
        if by <= 0.0 || from == to {
            return;
        }
        match from.level() {
            None if from == Place::OUTSIDE => self.outside -= by,
            None => self.near -= by,
            Some(level) => {
                if level == Level::Shards {
                    self.beside = (self.beside - by).max(0.0);
                }
                *self.slot(from).expect("it has a part") -= by;
            }
        }
        self.add(to, by, |smallest| smallest < by);
    }

    /// Forgets what went to a place.
    pub(super) fn clear(&mut self, place: Place) {
        if let Some(slot) = self.places.iter().position(|known| *known == place && place != Place::NEAR) {
            if place.level() == Some(Level::Shards) {
                self.beside = (self.beside - self.parts[slot]).max(0.0);
            }
            (self.places[slot], self.parts[slot]) = (Place::NEAR, 0.0);
        }
        if self.from == place {
            self.from = Place::NEAR;
        }
    }

    pub(super) fn part(&self, place: Place) -> f32 {
        match place {
            Place::NEAR => self.near,
            Place::OUTSIDE => self.outside,
            _ => self.away().find(|(known, _)| *known == place).map_or(0.0, |(_, part)| part),
        }
    }

    /// Adds to the part of a place. One that is not known takes the place of the smallest only if `takes` says so, and has
    /// nothing of that one's part: what is not known counts for no place, so that none looks better than it is.
    fn add(&mut self, place: Place, by: f32, takes: impl FnOnce(f32) -> bool) {
        match place.level() {
            None if place == Place::OUTSIDE => return self.outside += by,
            None => return self.near += by,
            Some(Level::Shards) => self.beside += by,
            Some(Level::Nodes) => {}
        }
        if let Some(known) = self.slot(place) {
            *known += by;
            return;
        }
        let slots = 0..PARTS;
        let slot = slots.min_by(|a, b| self.parts[*a].total_cmp(&self.parts[*b])).expect("there are slots");
        if self.places[slot] == Place::NEAR || takes(self.parts[slot]) {
            (self.places[slot], self.parts[slot]) = (place, by);
        }
    }

    fn slot(&mut self, place: Place) -> Option<&mut f32> {
        self.places.iter().position(|known| *known == place).map(|slot| &mut self.parts[slot])
    }
}

/// What goes along with an actor that moves, and what people are shown.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct Known {
    /// Its kind.
    pub kind: KindId,
    /// What a move of it costs, but for its activation: what it carries.
    pub cost: Cost,
    /// Messages that its activation costs, as its kind has it.
    pub loading: f32,
    /// N: the messages that it remembers; 0 if that is to be what its kind has learnt.
    pub memory: f32,
    /// Messages a second, with a half-life of 30 s.
    pub rate: f64,
    /// Cores that its turns keep busy, with a half-life of 30 s.
    pub cpu: f64,
    /// The part of its last N messages whose other end is on its shard, from 0 to 1.
    pub near: f32,
    /// The same for the other shards of its node, all together.
    pub beside: f32,
    /// The same for who is no actor and on its node: callers by the door, and by the program around it.
    pub outside: f32,
    /// The same for single places: other nodes, clusters, and shards. [`Place::NEAR`] stands for none.
    pub parts: [(Place, f32); PARTS],
    /// Where it was before its last move, and the messages that this move has saved so far, if it is still to be judged.
    pub unjudged: Option<(Place, f32)>,
}

impl Known {
    /// Of an actor of which nothing is known, that has been sent nothing.
    pub fn nothing(kind: KindId, cost: Cost) -> Self {
        let parts = [(Place::NEAR, 0.0); PARTS];
        Self {
            kind,
            cost,
            loading: 0.0,
            memory: 0.0,
            rate: 0.0,
            cpu: 0.0,
            near: 0.0,
            beside: 0.0,
            outside: 0.0,
            parts,
            unjudged: None,
        }
    }

    /// The part of its last N messages that has its other end on its node, whoever that is.
    pub fn here(&self) -> f32 {
        self.near + self.beside + self.outside
    }

    /// What a move of it costs, all told.
    pub fn price(&self) -> Cost {
        Cost(self.cost.0 + self.loading)
    }

    /// The same as another shard of the node sees it, to which the actor goes: `old` is the shard that it leaves, `new` the one
    /// that it goes to, each as a place of the other. A move between nodes that is still to be judged will be.
    pub fn from_shard(&self, old: Place, new: Place) -> Self {
        let mut row = self.as_row(0);
        row.near = row.part(new);
        row.clear(new);
        row.add(old, self.near, |smallest| smallest < self.near);
        let unjudged = self.unjudged.filter(|(from, _)| from.level() == Some(Level::Nodes));
        Self { unjudged, ..self.with_parts_of(&row) }
    }

    /// The same as another node sees it, to which the actor goes: `old` is the node that it leaves, and `name` gives the new
    /// node's word for each place that the old one knows: [`Place::NEAR`] for itself, `None` for what it does not know. The number of its
    /// kind, and rate and CPU, are as they were.
    pub fn from_node(&self, old: Place, name: impl Fn(Place) -> Option<Place>) -> Self {
        let mut row = Row::default();
        let away = self.parts.into_iter().filter(|(place, _)| place.level() == Some(Level::Nodes));
        for (place, part) in away.filter_map(|(place, part)| Some((name(place)?, part))) {
            match place {
                // On which shard its partners are is not known yet.
                Place::NEAR => row.beside += part,
                _ => row.add(place, part, |smallest| smallest < part),
            }
        }
        let here = self.here();
        row.add(old, here, |smallest| smallest < here);
        Self { unjudged: None, ..self.with_parts_of(&row) }
    }

    fn with_parts_of(&self, row: &Row) -> Self {
        Self { near: row.near, beside: row.beside, outside: row.outside, parts: pairs(row), ..*self }
    }

    /// As a row without rate and CPU. What comes from another node may be anything.
    pub(super) fn as_row(&self, actor: u64) -> Row {
        let share = |part: f32| if part > 0.0 { part.min(1.0) } else { 0.0 };
        let cost = Cost(if self.cost.0 > 0.0 { self.cost.0.min(COST_MAX) } else { Cost::default().0 });
        Row {
            actor,
            near: share(self.near),
            beside: share(self.beside),
            outside: share(self.outside),
            parts: self.parts.map(|(place, part)| if place == Place::NEAR { 0.0 } else { share(part) }),
            places: self.parts.map(|(place, _)| place),
            memory: bounded(self.memory, cost),
            cost: cost.0,
            kind: self.kind,
            ..Row::default()
        }
    }
}

pub(super) fn pairs(row: &Row) -> [(Place, f32); PARTS] {
    std::array::from_fn(|slot| (row.places[slot], row.parts[slot]))
}

/// Single places whose parts a row knows. A wish needs a part of a third, so that four are enough.
pub const PARTS: usize = 4;
/// Messages that a move costs at most, whatever is said.
const COST_MAX: f32 = 1e9;
