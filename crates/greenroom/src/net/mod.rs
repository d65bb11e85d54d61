//! Connections between nodes and between clusters: how one is opened, how one is let in, and how both begin, with a hello of each side.
//!
//! What is said behind the hellos, and how long somebody may be silent then, is the affair of whom the connection is for.

mod dial;
mod doorway;
mod greeting;
mod lingering;

pub(crate) use self::dial::{Answered, dial, dial_node};
pub(crate) use self::doorway::{Place, let_in};
pub(crate) use self::greeting::{Answer, greet, say, too_late, turn_away};
pub(crate) use self::lingering::Lingering;

use std::io;
use std::time::Duration;

use greenroom_world::BoxFuture;

/// What `work` gives, or an error once `timeout` is over.
pub(crate) async fn within<T>(mut timeout: BoxFuture<()>, work: impl Future<Output = io::Result<T>>) -> io::Result<T> {
    let mut work = std::pin::pin!(work);
    std::future::poll_fn(|context| {
        if let std::task::Poll::Ready(done) = work.as_mut().poll(context) {
            return std::task::Poll::Ready(done);
        }
        timeout.as_mut().poll(context).map(|()| Err(io::ErrorKind::TimedOut.into()))
    })
    .await
}

/// Time for a connection to open, hellos included.
pub(crate) const OPEN_TIMEOUT: Duration = Duration::from_secs(5);
