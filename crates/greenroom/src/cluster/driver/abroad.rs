//! What nodes of a cluster tell each other for the multi-cluster that it is in.

use greenroom_protocols::directory::{Epoch, Report};
use greenroom_protocols::node::NodeId;

use super::super::control::ControlMessage;
use super::ranges::ENTRIES_A_MESSAGE;
use super::{Driver, Entry};
use crate::actor::interface::Why;
use crate::geo::word::News;

impl Driver {
    pub(super) fn tell_clusters(&self, news: &News) {
        for (peer, _) in self.node.view().view.active().filter(|(peer, _)| !self.is_me(*peer)) {
            self.send(peer, &ControlMessage::Clusters(Box::new(news.clone())));
        }
    }

    pub(super) fn told_of_clusters(&self, from: NodeId, news: News) {
        if let Some(border) = self.node.border() {
            border.told(&self.node, from, news);
        }
    }

    pub(super) fn owned(&self, key: &Entry, epoch: Epoch, early: Option<u64>, reload: bool) {
        if let (Some(border), Some(token)) = (self.node.border(), early) {
            border.allow_early(key, token, epoch);
        }
        let found = self.node.directory().and_then(|directory| directory.owned(key, epoch));
        if let (Some((shard, slot)), true) = (found, reload) {
            self.on_shard(Some(shard), move |shard| shard.reload_activation(slot));
        }
    }

    pub(super) fn read_early(&self, key: &Entry, token: u64) {
        if let Some(border) = self.node.border() {
            border.read_early(&self.node, key, token);
        }
    }

    /// Ends an activation; who owns its range hears of its end as of any other.
    pub(super) fn end(&self, key: &Entry, epoch: Epoch, why: Why) {
        let Some(directory) = self.node.directory() else { return };
        match directory.find(key, epoch) {
            Some((shard, slot)) => self.on_shard(Some(shard), move |shard| shard.end_activation(slot, why)),
            // The word to end it comes again.
            None if directory.is_beginning(key, epoch) => {}
            // The message that brought its grant is lost, or on its way still: it never begins.
            None => self.node.release(&key.id(), epoch),
        }
    }

    /// The reported activations that may not be the only ones over all clusters.
    pub(super) fn doubtful(&self, reports: &[Report<Entry>]) -> Vec<Entry> {
        let ranges = reports.iter().map(|report| report.range);
        self.node.directory().map(|directory| directory.doubtful(ranges)).unwrap_or_default()
    }

    /// Tells the owners of ranges which activations here may not be the only ones: an owner that knows better says so again.
    pub(super) fn tell_doubtful(&self) {
        let Some(directory) = self.node.directory() else { return };
        for (owner, keys) in directory.in_doubt() {
            for doubtful in keys.chunks(ENTRIES_A_MESSAGE).map(<[Entry]>::to_vec) {
                match self.is_me(owner) {
                    true => self.reported_doubtful(doubtful),
                    false => self.send(owner, &ControlMessage::Reports { reports: Vec::new(), doubtful }),
                }
            }
        }
    }

    pub(super) fn reported_doubtful(&self, doubtful: Vec<Entry>) {
        if let (Some(directory), Some(border)) = (self.node.directory(), self.node.border()) {
            border.reported(directory, self.node.world().now(), doubtful);
        }
    }
}
