//! A shard's connections to other nodes, and which of them have something to do.

use std::collections::{BTreeMap, VecDeque};
use std::io;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::task::{Wake, Waker};

use bytes::BytesMut;
use greenroom_protocols::node::NodeId;
use greenroom_wire::{CallId, Decoder, Encoder, RouteEncoder, RouteTable};
use greenroom_world::{BoxFuture, Stream, Timestamp};

use super::dial::Opened;
use super::early::Early;
use super::farewell::Farewell;
use super::flow::Flow;
use crate::shard::raw::RouteTarget;

/// A connection of a shard.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct LaneId {
    pub(super) index: u32,
    pub(super) generation: u32,
}

/// One connection, or the attempt at one.
pub(super) struct Lane {
    pub(super) peer: NodeId,
    pub(super) peer_name: String,
    /// Whether this node opened it, and so may call on it.
    pub(super) dialled: bool,
    /// The peer's shard that calls on it, if the peer opened it.
    pub(super) caller: Option<u16>,
    pub(super) link: Link,
    /// Frames that have not left, and may.
    pub(super) out: BytesMut,
    pub(super) flow: Flow,
    pub(super) input: BytesMut,
    pub(super) decoder: Decoder,
    pub(super) routes_out: RouteEncoder,
    pub(super) routes_in: RouteTable<Arc<RouteTarget>>,
    pub(super) flag: Arc<Flag>,
    /// Whether it is in the list of lanes to flush.
    pub(super) unflushed: bool,
    /// So many bytes wait no longer for the end of the round: the peer may be idle.
    pub(super) flush_len: usize,
    pub(super) early: Early,
    /// The latest calls that were forwarded on it for other nodes: they are told if it breaks.
    pub(super) forwarded: VecDeque<(NodeId, CallId)>,
    pub(super) heard: Timestamp,
    pub(super) pinged: Timestamp,
    pub(super) farewell: Farewell,
    /// Whether streams have been asked for on it.
    pub(super) streams: bool,
}

pub(super) enum Link {
    Connecting(BoxFuture<io::Result<Opened>>),
    Open(Box<dyn Stream>),
    Closed,
}

/// Tells the shard which of its connections has something to do.
pub(super) struct Flag {
    pub(super) index: u32,
    pub(super) raised: AtomicBool,
    pub(super) list: Arc<Mutex<Vec<u32>>>,
    pub(super) shard: Waker,
}

impl Wake for Flag {
    fn wake(self: Arc<Self>) {
        self.wake_by_ref();
    }

    fn wake_by_ref(self: &Arc<Self>) {
        if !self.raised.swap(true, Ordering::AcqRel) {
            self.list.lock().unwrap_or_else(PoisonError::into_inner).push(self.index);
        }
        self.shard.wake_by_ref();
    }
}

/// The connections of one shard.
#[derive(Default)]
pub(in crate::shard) struct Lanes {
    pub(super) slots: Vec<LaneSlot>,
    pub(super) free: Vec<u32>,
    pub(super) dialled: BTreeMap<NodeId, LaneId>,
    /// Nodes that leave and take no more calls, but replies, and the connections for these.
    pub(super) departed: BTreeMap<NodeId, LaneId>,
    pub(super) raised: Arc<Mutex<Vec<u32>>>,
    pub(super) unflushed: Vec<u32>,
    pub(super) shard: Option<Waker>,
    pub(super) encoder: Encoder,
    pub(super) next_look: Option<Timestamp>,
    /// How often the shard had nothing to do and found work again.
    pub(super) found_work: u64,
    /// Whether that was in this round.
    pub(super) is_early: bool,
}

#[derive(Default)]
pub(super) struct LaneSlot {
    pub(super) generation: u32,
    pub(super) lane: Option<Box<Lane>>,
}

impl Lanes {
    pub(super) fn insert(&mut self, make: impl FnOnce(Arc<Flag>) -> Lane) -> LaneId {
        let index = self.free.pop().unwrap_or_else(|| {
            self.slots.push(LaneSlot::default());
            (self.slots.len() - 1) as u32
        });
        let shard = self.shard.clone().unwrap_or_else(|| Waker::noop().clone());
        let flag = Arc::new(Flag { index, raised: AtomicBool::new(false), list: self.raised.clone(), shard });
        let slot = &mut self.slots[index as usize];
        slot.lane = Some(Box::new(make(flag.clone())));
        let id = LaneId { index, generation: slot.generation };
        flag.wake();
        id
    }

    pub(super) fn lane(&mut self, id: LaneId) -> Option<&mut Lane> {
        let slot = self.slots.get_mut(id.index as usize)?;
        if slot.generation == id.generation { slot.lane.as_deref_mut() } else { None }
    }

    pub(super) fn at(&mut self, index: u32) -> Option<(LaneId, &mut Lane)> {
        let slot = self.slots.get_mut(index as usize)?;
        let id = LaneId { index, generation: slot.generation };
        slot.lane.as_deref_mut().map(|lane| (id, lane))
    }

    pub(super) fn remove(&mut self, id: LaneId) -> Option<Box<Lane>> {
        let slot = self.slots.get_mut(id.index as usize).filter(|slot| slot.generation == id.generation)?;
        let lane = slot.lane.take()?;
        slot.generation = slot.generation.wrapping_add(1);
        self.free.push(id.index);
        if self.dialled.get(&lane.peer) == Some(&id) {
            self.dialled.remove(&lane.peer);
        }
        Some(lane)
    }

    pub(super) fn mark_unflushed(&mut self, index: u32) {
        if let Some((_, lane)) = self.at(index)
            && !std::mem::replace(&mut lane.unflushed, true)
        {
            self.unflushed.push(index);
        }
    }

    /// Connections there are.
    pub(in crate::shard) fn len(&self) -> usize {
        self.slots.len() - self.free.len()
    }
}
