//! Where a stream's items come out as bytes: those of another node, and those that somebody wants encoded.

use std::ops::Deref;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use bytes::Bytes;
use greenroom_protocols::reply_stream::{BYTES_MAX, Reader};
use greenroom_wire::codec::Codec;

use super::WINDOW;
use super::handle::Handle;
use super::pipe::Pipe;
use crate::actor::error::Doubt;
use crate::here::port::Port;
use crate::shard::calls::CallSlot;
use crate::shard::{Item, Shard, ShardPort};

/// A stream that is consumed by its handle.
pub(crate) struct Inlet {
    pub(crate) handle: Handle,
    pub(crate) codec: Codec,
    pub(crate) pipe: Pipe<Bytes>,
    /// The shard whose connection the items come by.
    home: ShardPort,
    /// Its place in that shard's table, once it has one.
    slot: AtomicU64,
}

/// Who is to see that an inlet gets its items: dropped on the way, as the node stops, it ends the stream.
pub(crate) struct Claim(Arc<Inlet>);

impl Deref for Claim {
    type Target = Arc<Inlet>;

    fn deref(&self) -> &Arc<Inlet> {
        &self.0
    }
}

impl Drop for Claim {
    fn drop(&mut self) {
        self.pipe.finish(Err(Doubt::Dropped.into()));
    }
}

impl Inlet {
    /// Asks for the stream's items.
    pub(crate) fn open(handle: Handle, codec: Codec, port: &Port) -> Arc<Self> {
        let inlet = Self::new(handle, codec, port);
        let claim = Claim(inlet.clone());
        inlet.at_home(move |shard| shard.open_inlet(claim));
        inlet
    }

    /// Tells the producer that nobody will ask for the stream's items.
    pub(crate) fn give_up(handle: Handle, port: &Port) {
        Self::new(handle, Codec::MessagePack, port).at_home(move |shard| shard.give_up_stream(handle));
    }

    fn new(handle: Handle, codec: Codec, port: &Port) -> Arc<Self> {
        let here = Shard::with(|shard| {
            let shard = shard.filter(|shard| Arc::ptr_eq(&shard.port().node, &port.node))?;
            port.node.shards().get(usize::from(shard.index())).copied()
        });
        let shards = port.node.shards();
        let home = here.unwrap_or_else(|| shards[handle.token as usize % shards.len()]);
        let pipe = Pipe::new(Some(port.node.backlog().hold(0)));
        Arc::new(Self { handle, codec, pipe, home, slot: AtomicU64::new(NO_SLOT) })
    }

    /// The reader has taken `total` items: the producer is to know.
    pub(crate) fn tell(self: &Arc<Self>, total: u64) {
        let this = self.clone();
        self.at_home(move |shard| shard.credit_inlet(&this, total));
    }

    /// The reader goes.
    pub(crate) fn close(self: &Arc<Self>) {
        self.pipe.close();
        let this = self.clone();
        self.at_home(move |shard| shard.close_inlet(&this));
    }

    /// What counts the items that are taken out of it.
    pub(crate) fn reader(&self) -> Reader {
        Reader::new(WINDOW, BYTES_MAX)
    }

    pub(crate) fn slot(&self) -> Option<CallSlot> {
        let word = self.slot.load(Ordering::Acquire);
        (word != NO_SLOT).then_some(CallSlot { index: (word >> 32) as u32, generation: word as u32 })
    }

    pub(crate) fn set_slot(&self, slot: CallSlot) {
        self.slot.store((u64::from(slot.index) << 32) | u64::from(slot.generation), Ordering::Release);
    }

    /// Runs `run` on the home shard: at once if this is it.
    fn at_home(&self, run: impl FnOnce(&Shard) + Send + 'static) {
        let mut run = Some(run);
        Shard::with(|shard| {
            if let Some(shard) = shard.filter(|shard| shard.id() == self.home.id)
                && let Some(run) = run.take()
            {
                run(shard);
            }
        });
        if let Some(run) = run {
            // It is dropped if the node has stopped.
            let _ = self.home.push(Item::Run(Box::new(run)));
        }
    }
}

const NO_SLOT: u64 = u64::MAX;
