//! Agreement on the list of clusters, as this node takes part in it: which list it works by, whether that is in force, and whether this
//! cluster may be taken for lost.
//!
//! [`ListKeeper`] has the rules. A cluster that is removed as lost may live behind a cut. Each of its nodes ends by itself what must be
//! single, and its cluster's leases, when no majority has answered it for half of [`lost_after`](super::GeoConfig::lost_after). The others
//! count the whole of that time from when the list that removes it is in force; only then is it dropped, and its ownerships are free.

use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use greenroom_protocols::cluster_list::{Action, Answer, Config, Event as ListEvent, ListKeeper, ListStep};
use greenroom_protocols::gsi::{ClusterId, ConfigEpoch};
use greenroom_protocols::node::Instances;
use greenroom_world::Timestamp;
use tokio::sync::Notify;

use super::accepted::AcceptedList;
use super::clusters::{Clusters, EPOCH_MAX};
use super::listing::Stored;
use super::word::ListAnswer;
use super::{Event, Geo};
use crate::here::Here;

/// A node's part in the agreement.
pub(super) struct Term {
    keeper: Mutex<ListKeeper>,
    accepted: AcceptedList,
    /// The list that is to be written to the membership table.
    heard: Mutex<Option<Stored>>,
    pub(super) to_accept: Notify,
    /// The longest time that a node which was heard is configured with, in ms.
    longest_ms: AtomicU64,
    fenced: AtomicBool,
}

impl Term {
    /// The part of a node of the cluster `me` that starts with `list`.
    pub(super) fn new(
        me: ClusterId,
        list: &Clusters,
        in_force: bool,
        accepted: AcceptedList,
        lost_after: Duration,
        now: Timestamp,
    ) -> Self {
        let config = Config { lost_after, checks: Default::default() };
        Self {
            keeper: Mutex::new(ListKeeper::new(me, list.quorum(), in_force, config, now)),
            accepted,
            heard: Mutex::default(),
            to_accept: Notify::new(),
            longest_ms: AtomicU64::default(),
            fenced: AtomicBool::default(),
        }
    }

    /// The rules' view of the list.
    pub(super) fn keeper(&self) -> MutexGuard<'_, ListKeeper> {
        self.keeper.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn longest(&self) -> Duration {
        Duration::from_millis(self.longest_ms.load(Ordering::Acquire))
    }
}

impl Geo {
    /// Takes in that a cluster has answered what was asked at `asked`. A node of an earlier version does not say which list it works by: it
    /// counts as one that works by an earlier list.
    pub(super) fn answered(
        self: &Arc<Self>,
        node: &Here,
        cluster: ClusterId,
        asked: Timestamp,
        by: Option<ListAnswer>,
    ) {
        let ListAnswer { epoch, base } = by.unwrap_or_default();
        let answer = Answer { cluster, asked, number: ConfigEpoch(epoch), base: ConfigEpoch(base) };
        self.learn_of_list(node, ListEvent::Answered(answer));
    }

    /// Takes in that the list in its store, read at `asked`, names this cluster.
    pub(super) fn read_listing(self: &Arc<Self>, node: &Here, asked: Timestamp, epoch: u64) {
        self.learn_of_list(node, ListEvent::StoreRead { asked, number: ConfigEpoch(epoch) });
    }

    /// This node's answer to another cluster's question.
    pub(super) fn list_answer(&self) -> ListAnswer {
        let keeper = self.term.keeper();
        ListAnswer { epoch: keeper.list().number().0, base: keeper.list().base().0 }
    }

    /// Takes in after what time another node's cluster gives up what must be single.
    pub(super) fn told_term(&self, lost_after_ms: u64) {
        self.term.longest_ms.fetch_max(lost_after_ms, Ordering::AcqRel);
    }

    /// True while this cluster may be taken for lost.
    pub(super) fn is_fenced(&self) -> bool {
        self.term.fenced.load(Ordering::Acquire)
    }

    /// True if the list that this node works by is in force, as far as it knows.
    pub(super) fn is_in_force(&self) -> bool {
        self.term.keeper().is_in_force()
    }

    /// Takes in which list another node works by. A list that this cluster does not work by yet is first written to its membership table.
    pub(super) fn hear(self: &Arc<Self>, node: &Here, list: Clusters, in_force: bool) {
        let known = self.clusters();
        if list.epoch == known.epoch && list.configuration() != known.configuration() {
            tracing::error!(
                epoch = list.epoch,
                "two different lists of clusters have the same number; give one of them a higher one"
            );
            return;
        }
        let quorum = list.quorum();
        if list.epoch < known.epoch || quorum == known.quorum() && !in_force {
            return;
        }
        if let Err(why) = list.check() {
            tracing::error!(epoch = list.epoch, why, "a list of clusters cannot be used");
            return;
        }
        let mut actions = Vec::new();
        self.term.keeper().handle(self.world.now(), ListEvent::Heard { list: quorum, in_force }, &mut actions);
        if actions.iter().any(|action| matches!(action, Action::Accept(_))) {
            *self.term.heard.lock().unwrap_or_else(PoisonError::into_inner) = Some(Stored { list, in_force });
            self.term.to_accept.notify_one();
        }
        self.act(node, actions);
    }

    /// Writes the list that was heard to the membership table, and works by the one that is there.
    pub(super) async fn accept_heard(self: &Arc<Self>, node: &Here) {
        let heard = self.term.heard.lock().unwrap_or_else(PoisonError::into_inner).take();
        let Some(Stored { list, in_force }) = heard else { return };
        match self.term.accepted.accept(&list, in_force).await {
            Ok(stored) => self.accepted(node, stored),
            // It is heard again.
            Err(why) => tracing::warn!(epoch = list.epoch, why, "a new list of clusters is not worked by yet"),
        }
    }

    /// Writes a list that this node has made to the membership table, and works by it.
    ///
    /// # Errors
    /// Why it is not worked by.
    pub(super) async fn accept_own(self: &Arc<Self>, node: &Here, list: Clusters) -> Result<(), String> {
        let stored = self.term.accepted.accept(&list, false).await?;
        let own = stored.list == list;
        self.accepted(node, stored);
        own.then_some(()).ok_or_else(|| OVERTAKEN.to_owned())
    }

    fn accepted(self: &Arc<Self>, node: &Here, stored: Stored) {
        let quorum = stored.list.quorum();
        if stored.list.epoch > self.clusters().epoch {
            self.work_by(node, stored.list);
            self.learn_of_list(node, ListEvent::Accepted(quorum.clone()));
        }
        if stored.in_force {
            self.learn_of_list(node, ListEvent::Heard { list: quorum, in_force: true });
        }
        self.look_at_votes(node);
    }

    /// Counts which clusters have acknowledged the list, until it is in force.
    pub(super) fn look_at_votes(self: &Arc<Self>, node: &Here) {
        if self.is_in_force() {
            return;
        }
        for (cluster, said) in self.acknowledged(node) {
            self.learn_of_list(node, ListEvent::Acknowledged(cluster, said.epoch));
        }
    }

    /// Looks whether this cluster may be taken for lost, and gives up what must be single while it may.
    pub(super) fn look_at_term(self: &Arc<Self>, node: &Here) {
        self.look_at_votes(node);
        self.learn_of_list(node, ListEvent::Tick);
        if self.is_fenced() {
            self.leave(node, |key| self.instances(key.kind()) == Instances::Pessimistic);
        }
    }

    /// The number of a rival list that is higher than that of the list that this node works by; 0 if there is none.
    pub(super) fn rival_number(&self) -> u64 {
        self.term.keeper().outnumbered_by().map_or(0, |number| number.0)
    }

    /// Takes in the number of a rival list that another node of this cluster knows.
    pub(super) fn hear_rival(self: &Arc<Self>, node: &Here, number: u64) {
        if number > self.clusters().epoch && number <= EPOCH_MAX {
            self.learn_of_list(node, ListEvent::RivalHeard(ConfigEpoch(number)));
        }
    }

    /// The step that nodes take by themselves now, if any is due.
    pub(super) fn due_step(&self) -> Option<ListStep> {
        self.term.keeper().due_step(self.world.now(), self.term.longest())
    }

    /// True if a cluster is let in, and answered.
    pub(super) fn answers_to(&self, cluster: ClusterId) -> bool {
        let list = self.clusters();
        list.name(cluster).is_some_and(|name| !list.lost.contains(name))
    }

    fn learn_of_list(self: &Arc<Self>, node: &Here, event: ListEvent) {
        let mut actions = Vec::new();
        self.term.keeper().handle(self.world.now(), event, &mut actions);
        self.act(node, actions);
    }

    fn act(self: &Arc<Self>, node: &Here, actions: Vec<Action>) {
        for action in actions {
            match action {
                // The list itself is kept with its names by the caller.
                Action::Accept(_) => {}
                Action::InForce(number) => self.comes_into_force(number.0),
                Action::Fence(fenced) => self.fence(node, fenced),
            }
        }
    }

    fn comes_into_force(&self, number: u64) {
        let list = self.clusters();
        tracing::info!(
            epoch = number,
            "the list of clusters is in force: a majority of the list before it works by it"
        );
        if list.epoch == number && list.before.is_some() {
            let mut heard = self.term.heard.lock().unwrap_or_else(PoisonError::into_inner);
            // A later list says it, too.
            heard.get_or_insert_with(|| Stored { list: (*list).clone(), in_force: true });
            self.term.to_accept.notify_one();
        }
        self.list_changed.notify_one();
    }

    fn fence(self: &Arc<Self>, node: &Here, fenced: bool) {
        let now = self.world.now();
        self.term.fenced.store(fenced, Ordering::Release);
        if fenced {
            let votes = self.term.keeper().confirmations(now);
            tracing::warn!(
                answers = votes.given.len(),
                of = votes.voters.len(),
                needed = votes.needed(),
                "this cluster is not confirmed by a majority of the clusters in its list, and may be taken for lost: pessimistic actors are \
                 refused here until it is"
            );
            // The lease of homes is given anew by what they say from now on.
            self.forget_clusters();
        } else {
            tracing::info!("a majority of the clusters answers: pessimistic actors are activated here again");
        }
        self.settle(node);
        if let Some(directory) = node.directory() {
            directory.all_abroad(self, now, || Event::Fenced(fenced));
        }
    }
}

/// Why a change was not made.
pub(super) const OVERTAKEN: &str =
    "another change was made at the same time; see `greenroom clusters status`, and try again if it is still wanted";
