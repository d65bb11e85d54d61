//! How a shard's turns are counted and timed. A turn costs an addition at its method's place; some thousand a second are timed.

use std::cell::{Cell, RefCell};
use std::sync::Arc;
use std::time::Duration;

use greenroom_world::Timestamp;

use super::Shard;
use super::late::HOOK;
use super::samples::Known;
use super::tail::Failing;
use super::turns::Frame;
use crate::actor::error::Refusal;
use crate::actor::key::{ActorId, Kind};
use crate::here::heat::{Heat, Hot};
use crate::here::meter::{Class, Meter, Meters, Place, Places, rise};
use crate::here::samples::{Bar, cut};

/// What a shard's turns are counted by, and which of them are timed.
pub(super) struct Metering {
    meters: Arc<Meters>,
    /// Those of methods that have a place.
    places: Places,
    /// The next one that is timed, by how many have begun.
    due: Cell<u64>,
    /// One turn in so many is timed.
    stride: Cell<u32>,
    /// When the last one began.
    last: Cell<Timestamp>,
    /// Drawn anew for each gap, so that no rhythm of turns meets one of this.
    draw: Cell<u32>,
    /// Which turns are among the slowest.
    pub(super) bar: Cell<Bar>,
    /// Those that have failed, for who follows.
    pub(super) failing: Failing,
    /// Which actors have most turns, by those that are timed.
    heat: RefCell<Option<Heat>>,
}

impl Metering {
    pub(super) fn new(meters: Arc<Meters>) -> Self {
        let (stride, draw) = (Cell::new(1), Cell::new(1));
        let (due, last, bar, failing, heat) = Default::default();
        let places = meters.places().clone();
        Self { meters, places, due, stride, last, draw, bar, failing, heat }
    }

    /// Has the next turn timed.
    pub(super) fn time_next(&self) {
        self.due.set(0);
    }

    /// The turn is timed that has begun as one of so many: which one is next. While somebody follows, it is each.
    fn next(&self, begun: u64, now: Timestamp, followed: bool) {
        if followed {
            self.last.set(now);
            return self.due.set(begun + 1);
        }
        let passed = now.since(self.last.replace(now));
        let stride = self.stride.get();
        let stride = match passed {
            _ if passed < TIMED_EVERY / 2 => stride.saturating_mul(2).min(STRIDE_MAX),
            _ if passed > TIMED_EVERY * 2 => (stride / 2).max(1),
            _ => stride,
        };
        self.stride.set(stride);
        let draw = self.draw.get().wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
        self.draw.set(draw);
        self.due.set(begun + u64::from(1 + (draw >> 8) % (2 * stride - 1)));
    }
}

impl Shard {
    /// Counts a turn that begins.
    #[inline]
    pub(super) fn count_turn(&self, kind: Kind, place: &Place, method: u16) {
        self.turns_begun.set(self.turns_begun.get() + 1);
        match self.metering.places.get(place.of(method)) {
            Some(turns) => rise(turns, 1),
            None => self.count_apart(kind, place, method),
        }
    }

    /// Counts an activation that has come to the shard, or else has gone from it.
    pub(super) fn count_activation(&self, id: &ActorId, came: bool) {
        if self.meter(id.kind, 0).is_some() {
            self.metering.meters.count_active(id.kind, came);
        }
        if !came && let Some(heat) = &mut *self.metering.heat.borrow_mut() {
            heat.forget(id);
        }
    }

    /// The `n` actors of the program that have most turns, the hottest first; and how many more are known.
    pub(crate) fn hottest(&self, n: usize) -> (Vec<Hot>, usize) {
        self.metering.heat.borrow().as_ref().map_or_else(Default::default, |heat| heat.hottest(n, self.now()))
    }

    /// What turns those of these actors have that are counted, by their hashes.
    pub(crate) fn heat_of(&self, hashes: &[u64]) -> Vec<Hot> {
        self.metering.heat.borrow().as_ref().map_or_else(Vec::new, |heat| heat.of(hashes, self.now()))
    }

    /// Counts a turn that is of no method.
    pub(super) fn count_hook(&self) {
        self.turns_begun.set(self.turns_begun.get() + 1);
    }

    /// Counts a turn of a method that has no place, as far as is known.
    #[cold]
    fn count_apart(&self, kind: Kind, place: &Place, method: u16) {
        if let Some(meter) = self.meter(kind, method) {
            meter.count();
            self.metering.meters.show(kind, place);
        }
    }

    fn meter(&self, kind: Kind, method: u16) -> Option<&Meter> {
        self.metering.meters.find(kind, method).or_else(|| {
            let kinds = self.port.node.kinds();
            self.metering.meters.meet(kind, kinds.methods_met(kind), !kinds.is_foreign(kind), method)
        })
    }

    /// When the turn begins that is about to, if it is to be timed; else never.
    #[inline]
    pub(super) fn times_turn(&self) -> Timestamp {
        if self.turns_begun.get() >= self.metering.due.get() { self.time_turn() } else { Timestamp::NEVER }
    }

    #[cold]
    fn time_turn(&self) -> Timestamp {
        let now = self.clock();
        self.metering.next(self.turns_begun.get(), now, self.is_followed());
        now
    }

    /// Notes how long a turn has taken that was timed.
    #[cold]
    pub(super) fn note_took(&self, frame: &Frame, known: Option<&Known>) {
        let method = frame.job.get().method;
        if method != HOOK.method
            && let Some(meter) = self.meter(frame.activation.id().kind, method)
        {
            let took = self.clock().since(frame.timed);
            let stands_for = meter.took(took);
            let mut heat = self.metering.heat.borrow_mut();
            let heat = heat.get_or_insert_with(|| Heat::new(self.now()));
            heat.turned(frame.activation.id(), stands_for, self.now(), self.metering.draw.get());
            self.look_at_ended(frame, took, known);
        }
    }

    /// Notes that a message waited for so long whose turn begins, if that can be told from nothing.
    #[inline]
    pub(super) fn note_waited(&self, kind: Kind, method: u16, waited: Option<Duration>) {
        if let Some(waited) = waited
            && !waited.is_zero()
            && let Some(meter) = self.meter(kind, method)
        {
            meter.waited(waited);
        }
    }

    /// Counts a message that was refused where its actor is.
    #[cold]
    pub(super) fn note_refused(&self, id: &ActorId, method: u16, refusal: &Refusal) {
        if let Some(meter) = self.meter(id.kind, method) {
            meter.count_failed(refusal.into());
            self.heat_failed(id);
            self.sample_refused(id, method, refusal);
        }
    }

    /// Counts the turn of `frame`, which panicked.
    pub(super) fn note_broken(&self, frame: &Frame, known: Option<&Known>, message: &str) {
        self.count_failed(frame, Class::Broken, known, &|| cut(message));
    }

    /// Counts the current turn, which answers an error.
    #[cold]
    pub(crate) fn note_error(&self, error: &dyn Fn() -> String) {
        if let Some(frame) = self.current() {
            self.count_failed(frame, Class::Error, None, error);
        }
    }

    fn count_failed(&self, frame: &Frame, class: Class, known: Option<&Known>, error: &dyn Fn() -> String) {
        let method = frame.job.get().method;
        if method != HOOK.method
            && let Some(meter) = self.meter(frame.activation.id().kind, method)
        {
            meter.count_failed(class);
            self.note_failing(frame, class, error);
            self.heat_failed(frame.activation.id());
            self.sample_failed(frame, class, known, error);
        }
    }

    fn heat_failed(&self, id: &ActorId) {
        if let Some(heat) = &mut *self.metering.heat.borrow_mut() {
            heat.failed(id, self.now());
        }
    }
}

/// About so often a turn is timed.
const TIMED_EVERY: Duration = Duration::from_millis(1);
const STRIDE_MAX: u32 = 1 << 16;
