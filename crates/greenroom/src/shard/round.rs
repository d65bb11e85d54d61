//! A shard's life: rounds of taking in, running and sending out, and sleep when there is nothing to do.

use std::cell::{Cell, RefCell};
use std::rc::Rc;
use std::sync::Arc;
use std::task::{Context, Poll};
use std::time::Duration;

use greenroom_world::{BoxFuture, LocalFuture, Timestamp};

use super::batch::Batch;
use super::late::last_moment;
use super::parked::Counts;
use super::sampling::Place;
use super::shedding::Gauge;
use super::spins::Spins;
use super::submit::AnyParcel;
use super::{Item, Shard, ShardPort, registry};
use crate::actor::error::Refusal;
use crate::actor::interface::Why;
use crate::actor::spent::Spent;
use crate::here::port::Port;

/// The life of the shard that has `here`, as the `index`th of its node.
pub(crate) fn life(here: ShardPort, index: u16, port: Arc<Port>) -> LocalFuture {
    let shard = Shard::new(here, index, port);
    #[cfg(feature = "rehearsal")]
    shard.show_on_stage();
    let (items, wakes, returned) = Default::default();
    let gauge = Gauge::new(shard.port.node.config().shed_after, shard.now());
    let life = Life {
        shard,
        gauge,
        timer: None,
        items,
        wakes,
        returned,
        idle_since: None,
        spins: Spins::default(),
        began: None,
    };
    Box::pin(life)
}

struct Life {
    shard: Rc<Shard>,
    gauge: Gauge,
    timer: Option<(Timestamp, BoxFuture<()>)>,
    items: Vec<Item>,
    wakes: Vec<super::turns::TurnId>,
    returned: Vec<Batch>,
    /// When the shard ran out of work, while it still looks for more.
    idle_since: Option<Timestamp>,
    spins: Spins,
    /// When the last round began, if something was done in it.
    began: Option<Timestamp>,
}

/// Messages that wait for the directory to recover, and since when.
#[derive(Default)]
pub(super) struct Parked {
    waiting: Cell<Vec<(Timestamp, Box<dyn AnyParcel>)>>,
    /// Since when the message has waited that is being tried again.
    retried: Cell<Option<Timestamp>>,
    /// Whose they are: what comes for an actor for which some wait, waits behind.
    counts: RefCell<Counts>,
}

impl Future for Life {
    type Output = ();

    fn poll(mut self: std::pin::Pin<&mut Self>, context: &mut Context<'_>) -> Poll<()> {
        let shard = self.shard.clone();
        shard.enter(|| self.rounds(context))
    }
}

impl Life {
    fn rounds(&mut self, context: &mut Context<'_>) -> Poll<()> {
        let shard = self.shard.clone();
        shard.set_lane_waker(context.waker());
        let began = shard.port.node.world().now();
        shard.gauges().begin(began);
        for _ in 0..ROUNDS_A_POLL {
            let worked = self.round(&shard);
            if shard.stopped() {
                return Poll::Ready(());
            }
            if worked {
                self.idle_since = None;
                self.spins.end(true);
                continue;
            }
            shard.gauges().end(shard.now().since(began).as_nanos() as u64);
            return self.rest(&shard, context);
        }
        self.began = None;
        // Let the sockets and timers of this thread have their go, and the clock.
        shard.look_at_clock(shard.now());
        shard.gauges().end(shard.port.node.world().now().since(began).as_nanos() as u64);
        context.waker().wake_by_ref();
        Poll::Pending
    }

    /// One round. Whether there was anything to do.
    fn round(&mut self, shard: &Rc<Shard>) -> bool {
        let now = shard.port.node.world().now();
        if let Some(began) = self.began.replace(now) {
            shard.watch.round(began, now);
        }
        shard.now.set(now);
        shard.fenced.set(!shard.port.node.fence_open_at(now));
        self.gauge.round(shard, now, shard.queued());
        shard.lanes_begin_round(self.idle_since.is_some());
        let mut worked = shard.poll_lanes();
        if shard.inbox.filled() {
            shard.inbox.drain(&mut self.items, &mut self.wakes, &mut self.returned);
            worked = true;
            for batch in self.returned.drain(..) {
                shard.keep_spare(batch);
            }
            for turn in self.wakes.drain(..) {
                shard.wake_turn(turn);
            }
            for item in self.items.drain(..) {
                shard.refill_budget();
                shard.take_in(item);
            }
        }
        worked |= shard.run_some(&self.gauge.taken);
        shard.hand_over();
        shard.flush_lanes();
        let (turns, calls) = (shard.turns_begun.get(), shard.calls.borrow().len());
        shard.gauges().set_round(turns, calls);
        self.gauge.worked(worked.then_some(now));
        self.began = self.began.filter(|_| worked);
        worked
    }

    /// Looks at what is due, then spins for a while, then sleeps.
    fn rest(&mut self, shard: &Rc<Shard>, context: &mut Context<'_>) -> Poll<()> {
        let now = shard.now();
        if let Some(due) = shard.look_at_clock(now) {
            if self.timer.as_ref().is_none_or(|(at, _)| *at != due) {
                self.timer = Some((due, shard.port.node.world().sleep_until(due)));
            }
        } else {
            self.timer = None;
        }
        if shard.has_work() {
            context.waker().wake_by_ref();
            return Poll::Pending;
        }
        if self.idle_since.is_none() {
            self.idle_since = Some(now);
            self.spins.begin();
        }
        let idle = self.idle_since.map_or(Duration::ZERO, |since| now.since(since));
        if self.spins.is_spinning() && idle < shard.port.node.spin() {
            // Where cores are few, the reply that we spin for may need this one.
            shard.port.node.world().give_way();
            context.waker().wake_by_ref();
            return Poll::Pending;
        }
        self.spins.end(false);
        if let Some((_, timer)) = &mut self.timer
            && timer.as_mut().poll(context).is_ready()
        {
            self.timer = None;
            context.waker().wake_by_ref();
            return Poll::Pending;
        }
        if !shard.inbox.sleep(context.waker()) {
            context.waker().wake_by_ref();
        }
        Poll::Pending
    }
}

impl Drop for Life {
    fn drop(&mut self) {
        self.shard.refuse_parked(&Refusal::Stopping);
        self.shard.refuse_held_back(&Refusal::Stopping);
        self.shard.refuse_entering(&Refusal::Stopping);
        registry::release(self.shard.here.id);
    }
}

impl Shard {
    fn take_in(&self, item: Item) {
        match item {
            Item::Parcel(parcel) => parcel.deliver(self),
            Item::Passed { from, awaited, parcel } => {
                self.count_in(parcel.id(), || (Place::Shard(from), awaited));
                parcel.deliver(self);
            }
            Item::Enter(enter) => self.enter_over(*enter),
            Item::Handed(parcel) => self.take_handed(parcel),
            Item::Ahead { passage, parcel } => self.take_ahead(passage, parcel),
            Item::Batch(mut batch) => {
                batch.deliver(self);
                self.give_back(batch);
            }
            Item::Completion { call, completion } => self.complete(call, completion),
            Item::LaneReply { lane, call, status, payload } => self.lane_reply(lane, call, status, &mut |out| {
                out.extend_from_slice(&payload);
                Ok(())
            }),
            Item::Connection { stream, hello } => self.adopt(stream, *hello),
            Item::Run(run) => run(self),
        }
    }

    /// Runs what is ready, up to a bound.
    fn run_some(&self, taken: &Cell<usize>) -> bool {
        let mut ran = false;
        let enough = self.turns_begun.get() + TURNS_A_ROUND;
        for _ in 0..STEPS_A_ROUND {
            if self.turns_begun.get() >= enough {
                return true;
            }
            self.refill_budget();
            let turn = if self.is_rehearsed() { None } else { self.ready.borrow_mut().pop_front() };
            if let Some(turn) = turn {
                taken.set(taken.get() + 1);
                ran = true;
                self.resume_turn(turn);
            }
            let activation = self.runnable.borrow_mut().pop_front();
            match activation {
                Some(activation) => {
                    taken.set(taken.get() + 1);
                    activation.run(self);
                }
                None if turn.is_none() => break,
                None => {}
            }
            ran = true;
        }
        ran
    }

    /// Turns and activations that wait for their go.
    fn queued(&self) -> usize {
        self.ready.borrow().len() + self.runnable.borrow().len()
    }

    pub(super) fn has_work(&self) -> bool {
        (!self.ready.borrow().is_empty() && !self.is_rehearsed())
            || !self.runnable.borrow().is_empty()
            || self.inbox.filled()
    }

    /// Does what is due at `now`; when something is due next.
    fn look_at_clock(&self, now: Timestamp) -> Option<Timestamp> {
        let name = |peer| self.port.node.member(peer).map(|member| member.name);
        let late = self.calls.borrow_mut().sweep(now, name);
        for then in late {
            self.follow(then);
        }
        let due = self.idle.borrow_mut().take_due(now, IDLE_CHECKS_A_ROUND);
        for slot in due {
            if let Some(again) = self.activation(slot).and_then(|activation| activation.check_idle(self, now)) {
                self.idle.borrow_mut().insert(again, slot);
            }
        }
        let due = self.saves.borrow_mut().take_due(now, IDLE_CHECKS_A_ROUND);
        for slot in due {
            if let Some(again) = self.activation(slot).and_then(|activation| activation.check_save(self, now)) {
                self.save_at(slot, again);
            }
        }
        let late = self.look_at_late(now);
        let long = self.warn_of_long_turns(now);
        self.tick_timers(now);
        let lanes = self.look_after_lanes(now);
        self.flush_lanes();
        let parts = self.look_after_parts(now);
        let parked = self.retry_parked(now);
        let streams = self.sweep_streams(now);
        let stop = self.stopping_until();
        let sweep = self.calls.borrow().next_sweep();
        let (idle, saves) = (self.idle.borrow().next(), self.saves.borrow().next());
        let timers = self.timers.borrow().next();
        [late, long, lanes, parked, streams, parts, stop, sweep, idle, saves, timers].into_iter().flatten().min()
    }

    /// Keeps a message until the directory can say where its actor is.
    pub(crate) fn park(&self, parcel: Box<dyn AnyParcel>) {
        let mut parked = self.parked.waiting.take();
        if !self.parked.counts.borrow_mut().add(parcel.hash(), parcel.principal()) {
            self.parked.waiting.set(parked);
            return parcel.refuse(Refusal::Recovering);
        }
        parked.push((self.parked.retried.get().unwrap_or(self.now()), parcel));
        self.parked.waiting.set(parked);
    }

    /// Whether messages wait for the directory, or for a mark.
    pub(crate) fn has_parked(&self) -> bool {
        let parked = self.parked.waiting.take();
        let any = !parked.is_empty() || self.routes.borrow().has_held();
        self.parked.waiting.set(parked);
        any
    }

    /// Whether messages for the actor of this hash wait for the directory.
    pub(crate) fn is_parked(&self, hash: u64) -> bool {
        self.parked.counts.borrow().has(hash)
    }

    /// Refuses the messages that wait for the directory.
    pub(super) fn refuse_parked(&self, refusal: &Refusal) {
        *self.parked.counts.borrow_mut() = Counts::default();
        for (_, parcel) in self.parked.waiting.take() {
            parcel.refuse(refusal.clone());
        }
    }

    /// Tries the parked messages again, at most once in [`PARKED_RETRY`].
    fn retry_parked(&self, now: Timestamp) -> Option<Timestamp> {
        let parked = self.parked.waiting.take();
        if parked.is_empty() {
            return None;
        }
        let due = self.parked_retry.get();
        if now < due {
            self.parked.waiting.set(parked);
            return Some(due);
        }
        self.parked_retry.set(now + PARKED_RETRY);
        *self.parked.counts.borrow_mut() = Counts::default();
        for (since, parcel) in parked {
            let waited = now.since(since);
            // One that would be late at the next try is refused now: its caller still hears of it.
            if last_moment(waited, now, parcel.deadline()) <= now + PARKED_RETRY {
                let limit = Some(waited + parcel.deadline().since(now));
                parcel.refuse(self.expired(Spent { limit, no_node: Some(waited), ..Spent::default() }));
            } else {
                self.refill_budget();
                self.parked.retried.set(Some(since));
                parcel.deliver(self);
                self.parked.retried.set(None);
            }
        }
        let parked = self.parked.waiting.take();
        let more = !parked.is_empty();
        self.parked.waiting.set(parked);
        more.then(|| now + PARKED_RETRY)
    }

    // The end.

    /// Ends all activations, then the shard: at the latest at `until`.
    pub(crate) fn stop(&self, until: Timestamp) {
        self.stopping.set(Some(until));
        let all: Vec<_> = self.activations.borrow().iter().cloned().collect();
        for activation in all {
            // Who serves tells others of these ends.
            if !self.is_servant(activation.slot()) {
                activation.end(self, Why::Stopping);
            }
        }
    }

    /// Whether the shard is on its way to its end.
    pub(crate) fn is_stopping(&self) -> bool {
        self.stopping.get().is_some()
    }

    /// Has `item` taken in when no turn is on the stack.
    pub(crate) fn run_apart(&self, item: Item) {
        // A closed inbox is the shard's own end.
        let _ = self.here.push(item);
    }

    fn stopped(&self) -> bool {
        self.stopping
            .get()
            .is_some_and(|until| self.now() >= until || (self.activations_len() == 0 && !self.has_work()))
    }

    fn stopping_until(&self) -> Option<Timestamp> {
        self.stopping.get()
    }
}

/// Rounds before the thread's sockets and timers have their go.
const ROUNDS_A_POLL: usize = 4;
/// Turns and activations that one round visits.
const STEPS_A_ROUND: usize = 256;
/// Turns after which a round ends: what other nodes and shards have sent waits no longer than these take.
const TURNS_A_ROUND: u64 = 1024;
/// Activations that one look at the clock may find idle.
const IDLE_CHECKS_A_ROUND: usize = 1024;
/// Time between two tries of what waits for the directory.
const PARKED_RETRY: Duration = Duration::from_millis(50);
