//! A node's exchanges, as its shards, its control plane and people reach them.

use std::collections::BTreeSet;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Mutex, MutexGuard, PoisonError};

use bytes::Bytes;
use greenroom_protocols::exchange::{Exchange, ExchangeId, OrderEnd, Outcome, Survey};
use greenroom_protocols::node::NodeId;
use tokio::sync::mpsc;

use super::survey::Taken;
use super::word::Letter;
use crate::here::Here;

/// What a node's exchanges are made of.
pub(super) struct Exchanges {
    machine: Mutex<Machine>,
    happened: mpsc::Sender<Happening>,
    /// Until who drives them takes it.
    happenings: Mutex<Option<mpsc::Receiver<Happening>>>,
    paused: AtomicBool,
    pub(super) counts: Counts,
}

/// The machine, and what it was last told of the node.
#[derive(Default)]
pub(super) struct Machine {
    /// `None` until the node has joined, and where nothing is to move.
    pub(super) exchange: Option<Exchange>,
    /// With whom it may exchange actors.
    pub(super) partners: BTreeSet<NodeId>,
    pub(super) survey: Survey,
}

/// Something that who drives the machine is told.
pub(super) enum Happening {
    /// The view has changed, or exchanges are paused or go on.
    Changed,
    /// Another node's optimiser says this.
    Told { from: NodeId, payload: Bytes },
    /// An order has ended; of an actor that has gone, whom it talked with, as edges have it.
    Settled { x: ExchangeId, hash: u64, end: OrderEnd, partners: Vec<(u64, f64)> },
    /// An actor has come from there, and talks with these.
    Arrived { x: ExchangeId, hash: u64, from: NodeId, partners: Vec<(u64, f64)> },
}

/// What became of exchanges, and of what they moved.
#[derive(Default)]
pub(super) struct Counts {
    pub(super) moved: AtomicU64,
    pub(super) arrived: AtomicU64,
    pub(super) back: AtomicU64,
    pub(super) stayed: AtomicU64,
    pub(super) done: AtomicU64,
    pub(super) fruitless: AtomicU64,
    pub(super) failed: AtomicU64,
}

impl Counts {
    pub(super) fn ended(&self, how: Outcome) {
        let count = match how {
            Outcome::Done => &self.done,
            Outcome::Nothing | Outcome::Busy | Outcome::Yielded => &self.fruitless,
            Outcome::Silent | Outcome::Overdue | Outcome::Gone => &self.failed,
        };
        count.fetch_add(1, Ordering::Relaxed);
    }
}

impl Exchanges {
    pub(super) fn new() -> Self {
        let (happened, happenings) = mpsc::channel(HAPPENINGS_MAX);
        Self {
            machine: Mutex::default(),
            happened,
            happenings: Mutex::new(Some(happenings)),
            paused: AtomicBool::new(false),
            counts: Counts::default(),
        }
    }

    pub(super) fn machine(&self) -> MutexGuard<'_, Machine> {
        self.machine.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// What happens, for who drives the machine; once.
    pub(super) fn take_happenings(&self) -> Option<mpsc::Receiver<Happening>> {
        self.happenings.lock().unwrap_or_else(PoisonError::into_inner).take()
    }

    /// What does not fit is lost, which costs time: an exchange ends by itself.
    pub(super) fn happens(&self, what: Happening) {
        // Other nodes do not crowd out what this one has to say.
        let is_ours = !matches!(what, Happening::Told { .. });
        if is_ours || self.happened.capacity() > HAPPENINGS_MAX / 2 {
            let _ = self.happened.try_send(what);
        }
    }

    /// Whether an actor is to be taken that `from` sends.
    pub(super) fn admits(&self, here: &Here, from: NodeId, hash: u64, letter: &Letter) -> bool {
        let Machine { exchange, survey, .. } = &*self.machine();
        let admits = |exchange: &Exchange| exchange.admits(from, letter.x, hash, letter.cpu, &Taken { here, survey });
        exchange.as_ref().is_none_or(admits)
    }

    pub(super) fn is_paused(&self) -> bool {
        self.paused.load(Ordering::Relaxed)
    }

    /// Takes part in no exchange until it is told to go on, or the node starts anew.
    pub(super) fn pause(&self, paused: bool) {
        self.paused.store(paused, Ordering::Relaxed);
        self.happens(Happening::Changed);
    }
}

/// Happenings that wait; from other nodes half as many.
const HAPPENINGS_MAX: usize = 1024;
