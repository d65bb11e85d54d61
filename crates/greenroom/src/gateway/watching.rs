//! For whom a connection on which several requests run at once waits: the client, as long as one of its streams is full.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use super::connections::Seat;
use super::events::STALL_MAX;
use super::service::IDLE_GRACE;

/// What runs on one connection.
pub(super) struct Running {
    seat: Arc<Seat>,
    /// Time for which no request may run before the connection is closed.
    idle_max: Duration,
    state: Mutex<State>,
}

#[derive(Default)]
struct State {
    requests: usize,
    /// Since when no request runs, once the client has begun to speak.
    idle_since: Option<Instant>,
    next: u64,
    /// Streams whose client has something to take, and since when it has had it.
    full: BTreeMap<u64, Instant>,
}

/// One request of a connection, until it is dropped.
pub(super) struct Request {
    running: Arc<Running>,
    number: u64,
}

impl Running {
    /// Returns the state of a connection whose client has said nothing yet: until it does, `seat` waits as it did before.
    pub(super) fn new(seat: Arc<Seat>, idle_max: Duration) -> Arc<Self> {
        Arc::new(Self { seat, idle_max, state: Mutex::default() })
    }

    /// Notes that the client speaks the protocol: its requests may come when they like, within the idle time.
    pub(super) fn has_greeted(&self) {
        let mut state = self.lock();
        if state.requests == 0 {
            state.idle_since = Some(Instant::now());
            self.tell(&state);
        }
    }

    /// Resolves when no request has run for the idle time: then the client is asked to leave, and has [`IDLE_GRACE`] to do so.
    pub(super) async fn idle(&self) {
        loop {
            let now = Instant::now();
            let until = self.lock().idle_since.unwrap_or(now) + self.idle_max;
            if until <= now {
                return;
            }
            tokio::time::sleep_until(until.into()).await;
        }
    }

    pub(super) fn begin(self: &Arc<Self>) -> Request {
        let mut state = self.lock();
        state.requests += 1;
        state.idle_since = None;
        state.next += 1;
        self.tell(&state);
        Request { running: self.clone(), number: state.next }
    }

    fn lock(&self) -> std::sync::MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Says for whom the connection waits.
    fn tell(&self, state: &State) {
        match state.full.values().min() {
            Some(since) => self.seat.waits_since(*since, *since + STALL_MAX),
            None if state.requests > 0 => self.seat.works(),
            None => self.seat.waits(Instant::now() + self.idle_max + IDLE_GRACE),
        }
    }
}

impl Request {
    /// It is a stream, whose client may take its time.
    pub(super) fn watches(&self) {
        self.running.seat.watches();
    }

    /// Its client has something to take.
    pub(super) fn is_full(&self) {
        self.set(Some(Instant::now()));
    }

    /// Its client has taken it.
    pub(super) fn is_taken(&self) {
        self.set(None);
    }

    fn set(&self, since: Option<Instant>) {
        let mut state = self.running.lock();
        let changed = match since {
            Some(since) => state.full.insert(self.number, since).is_none(),
            None => state.full.remove(&self.number).is_some(),
        };
        if changed {
            self.running.tell(&state);
        }
    }
}

impl Drop for Request {
    fn drop(&mut self) {
        let mut state = self.running.lock();
        state.requests -= 1;
        if state.requests == 0 {
            state.idle_since = Some(Instant::now());
        }
        state.full.remove(&self.number);
        self.running.tell(&state);
    }
}

#[cfg(test)]
mod tests {
    use super::super::connections::Connections;
    use super::*;

    const IDLE: Duration = Duration::from_secs(75);

    #[test]
    fn a_connection_waits_for_its_client_while_one_of_its_streams_is_full() {
        let connections = Connections::new(8);
        let running = Running::new(connections.seat(Instant::now()).expect("there is room"), IDLE);
        let now = Instant::now;
        let (call, stream) = (running.begin(), running.begin());
        stream.watches();
        assert_eq!(connections.dismiss_watchers(now()), 0, "it is served");
        stream.is_full();
        call.is_taken();
        drop(call);
        stream.is_taken();
        assert_eq!(connections.dismiss_watchers(now()), 0, "the client has taken what there was");
        let call = running.begin();
        stream.is_full();
        assert_eq!(connections.dismiss_watchers(now()), 1, "whatever else runs on it");
        drop(call);
    }

    #[test]
    fn a_connection_on_which_nothing_runs_makes_room() {
        let connections = Connections::new(1);
        let running = Running::new(connections.seat(Instant::now()).expect("there is room"), IDLE);
        let request = running.begin();
        let next = connections.seat(Instant::now()).expect("for questions there is");
        assert!(next.is_reserved(), "it is served");
        drop((next, request));
        let next = connections.seat(Instant::now()).expect("there is room");
        assert!(!next.is_reserved() && connections.len() == 1);
    }
}
