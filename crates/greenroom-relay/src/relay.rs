//! A relay: it hands connections on.

use std::fmt;
use std::io::{self, Read, Write};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::sync::Arc;
use std::thread;
use std::time::Duration;

use crate::gates::Gates;
use crate::line::pump;

/// From the first bytes of a connection, from whom to whom it is.
type Ends<End> = Arc<dyn Fn(&[u8]) -> Option<(End, End)> + Send + Sync>;

/// What is to be relayed, between ends that gates know as `End`s.
pub struct Relay<End> {
    target: String,
    gates: Arc<Gates<End>>,
    ends: Ends<End>,
    hold: Duration,
}

impl<End> Clone for Relay<End> {
    fn clone(&self) -> Self {
        let Self { target, gates, ends, hold } = self;
        Self { target: target.clone(), gates: gates.clone(), ends: ends.clone(), hold: *hold }
    }
}

impl<End: Ord + Clone + Send + Sync + 'static> Relay<End> {
    /// A relay to `target` that no gate is for, and that holds nothing.
    pub fn new(target: impl Into<String>, gates: Arc<Gates<End>>) -> Self {
        Self { target: target.into(), gates, ends: Arc::new(|_| None), hold: Duration::ZERO }
    }

    /// The same for connections that are all `from` one end, `to` the other.
    pub fn between(self, from: End, to: End) -> Self {
        self.told_by(move |_| Some((from.clone(), to.clone())))
    }

    /// The same, where the first bytes of a connection say from whom to whom it is; no gate is for those that do not.
    pub fn told_by(self, ends: impl Fn(&[u8]) -> Option<(End, End)> + Send + Sync + 'static) -> Self {
        Self { ends: Arc::new(ends), ..self }
    }

    /// The same with ends so far apart: every byte is held for half of it.
    pub fn round_trip(self, round_trip: Duration) -> Self {
        Self { hold: round_trip / 2, ..self }
    }

    /// Hands on what connects to `listener`, until this process ends; where that is.
    ///
    /// # Errors
    /// That the listener has no address.
    pub fn start(self, listener: TcpListener) -> io::Result<SocketAddr> {
        let address = listener.local_addr()?;
        thread::spawn(move || {
            for connection in listener.incoming().flatten() {
                let relay = self.clone();
                thread::spawn(move || relay.hand_on(connection));
            }
        });
        Ok(address)
    }

    /// Errors of either side end both: that is what they would see of each other.
    fn hand_on(&self, mut caller: TcpStream) {
        let mut first = [0; FIRST_LEN_MAX];
        let Ok(len @ 1..) = caller.read(&mut first) else { return };
        let ends = (self.ends)(&first[..len]);
        thread::sleep(self.hold);
        self.pass(ends.as_ref());
        let Ok(mut callee) = TcpStream::connect(&self.target) else { return };
        let halves = (caller.try_clone(), callee.try_clone());
        let (Ok(caller_too), Ok(callee_too)) = halves else { return };
        drop((caller.set_nodelay(true), callee.set_nodelay(true)));
        if callee.write_all(&first[..len]).is_err() {
            return;
        }
        let (back, back_ends) = (self.clone(), ends.clone().map(|(from, to)| (to, from)));
        thread::spawn(move || pump(callee_too, caller_too, back.hold, move || back.pass(back_ends.as_ref())));
        let there = self.clone();
        pump(caller, callee, self.hold, move || there.pass(ends.as_ref()));
    }

    fn pass(&self, ends: Option<&(End, End)>) {
        if let Some(way) = ends {
            self.gates.pass(way);
        }
    }
}

impl<End> fmt::Debug for Relay<End> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Relay").field("target", &self.target).field("hold", &self.hold).finish_non_exhaustive()
    }
}

const FIRST_LEN_MAX: usize = 16 << 10;
