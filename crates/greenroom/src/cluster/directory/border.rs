//! Where the directory of a cluster ends: who knows of other clusters has a say in what is granted of actors that these may
//! have too.

use std::any::Any;

use greenroom_protocols::directory::{Action, Epoch};
use greenroom_protocols::node::{NodeId, View};
use greenroom_world::Timestamp;

use super::{Directory, Entry, RangeHere};
use crate::actor::key::Kind;
use crate::geo::word::News;
use crate::here::Here;
use crate::shard::Shard;
use crate::shard::raw::RawParcel;

/// Who knows of other clusters. Of what is granted it is asked and told behind the lock of the actor's range, so that what is
/// allowed there and what is granted is one step.
pub(crate) trait Border: Any + Send + Sync {
    /// Whether an actor of `kind` may be active once over all clusters only.
    fn is_single(&self, kind: Kind) -> bool;

    /// Whether such an actor may be activated in this cluster now: nobody has to be asked.
    fn may_begin(&self, range: &RangeHere, key: &Entry) -> bool;

    /// The node that has read the actor's states early, if it may have the activation for who speaks this version.
    fn early_host(&self, range: &RangeHere, now: Timestamp, key: &Entry, node: &Here, wanted: u16) -> Option<NodeId>;

    /// Takes a message on its way for whose actor other clusters must be asked first.
    fn call(&self, shard: &Shard, parcel: RawParcel);

    /// Whether each cluster may have an instance of this actor now, which others need not know of.
    fn is_in_each(&self, key: &Entry) -> bool;

    /// Hears which activations that hosts have reported may not be the only ones over all clusters.
    fn reported(&self, directory: &Directory, now: Timestamp, keys: Vec<Entry>);

    /// Hears what another node of this cluster knows of the multi-cluster.
    fn told(&self, here: &Here, from: NodeId, news: News);

    /// Reads the states of an actor that this node may soon activate; `token` names the reading.
    fn read_early(&self, here: &Here, key: &Entry, token: u64);

    /// Hears that an activation of this epoch may use what was read under `token`.
    fn allow_early(&self, key: &Entry, token: u64, epoch: Epoch);

    /// Whether an activation that begins here may not be the only one over all clusters.
    fn begins_doubtful(&self, range: &mut RangeHere, key: &Entry, epoch: Epoch) -> bool;

    /// Hears that an actor was granted to a host.
    fn granted(&self, directory: &Directory, now: Timestamp, range: &mut RangeHere, key: &Entry, host: (NodeId, Epoch));

    /// Hears that an activation has ended, as the owner of its range.
    fn gone(&self, directory: &Directory, now: Timestamp, range: &mut RangeHere, key: &Entry);

    /// Hears that a view has changed who owns the range, or may have; `before` is its tenure until then.
    fn viewed(&self, directory: &Directory, now: Timestamp, range: &mut RangeHere, before: Option<u64>, view: &View);

    /// Hears that the range may be no longer in recovery.
    fn recovered(&self, now: Timestamp, range: &mut RangeHere);

    /// Hears what the range's machine has done.
    fn acted(&self, now: Timestamp, range: &mut RangeHere, actions: &[Action<Entry>]);
}

impl Directory {
    pub(in crate::cluster) fn border(&self) -> Option<&dyn Border> {
        self.border.as_deref()
    }

    pub(super) fn note_granted(&self, now: Timestamp, range: &mut RangeHere, key: &Entry, host: (NodeId, Epoch)) {
        if let Some(border) = self.border() {
            border.granted(self, now, range, key, host);
        }
    }

    pub(super) fn note_gone(&self, now: Timestamp, range: &mut RangeHere, key: &Entry) {
        if let Some(border) = self.border() {
            border.gone(self, now, range, key);
        }
    }
}

/// What the border keeps of one range's actors, if anything.
#[derive(Default)]
pub(crate) struct Beyond(Option<Box<dyn Any + Send>>);

impl Beyond {
    pub(crate) fn get<T: Any + Send>(&self) -> Option<&T> {
        self.0.as_deref()?.downcast_ref()
    }

    pub(crate) fn get_mut<T: Any + Send>(&mut self) -> Option<&mut T> {
        self.0.as_deref_mut()?.downcast_mut()
    }

    /// The same, made if it is not there.
    ///
    /// # Panics
    /// If something of another type is kept.
    pub(crate) fn get_or_default<T: Any + Send + Default>(&mut self) -> &mut T {
        let kept = self.0.get_or_insert_with(|| Box::<T>::default());
        kept.downcast_mut().expect("one border keeps one type")
    }
}
