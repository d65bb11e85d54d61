//! A shard: one thread's activations, their turns, and the calls that they wait for.
//!
//! An activation belongs to one shard for its life. Within the shard nothing is locked and nothing is atomic: a call to
//! an idle neighbour runs on the caller's stack, a message to a busy one waits in its mailbox. What goes to other shards
//! is batched and handed over once a round; what goes to other nodes is encoded straight into the connection's batch.

pub(crate) mod activation;
mod activations;
mod apart;
pub(crate) mod baggage;
pub(crate) mod batch;
mod beside;
pub(crate) mod calls;
pub(crate) mod cancel;
pub(crate) mod chain;
mod cycle;
mod drops;
pub(crate) mod envelope;
pub(crate) mod erased;
mod failing;
pub(crate) mod frames;
mod gauges;
pub(crate) mod holdback;
mod idle;
pub(crate) mod inbox;
pub(crate) mod inspect;
mod item;
pub(crate) mod lanes;
pub(crate) mod late;
mod leaving;
pub(crate) mod listing;
pub(crate) mod mail;
mod mailbox;
mod metering;
pub(crate) mod one_way;
mod outbox;
mod outgoing;
mod parked;
pub(crate) mod parts;
pub(crate) mod passage;
mod places;
pub(crate) mod raw;
mod registry;
#[cfg(feature = "rehearsal")]
pub(crate) mod rehearsal;
mod round;
pub(crate) mod routes;
mod samples;
pub(crate) mod sampling;
mod saving;
pub(crate) mod seed;
mod shedding;
mod slab;
pub(crate) mod slot;
mod spins;
pub(crate) mod stalls;
mod streams;
pub(crate) mod submit;
mod tail;
mod ticking;
pub(crate) mod timers;
pub(crate) mod trips;
pub(crate) mod turns;
pub(crate) mod underway;
mod versions;
pub(crate) mod waits;
mod watched;
mod workers;

use std::cell::{Cell, RefCell};
use std::collections::VecDeque;
use std::rc::Rc;
use std::sync::Arc;
use std::task::{Context, Poll};
use std::time::Duration;

use greenroom_world::Timestamp;

use self::activation::AnyActivation;
use self::batch::Batch;
use self::calls::{CallSlot, Calls, Completion, Then};
use self::idle::{FineWheel, IdleWheel};
use self::inbox::{Inbox, Life};
use self::lanes::Lanes;
use self::metering::Metering;
use self::outbox::Outbox;
use self::parts::ShardPart;
use self::sampling::Sampling;
use self::slab::Slab;
use self::stalls::Watch;
use self::timers::Timers;
use self::turns::{Frame, TurnId, Turns};
use crate::actor::error::Refusal;
use crate::actor::reply::{AnyReply, RuntimeEnd};
use crate::here::port::Port;

pub(crate) use self::gauges::{Gauges, STUCK_AFTER};
pub(crate) use self::item::Item;
pub(crate) use self::lanes::{CARRIES, Greeted, LETTERS, LaneId};
pub(crate) use self::registry::ShardId;
pub(crate) use self::round::life;
pub(crate) use self::slot::Slot;
pub(crate) use self::submit::AnyParcel;

/// How others reach a shard.
#[derive(Clone, Copy, Debug)]
pub(crate) struct ShardPort {
    pub(crate) id: ShardId,
    pub(crate) life: Life,
}

impl ShardPort {
    /// Takes a free number and opens its inbox.
    pub(crate) fn claim() -> Self {
        let id = registry::claim();
        Self { id, life: id.inbox().open() }
    }

    /// Hands `item` over.
    pub(crate) fn push(&self, item: Item) -> Result<(), (inbox::NotTaken, Item)> {
        self.id.inbox().push(self.life, item)
    }

    pub(crate) fn waiting(&self) -> usize {
        self.id.inbox().len()
    }

    /// Whether the shard has come to its end.
    pub(crate) fn is_closed(&self) -> bool {
        self.id.inbox().is_closed(self.life)
    }
}

/// One thread's activations. Never leaves its thread.
pub(crate) struct Shard {
    here: ShardPort,
    /// Its place among the shards of its node.
    index: u16,
    inbox: &'static Inbox,
    port: Arc<Port>,
    /// Whether anybody sees the messages that go out.
    intercepts: bool,
    now: Cell<Timestamp>,
    /// Whether the node's lease had run out when the round began. Turns ask the clock before they begin, and
    /// connections before they are written to: this only spares messages the way.
    fenced: Cell<bool>,
    turns: RefCell<Turns>,
    ready: RefCell<VecDeque<TurnId>>,
    runnable: RefCell<VecDeque<Rc<dyn AnyActivation>>>,
    calls: RefCell<Calls>,
    cancels: RefCell<cancel::Cancels>,
    /// What runs beside activations' turns.
    ties: RefCell<beside::Ties>,
    streams: streams::Streams,
    activations: RefCell<Slab>,
    idle: RefCell<IdleWheel>,
    /// Activations that have changes to save.
    saves: RefCell<IdleWheel>,
    /// Activations at which something waits whose time runs out.
    late: RefCell<FineWheel>,
    /// When to look for turns that run for long.
    long_look: Cell<Timestamp>,
    timers: RefCell<Timers>,
    workers: RefCell<workers::Workers>,
    lanes: RefCell<Lanes>,
    recent: RefCell<places::Recent>,
    routes: RefCell<routes::Routes>,
    trips: RefCell<trips::Trips>,
    passages: RefCell<passage::Passages>,
    /// The hash of the actor whose message is taken in that another shard has handed on.
    handed: Cell<Option<u64>>,
    /// What is to be handed to the node's other shards at the end of the round.
    outboxes: RefCell<Vec<Outbox>>,
    spare_batches: RefCell<Vec<Batch>>,
    /// What the last activation that failed said.
    failed_start: Cell<Option<Refusal>>,
    orphans: RefCell<Vec<Box<dyn AnyReply>>>,
    /// The turn that is being polled.
    frame: Cell<*const Frame>,
    /// The last serial number of a reply that went up its caller's stack.
    serial: Cell<u64>,
    /// Turns on the stack, each begun by the one before.
    depth: Cell<u32>,
    /// Turns that may still begin on a caller's stack before others have their go.
    budget: Cell<u32>,
    /// How often the budget may still be renewed, and when it first was.
    renewals: Cell<u32>,
    spending_since: Cell<Timestamp>,
    runs: one_way::Runs,
    parked: round::Parked,
    parked_retry: Cell<Timestamp>,
    stopping: Cell<Option<Timestamp>>,
    turns_begun: Cell<u64>,
    sampling: Sampling,
    watch: Watch,
    metering: Metering,
    #[cfg(feature = "rehearsal")]
    rehearsal: rehearsal::Rehearsal,
    /// What the floors above keep here.
    parts: Vec<Box<dyn ShardPart>>,
}

thread_local! {
    static CURRENT: Cell<*const Shard> = const { Cell::new(std::ptr::null()) };
}

impl Shard {
    pub(crate) fn new(here: ShardPort, index: u16, port: Arc<Port>) -> Rc<Self> {
        let shards = port.node.shards().len();
        let (now, seed) = (port.node.world().now(), port.node.world().random());
        let parts = port.node.parts().filter_map(|part| part.on_shard()).collect();
        let metering = Metering::new(port.node.gauges()[usize::from(index)].meters().clone());
        let intercepts = !port.node.kinds().interceptors().is_empty();
        Rc::new(Self {
            here,
            index,
            inbox: here.id.inbox(),
            port,
            intercepts,
            now: Cell::new(now),
            fenced: Cell::new(false),
            turns: RefCell::default(),
            ready: RefCell::default(),
            runnable: RefCell::default(),
            calls: RefCell::default(),
            cancels: RefCell::default(),
            ties: RefCell::default(),
            streams: streams::Streams::default(),
            activations: RefCell::default(),
            idle: RefCell::default(),
            saves: RefCell::default(),
            late: RefCell::default(),
            long_look: Cell::new(now),
            timers: RefCell::default(),
            workers: RefCell::default(),
            lanes: RefCell::default(),
            recent: RefCell::default(),
            routes: RefCell::new(routes::Routes::new(seed)),
            trips: RefCell::default(),
            passages: RefCell::default(),
            handed: Cell::new(None),
            outboxes: RefCell::new((0..shards).map(|_| Outbox::default()).collect()),
            spare_batches: RefCell::default(),
            failed_start: Cell::default(),
            orphans: RefCell::default(),
            frame: Cell::new(std::ptr::null()),
            serial: Cell::new(0),
            depth: Cell::new(0),
            budget: Cell::new(0),
            renewals: Cell::new(0),
            spending_since: Cell::new(now),
            runs: one_way::Runs::default(),
            parked: round::Parked::default(),
            parked_retry: Cell::new(now),
            stopping: Cell::new(None),
            turns_begun: Cell::new(0),
            sampling: Sampling::default(),
            watch: Watch::default(),
            metering,
            #[cfg(feature = "rehearsal")]
            rehearsal: rehearsal::Rehearsal::asked_for(),
            parts,
        })
    }

    /// Calls `use_it` with the shard whose thread this is, while it runs.
    #[inline]
    pub(crate) fn with<R>(use_it: impl FnOnce(Option<&Shard>) -> R) -> R {
        let current = CURRENT.try_with(Cell::get).unwrap_or(std::ptr::null());
        // SAFETY: `enter` keeps the shard alive as long as the pointer is set, on this thread alone.
        use_it(unsafe { current.as_ref() })
    }

    /// Makes this the current shard of the thread while `run` runs.
    fn enter<R>(&self, run: impl FnOnce() -> R) -> R {
        struct Leave(*const Shard);
        impl Drop for Leave {
            fn drop(&mut self) {
                CURRENT.set(self.0);
            }
        }
        let _leave = Leave(CURRENT.replace(self));
        run()
    }

    #[inline]
    pub(crate) fn id(&self) -> ShardId {
        self.here.id
    }

    /// How others reach it.
    pub(crate) fn here(&self) -> ShardPort {
        self.here
    }

    /// Its place among the shards of its node: the shard's name on the wire.
    pub(crate) fn index(&self) -> u16 {
        self.index
    }

    pub(crate) fn port(&self) -> &Arc<Port> {
        &self.port
    }

    /// The node's clock as of this round's beginning.
    #[inline]
    pub(crate) fn now(&self) -> Timestamp {
        self.now.get()
    }

    /// Whether turns may begin and act on others: the node's lease has not run out.
    #[inline]
    pub(crate) fn fence_open(&self) -> bool {
        self.port.node.fence_open()
    }

    /// Whether the node's lease had run out when the round began, and has not been renewed since.
    #[inline]
    fn is_fenced(&self) -> bool {
        self.fenced.get() && !self.fence_open()
    }

    /// The deadline of a call that the current turn makes.
    pub(crate) fn call_deadline(&self, limit: Option<Duration>) -> Timestamp {
        let limit = limit.unwrap_or(self.port.node.config().call_timeout);
        (self.now() + limit).min(self.current_deadline())
    }

    /// Whether somebody else chooses what happens next: nothing begins or goes on by itself.
    #[inline]
    pub(crate) fn is_rehearsed(&self) -> bool {
        #[cfg(feature = "rehearsal")]
        return self.rehearsal.is_on();
        #[cfg(not(feature = "rehearsal"))]
        false
    }

    // Turns.

    /// Asks for a poll of `turn`.
    pub(crate) fn wake_turn(&self, turn: TurnId) {
        if self.turns.borrow_mut().wake(turn) {
            #[cfg(feature = "rehearsal")]
            self.note_wake(turn);
            self.ready.borrow_mut().push_back(turn);
        }
    }

    fn schedule(&self, activation: Rc<dyn AnyActivation>) {
        self.runnable.borrow_mut().push_back(activation);
    }

    // Calls.

    /// A slot for a call that the current turn makes.
    pub(crate) fn open_call(&self, deadline: Timestamp) -> Result<CallSlot, Refusal> {
        let opened = self.calls.borrow_mut().open(self.current_waiter(), deadline);
        opened.map_err(|_| Calls::full())
    }

    /// The end of `call`, if it has come. `None` for a call that is not open.
    pub(crate) fn poll_call(&self, call: CallSlot, context: &mut Context<'_>) -> Option<Poll<Completion>> {
        let polled = self.calls.borrow_mut().poll(call, || self.waiter(context))?;
        Some(polled.map_or(Poll::Pending, Poll::Ready))
    }

    /// Ends `call`.
    pub(crate) fn complete(&self, call: CallSlot, completion: Completion) {
        #[cfg(feature = "rehearsal")]
        let Some(completion) = self.hold_answer(call, completion) else { return };
        let then = self.calls.borrow_mut().complete(call, completion);
        self.follow(then);
    }

    fn follow(&self, then: Then) {
        match then {
            Then::Nothing => {}
            Then::WakeTurn(turn) => self.wake_turn(turn),
            Then::Wake(waker) => waker.wake(),
            Then::Relay { reply, call, hash, completion } => {
                self.learn_of_end(hash, call, &completion);
                reply.finish(RuntimeEnd(completion));
            }
            Then::Marked { call, hash, completion } => self.mark_ended(hash, call, &completion),
        }
    }

    /// Keeps a reply whose turn panicked until the panic's message is known.
    pub(crate) fn orphan(&self, reply: Box<dyn AnyReply>) {
        self.orphans.borrow_mut().push(reply);
    }
}

pub(crate) fn panic_message(payload: &(dyn std::any::Any + Send)) -> String {
    if let Some(text) = payload.downcast_ref::<&str>() {
        (*text).to_owned()
    } else if let Some(text) = payload.downcast_ref::<String>() {
        text.clone()
    } else {
        "it said nothing".to_owned()
    }
}
