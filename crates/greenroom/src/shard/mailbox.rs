//! What waits at an activation, and since when. An empty one is a null pointer: idle activations are many.

use std::any::Any;
use std::cell::Cell;
use std::collections::VecDeque;
use std::time::Duration;

use greenroom_world::Timestamp;

/// A queue, first in first out. The bound is kept by who fills it.
pub(super) struct Mailbox<T>(Cell<Waiting<T>>);

/// `None` if nothing waits.
type Waiting<T> = Option<Box<Queue<T>>>;

type Queue<T> = VecDeque<(Since, T)>;

/// An emptied queue of one of a shard's mailboxes, for the next one: those that hold one message at a time need no other.
#[derive(Default)]
pub(super) struct Spare(Cell<Option<Box<dyn Any>>>);

impl Spare {
    fn take<T: 'static>(&self) -> Box<Queue<T>> {
        self.0.take().and_then(|queue| queue.downcast().ok()).unwrap_or_default()
    }

    fn keep<T: 'static>(&self, queue: Box<Queue<T>>) {
        if queue.capacity() <= SPARE_LEN_MAX {
            self.0.set(Some(queue));
        }
    }
}

/// When a message came, in milliseconds of the shard's clock that wrap around after weeks.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) struct Since(u32);

impl Since {
    pub(super) fn at(now: Timestamp) -> Self {
        Self((now.as_nanos() / NANOS_PER_MILLI) as u32)
    }

    /// Time from then to `now`.
    pub(super) fn elapsed(self, now: Timestamp) -> Duration {
        Duration::from_millis(u64::from(Self::at(now).0.wrapping_sub(self.0)))
    }
}

impl<T: 'static> Mailbox<T> {
    pub(super) fn new() -> Self {
        Self(Cell::new(None))
    }

    #[inline]
    fn look(&self) -> &Waiting<T> {
        // SAFETY: the mailbox stays on one thread, and nobody sets the cell while what is borrowed here is looked at: the
        // callers look at a number and are done.
        unsafe { &*self.0.as_ptr() }
    }

    fn with<R>(&self, look: impl FnOnce(&mut Waiting<T>) -> R) -> R {
        let mut waiting = self.0.take();
        let seen = look(&mut waiting);
        self.0.set(waiting);
        seen
    }

    #[inline]
    pub(super) fn is_empty(&self) -> bool {
        self.look().is_none()
    }

    pub(super) fn len(&self) -> usize {
        self.look().as_ref().map_or(0, |waiting| waiting.len())
    }

    #[inline]
    pub(super) fn push(&self, spare: &Spare, since: Since, message: T) {
        let mut queue = self.0.take().unwrap_or_else(|| spare.take());
        queue.push_back((since, message));
        self.0.set(Some(queue));
    }

    /// Takes the first message if `may_begin` says so of it.
    #[inline]
    pub(super) fn pop_if<R>(
        &self,
        spare: &Spare,
        may_begin: impl FnOnce(&mut T) -> Option<R>,
    ) -> Option<(R, Since, T)> {
        let mut queue = self.0.take()?;
        let answer = queue.front_mut().and_then(|(_, first)| may_begin(first));
        let taken = answer.and_then(|answer| queue.pop_front().map(|(since, first)| (answer, since, first)));
        if queue.is_empty() {
            spare.keep(queue);
        } else {
            self.0.set(Some(queue));
        }
        taken
    }

    /// Takes everything.
    pub(super) fn take(&self) -> VecDeque<(Since, T)> {
        match self.0.take() {
            Some(waiting) => *waiting,
            None => VecDeque::new(),
        }
    }

    /// Takes what `is_late` names, each with its place in the queue.
    pub(super) fn take_late(&self, mut is_late: impl FnMut(Since, &T) -> bool) -> Vec<(usize, Since, T)> {
        self.with(|waiting| {
            let Some(queue) = waiting.as_mut() else { return Vec::new() };
            if !queue.iter().any(|(since, message)| is_late(*since, message)) {
                return Vec::new();
            }
            let mut late = Vec::new();
            let mut kept = VecDeque::with_capacity(queue.len());
            for (place, (since, message)) in queue.drain(..).enumerate() {
                if is_late(since, &message) {
                    late.push((place, since, message));
                } else {
                    kept.push_back((since, message));
                }
            }
            *waiting = (!kept.is_empty()).then(|| Box::new(kept));
            late
        })
    }

    /// Shows everything to `look`, in order.
    pub(super) fn each(&self, look: &mut dyn FnMut(Since, &T)) {
        let waiting = self.0.take();
        if let Some(queue) = &waiting {
            for (since, message) in &**queue {
                look(*since, message);
            }
        }
        self.0.set(waiting);
    }

    /// Takes everything, changed by `change`, in order and with its times, into another mailbox.
    pub(super) fn moved<U: 'static>(&self, change: &mut dyn FnMut(T) -> U) -> Mailbox<U> {
        let waiting = self.0.take();
        Mailbox(Cell::new(
            waiting.map(|queue| Box::new(queue.into_iter().map(|(since, message)| (since, change(message))).collect())),
        ))
    }
}

const NANOS_PER_MILLI: u64 = 1_000_000;
/// Messages that a spare queue has room for, at most.
const SPARE_LEN_MAX: usize = 256;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_wait_is_measured_across_the_wrap_of_the_clock() {
        let wrap = (1 << 32) * NANOS_PER_MILLI;
        let since = Since::at(Timestamp::from_nanos(wrap - 5 * NANOS_PER_MILLI));
        assert_eq!(since.elapsed(Timestamp::from_nanos(wrap + 5 * NANOS_PER_MILLI)), Duration::from_millis(10));
    }

    #[test]
    fn the_late_are_taken_and_the_others_stay_in_order() {
        let (mailbox, spare) = (Mailbox::new(), Spare::default());
        let since = Since::at(Timestamp::default());
        (0..6).for_each(|number| mailbox.push(&spare, since, number));
        let late: Vec<_> =
            mailbox.take_late(|_, number| number % 3 == 1).into_iter().map(|(at, _, n)| (at, n)).collect();
        assert_eq!(late, [(1, 1), (4, 4)]);
        let kept: Vec<_> = mailbox.take().into_iter().map(|(_, number)| number).collect();
        assert_eq!(kept, [0, 2, 3, 5]);
        mailbox.push(&spare, since, 7);
        assert_eq!(mailbox.take_late(|_, _| true).len(), 1);
        assert!(mailbox.is_empty());
    }
}
