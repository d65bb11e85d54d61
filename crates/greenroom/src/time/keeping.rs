//! The thin loop around the machine that keeps this node's ranges of reminders.

use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;

use greenroom_protocols::directory::RangeId;
use greenroom_protocols::node::{NodeId, View};
use greenroom_protocols::reminders::{Action, Delivered, Event, Fold, HintName, Keeper, Now, Record, Tell};
use greenroom_store::{Store, StoreError};
use greenroom_world::{BoxFuture, Stage, Timestamp};
use tokio::sync::{Semaphore, mpsc};

use super::calendar::News;
use super::change::create_hint;
use super::deliver;
use super::rows::{self, ReminderId};
use super::schedule::Planned;
use crate::cluster::{ControlMessage, Order};
use crate::here::Here;

type Act = Action<ReminderId, Planned>;
type Happening = (RangeId, Event<ReminderId, Planned>);

/// Starts to look after the reminders whose ranges this node will own.
pub(super) fn start(node: &Arc<Here>) {
    let keeping = node.clone().vital("the keeper of its reminders", keep(node.clone()));
    node.world().spawn(Stage::Door, Box::pin(keeping));
}

async fn keep(node: Arc<Here>) {
    let Ok(store) = node.calendar().store(&node) else { return };
    let (results, mut happenings) = mpsc::channel(RESULTS_LEN_MAX);
    let hands = Arc::new(Hands {
        node: node.clone(),
        store,
        results,
        errands: Semaphore::new(ERRANDS_MAX),
        deliveries: Semaphore::new(DELIVERIES_MAX),
        alone: Semaphore::new(1),
    });
    // As long as nobody has a reminder, a look whether somebody has.
    asleep(&node, &*hands.store).await;
    let mut keeping = Keeping {
        keeper: Keeper::new(node.me(), node.config().checks, node.config().reliable.deaths_max),
        view: Arc::default(),
        hands,
    };
    let mut out = Vec::new();
    keeping.hear(node.calendar().take(), &mut out);
    let world = node.world().clone();
    let mut timer: Option<(Timestamp, BoxFuture<()>)> = None;
    while !node.is_stopped() {
        keeping.go(&mut out);
        let deadline = keeping.keeper.deadline(now(&node)).unwrap_or(Timestamp::NEVER);
        if timer.as_ref().is_none_or(|(at, _)| *at != deadline) {
            timer = Some((deadline, world.sleep_until(deadline)));
        }
        let Some((_, sleep)) = &mut timer else { continue };
        tokio::select! {
            biased;
            () = node.calendar().changed() => keeping.hear(node.calendar().take(), &mut out),
            Some((range, event)) = happenings.recv() => {
                keeping.keeper.handle(now(&node), range, event, &mut out);
                for _ in 0..HAPPENINGS_A_ROUND {
                    let Ok((range, event)) = happenings.try_recv() else { break };
                    keeping.keeper.handle(now(&node), range, event, &mut out);
                }
            }
            () = sleep => timer = None,
        }
    }
}

/// Waits until the cluster has reminders, and this node is in it: what is new waits as well. Looks at every change of the
/// cluster, and now and then.
async fn asleep(node: &Arc<Here>, store: &dyn Store) {
    let world = node.world().clone();
    let mut pause = LOOK_AGAIN;
    while !node.is_stopped() {
        let again = world.sleep_until(world.now() + pause);
        tokio::select! {
            biased;
            () = node.calendar().changed() => {}
            () = again => {}
        }
        pause = match node.calendar().look_whether_used(store, node.config().store_timeout).await {
            // Word of the view that this node is in comes after its id.
            Ok(true) if node.me() != NodeId(0) => return,
            Ok(_) => LOOK_AGAIN,
            Err(_) if pause == LOOK_AGAIN => LOOK_PAUSE_MIN,
            Err(_) => (pause * 2).min(LOOK_PAUSE_MAX),
        };
    }
}

/// The present, by both clocks of the node.
pub(super) fn now(node: &Here) -> Now {
    Now { clock: node.world().now(), wall: node.wall() }
}

struct Keeping {
    keeper: Keeper<ReminderId, Planned>,
    view: Arc<View>,
    hands: Arc<Hands>,
}

impl Keeping {
    fn see(&mut self, view: Arc<View>, out: &mut Vec<(RangeId, Act)>) {
        if view.version > self.view.version {
            let old = std::mem::replace(&mut self.view, view);
            self.keeper.view(now(&self.hands.node), &old, &self.view, out);
        }
    }

    fn hear(&mut self, news: News, out: &mut Vec<(RangeId, Act)>) {
        let News { view, made, told, confirmed } = news;
        if let Some(view) = view {
            self.see(view, out);
        }
        let now = now(&self.hands.node);
        for (range, wake) in made {
            self.keeper.made(now, range, wake, out);
        }
        for ((from, range), (wake, word)) in told {
            if self.keeper.told(now, range, wake, out) {
                self.hands.node.order(Order::Say(from, ControlMessage::ReminderKnown { range, word }));
            }
        }
        for (range, word) in confirmed {
            self.keeper.confirmed(range, word);
        }
    }

    /// Does what is to be done.
    fn go(&mut self, out: &mut Vec<(RangeId, Act)>) {
        let node = &self.hands.node;
        for Tell { to, range, wake, word } in self.keeper.tick(now(node), out) {
            node.order(Order::Say(to, ControlMessage::ReminderMade { range, wake, word }));
        }
        for (range, action) in out.drain(..) {
            let hands = self.hands.clone();
            node.world().spawn(Stage::Door, Box::pin(async move { hands.perform(range, action).await }));
        }
        let (ranges, loaded) = self.keeper.counts();
        let counts = &node.calendar().counts;
        counts.ranges.store(ranges as u64, Ordering::Relaxed);
        counts.loaded.store(loaded as u64, Ordering::Relaxed);
        counts.behind.store(self.keeper.behind().map_or(0, |due| due.0), Ordering::Relaxed);
    }
}

/// What does the machine's errands.
struct Hands {
    node: Arc<Here>,
    store: Arc<dyn Store>,
    results: mpsc::Sender<Happening>,
    errands: Semaphore,
    deliveries: Semaphore,
    /// For ticks that would be parked after one more death: one at a time.
    alone: Semaphore,
}

impl Hands {
    async fn perform(self: Arc<Self>, range: RangeId, action: Act) {
        let bound = if matches!(action, Action::Deliver { .. }) { &self.deliveries } else { &self.errands };
        let Ok(_permit) = bound.acquire().await else { return };
        // Whose lease has run out does nothing more.
        let event = match self.node.fence_open() {
            true => self.act(range, action).await,
            false => failed(action),
        };
        // Nobody hears it when the node has stopped.
        let _ = self.results.send((range, event)).await;
    }

    async fn act(&self, range: RangeId, action: Act) -> Event<ReminderId, Planned> {
        let (keys, timeout) = (self.node.calendar().keys(), self.node.config().store_timeout);
        match action {
            Action::Scan { token, after } => {
                let after = after.map(|at| keys.hint(range, at));
                match self.scan(range, after, timeout).await {
                    Ok((items, more)) => Event::Scanned { token, items: Some(items), more },
                    Err(error) => {
                        tracing::warn!(%error, "reminders could not be read; they are read again");
                        Event::Scanned { token, items: None, more: false }
                    }
                }
            }
            Action::Read { work, of } => {
                let row = self.store.read(&keys.record(&of), timeout).await.map_err(|error| error.to_string());
                let found = row.and_then(|row| row.as_ref().map(rows::read_record).transpose());
                if let Err(error) = &found {
                    tracing::warn!(actor = %format_args!("{}/{}", of.kind, of.key), reminder = of.name, %error, "a reminder could not be read");
                }
                Event::Read { work, found: found.map(|row| row.map(|(_, found)| found)).map_err(drop) }
            }
            Action::Deliver { work, of, record, fold, is_alone } => {
                let _alone = if is_alone { self.alone.acquire().await.ok() } else { None };
                Event::Delivered { work, how: self.deliver(&of, &record, fold).await }
            }
            Action::CreateHint { work, wake, hint } => {
                let made = create_hint(&self.node, &*self.store, wake, &hint, timeout).await;
                Event::HintCreated { work, hint: made.ok() }
            }
            Action::Write { work, of, record, expected } => {
                let (key, row) = (keys.record(&of), rows::write_record(&of, &record));
                let written = self.store.replace(&key, row, &rows::version(&expected), timeout).await;
                Event::Written { work, applied: written.is_ok() }
            }
            Action::Remove { work, of, expected } => {
                let removed = self.store.delete(&keys.record(&of), &rows::version(&expected), timeout).await;
                Event::Written { work, applied: removed.is_ok() }
            }
            Action::ReportFailed { of, attempts } => {
                self.node.calendar().report_failed(&of, attempts);
                Event::Tick
            }
            Action::ReportParked { of, deaths } => {
                self.node.calendar().report_parked(&of, deaths);
                Event::Tick
            }
            Action::DropHint { work, hint: HintName { at, tag } } => {
                let dropped = self.store.delete(&keys.hint(range, at), &rows::version(&tag), timeout).await;
                let gone = dropped.as_ref().map_or_else(StoreError::is_conflict, |()| true);
                Event::Dropped { work, gone }
            }
        }
    }

    /// Reads hints until there are some, or no more.
    async fn scan(
        &self,
        range: RangeId,
        mut after: Option<String>,
        timeout: Duration,
    ) -> Result<
        (
            Vec<(
                greenroom_protocols::reminders::Position,
                greenroom_protocols::reminders::Etag,
                greenroom_protocols::reminders::Hint<ReminderId>,
            )>,
            bool,
        ),
        StoreError,
    > {
        let keys = self.node.calendar().keys();
        loop {
            let page = self.store.scan(&keys.hints(range), after.as_deref(), PAGE, timeout).await?;
            let mut items = Vec::with_capacity(page.items.len());
            for item in &page.items {
                match keys.read_hint(range, item) {
                    Some(hint) => items.push(hint),
                    None => tracing::warn!(row = item.key, "a row among the reminders is none; it is left alone"),
                }
            }
            if !items.is_empty() || page.next.is_none() {
                return Ok((items, page.next.is_some()));
            }
            after = page.next;
        }
    }

    async fn deliver(&self, of: &ReminderId, record: &Record<Planned>, fold: Fold) -> Delivered {
        let how = deliver::deliver(&self.node, of, record, fold).await;
        let counts = &self.node.calendar().counts;
        match how {
            Delivered::Ran => {
                counts.ticks.fetch_add(1, Ordering::Relaxed);
                counts.missed.fetch_add(fold.missed, Ordering::Relaxed);
            }
            Delivered::Hopeless => _ = counts.hopeless.fetch_add(1, Ordering::Relaxed),
            Delivered::Again | Delivered::Lost | Delivered::Died | Delivered::Failed { .. } => {
                _ = counts.retries.fetch_add(1, Ordering::Relaxed)
            }
            Delivered::Gone => {}
        }
        how
    }
}

/// The answer to what was not done.
fn failed(action: Act) -> Event<ReminderId, Planned> {
    match action {
        Action::Scan { token, .. } => Event::Scanned { token, items: None, more: false },
        Action::Read { work, .. } => Event::Read { work, found: Err(()) },
        Action::Deliver { work, .. } => Event::Delivered { work, how: Delivered::Lost },
        Action::CreateHint { work, .. } => Event::HintCreated { work, hint: None },
        Action::Write { work, .. } | Action::Remove { work, .. } => Event::Written { work, applied: false },
        Action::ReportFailed { .. } | Action::ReportParked { .. } => Event::Tick,
        Action::DropHint { work, .. } => Event::Dropped { work, gone: false },
    }
}

/// Results of errands that may wait for the machine; more wait in their tasks.
const RESULTS_LEN_MAX: usize = 1024;
/// Results after which the machine looks at the clock.
const HAPPENINGS_A_ROUND: usize = 512;
/// Errands to the store at once.
const ERRANDS_MAX: usize = 64;
/// Ticks that are out at once.
const DELIVERIES_MAX: usize = 1024;
/// Hints that are read at once.
const PAGE: usize = 100;
/// Time between two looks whether anybody has a reminder.
const LOOK_AGAIN: Duration = Duration::from_secs(60);
/// Until the next look after one that has failed, which grows: there may be some, and they may be due.
const LOOK_PAUSE_MIN: Duration = Duration::from_millis(250);
const LOOK_PAUSE_MAX: Duration = Duration::from_secs(2);
