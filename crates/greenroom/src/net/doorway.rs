//! Letting connections in, so many at once.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use greenroom_world::{BoxFuture, Listener, Stage, Stream};

use crate::here::Here;

/// A connection's place among those that a doorway has room for, until it is dropped.
pub(crate) struct Place(Arc<AtomicUsize>);

impl Drop for Place {
    fn drop(&mut self) {
        self.0.fetch_sub(1, Ordering::AcqRel);
    }
}

/// Gives each connection that comes, with the address that it comes from, to a task of its own, until the node stops. One that comes
/// while `places` are taken is dropped and counted: strangers that say nothing must not keep friends out for long, nor cost memory.
pub(crate) async fn let_in(
    node: Arc<Here>,
    mut listener: Box<dyn Listener>,
    places: usize,
    serve: impl Fn(Box<dyn Stream>, String, Place) -> BoxFuture<()>,
) {
    let taken = Arc::new(AtomicUsize::new(0));
    let world = node.world();
    loop {
        let (stream, from) = match listener.accept().await {
            Ok(accepted) => accepted,
            Err(error) => {
                tracing::warn!(%error, "a connection could not be accepted");
                world.sleep_until(world.now() + ACCEPT_PAUSE).await;
                continue;
            }
        };
        if node.is_stopped() {
            return;
        }
        let is_full = taken.fetch_add(1, Ordering::AcqRel) >= places;
        let place = Place(taken.clone());
        if is_full {
            node.strangers().count_refused();
            continue;
        }
        world.spawn(Stage::Control, serve(stream, from, place));
    }
}

/// Pause after a failed accept: the usual cause, too many open files, passes.
const ACCEPT_PAUSE: Duration = Duration::from_millis(50);
