//! Until when this cluster may not be taken for lost, and since when another one is.
//!
//! A cluster that is taken out as lost may live behind a cut. Each of its nodes ends by itself what must be single, and its cluster's leases,
//! when no other cluster has answered it for half of [`lost_after`](super::GeoConfig::lost_after): who answers works by a list that this
//! cluster takes part in. The others count the whole of that time from when all of their nodes work by the list that says that it is
//! lost, as nobody answers it from then on; only then is it dropped, and what it owned is free.

use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use greenroom_protocols::gsi::ClusterId;
use greenroom_protocols::node::Instances;
use greenroom_world::Timestamp;

use super::clusters::{Clusters, id_of};
use super::{Event, Geo};
use crate::here::Here;

/// What a node knows of that.
#[derive(Default)]
pub(super) struct Term {
    /// When the last question was asked, in ns, that another cluster has answered.
    confirmed: AtomicU64,
    /// The longest time that a node which was heard is configured with, in ms.
    longest_ms: AtomicU64,
    fenced: AtomicBool,
    /// A list with lost clusters, and since when all others are known to work by it.
    taken: Mutex<Option<(u64, Timestamp)>>,
}

impl Term {
    /// Of a node that begins now, with nothing that it could give up.
    pub(super) fn new(now: Timestamp) -> Self {
        Self { confirmed: AtomicU64::new(now.as_nanos()), ..Self::default() }
    }
}

impl Geo {
    /// Takes in that who works by a list that this cluster takes part in has answered what was asked at `asked`, or that the list in its
    /// store says so which was read then.
    pub(super) fn confirmed(&self, asked: Timestamp) {
        self.term.confirmed.fetch_max(asked.as_nanos(), Ordering::AcqRel);
    }

    /// Takes in after what time another node's cluster gives up what must be single.
    pub(super) fn told_term(&self, lost_after_ms: u64) {
        self.term.longest_ms.fetch_max(lost_after_ms, Ordering::AcqRel);
    }

    /// Whether this cluster may be taken for lost.
    pub(super) fn is_fenced(&self) -> bool {
        self.term.fenced.load(Ordering::Acquire)
    }

    /// Looks whether this cluster may be taken for lost, and gives up what must be single while it may.
    pub(super) fn look_at_term(self: &Arc<Self>, node: &Here) {
        let (list, now, half) = (self.clusters(), self.world.now(), self.config.lost_after() / 2);
        let alone = !list.clusters.keys().any(|name| name != self.name() && list.is_member(name));
        let silent = now.since(Timestamp::from_nanos(self.term.confirmed.load(Ordering::Acquire)));
        let fenced = !half.is_zero() && !alone && silent >= half;
        if self.term.fenced.swap(fenced, Ordering::AcqRel) != fenced {
            if fenced {
                tracing::warn!(
                    silent_s = silent.as_secs(),
                    "no other cluster has answered for so long that this one may be taken for lost: pessimistic actors are refused here until one does"
                );
                // The lease of homes is given anew by what they say from now on.
                self.forget_clusters();
            } else {
                tracing::info!("another cluster answers: pessimistic actors are activated here again");
            }
            self.settle(node);
            if let Some(directory) = node.directory() {
                directory.all_abroad(self, now, || Event::Fenced(fenced));
            }
        }
        if fenced {
            self.leave(node, |key| self.instances(key.kind()) == Instances::Pessimistic);
        }
    }

    /// Whether what lost clusters own by this list has run out.
    pub(super) fn has_run_out(&self, node: &Here, list: &Clusters) -> bool {
        let said = self.acknowledged(node);
        let others = list.clusters.keys().filter(|name| list.is_member(name));
        let all =
            others.map(|name| said.get(&id_of(name))).all(|said| said.is_some_and(|said| said.epoch.0 >= list.epoch));
        let now = self.world.now();
        let mut taken = self.term.taken.lock().unwrap_or_else(PoisonError::into_inner);
        let since = match *taken {
            _ if !all => None,
            Some((epoch, since)) if epoch == list.epoch => Some(since),
            _ => Some(now),
        };
        *taken = since.map(|since| (list.epoch, since));
        let longest = Duration::from_millis(self.term.longest_ms.load(Ordering::Acquire)).max(self.config.lost_after());
        // Two clocks may run apart by a fiftieth.
        since.is_some_and(|since| now.since(since) >= longest + longest / 50)
    }

    /// Whether a cluster is let in, and answered.
    pub(super) fn answers_to(&self, cluster: ClusterId) -> bool {
        let list = self.clusters();
        list.name(cluster).is_some_and(|name| !list.lost.contains(name))
    }
}
