//! What a node measures and remembers for those who look at it. Looking changes nothing: it activates no actor, runs nobody's code,
//! and takes no shard's time but for what is already published.
//!
//! Once a second what the shards have published goes into rings (`history.rs`). What a node says of itself is the answer to a
//! [`Question`](question::Question); whoever looks at any node hears all of them (`look.rs`), and what they say is added up
//! (`overview.rs`, `methods.rs`, `turns.rs`, `stage`).

pub(crate) mod actors;
pub(crate) mod events;
pub(crate) mod failure_counts;
pub(crate) mod findings;
pub(crate) mod following;
pub(crate) mod history;
pub(crate) mod level;
pub(crate) mod look;
pub(crate) mod memory;
pub(crate) mod methods;
pub(crate) mod overview;
pub(crate) mod question;
pub(crate) mod stage;
pub(crate) mod standing;
pub(crate) mod subject;
pub(crate) mod tail;
pub(crate) mod turns;
pub(crate) mod whereabouts;
pub(crate) mod word;

use std::sync::{Arc, Mutex, OnceLock, PoisonError};
use std::time::Duration;

use greenroom_world::{Stage, Timestamp};

use self::history::{Point, Reading, Rings};
use crate::here::Here;
use crate::here::meter::Histogram;
use crate::here::parts::Part;

/// What a node keeps for those who look at it.
#[derive(Default)]
pub(crate) struct Observed(Arc<Kept>);

#[derive(Default)]
struct Kept {
    begun: OnceLock<Timestamp>,
    /// How long calls from outside of the cluster took that the doors have answered.
    outside: Histogram,
    past: Mutex<Past>,
}

#[derive(Default)]
struct Past {
    rings: Rings,
    /// How busy each shard was in the last second: 1 is always.
    busy: Vec<f64>,
}

impl Observed {
    /// Notes that a call from outside has been answered, which took so long.
    pub(crate) fn answered(&self, took: Duration) {
        self.0.outside.add_shared(took);
    }

    /// How long the node has been there at `now`.
    pub(crate) fn uptime(&self, now: Timestamp) -> Duration {
        self.0.begun.get().map_or(Duration::ZERO, |begun| now.since(*begun))
    }

    /// The last `seconds`, as far as they are kept: how many seconds a point stands for, and the points, the newest last.
    pub(crate) fn last(&self, seconds: u32) -> (u32, Vec<Option<Point>>) {
        self.past(|past| past.rings.last(seconds))
    }

    /// How busy each shard was in the last second.
    pub(crate) fn busy(&self) -> Vec<f64> {
        self.past(|past| past.busy.clone())
    }

    fn past<T>(&self, look: impl FnOnce(&Past) -> T) -> T {
        look(&self.0.past.lock().unwrap_or_else(PoisonError::into_inner))
    }
}

impl Part for Observed {
    fn start(&self, here: &Arc<Here>) {
        let kept = self.0.clone();
        let begun = here.world().now();
        kept.begun.get_or_init(|| begun);
        let node = here.clone();
        let remembering = async move {
            let mut before = Reading::of(&node, &kept.outside, begun);
            while !node.is_stopped() {
                let world = node.world();
                world.sleep_until(before.at + EVERY).await;
                let now = Reading::of(&node, &kept.outside, world.now());
                let mut past = kept.past.lock().unwrap_or_else(PoisonError::into_inner);
                past.busy = now.busy_since(&before);
                past.rings.push(now.at.since(before.at), now.since(&before));
                drop(past);
                node.events().tell_moves(node.wall());
                before = now;
            }
        };
        here.world().spawn(Stage::Door, Box::pin(remembering));
    }
}

/// Time between two readings.
const EVERY: Duration = Duration::from_secs(1);
