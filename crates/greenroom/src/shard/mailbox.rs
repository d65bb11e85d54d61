//! What waits at an activation, and since when. An empty one is a null pointer: idle activations are many.

use std::cell::Cell;
use std::collections::VecDeque;
use std::time::Duration;

use greenroom_world::Timestamp;

/// A queue, first in first out. The bound is kept by who fills it.
pub(super) struct Mailbox<T>(Cell<Waiting<T>>);

/// `None` if nothing waits.
type Waiting<T> = Option<Box<VecDeque<(Since, T)>>>;

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

impl<T> Mailbox<T> {
    pub(super) fn new() -> Self {
        Self(Cell::new(None))
    }

    fn with<R>(&self, look: impl FnOnce(&mut Waiting<T>) -> R) -> R {
        let mut waiting = self.0.take();
        let seen = look(&mut waiting);
        self.0.set(waiting);
        seen
    }

    #[inline]
    pub(super) fn is_empty(&self) -> bool {
        self.with(|waiting| waiting.is_none())
    }

    pub(super) fn len(&self) -> usize {
        self.with(|waiting| waiting.as_ref().map_or(0, |waiting| waiting.len()))
    }

    pub(super) fn push(&self, since: Since, message: T) {
        self.with(|waiting| waiting.get_or_insert_default().push_back((since, message)));
    }

    /// Takes the first message if `may_begin` says so of it.
    pub(super) fn pop_if<R>(&self, may_begin: impl FnOnce(&T) -> Option<R>) -> Option<(R, Since, T)> {
        self.with(|waiting| {
            let queue = waiting.as_mut()?;
            let answer = may_begin(&queue.front()?.1)?;
            let (since, first) = queue.pop_front()?;
            if queue.is_empty() {
                *waiting = None;
            }
            Some((answer, since, first))
        })
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

    /// Lets `change` have everything, in order.
    pub(super) fn each_mut(&self, change: &mut dyn FnMut(&mut T)) {
        let mut waiting = self.0.take();
        if let Some(queue) = &mut waiting {
            for (_, message) in &mut **queue {
                change(message);
            }
        }
        self.0.set(waiting);
    }

    /// Everything with its times, in a mailbox of its own.
    pub(super) fn moved(&self) -> Self {
        Self(Cell::new(self.0.take()))
    }
}

const NANOS_PER_MILLI: u64 = 1_000_000;

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
        let mailbox = Mailbox::new();
        let since = Since::at(Timestamp::default());
        (0..6).for_each(|number| mailbox.push(since, number));
        let late: Vec<_> =
            mailbox.take_late(|_, number| number % 3 == 1).into_iter().map(|(at, _, n)| (at, n)).collect();
        assert_eq!(late, [(1, 1), (4, 4)]);
        let kept: Vec<_> = mailbox.take().into_iter().map(|(_, number)| number).collect();
        assert_eq!(kept, [0, 2, 3, 5]);
        mailbox.push(since, 7);
        assert_eq!(mailbox.take_late(|_, _| true).len(), 1);
        assert!(mailbox.is_empty());
    }
}
