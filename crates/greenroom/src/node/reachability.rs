//! The node dials the address that it tells others, as they would: if that does not lead back to it, no other node can join, and
//! nobody but the node itself would say why.

use std::io;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use greenroom_protocols::node::NodeId;
use greenroom_wire::{Decoder, Hello, HelloBody, Lane};
use greenroom_world::Stage;

use crate::here::Here;
use crate::here::parts::Part;
use crate::net::{OPEN_TIMEOUT, dial, within};

/// Why the node's own address does not lead back to it, as it was last tried.
#[derive(Default)]
pub(crate) struct Reachability(Mutex<Option<String>>);

impl Part for Reachability {}

impl Reachability {
    /// Returns what is wrong with the address, if anything is.
    pub(super) fn trouble(&self) -> Option<String> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    fn note(&self, trouble: Option<String>) {
        *self.0.lock().unwrap_or_else(PoisonError::into_inner) = trouble;
    }
}

/// Dials the address again and again, until the node stops. A simulated network has no address that leads elsewhere.
pub(super) fn watch(node: &Arc<Here>) {
    if node.world().thread_time().is_none() {
        return;
    }
    let here = node.clone();
    node.world().spawn(Stage::Door, Box::pin(async move { look_after(&here).await }));
}

async fn look_after(here: &Here) {
    let world = here.world();
    while !here.is_stopped() {
        if here.takes_part() {
            let timeout = world.sleep_until(world.now() + OPEN_TIMEOUT);
            let found = within(timeout, reach(here)).await;
            if let Some(reachability) = here.find_part::<Reachability>() {
                reachability.note(found.err().map(|error| error.to_string()));
            }
        }
        world.sleep_until(world.now() + if here.takes_part() { EVERY } else { JOIN_POLL }).await;
    }
}

/// Succeeds if the node itself answers at its address.
async fn reach(here: &Here) -> io::Result<()> {
    let body = HelloBody::new(&here.config().cluster, here.me().0, here.name(), Lane::Look);
    let address = here.advertised();
    let answered = dial(&**here.world(), here.links(), address, &Hello::new(body), Decoder::default()).await?;
    match NodeId(answered.hello.body.node) {
        peer if peer == here.me() => Ok(()),
        _ => Err(io::Error::other(format!("node {:?} answers there", answered.hello.body.name))),
    }
}

/// Time between two attempts.
const EVERY: Duration = Duration::from_secs(10);
/// Time between two looks for whether the node has joined.
const JOIN_POLL: Duration = Duration::from_millis(200);
