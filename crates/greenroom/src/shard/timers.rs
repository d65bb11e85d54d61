//! The timers of a shard's activations.

use std::cell::Cell;
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::time::{Duration, SystemTime};

use bytes::Bytes;
use greenroom_protocols::reminders::{TickLog, TickRefusal};
use greenroom_world::Timestamp;

use super::{Shard, Slot};
use crate::actor::error::Refusal;
use crate::actor::key::ActorId;
use crate::actor::reference::Inner;
use crate::time::tick::Ticked;

/// What a timer is to do.
pub(crate) struct NewTimer {
    /// `None` for the activation itself.
    pub(crate) target: Option<Arc<Inner>>,
    pub(crate) method: u16,
    pub(crate) method_name: &'static str,
    pub(crate) arguments: Bytes,
    /// `None` for a timer that ticks once.
    pub(crate) period: Option<Duration>,
}

/// All timers of a shard, by numbers that are never used twice.
#[derive(Default)]
pub(super) struct Timers {
    timers: BTreeMap<u64, Entry>,
    waiting: BTreeSet<(Timestamp, u64)>,
    /// The timers of each activation, by its slot.
    owned: BTreeMap<(u32, u32), Vec<u64>>,
    /// The ticks of reminders on each activation.
    reminded: BTreeMap<(u32, u32), TickLog<Reminded>>,
    /// The numbers of those that have names, by their activation's slot.
    named: BTreeMap<(u32, u32, String), u64>,
    last: u64,
}

struct Entry {
    slot: Slot,
    timer: NewTimer,
    /// When it ticks next, or was to tick: of a tick that has begun, when the one after it is due.
    due: Timestamp,
    phase: Phase,
    /// Rises when the timer is armed anew: a tick from before then has no turn.
    arming: u64,
    /// Whether nobody can arm it anew.
    detached: bool,
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Phase {
    Waiting,
    /// Its tick waits for its turn, or is in it.
    Out,
    /// It has ticked its only time.
    Spent,
}

/// The name of a reminder's tick on its activation.
#[derive(PartialEq)]
struct Reminded {
    reminder: Option<String>,
    registration: u64,
    due: SystemTime,
}

impl Reminded {
    fn of(ticked: &Ticked) -> Self {
        let Ticked { tick, registration } = ticked;
        Self { reminder: tick.reminder.clone(), registration: *registration, due: tick.due }
    }
}

/// A tick on its way. Dropped, it says that its turn is over, or never was.
pub(crate) struct Ticket {
    number: u64,
    arming: u64,
    /// Whether its turn has begun.
    begun: Cell<bool>,
}

/// What has come due.
pub(super) struct Due {
    pub(super) slot: Slot,
    pub(super) target: Option<Arc<Inner>>,
    pub(super) method: u16,
    pub(super) method_name: &'static str,
    pub(super) arguments: Bytes,
    pub(super) ticket: Ticket,
}

impl Timers {
    fn add(&mut self, slot: Slot, due: Timestamp, timer: NewTimer) -> Option<u64> {
        let owned = self.owned.entry((slot.index, slot.generation)).or_default();
        if owned.len() >= TIMERS_MAX {
            return None;
        }
        self.last += 1;
        owned.push(self.last);
        let entry = Entry { slot, timer, due, phase: Phase::Waiting, arming: 0, detached: false };
        self.timers.insert(self.last, entry);
        self.waiting.insert((due, self.last));
        Some(self.last)
    }

    fn remove(&mut self, number: u64) {
        let Some(entry) = self.timers.remove(&number) else { return };
        self.waiting.remove(&(entry.due, number));
        let slot = (entry.slot.index, entry.slot.generation);
        if let Some(owned) = self.owned.get_mut(&slot) {
            owned.retain(|known| *known != number);
            if owned.is_empty() {
                self.owned.remove(&slot);
            }
        }
    }

    /// How many the activation in `slot` has.
    pub(super) fn of(&self, slot: Slot) -> usize {
        self.owned.get(&(slot.index, slot.generation)).map_or(0, Vec::len)
    }

    /// Removes the timers of an activation that has ended.
    pub(super) fn forget(&mut self, slot: Slot) {
        if self.timers.is_empty() && self.reminded.is_empty() {
            return;
        }
        self.reminded.remove(&(slot.index, slot.generation));
        self.named.retain(|(index, generation, _), _| (*index, *generation) != (slot.index, slot.generation));
        for number in self.owned.remove(&(slot.index, slot.generation)).into_iter().flatten() {
            if let Some(entry) = self.timers.remove(&number) {
                self.waiting.remove(&(entry.due, number));
            }
        }
    }

    fn rearm(&mut self, number: u64, due: Timestamp) {
        let Some(entry) = self.timers.get_mut(&number) else { return };
        self.waiting.remove(&(entry.due, number));
        (entry.due, entry.phase) = (due, Phase::Waiting);
        entry.arming += 1;
        self.waiting.insert((due, number));
    }

    /// Nobody holds the handle any more.
    fn detach(&mut self, number: u64) {
        let Some(entry) = self.timers.get_mut(&number) else { return };
        entry.detached = true;
        if entry.phase == Phase::Spent {
            self.remove(number);
        }
    }

    /// Notes that the turn of a reminder's tick begins on the activation in `slot`.
    ///
    /// # Errors
    /// [`TickRefusal`]: it must not begin.
    pub(super) fn begin_tick(&mut self, slot: Slot, ticked: &Ticked) -> Result<(), TickRefusal> {
        self.reminded.entry((slot.index, slot.generation)).or_default().begin(Reminded::of(ticked))
    }

    /// Notes that the turn of a reminder's tick is over, and whether the tick is done.
    pub(super) fn end_tick(&mut self, slot: Slot, ticked: &Ticked, is_done: bool) {
        // An activation that has ended remembers nothing.
        if let Some(log) = self.reminded.get_mut(&(slot.index, slot.generation)) {
            let tick = Reminded::of(ticked);
            log.end(tick, is_done, |done| done.reminder == ticked.tick.reminder);
        }
    }

    /// When something is next due.
    pub(super) fn next(&self) -> Option<Timestamp> {
        self.waiting.first().map(|(due, _)| *due)
    }

    /// Takes one tick that is due at `now`.
    fn take_due(&mut self, now: Timestamp) -> Option<Due> {
        let &(due, number) = self.waiting.first().filter(|(due, _)| *due <= now)?;
        self.waiting.remove(&(due, number));
        let entry = self.timers.get_mut(&number)?;
        entry.phase = Phase::Out;
        let NewTimer { target, method, method_name, arguments, .. } = &entry.timer;
        let ticket = Ticket { number, arming: entry.arming, begun: Cell::new(false) };
        let (target, arguments) = (target.clone(), arguments.clone());
        Some(Due { slot: entry.slot, target, method: *method, method_name, arguments, ticket })
    }

    /// The tick's turn begins: how late it is and how many it stands for besides itself. `None` if it was called off.
    fn begin(&mut self, ticket: &Ticket, now: Timestamp) -> Option<(Duration, u64)> {
        let entry = self.timers.get_mut(&ticket.number).filter(|entry| entry.arming == ticket.arming)?;
        ticket.begun.set(true);
        let late_by = now.since(entry.due);
        let Some(period) = entry.timer.period else { return Some((late_by, 0)) };
        let missed = (late_by.as_nanos() / period.as_nanos()) as u64;
        entry.due = entry.due + Duration::from_nanos_u128(period.as_nanos() * (u128::from(missed) + 1));
        Some((late_by, missed))
    }

    /// The tick's turn is over, or never was.
    fn over(&mut self, ticket: &Ticket, now: Timestamp) {
        let Some(entry) = self.timers.get_mut(&ticket.number) else { return };
        if entry.arming != ticket.arming || entry.phase != Phase::Out {
            return;
        }
        if !ticket.begun.get() {
            // Not at once again: what kept it from its turn may still be so.
            entry.due = now + entry.timer.period.unwrap_or_default().max(PAUSE);
        }
        if entry.timer.period.is_some() || !ticket.begun.get() {
            entry.phase = Phase::Waiting;
            self.waiting.insert((entry.due, ticket.number));
        } else if entry.detached {
            self.remove(ticket.number);
        } else {
            entry.phase = Phase::Spent;
        }
    }
}

impl Shard {
    /// Gives the current turn's activation, which must be that of `id`, a timer; its number. `None` outside of its turns.
    pub(crate) fn add_timer(&self, id: &ActorId, delay: Duration, timer: NewTimer) -> Option<Result<u64, Refusal>> {
        let slot = self.current_slot_of(id)?;
        let due = self.port.node.world().now() + delay;
        let number = self.timers.borrow_mut().add(slot, due, timer);
        Some(
            number
                .ok_or_else(|| Refusal::Overloaded { queue: format!("the timers of {id}"), bound: TIMERS_MAX as u64 }),
        )
    }

    /// The same, in place of the timer that the activation calls `name`.
    pub(crate) fn set_named_timer(
        &self,
        id: &ActorId,
        name: &str,
        delay: Duration,
        timer: NewTimer,
    ) -> Option<Result<(), Refusal>> {
        let slot = self.current_slot_of(id)?;
        self.cancel_named_timer(id, name);
        Some(self.add_timer(id, delay, timer)?.map(|number| {
            self.timers.borrow_mut().named.insert((slot.index, slot.generation, name.to_owned()), number);
        }))
    }

    /// Cancels the timer that the current turn's activation, which must be that of `id`, calls `name`.
    pub(crate) fn cancel_named_timer(&self, id: &ActorId, name: &str) {
        let Some(slot) = self.current_slot_of(id) else { return };
        let mut timers = self.timers.borrow_mut();
        if let Some(number) = timers.named.remove(&(slot.index, slot.generation, name.to_owned())) {
            timers.remove(number);
        }
    }

    pub(crate) fn cancel_timer(&self, number: u64) {
        self.timers.borrow_mut().remove(number);
    }

    pub(crate) fn rearm_timer(&self, number: u64, delay: Duration) {
        let due = self.port.node.world().now() + delay;
        self.timers.borrow_mut().rearm(number, due);
    }

    pub(crate) fn detach_timer(&self, number: u64) {
        self.timers.borrow_mut().detach(number);
    }

    /// Takes one tick that is due at `now`.
    pub(super) fn take_due_timer(&self, now: Timestamp) -> Option<Due> {
        self.timers.borrow_mut().take_due(now)
    }

    /// The tick's turn begins: how late it is, and how many it stands for besides itself. `None` if it was called off.
    pub(super) fn begin_timer(&self, ticket: &Ticket, now: Timestamp) -> Option<(Duration, u64)> {
        self.timers.borrow_mut().begin(ticket, now)
    }
}

impl Drop for Ticket {
    fn drop(&mut self) {
        // Elsewhere than on its shard a ticket is dropped only when the node is torn down.
        Shard::with(|shard| {
            if let Some(shard) = shard {
                shard.timers.borrow_mut().over(self, shard.now());
            }
        });
    }
}

/// Timers that one activation may have.
const TIMERS_MAX: usize = 256;
/// Time after which a tick is tried again that was kept from its turn.
const PAUSE: Duration = Duration::from_millis(100);

#[cfg(test)]
mod tests {
    use super::*;

    const SLOT: Slot = Slot { index: 1, generation: 2 };

    fn at(millis: u64) -> Timestamp {
        Timestamp::default() + Duration::from_millis(millis)
    }

    fn timer(period: Option<u64>) -> NewTimer {
        let period = period.map(Duration::from_millis);
        NewTimer { target: None, method: 0, method_name: "tick", arguments: Bytes::new(), period }
    }

    fn take(timers: &mut Timers, now: u64) -> Option<Ticket> {
        timers.take_due(at(now)).map(|due| due.ticket)
    }

    #[test]
    fn a_tick_that_is_out_keeps_the_next_ones_from_coming() {
        let mut timers = Timers::default();
        timers.add(SLOT, at(10), timer(Some(10)));
        assert!(take(&mut timers, 9).is_none());
        let ticket = take(&mut timers, 12).unwrap();
        assert!(take(&mut timers, 50).is_none(), "one is out");
        assert_eq!(timers.begin(&ticket, at(45)), Some((Duration::from_millis(35), 3)));
        timers.over(&ticket, at(46));
        assert_eq!(timers.next(), Some(at(50)), "on its own beat again");
    }

    #[test]
    fn a_turn_longer_than_the_period_is_followed_by_one_late_tick() {
        let mut timers = Timers::default();
        timers.add(SLOT, at(10), timer(Some(10)));
        let ticket = take(&mut timers, 10).unwrap();
        assert_eq!(timers.begin(&ticket, at(10)), Some((Duration::ZERO, 0)));
        timers.over(&ticket, at(47));
        let ticket = take(&mut timers, 47).unwrap();
        assert_eq!(timers.begin(&ticket, at(47)), Some((Duration::from_millis(27), 2)));
    }

    #[test]
    fn a_tick_of_a_timer_that_was_cancelled_or_armed_anew_has_no_turn() {
        let mut timers = Timers::default();
        let number = timers.add(SLOT, at(10), timer(None)).unwrap();
        let ticket = take(&mut timers, 10).unwrap();
        timers.rearm(number, at(30));
        assert_eq!(timers.begin(&ticket, at(11)), None);
        timers.over(&ticket, at(11));
        let ticket = take(&mut timers, 30).unwrap();
        timers.remove(number);
        assert_eq!(timers.begin(&ticket, at(30)), None);
    }

    #[test]
    fn a_timer_that_has_ticked_its_only_time_goes_with_its_handle_or_ticks_again() {
        let mut timers = Timers::default();
        let number = timers.add(SLOT, at(10), timer(None)).unwrap();
        let ticket = take(&mut timers, 10).unwrap();
        assert_eq!(timers.begin(&ticket, at(10)), Some((Duration::ZERO, 0)));
        timers.over(&ticket, at(10));
        timers.rearm(number, at(20));
        let ticket = take(&mut timers, 20).unwrap();
        timers.detach(number);
        assert!(timers.begin(&ticket, at(20)).is_some());
        timers.over(&ticket, at(20));
        assert!(timers.timers.is_empty() && timers.owned.is_empty());
    }

    #[test]
    fn timers_go_with_their_activation_and_are_bounded() {
        let mut timers = Timers::default();
        for due in 0..TIMERS_MAX as u64 {
            assert!(timers.add(SLOT, at(due), timer(None)).is_some());
        }
        assert!(timers.add(SLOT, at(1), timer(None)).is_none());
        timers.forget(SLOT);
        assert!(timers.timers.is_empty() && timers.waiting.is_empty());
    }
}
