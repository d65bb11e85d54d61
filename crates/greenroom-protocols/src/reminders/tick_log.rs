//! The ticks of reminders that one activation has begun or done.

use std::collections::VecDeque;
use std::hash::Hash;

/// Ticks of reminders on one activation, so that a tick that is sent again neither runs beside itself nor runs again once it is done.
///
/// `T` names a tick: actor, reminder, registration and due time. The log holds at most [`TICKS_MAX`] ticks.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub struct TickLog<T> {
    running: Vec<T>,
    /// The oldest first.
    done: VecDeque<T>,
}

/// Reasons for which a tick's turn does not begin.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum TickRefusal {
    /// The tick is done here: its turn has ended and, where it saves, has saved.
    Done,
    /// A turn of it runs here, or too many other ticks do. The tick is to be sent again.
    Running,
}

impl<T> Default for TickLog<T> {
    fn default() -> Self {
        Self { running: Vec::new(), done: VecDeque::new() }
    }
}

impl<T: PartialEq> TickLog<T> {
    /// Notes that the turn of `tick` begins.
    ///
    /// # Errors
    /// [`TickRefusal`]: it must not begin.
    pub fn begin(&mut self, tick: T) -> Result<(), TickRefusal> {
        if self.done.contains(&tick) {
            return Err(TickRefusal::Done);
        }
        if self.running.contains(&tick) || self.running.len() >= TICKS_MAX {
            return Err(TickRefusal::Running);
        }
        self.running.push(tick);
        Ok(())
    }

    /// Notes that the turn of `tick` is over. Unless `is_done`, it is to run again when it is sent again: its host was lost, it
    /// failed, or its state was not saved. Otherwise it replaces the done ticks that `is_replaced` names, as those of earlier due
    /// times.
    pub fn end(&mut self, tick: T, is_done: bool, is_replaced: impl Fn(&T) -> bool) {
        self.running.retain(|running| *running != tick);
        if is_done {
            self.done.retain(|done| !is_replaced(done));
            if self.done.len() >= TICKS_MAX {
                self.done.pop_front();
            }
            self.done.push_back(tick);
        }
    }
}

/// Ticks of one activation that run at once, and done ticks of it that are remembered, each of another reminder.
pub const TICKS_MAX: usize = 64;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_tick_runs_again_until_it_is_done_and_never_beside_itself() {
        let mut log = TickLog::default();
        assert_eq!(log.begin(1), Ok(()));
        assert_eq!(log.begin(1), Err(TickRefusal::Running));
        log.end(1, false, |_| false);
        assert_eq!(log.begin(1), Ok(()), "its host was lost");
        log.end(1, true, |_| false);
        assert_eq!(log.begin(1), Err(TickRefusal::Done));
    }

    #[test]
    fn the_log_is_bounded_and_forgets_replaced_and_old_ticks() {
        let mut log = TickLog::default();
        for tick in 0..TICKS_MAX {
            assert_eq!(log.begin(tick), Ok(()));
        }
        assert_eq!(log.begin(TICKS_MAX), Err(TickRefusal::Running));
        for tick in 0..TICKS_MAX {
            log.end(tick, true, |_| false);
        }
        assert_eq!(log.begin(TICKS_MAX), Ok(()));
        log.end(TICKS_MAX, true, |done| *done == 5);
        assert_eq!(log.done.len(), TICKS_MAX);
        assert_eq!((log.begin(5), log.begin(6)), (Ok(()), Err(TickRefusal::Done)));
    }
}
