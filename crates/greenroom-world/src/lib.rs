//! The seam between Greenroom and the world: time, randomness, tasks and sockets.
//!
//! All non-determinism of a node passes through a [`World`]. There are two: [`real::RealWorld`] here (tokio, TCP, the
//! system's clock), and the simulated one in `greenroom-sim` (one thread, virtual time, a seeded network with faults).
//! The same library code runs in both.

pub mod real;

use std::future::Future;
use std::io;
use std::pin::Pin;
use std::time::Duration;

pub use greenroom_protocols::time::Timestamp;
use tokio::io::{AsyncRead, AsyncWrite};

/// A boxed future that may cross threads.
pub type BoxFuture<T> = Pin<Box<dyn Future<Output = T> + Send>>;

/// A boxed future that stays on the thread that made it.
pub type LocalFuture = Pin<Box<dyn Future<Output = ()>>>;

/// What [`Listener::accept`] gives: a connection, and the address that it comes from.
pub type Accepting<'a> = Pin<Box<dyn Future<Output = io::Result<(Box<dyn Stream>, String)>> + Send + 'a>>;

/// What runs on a thread: called there once, it gives the future that is the thread's whole life.
pub type ThreadBody = Box<dyn FnOnce() -> LocalFuture + Send>;

/// Everything a node may ask of its surroundings.
pub trait World: Send + Sync + 'static {
    /// This node's monotonic clock. It counts time during which the machine was suspended.
    fn now(&self) -> Timestamp;

    /// Time since 1970 in UTC, by the machine's wall clock: it may be set, and differs between machines. Only what people
    /// have put on a calendar is judged by it.
    fn wall(&self) -> Duration;

    /// 64 random bits; seeded in a simulation.
    fn random(&self) -> u64;

    /// Resolves when [`World::now`] has reached `at`.
    fn sleep_until(&self, at: Timestamp) -> BoxFuture<()>;

    /// Runs `task` on `stage` until it ends or the node dies.
    fn spawn(&self, stage: Stage, task: BoxFuture<()>);

    /// Starts a shard: a thread of its own in the real world, a task in a simulation.
    ///
    /// # Errors
    /// The system's error when no thread can be started.
    fn start_shard(&self, name: String, body: ThreadBody) -> io::Result<()>;

    /// Starts a thread for what blocks: one of its own in the real world, in no async runtime's context, so that what runs there may
    /// use a runtime of its own; a task in a simulation, where nothing blocks.
    ///
    /// # Errors
    /// The system's error when no thread can be started.
    fn start_blocking(&self, name: String, body: ThreadBody) -> io::Result<()>;

    /// Accepts connections at `address` (`host:port`; port 0 lets the system choose).
    fn listen(&self, address: &str) -> BoxFuture<io::Result<Box<dyn Listener>>>;

    /// Opens a connection to `address`.
    fn connect(&self, address: &str) -> BoxFuture<io::Result<Box<dyn Stream>>>;

    /// CPU time that the calling thread has used; `None` where nothing takes any, as in a simulation.
    fn thread_time(&self) -> Option<Duration> {
        None
    }

    /// For how long the calling thread was ready to run, and had no core; `None` where the system does not say, or nothing ever
    /// waits for a core, as in a simulation.
    fn thread_ready(&self) -> Option<Duration> {
        None
    }

    /// How often the calling thread has gone to sleep of its own accord, to wait for something; `None` where none ever does, as in a
    /// simulation.
    fn thread_sleeps(&self) -> Option<u64> {
        None
    }

    /// How long a shard that has run out of work looks for more before it parks; zero in a simulation.
    fn spin(&self) -> Duration;

    /// Lets whoever waits for this core go first: called between two looks while a shard spins. Nothing in a simulation.
    fn give_way(&self) {}
}

/// Where a task of the node runs.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Stage {
    /// Membership, directory hand-over, failure detection: never behind user traffic.
    Control,
    /// Gateways: HTTP and whatever outside clients cause.
    Door,
    /// What actors have to do with stores while no turn of theirs runs.
    Store,
    /// Answers about the node and its cluster, which may take long to put together: never before calls and health.
    Inspection,
}

/// A connection: bytes both ways, in order.
pub trait Stream: AsyncRead + AsyncWrite + Send + Unpin {
    /// Moves the connection to the reactor of the calling thread.
    ///
    /// # Errors
    /// The system's error when the socket cannot be registered.
    fn rebind(self: Box<Self>) -> io::Result<Box<dyn Stream>>;
}

/// Accepts connections.
pub trait Listener: Send {
    /// The next connection and the address that it comes from.
    ///
    /// # Cancel safety
    /// Safe: no accepted connection is lost.
    fn accept(&mut self) -> Accepting<'_>;

    /// Where this listener accepts, with the port that the system chose.
    fn address(&self) -> String;
}
