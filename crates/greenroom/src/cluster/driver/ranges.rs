//! What the driver does for the directory: reports of ranges, releases and deactivations, to other nodes and from them.

use std::collections::BTreeMap;

use greenroom_protocols::directory::{self, Epoch, Move, Placed, RangeId, Released};
use greenroom_protocols::node::NodeId;

use super::Driver;
use crate::actor::interface::Why;
use crate::cluster::control::{ControlMessage, Errand};
use crate::cluster::directory::{Entry, MoveWord};

impl Driver {
    pub(super) fn directory_actions(&mut self, actions: Vec<(RangeId, directory::Action<Entry>)>) {
        self.directory_actions_via(None, actions);
    }

    /// Reports go through the node `relay`, if there is one.
    fn directory_actions_via(&mut self, relay: Option<NodeId>, actions: Vec<(RangeId, directory::Action<Entry>)>) {
        let mut reports: BTreeMap<NodeId, Vec<directory::Report<Entry>>> = BTreeMap::new();
        for (range, action) in actions {
            match action {
                directory::Action::Report { to, report } => reports.entry(to).or_default().push(report),
                directory::Action::AskReport { from, view, via: None, .. } => {
                    self.send(from, &ControlMessage::AskReport { range, view });
                }
                directory::Action::AskReport { from, view, via: Some(relay), .. } => {
                    self.send(relay, &ControlMessage::Pass { to: from, errand: Errand::AskReport { range, view } });
                }
                directory::Action::Deactivate { node, key, epoch } if self.is_me(node) => self.deactivate(&key, epoch),
                directory::Action::Deactivate { node, key, epoch } => {
                    self.send(node, &ControlMessage::Deactivate { entry: key, epoch });
                }
                directory::Action::Ready => {}
            }
        }
        for (to, reports) in reports {
            // Reports of different ranges are independent: cut them where a frame would get too long.
            let mut batch = Vec::new();
            let mut entries = 0;
            for report in reports {
                entries += report.activations.len() + 1;
                batch.push(report);
                if entries >= ENTRIES_A_MESSAGE {
                    self.report(to, relay, std::mem::take(&mut batch));
                    entries = 0;
                }
            }
            if !batch.is_empty() {
                self.report(to, relay, batch);
            }
        }
    }

    fn report(&self, to: NodeId, relay: Option<NodeId>, reports: Vec<directory::Report<Entry>>) {
        match relay {
            None => {
                let doubtful = self.doubtful(&reports);
                self.send(to, &ControlMessage::Reports { reports, doubtful });
            }
            Some(relay) => {
                let doubtful = self.doubtful(&reports);
                self.send(relay, &ControlMessage::Pass { to, errand: Errand::Reports { reports, doubtful } });
            }
        }
    }

    pub(super) fn directory_event(&mut self, range: RangeId, event: directory::Event<Entry>) {
        self.directory_event_via(None, range, event);
    }

    pub(super) fn directory_event_via(
        &mut self,
        relay: Option<NodeId>,
        range: RangeId,
        event: directory::Event<Entry>,
    ) {
        let now = self.node.world().now();
        if let Some(directory) = self.node.directory() {
            let actions = directory.handle(now, range, event);
            self.directory_actions_via(relay, actions);
        }
    }

    pub(super) fn deactivate(&self, key: &Entry, epoch: Epoch) {
        let Some(directory) = self.node.directory() else { return };
        if let Some((shard, slot)) = directory.find(key, epoch) {
            return self.on_shard(Some(shard), move |shard| shard.end_activation(slot, Why::Superseded));
        }
        // Its state may be on its way: that is void then.
        if let Some(joined) = &self.joined {
            let wish = Move { key: key.clone(), from: Placed { node: joined.me, epoch }, to: joined.me };
            self.decided(wish, MoveWord::Superseded { host: None });
        }
    }

    pub(super) fn reports(&mut self, from: NodeId, reports: Vec<directory::Report<Entry>>, doubtful: Vec<Entry>) {
        // Before the range is known by the reports: nobody may take them for owned.
        self.reported_doubtful(doubtful.clone());
        for report in reports.into_iter().filter(|report| report.from == from) {
            self.directory_event(report.range, directory::Event::Report(report));
        }
        self.reported_doubtful(doubtful);
    }

    pub(super) fn released(&mut self, from: NodeId, released: Vec<Released<Entry>>) {
        for released in released.into_iter().filter(|released| released.placed.node == from) {
            let range = directory::range_of(released.key.hash());
            self.directory_event(range, directory::Event::Released(released));
        }
    }
}

/// Directory entries in one control message.
pub(super) const ENTRIES_A_MESSAGE: usize = 10_000;
