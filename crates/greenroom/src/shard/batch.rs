//! Messages for another shard, side by side in one block of memory.
//!
//! The block is written by one core and read by the other from front to back; no message has a box of its own. The references
//! that the messages were sent by stay in the block, which goes back to the shard that filled it: so their counts are
//! touched by that shard's core alone.

use std::alloc::{self, Layout};
use std::mem::{align_of, size_of};
use std::ptr::{self, NonNull};
use std::sync::Arc;

use super::envelope::PortableEnvelope;
use super::{Shard, ShardId, Slot};
use crate::actor::error::Refusal;
use crate::actor::interface::Interface;
use crate::actor::reference::Inner;

/// A block of messages, first in first out.
pub(crate) struct Batch {
    /// The shard that fills it.
    from: ShardId,
    block: NonNull<u8>,
    /// Where the first message is that is still to be taken out.
    begin: usize,
    end: usize,
    len: usize,
    targets: Vec<Arc<Inner>>,
}

/// What precedes a message in the block.
struct Head {
    table: &'static Table,
    slot: Slot,
    target: u32,
    /// From this head to the next.
    size: u32,
}

/// Where a message comes from, and whether more are right behind it for the same actor.
#[derive(Clone, Copy)]
pub(super) struct Behind {
    pub(super) from: ShardId,
    pub(super) more: bool,
}

/// What can be done with a message whose type is not known.
struct Table {
    deliver: unsafe fn(*mut u8, &Shard, &Arc<Inner>, Slot, Behind),
    refuse: unsafe fn(*mut u8, &Inner, Refusal),
    drop: unsafe fn(*mut u8),
}

struct TableOf<I: Interface>(std::marker::PhantomData<I>);

impl<I: Interface> TableOf<I> {
    const TABLE: Table = Table { deliver: deliver::<I>, refuse: refuse::<I>, drop: drop_message::<I> };
}

// SAFETY: it holds envelopes that may leave their shard, which `push` shows to be `Send`, and references, which are `Send`.
unsafe impl Send for Batch {}

impl Batch {
    /// An empty block of the shard `from`.
    pub(super) fn new(from: ShardId) -> Self {
        // SAFETY: the layout is not empty.
        let Some(block) = NonNull::new(unsafe { alloc::alloc(LAYOUT) }) else { alloc::handle_alloc_error(LAYOUT) };
        Self { from, block, begin: 0, end: 0, len: 0, targets: Vec::new() }
    }

    /// Whether messages of this interface can go into blocks: those that are very large or strictly aligned cannot.
    pub(super) const fn takes<I: Interface>() -> bool {
        size_of::<PortableEnvelope<I::Message>>() <= BLOCK_BYTES / 8
            && align_of::<PortableEnvelope<I::Message>>() <= ALIGN
    }

    pub(super) fn from(&self) -> ShardId {
        self.from
    }

    /// Messages in the block.
    pub(super) fn len(&self) -> usize {
        self.len
    }

    /// Whether another message of this interface fits.
    pub(super) fn has_room<I: Interface>(&self) -> bool {
        Self::takes::<I>() && self.end + Self::size::<I>() <= BLOCK_BYTES
    }

    const fn size<I: Interface>() -> usize {
        HEAD_BYTES + size_of::<PortableEnvelope<I::Message>>().next_multiple_of(ALIGN)
    }

    /// Puts a message in.
    ///
    /// # Panics
    /// If it has no room.
    pub(super) fn push<I: Interface>(
        &mut self,
        target: Arc<Inner>,
        slot: Slot,
        envelope: PortableEnvelope<I::Message>,
    ) {
        fn is_send<T: Send>(_: &T) {}
        is_send(&envelope);
        assert!(self.has_room::<I>(), "who pushes has asked");
        if self.targets.last().is_none_or(|last| !Arc::ptr_eq(last, &target)) {
            self.targets.push(target);
        }
        let size = Self::size::<I>();
        let head =
            Head { table: &TableOf::<I>::TABLE, slot, target: (self.targets.len() - 1) as u32, size: size as u32 };
        // SAFETY: head and envelope lie within the block, which was asked above, and are aligned: the block is, and all
        // sizes are multiples of it.
        unsafe {
            let at = self.block.add(self.end);
            at.cast::<Head>().write(head);
            at.add(HEAD_BYTES).cast::<PortableEnvelope<I::Message>>().write(envelope);
        }
        self.end += size;
        self.len += 1;
    }

    /// Takes the first message out and gives its place, which the caller then owns.
    fn pop(&mut self) -> Option<(Head, *mut u8)> {
        if self.begin == self.end {
            return None;
        }
        // SAFETY: `begin` is where a head was written, and it is read once.
        let (head, at) = unsafe {
            let at = self.block.add(self.begin);
            (at.cast::<Head>().read(), at.add(HEAD_BYTES).as_ptr())
        };
        self.begin += head.size as usize;
        self.len -= 1;
        Some((head, at))
    }

    /// Whether the first message goes by the reference `target`.
    fn next_is_for(&self, target: u32) -> bool {
        // SAFETY: `begin` is where a head was written, if it is not the end.
        self.begin < self.end && unsafe { self.block.add(self.begin).cast::<Head>().as_ref() }.target == target
    }

    /// Delivers all messages on `shard`, in order.
    pub(super) fn deliver(&mut self, shard: &Shard) {
        while let Some((head, at)) = self.pop() {
            shard.refill_budget();
            // SAFETY: the table is that of the message at this place, which `pop` has given away.
            unsafe {
                (head.table.deliver)(
                    at,
                    shard,
                    &self.targets[head.target as usize],
                    head.slot,
                    Behind { from: self.from, more: self.next_is_for(head.target) },
                )
            };
        }
    }

    /// Refuses all messages.
    pub(super) fn refuse(&mut self, refusal: &Refusal) {
        while let Some((head, at)) = self.pop() {
            // SAFETY: as in `deliver`.
            unsafe { (head.table.refuse)(at, &self.targets[head.target as usize], refusal.clone()) };
        }
    }

    /// Makes an emptied block ready to be filled again.
    pub(super) fn recycle(&mut self) {
        self.drop_messages();
        (self.begin, self.end) = (0, 0);
        self.targets.clear();
    }

    fn drop_messages(&mut self) {
        while let Some((head, at)) = self.pop() {
            // SAFETY: as in `deliver`.
            unsafe { (head.table.drop)(at) };
        }
    }
}

impl Drop for Batch {
    fn drop(&mut self) {
        self.drop_messages();
        // SAFETY: it was allocated with this layout.
        unsafe { alloc::dealloc(self.block.as_ptr(), LAYOUT) };
    }
}

unsafe fn deliver<I: Interface>(at: *mut u8, shard: &Shard, target: &Arc<Inner>, slot: Slot, behind: Behind) {
    // SAFETY: the caller gives away an envelope of this interface.
    let envelope = unsafe { ptr::read(at.cast::<PortableEnvelope<I::Message>>()) };
    shard.deliver::<I>(target, slot, behind, envelope.into());
}

unsafe fn refuse<I: Interface>(at: *mut u8, target: &Inner, refusal: Refusal) {
    // SAFETY: the caller gives away an envelope of this interface.
    let envelope = unsafe { ptr::read(at.cast::<PortableEnvelope<I::Message>>()) };
    super::submit::refuse::<I>(&target.id, envelope.into(), refusal);
}

unsafe fn drop_message<I: Interface>(at: *mut u8) {
    // SAFETY: the caller gives away an envelope of this interface.
    unsafe { ptr::drop_in_place(at.cast::<PortableEnvelope<I::Message>>()) };
}

const ALIGN: usize = 16;
const HEAD_BYTES: usize = size_of::<Head>().next_multiple_of(ALIGN);
const BLOCK_BYTES: usize = 32 << 10;
const LAYOUT: Layout = match Layout::from_size_align(BLOCK_BYTES, ALIGN) {
    Ok(layout) => layout,
    Err(_) => panic!("the block has a layout"),
};

#[cfg(test)]
mod tests {
    use bytes::BytesMut;
    use greenroom_wire::EncodeError;
    use greenroom_wire::codec::DecodeError;
    use greenroom_world::Timestamp;

    use super::super::chain::PortableChain;
    use super::super::envelope::{Body, Envelope};
    use super::*;
    use crate::actor::error::Never;
    use crate::actor::interface::MethodInfo;
    use crate::actor::key::{ActorId, Kind};
    use crate::actor::reference::Ref;
    use crate::actor::reply::{AnyReply, ReplyTo, WireReply};

    struct Counted;

    #[expect(dead_code, reason = "they are only dropped")]
    struct Message(Arc<()>, [u8; 13], ReplyTo<(), Never>);

    impl Interface for Counted {
        type Message = Message;
        type Ref = Ref<Self>;
        const KIND: &'static str = "batch_test";
        const METHODS: &'static [MethodInfo] = &[MethodInfo { name: "count", read: false, update: false }];

        fn method(_: &Message) -> u16 {
            0
        }

        fn reply(message: &mut Message) -> &mut dyn AnyReply {
            &mut message.2
        }

        fn encode(_: &Message, _: &mut BytesMut) -> Result<(), EncodeError> {
            Ok(())
        }

        fn decode(_: u16, _: &[u8], reply: WireReply) -> Result<Message, Box<(DecodeError, WireReply)>> {
            Err(Box::new((DecodeError::Empty, reply)))
        }
    }

    fn target(key: &str) -> Arc<Inner> {
        Inner::untyped(ActorId::unchecked(Kind::intern(Counted::KIND), key))
    }

    fn fill(batch: &mut Batch, target: &Arc<Inner>, counted: &Arc<()>) -> usize {
        let before = batch.len();
        while batch.has_room::<Counted>() {
            let body = Body::Typed(Message(counted.clone(), [7; 13], ReplyTo::nobody()));
            let envelope = Envelope { body, deadline: Timestamp::NEVER, chain: PortableChain::default() };
            batch.push::<Counted>(target.clone(), Slot { index: 1, generation: 2 }, envelope);
        }
        batch.len() - before
    }

    #[test]
    fn every_message_is_dropped_once_and_every_reference_counted_once() {
        let (counted, ada) = (Arc::new(()), target("ada"));
        let mut batch = Batch::new(ShardId::from_raw(0));
        let len = fill(&mut batch, &ada, &counted);
        assert!(len > 100, "{len} fit");
        assert_eq!((Arc::strong_count(&counted), Arc::strong_count(&ada)), (len + 1, 2));
        batch.refuse(&Refusal::Stopping);
        assert_eq!((batch.len(), Arc::strong_count(&counted), Arc::strong_count(&ada)), (0, 1, 2));
        batch.recycle();
        assert_eq!(Arc::strong_count(&ada), 1);
        assert_eq!(fill(&mut batch, &ada, &counted), len, "an emptied block holds as much again");
        drop(batch);
        assert_eq!((Arc::strong_count(&counted), Arc::strong_count(&ada)), (1, 1));
    }

    #[test]
    fn what_is_left_in_a_recycled_block_is_dropped() {
        let (counted, ada, bob) = (Arc::new(()), target("ada"), target("bob"));
        let mut batch = Batch::new(ShardId::from_raw(0));
        fill(&mut batch, &ada, &counted);
        batch.recycle();
        assert_eq!((batch.len(), Arc::strong_count(&counted)), (0, 1));
        fill(&mut batch, &bob, &counted);
        assert_eq!((Arc::strong_count(&ada), Arc::strong_count(&bob)), (1, 2));
    }
}
