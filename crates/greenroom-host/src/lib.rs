//! A host in Rust: a process that runs turns of kinds which are not linked into the node that it dials. It is the reference for the
//! SDKs of other languages, small and readable; programs in Rust link their kinds into a node instead.
//!
//! The host opens no port. It dials a node's socket, says which kinds it offers, and is given *seats*: actors, whose turns the node
//! sends one by one. The activation stays in the node, with its mailbox, deadlines and saves; only the instance is here.
//!
//! # What it keeps to
//!
//! - It acts only while its lease lasts, which counts from when it asked for it: it looks before each turn, and after each call of a
//!   turn. When the lease is over, turns are dropped where they wait, and instances with them.
//! - A session that is lost never comes back: all is dropped before the node is dialed again.
//! - It says that it has dropped a lane only when it was asked, and nothing of that lane runs any more.
//! - State leaves in one frame with the reply.
//!
//! # Example
//!
//! `examples/odometer.rs` is a host of odometers; beside `greenroom node --name a`:
//!
//! ```sh
//! cargo run -p greenroom-host --example odometer -- unix:$XDG_RUNTIME_DIR/greenroom/a.sock
//! curl -d '{"by": 2}' localhost:7070/odometer/mine/add
//! ```

mod actor;
mod carried;
mod cx;
mod dial;
mod lane;
mod outbox;
mod session;
mod streams;

use std::io;
use std::pin::Pin;
use std::sync::Arc;
use std::time::Duration;

use greenroom_wire::host::{Closing, Ended as EndedSession};
use greenroom_world::World;
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::sync::watch;

pub use actor::{Actor, Ended, Kind, Turning, arguments, payload};
pub use cx::{CallError, Cx};
pub use dial::{door, unix};
pub use greenroom_wire::codec::Codec;
pub use session::Error;
pub use streams::Incoming;

/// A connection to a node.
pub trait Connection: AsyncRead + AsyncWrite + Send + Unpin {}

impl<T: AsyncRead + AsyncWrite + Send + Unpin> Connection for T {}

/// Opens a connection to a node: one for each lane.
pub type Dial = Arc<dyn Fn() -> Dialing + Send + Sync>;

/// A connection that is being opened.
pub type Dialing = Pin<Box<dyn Future<Output = io::Result<Box<dyn Connection>>> + Send>>;

/// A host, before it serves.
pub struct Host {
    pub(crate) name: String,
    pub(crate) kinds: Vec<Kind>,
    pub(crate) codecs: Vec<Codec>,
    /// Told `true` when the seats are to be given back.
    pub(crate) drain: watch::Receiver<bool>,
}

impl Host {
    /// A host of this name, for people, that offers nothing yet: a client.
    pub fn new(name: impl Into<String>) -> Self {
        Self {
            name: name.into(),
            kinds: Vec::new(),
            codecs: vec![Codec::MessagePack, Codec::Json],
            drain: watch::channel(false).1,
        }
    }

    /// The same, offering a kind.
    #[must_use]
    pub fn offer(mut self, kind: Kind) -> Self {
        self.kinds.push(kind);
        self
    }

    /// The same, given nothing but payloads in this codec: the node writes over what is in the other one.
    #[must_use]
    pub fn only(mut self, codec: Codec) -> Self {
        self.codecs = vec![codec];
        self
    }

    /// The same, which gives its seats back, saved, once `drain` is told `true`: no call fails, and then it is done.
    #[must_use]
    pub fn drained_by(mut self, drain: watch::Receiver<bool>) -> Self {
        self.drain = drain;
        self
    }

    /// Has one session with the node that `dial` reaches, from the Hello to its end. `welcomed` is given the way to the cluster's
    /// actors, once it is there.
    ///
    /// # Errors
    /// [`Error`]: the node cannot be reached, does not let the host in, or refuses an offer.
    ///
    /// # Cancel safety
    /// Dropping it leaves the session's tasks to end with their connections.
    pub async fn session(
        &self,
        world: Arc<dyn World>,
        dial: &Dial,
        ended: &mut Option<EndedSession>,
        welcomed: impl FnOnce(Cx) + Send,
    ) -> Result<Closing, Error> {
        session::run(self, world, dial, ended, welcomed).await
    }

    /// Serves until the node does not let the host in any more: a session that has ended is followed by another.
    ///
    /// # Errors
    /// [`Error`]: what a further session would not change.
    pub async fn serve(&self, world: Arc<dyn World>, dial: &Dial) -> Result<(), Error> {
        let (mut ended, mut pause) = (None, PAUSE_MIN);
        loop {
            let begun = world.now();
            match self.session(world.clone(), dial, &mut ended, |_| {}).await {
                Ok(Closing::Done) => return Ok(()),
                Ok(_) | Err(Error::Connect(_) | Error::Broken(_)) => {}
                Err(error) => return Err(error),
            }
            if world.now().since(begun) > PAUSE_MAX {
                pause = PAUSE_MIN;
            }
            world.sleep_until(world.now() + pause).await;
            pause = (pause * 2).min(PAUSE_MAX);
        }
    }
}

const PAUSE_MIN: Duration = Duration::from_millis(50);
const PAUSE_MAX: Duration = Duration::from_secs(2);
