//! Messages that are sent when they are due.

use std::collections::BTreeMap;
use std::time::Duration;

use super::{Outgoing, Slot, Timer};
use crate::reminders::Wall;
use crate::time::Timestamp;

/// The timers of one partition, by the time when they are due.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub(super) struct Timers<A, M> {
    /// When the ownership began, by both clocks: within it only the monotonic one counts.
    began: (Timestamp, Wall),
    waiting: BTreeMap<(Wall, Slot), Outgoing<A, M>>,
    /// What the next commit sends.
    due: Vec<Timer<A, M>>,
    /// Nothing is sent before this, as the journal has refused what was due.
    again_at: Timestamp,
}

impl<A, M> Timers<A, M> {
    pub(super) fn new(now: Timestamp, wall: Wall, timers: Vec<Timer<A, M>>) -> Self {
        let waiting = timers.into_iter().map(|Timer { due, slot, outgoing }| ((due, slot), outgoing)).collect();
        Self { began: (now, wall), waiting, due: Vec::new(), again_at: Timestamp::default() }
    }

    /// Takes in what a commit has put and removed.
    pub(super) fn committed(&mut self, changed: BTreeMap<(Wall, Slot), Option<Outgoing<A, M>>>) {
        for (key, outgoing) in changed {
            if let Some(outgoing) = outgoing {
                self.waiting.insert(key, outgoing);
            }
        }
    }

    /// Looks for what has become due.
    pub(super) fn tick(&mut self, now: Timestamp) {
        while let Some(entry) = self.waiting.first_entry() {
            let (due, slot) = *entry.key();
            if at(self.began, due).max(self.again_at) > now {
                return;
            }
            self.due.push(Timer { due, slot, outgoing: entry.remove() });
        }
    }

    /// Whether the next commit has something to send.
    pub(super) fn is_due(&self) -> bool {
        !self.due.is_empty()
    }

    /// At most `most` of what is due, for a commit.
    pub(super) fn take(&mut self, most: usize) -> Vec<Timer<A, M>> {
        self.due.drain(..most.min(self.due.len())).collect()
    }

    /// Takes back what a commit that was refused would have sent: the next one sends it, or a later one if nothing else
    /// can be to blame.
    pub(super) fn put_back(&mut self, now: Timestamp, due: Vec<Timer<A, M>>, alone: bool) {
        if alone {
            self.again_at = now + AGAIN_AFTER;
        }
        self.waiting.extend(due.into_iter().map(|Timer { due, slot, outgoing }| ((due, slot), outgoing)));
    }

    /// When this wants a [`tick`](Self::tick).
    pub(super) fn deadline(&self) -> Option<Timestamp> {
        let ((due, _), _) = self.waiting.first_key_value()?;
        Some(at(self.began, *due).max(self.again_at))
    }
}

/// When `due` is, by the clock of this ownership.
fn at((now, wall): (Timestamp, Wall), due: Wall) -> Timestamp {
    now + Duration::from_millis(due.0.saturating_sub(wall.0))
}

/// Pause after the journal has refused to send what was due.
const AGAIN_AFTER: Duration = Duration::from_secs(1);
