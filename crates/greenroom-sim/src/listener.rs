//! Listening and connecting.

use std::collections::VecDeque;
use std::future::poll_fn;
use std::io;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll, Waker};
use std::time::Duration;

use greenroom_world::{Listener, Stream};
use tokio::time::sleep;

use crate::connection::{Connection, End};
use crate::incarnation::Incarnation;
use crate::shared::{Core, Event, Shared};
use crate::stream::SimStream;
use crate::trace::Happening;

/// Where connections arrive and wait to be accepted.
#[derive(Default)]
pub(crate) struct Door {
    waiting: VecDeque<u64>,
    waker: Option<Waker>,
}

/// A simulated listener. Dropping it closes the port and resets who waits there.
pub(crate) struct SimListener {
    shared: Arc<Shared>,
    incarnation: Arc<Incarnation>,
    port: u16,
    address: String,
}

/// Opens a port of the node; 0 picks one. The host is the node, whatever `address` calls it.
pub(crate) fn listen(shared: &Arc<Shared>, node: &Arc<Incarnation>, address: &str) -> io::Result<Box<dyn Listener>> {
    let (_, port) = split(address)?;
    let (port, address) = shared.with(|core, _| {
        if node.is_dead() {
            return Err(io::Error::from(io::ErrorKind::NotConnected));
        }
        let machine = &mut core.machines[node.machine];
        let port = if port == 0 { machine.port() } else { port };
        let address = format!("{}:{port}", machine.name);
        if core.doors.contains_key(&(node.machine, port)) {
            return Err(io::Error::new(io::ErrorKind::AddrInUse, format!("{address} has a listener")));
        }
        core.doors.insert((node.machine, port), Door::default());
        Ok((port, address))
    })?;
    Ok(Box::new(SimListener { shared: shared.clone(), incarnation: node.clone(), port, address }))
}

impl SimListener {
    fn poll_accept(&self, cx: &Context<'_>) -> Poll<io::Result<(Box<dyn Stream>, String)>> {
        self.shared.with(|core, _| {
            let Some(door) = core.doors.get_mut(&(self.incarnation.machine, self.port)) else {
                return Poll::Ready(Err(io::ErrorKind::NotConnected.into()));
            };
            let Some(connection) = door.waiting.pop_front() else {
                door.waker = Some(cx.waker().clone());
                return Poll::Pending;
            };
            let stream = SimStream { shared: self.shared.clone(), connection, side: 1 };
            let from = core.connections.get(&connection).map(|found| (found.ends[0].machine, found.ends[0].port));
            let from =
                from.map_or_else(String::new, |(machine, port)| format!("{}:{port}", core.machines[machine].name));
            Poll::Ready(Ok((Box::new(stream) as Box<dyn Stream>, from)))
        })
    }
}

impl Listener for SimListener {
    fn accept(&mut self) -> Pin<Box<dyn Future<Output = io::Result<(Box<dyn Stream>, String)>> + Send + '_>> {
        Box::pin(poll_fn(|cx| self.poll_accept(cx)))
    }

    fn address(&self) -> String {
        self.address.clone()
    }
}

impl Drop for SimListener {
    fn drop(&mut self) {
        if self.incarnation.is_dead() {
            return;
        }
        self.shared.with(|core, now| {
            let door = core.doors.remove(&(self.incarnation.machine, self.port));
            for connection in door.into_iter().flat_map(|door| door.waiting) {
                core.reset_connection(now, connection, 1);
                core.close(now, connection, 1);
            }
        });
    }
}

/// Connects to `address` as TCP would: a cut swallows the attempt, which is repeated until patience ends.
pub(crate) async fn connect(
    shared: Arc<Shared>,
    node: Arc<Incarnation>,
    address: String,
) -> io::Result<Box<dyn Stream>> {
    let (host, port) = split(&address)?;
    let from = node.machine;
    let (to, patience) = shared.with(|core, now| {
        let to = if OWN_HOSTS.contains(&host) { from } else { core.machine(host) };
        let patience = core.random.within(&core.faults.connect_timeout.clone());
        (to, now + patience)
    });
    loop {
        let there = shared.with(|core, _| core.delay(from, to));
        pass(there).await;
        match shared.with(|core, now| core.knock(now, &node, to, port)) {
            Knock::Opened { connection } => {
                let stream = SimStream { shared: shared.clone(), connection, side: 0 };
                let back = shared.with(|core, _| core.delay(to, from));
                pass(back).await;
                if shared.with(|core, _| core.is_broken(connection, 0)) {
                    return Err(io::Error::new(
                        io::ErrorKind::ConnectionReset,
                        format!("{address} reset the connection"),
                    ));
                }
                return Ok(Box::new(stream));
            }
            Knock::Refused => {
                let back = shared.with(|core, _| core.delay(to, from));
                pass(back).await;
                shared.with(|core, now| core.record(now, Happening::Refused { from, to }));
                return Err(io::Error::new(io::ErrorKind::ConnectionRefused, format!("nothing listens at {address}")));
            }
            Knock::Silence => {
                let now = shared.now();
                if now >= patience {
                    shared.with(|core, now| core.record(now, Happening::TimedOut { from, to }));
                    return Err(io::Error::new(io::ErrorKind::TimedOut, format!("{address} does not answer")));
                }
                sleep(RETRANSMIT.min(patience - now)).await;
            }
        }
    }
}

/// What comes of an attempt to connect.
enum Knock {
    Opened { connection: u64 },
    Refused,
    Silence,
}

impl Core {
    fn knock(&mut self, now: Duration, node: &Incarnation, to: usize, port: u16) -> Knock {
        let from = node.machine;
        let cut = self.cuts.contains(&(from, to)) || self.cuts.contains(&(to, from));
        let machine = &self.machines[to];
        if cut || node.is_dead() || machine.incarnation.is_none() && machine.silent {
            return Knock::Silence;
        }
        let Some(door) = self.doors.get_mut(&(to, port)) else { return Knock::Refused };
        if door.waiting.len() >= WAITING_MAX {
            return Knock::Silence;
        }
        self.connections_made += 1;
        let connection = self.connections_made;
        door.waiting.push_back(connection);
        if let Some(waker) = door.waker.take() {
            waker.wake();
        }
        let own_port = self.machines[from].port();
        self.connections.insert(connection, Connection { ends: [End::new(from, own_port), End::new(to, port)] });
        self.record(now, Happening::Connected { connection, from, to });
        if let Some(life) = self.faults.connection_life.clone()
            && from != to
        {
            let at = now + self.random.within(&life);
            self.schedule(at, Event::LifeOver { connection });
        }
        Knock::Opened { connection }
    }
}

async fn pass(delay: Duration) {
    if !delay.is_zero() {
        sleep(delay).await;
    }
}

fn split(address: &str) -> io::Result<(&str, u16)> {
    let parts = address.rsplit_once(':').and_then(|(host, port)| Some((host, port.parse().ok()?)));
    parts.ok_or_else(|| io::Error::new(io::ErrorKind::InvalidInput, format!("{address:?} is not host:port")))
}

/// Names by which every node calls itself.
const OWN_HOSTS: [&str; 4] = ["localhost", "127.0.0.1", "0.0.0.0", "[::1]"];
/// Pause between two attempts at a peer that does not answer.
const RETRANSMIT: Duration = Duration::from_millis(250);
/// Connections that wait to be accepted, at most; more are not answered.
const WAITING_MAX: usize = 128;
