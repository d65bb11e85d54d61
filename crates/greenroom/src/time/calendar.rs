//! What the parts of a node share of its reminders: word for the loop, and counts.

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use bytes::Bytes;
use greenroom_protocols::directory::RangeId;
use greenroom_protocols::node::{NodeId, View};
use greenroom_protocols::reminders::Wall;
use greenroom_store::{Store, StoreError};
use greenroom_world::BoxFuture;
use tokio::sync::Notify;

use super::deliver::is_still_due;
use super::rows::{Keys, ReminderId};
use super::tick::Ticked;
use crate::actor::key::ActorId;
use crate::here::Here;
use crate::here::figures::Figures;
use crate::here::parts::Part;

/// A node's part in its cluster's reminders, as everybody on it sees it.
pub(crate) struct Calendar {
    keys: Keys,
    news: Mutex<News>,
    there_is_news: Notify,
    /// Whether this node knows that the cluster has had reminders.
    used: AtomicBool,
    pub(crate) counts: Counts,
    /// The reminder whose tick was given up last.
    last_failed: Mutex<String>,
}

/// Numbers for the status and the metrics.
#[derive(Default)]
pub(crate) struct Counts {
    /// Ranges that this node looks after.
    pub(crate) ranges: AtomicU64,
    /// Reminders in memory.
    pub(crate) loaded: AtomicU64,
    /// Ticks that are done.
    pub(crate) ticks: AtomicU64,
    /// Ticks that were refused for good.
    pub(crate) hopeless: AtomicU64,
    /// Ticks that have failed in all their attempts, or have taken down so many processes that they are parked.
    pub(crate) failed: AtomicU64,
    /// Tries of a tick that have to be repeated.
    pub(crate) retries: AtomicU64,
    /// Due times that were missed and folded into a later tick.
    pub(crate) missed: AtomicU64,
    /// Since when the tick has been due that is late longest, in Unix milliseconds; 0 if none is.
    pub(crate) behind: AtomicU64,
}

/// What the loop has not heard yet: at most one entry for each range and node.
#[derive(Default)]
pub(super) struct News {
    pub(super) view: Option<Arc<View>>,
    /// Hints made on this node.
    pub(super) made: BTreeMap<RangeId, Wall>,
    /// Hints that other nodes have made, with the word to confirm.
    pub(super) told: BTreeMap<(NodeId, RangeId), (Wall, u64)>,
    pub(super) confirmed: BTreeMap<RangeId, u64>,
}

impl Calendar {
    pub(crate) fn new(cluster: &str) -> Self {
        Self {
            keys: Keys::new(cluster),
            news: Mutex::default(),
            there_is_news: Notify::new(),
            used: AtomicBool::new(false),
            counts: Counts::default(),
            last_failed: Mutex::default(),
        }
    }

    /// Takes in that a reminder is parked, as turns of its tick have taken down so many processes.
    pub(super) fn report_parked(&self, of: &ReminderId, deaths: u32) {
        let ReminderId { kind, key, name } = of;
        tracing::error!(
            kind,
            key,
            reminder = name,
            deaths,
            "a reminder is parked: so many processes, nodes or hosts, have died during the turn of its tick; mend what aborts them, and \
             then run `greenroom reminders retry` or set the reminder anew"
        );
        self.note_failed(of, &format!(", which is parked after {deaths} deaths"));
    }

    /// Takes in that a tick has failed in all its attempts, and is given up.
    pub(super) fn report_failed(&self, of: &ReminderId, attempts: u32) {
        let ReminderId { kind, key, name } = of;
        tracing::error!(
            kind,
            key,
            reminder = name,
            attempts,
            "a reminder's tick has failed in all its attempts and is given up; the log of its actor's node or host says why"
        );
        self.note_failed(of, "");
    }

    fn note_failed(&self, ReminderId { kind, key, name }: &ReminderId, outcome: &str) {
        self.counts.failed.fetch_add(1, Ordering::Relaxed);
        *self.last_failed.lock().unwrap_or_else(PoisonError::into_inner) = format!("{name:?} of {kind}/{key}{outcome}");
    }

    /// Returns the reminder whose tick was given up last; empty if none was.
    pub(crate) fn last_failed(&self) -> String {
        self.last_failed.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    pub(crate) fn keys(&self) -> &Keys {
        &self.keys
    }

    /// Where reminders are kept: with the states of kinds that name no store.
    pub(crate) fn store(&self, node: &Here) -> Result<Arc<dyn Store>, String> {
        node.stores()
            .find("")
            .cloned()
            .ok_or_else(|| "the node has no store for states; name its URL as `store`".to_owned())
    }

    fn tell(&self, change: impl FnOnce(&mut News)) {
        change(&mut self.lock());
        self.there_is_news.notify_one();
    }

    fn lock(&self) -> MutexGuard<'_, News> {
        self.news.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Takes what is new.
    pub(super) fn take(&self) -> News {
        std::mem::take(&mut self.lock())
    }

    /// Waits until there may be something new.
    pub(super) async fn changed(&self) {
        self.there_is_news.notified().await;
    }

    pub(crate) fn view(&self, view: &Arc<View>) {
        self.tell(|news| news.view = Some(view.clone()));
    }

    /// A hint was made on this node.
    pub(super) fn made(&self, range: RangeId, wake: Wall) {
        self.tell(|news| {
            let known = news.made.entry(range).or_insert(wake);
            *known = wake.min(*known);
        });
    }

    /// Another node says that it has made a hint.
    pub(crate) fn told(&self, from: NodeId, range: RangeId, wake: Wall, word: u64) {
        self.used.store(true, Ordering::Relaxed);
        self.tell(|news| {
            let known = news.told.entry((from, range)).or_insert((wake, word));
            *known = (wake.min(known.0), word.max(known.1));
        });
    }

    /// The owner of a range has confirmed a word of this node.
    pub(crate) fn confirmed(&self, range: RangeId, word: u64) {
        self.tell(|news| {
            let known = news.confirmed.entry(range).or_default();
            *known = word.max(*known);
        });
    }

    pub(super) fn is_used(&self) -> bool {
        self.used.load(Ordering::Relaxed)
    }

    /// Whether the cluster has had reminders, as the store knows.
    pub(super) async fn look_whether_used(&self, store: &dyn Store, timeout: Duration) -> Result<bool, StoreError> {
        if !self.is_used() && store.read(&self.keys.used(), timeout).await?.is_some() {
            self.used.store(true, Ordering::Relaxed);
        }
        Ok(self.is_used())
    }

    /// Lets every node know from now on that the cluster has reminders. Nobody reads hints before.
    pub(super) async fn mark_used(&self, node: &Here, store: &dyn Store, timeout: Duration) -> Result<(), StoreError> {
        if self.is_used() {
            return Ok(());
        }
        let by = Bytes::from(node.name().to_owned());
        match store.create(&self.keys.used(), by, timeout).await {
            Err(error) if !error.is_conflict() => Err(error),
            _ => {
                self.used.store(true, Ordering::Relaxed);
                Ok(())
            }
        }
    }
}

impl Part for Calendar {
    fn start(&self, here: &Arc<Here>) {
        super::keeping::start(here);
    }

    fn report(&self, figures: &mut Figures) {
        let counts = &self.counts;
        for (name, help, count) in [
            ("greenroom_reminder_ranges", "Ranges of reminders that this node keeps.", &counts.ranges),
            ("greenroom_reminders_loaded", "Reminders in memory: those that are due soon.", &counts.loaded),
            ("greenroom_reminder_ticks_total", "Ticks that are done.", &counts.ticks),
            ("greenroom_reminder_retries_total", "Ticks that had to be sent again.", &counts.retries),
            ("greenroom_reminder_refused_total", "Ticks refused for good.", &counts.hopeless),
            (
                "greenroom_reminder_failed_total",
                "Ticks given up, as they failed in all attempts or took down processes.",
                &counts.failed,
            ),
            ("greenroom_reminder_missed_total", "Due times folded into later ticks.", &counts.missed),
        ] {
            figures.count(name, help, count.load(Ordering::Relaxed));
        }
    }

    fn is_due(&self, here: &Arc<Here>, id: &ActorId, ticked: &Ticked) -> Option<BoxFuture<Result<bool, String>>> {
        let (here, id, ticked) = (here.clone(), id.clone(), ticked.clone());
        Some(Box::pin(async move { is_still_due(&here, &id, &ticked).await }))
    }
}

impl Here {
    pub(crate) fn calendar(&self) -> &Calendar {
        self.part()
    }
}
