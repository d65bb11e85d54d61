//! Who is connected, and for whom the door waits.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Instant;

use tokio::sync::Notify;

/// The connections of a door, at most so many.
pub(super) struct Connections {
    max: usize,
    state: Arc<Mutex<State>>,
}

#[derive(Default)]
struct State {
    next: u64,
    seats: BTreeMap<u64, Occupant>,
    /// Those that the door waits for, by since when.
    waiting: BTreeSet<(Instant, u64)>,
}

struct Occupant {
    /// Since when the door waits for it, and until when.
    waits: Option<(Instant, Instant)>,
    /// Whether it watches a stream of events, or has a WebSocket.
    watches: bool,
    /// Told when it must leave, or earlier than it was to.
    changed: Arc<Notify>,
}

/// One connection's place. Dropping it frees the place.
pub(super) struct Seat {
    number: u64,
    changed: Arc<Notify>,
    state: Arc<Mutex<State>>,
    reserved: bool,
    /// True between an answer and the first byte of the next request.
    idle: AtomicBool,
}

impl Connections {
    pub(super) fn new(max: usize) -> Self {
        Self { max, state: Arc::default() }
    }

    /// A place for a connection that must have asked for something by `until`. If all are taken, the connection that has
    /// kept the door waiting longest leaves. If the door waits for none of them, there are a few places for those who ask how
    /// the node is: `None` if these are taken too.
    pub(super) fn seat(&self, until: Instant) -> Option<Arc<Seat>> {
        let mut state = lock(&self.state);
        let reserved = state.seats.len() >= self.max && !state.dismiss();
        if reserved && state.seats.len() >= self.max + RESERVED {
            return None;
        }
        let number = state.next;
        state.next += 1;
        let changed = Arc::new(Notify::new());
        state.seats.insert(number, Occupant { waits: None, watches: false, changed: changed.clone() });
        state.set(number, Some((Instant::now(), until)));
        Some(Arc::new(Seat { number, changed, state: self.state.clone(), reserved, idle: AtomicBool::new(false) }))
    }

    /// Makes room.
    pub(super) fn dismiss_longest_waiting(&self) {
        lock(&self.state).dismiss();
    }

    /// Has some of those watchers leave whom the door has waited for since then or for longer: those that it has waited for longest.
    pub(super) fn dismiss_watchers(&self, since: Instant) -> usize {
        let mut state = lock(&self.state);
        let watches = |number: &u64| state.seats.get(number).is_some_and(|occupant| occupant.watches);
        let stalled = state.waiting.iter().take_while(|(at, _)| *at <= since).filter(|(_, number)| watches(number));
        let stalled: Vec<(Instant, u64)> = stalled.take(DISMISSED_AT_ONCE).copied().collect();
        for place in &stalled {
            state.waiting.remove(place);
            if let Some(occupant) = state.seats.remove(&place.1) {
                occupant.changed.notify_one();
            }
        }
        stalled.len()
    }

    pub(super) fn len(&self) -> usize {
        lock(&self.state).seats.len()
    }
}

impl State {
    fn dismiss(&mut self) -> bool {
        let Some((_, number)) = self.waiting.pop_first() else { return false };
        if let Some(occupant) = self.seats.remove(&number) {
            occupant.changed.notify_one();
        }
        true
    }

    fn set(&mut self, number: u64, waits: Option<(Instant, Instant)>) {
        // One that was told to leave is not taken in again.
        let Some(occupant) = self.seats.get_mut(&number) else { return };
        if let Some((before, until)) = std::mem::replace(&mut occupant.waits, waits) {
            self.waiting.remove(&(before, number));
            if waits.is_some_and(|(_, earlier)| earlier < until) {
                occupant.changed.notify_one();
            }
        }
        if let Some((since, _)) = waits {
            self.waiting.insert((since, number));
        }
    }
}

impl Seat {
    /// Whether it has one of the places that are kept for those who ask how the node is.
    pub(super) fn is_reserved(&self) -> bool {
        self.reserved
    }

    /// It watches a stream from now on.
    pub(super) fn watches(&self) {
        if let Some(occupant) = lock(&self.state).seats.get_mut(&self.number) {
            occupant.watches = true;
        }
    }

    /// The door waits for the client, until then.
    pub(super) fn waits(&self, until: Instant) {
        self.waits_since(Instant::now(), until);
    }

    /// The door has waited for the client since then, and waits until then.
    pub(super) fn waits_since(&self, since: Instant, until: Instant) {
        lock(&self.state).set(self.number, Some((since, until)));
    }

    /// Notes that the last request is answered: the next one may take until then to begin.
    pub(super) fn lies_idle(&self, until: Instant) {
        self.idle.store(true, Ordering::Relaxed);
        self.waits(until);
    }

    /// Notes that the client has sent something. The first bytes after an idle time begin a request, whose head must have come by
    /// `head_until`.
    pub(super) fn hears(&self, head_until: Instant) {
        if self.idle.swap(false, Ordering::Relaxed) {
            self.waits(head_until);
        }
    }

    /// The client waits for the door.
    pub(super) fn works(&self) {
        lock(&self.state).set(self.number, None);
    }

    /// Resolves when the connection must go.
    pub(super) async fn outstayed(&self) {
        loop {
            let until = match lock(&self.state).seats.get(&self.number) {
                Some(occupant) => occupant.waits.map(|(_, until)| until),
                None => return,
            };
            let now = Instant::now();
            let look_again = match until {
                Some(until) if until <= now => return,
                Some(until) => until,
                None => now + LOOK_AGAIN,
            };
            tokio::select! {
                () = self.changed.notified() => {}
                () = tokio::time::sleep_until(look_again.into()) => {}
            }
        }
    }
}

impl Drop for Seat {
    fn drop(&mut self) {
        let mut state = lock(&self.state);
        state.set(self.number, None);
        state.seats.remove(&self.number);
    }
}

fn lock(state: &Mutex<State>) -> std::sync::MutexGuard<'_, State> {
    state.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Places beyond all others, for health, status and metrics.
pub(super) const RESERVED: usize = 16;
/// Watchers that leave at a time: what they hold is free a moment later.
const DISMISSED_AT_ONCE: usize = 16;
/// How often a connection that is being served is looked at.
const LOOK_AGAIN: std::time::Duration = std::time::Duration::from_secs(1);
