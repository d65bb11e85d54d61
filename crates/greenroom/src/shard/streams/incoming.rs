//! Streams that come from other nodes.

use bytes::Bytes;
use greenroom_protocols::reply_stream::{Arrival, Consumer};
use greenroom_wire::codec::Codec;
use greenroom_wire::{CallId, Status, StreamCredit};

use crate::actor::error::{Doubt, Failure, Refusal};
use crate::actor::reply;
use crate::shard::calls::CallSlot;
use crate::shard::{Item, LaneId, Shard};
use crate::stream::WINDOW;
use crate::stream::handle::Handle;
use crate::stream::inlet::{Claim, Inlet};

/// A stream that comes in.
pub(super) struct Incoming {
    inlet: Claim,
    lane: LaneId,
    window: Consumer,
}

impl Shard {
    /// Asks the producer of `inlet` for its items.
    pub(crate) fn open_inlet(&self, inlet: Claim) {
        let handle = inlet.handle;
        if handle.node == self.port().node.me() {
            return match self.port().node.shards().get(usize::from(handle.stream.shard)) {
                Some(port) if port.id == self.id() => self.claim_stream(inlet),
                Some(port) => self.post(port.id, Item::Run(Box::new(move |shard| shard.claim_stream(inlet)))),
                None => inlet.pipe.finish(Err(Doubt::Dropped.into())),
            };
        }
        let lane = match self.dialled(handle.node) {
            Ok(lane) => lane,
            Err(refusal) => return inlet.pipe.finish(Err(refusal.into())),
        };
        let opened = inlet.clone();
        let incoming = Incoming { inlet, lane, window: Consumer::new(WINDOW) };
        let slot = self.streams.incoming.borrow_mut().insert(incoming);
        let Some(slot) = slot else {
            let queue = "the shard's table of streams".to_owned();
            return opened.pipe.finish(Err(Refusal::Overloaded { queue, bound: 1 << 16 }.into()));
        };
        let inlet = opened;
        inlet.set_slot(slot);
        self.send_credit(lane, &inlet, slot, WINDOW, 0);
    }

    /// The reader of `inlet` has taken `total` items.
    pub(crate) fn credit_inlet(&self, inlet: &Inlet, total: u64) {
        let Some(slot) = inlet.slot() else { return };
        let lane = {
            let mut incoming = self.streams.incoming.borrow_mut();
            let Some(found) = incoming.find(slot) else { return };
            found.window.told(total);
            found.lane
        };
        self.send_credit(lane, inlet, slot, WINDOW, total);
    }

    /// The reader of `inlet` has gone.
    pub(crate) fn close_inlet(&self, inlet: &Inlet) {
        let Some(slot) = inlet.slot() else { return };
        let found = self.streams.incoming.borrow_mut().remove(slot);
        if let Some(found) = found {
            self.send_credit(found.lane, inlet, slot, 0, 0);
        }
    }

    /// Tells the producer of a stream that nobody will ask for it.
    pub(crate) fn give_up_stream(&self, handle: Handle) {
        if handle.node == self.port().node.me() {
            return match self.port().node.shards().get(usize::from(handle.stream.shard)) {
                Some(port) if port.id == self.id() => self.drop_stream(handle),
                Some(port) => self.post(port.id, Item::Run(Box::new(move |shard| shard.drop_stream(handle)))),
                None => {}
            };
        }
        // Without a way to the producer, time tells it.
        if let Ok(lane) = self.dialled(handle.node) {
            let nobody = CallId { shard: self.index(), index: u32::MAX, generation: 0 };
            let codec = Codec::MessagePack.tag();
            let Handle { stream, token, .. } = handle;
            let credit = StreamCredit { stream, token, consumer: nobody, codec, window: 0, consumed: 0 };
            self.lane_credit(lane, &credit);
        }
    }

    fn send_credit(&self, lane: LaneId, inlet: &Inlet, slot: CallSlot, window: u32, consumed: u64) {
        let Handle { stream, token, .. } = inlet.handle;
        let consumer = CallId { shard: self.index(), index: slot.index, generation: slot.generation };
        let credit = StreamCredit { stream, token, consumer, codec: inlet.codec.tag(), window, consumed };
        self.lane_credit(lane, &credit);
    }

    /// An item that came on `lane`.
    pub(in crate::shard) fn take_item(&self, lane: LaneId, consumer: CallId, number: u64, payload: &[u8]) {
        let Some(slot) = self.incoming_slot(consumer) else { return };
        let mut incoming = self.streams.incoming.borrow_mut();
        let Some(found) = incoming.find(slot).filter(|found| found.lane == lane) else { return };
        let inlet = found.inlet.clone();
        let arrival = found.window.arrived(number);
        drop(incoming);
        match arrival {
            Arrival::Next => inlet.pipe.put(Bytes::copy_from_slice(payload), payload.len()),
            Arrival::Again => {}
            Arrival::Gap => self.break_inlet(&inlet, "an item of the stream is missing"),
            Arrival::Overrun => self.break_inlet(&inlet, "the stream has more items under way than there is room for"),
        }
    }

    /// The end of a stream that came on `lane`.
    pub(in crate::shard) fn take_end(
        &self,
        lane: LaneId,
        consumer: CallId,
        number: u64,
        status: Status,
        payload: &[u8],
    ) {
        let Some(slot) = self.incoming_slot(consumer) else { return };
        let mut incoming = self.streams.incoming.borrow_mut();
        if incoming.find(slot).is_none_or(|found| found.lane != lane) {
            return;
        }
        let Some(found) = incoming.remove(slot) else { return };
        drop(incoming);
        let end = match status {
            Status::Ok if found.window.is_complete(number) => Ok(()),
            Status::Ok => Err(unreadable("its last items are missing")),
            _ => Err(reply::failure(payload)),
        };
        found.inlet.pipe.finish(end);
    }

    fn incoming_slot(&self, consumer: CallId) -> Option<CallSlot> {
        let CallId { shard, index, generation } = consumer;
        (shard == self.index()).then_some(CallSlot { index, generation })
    }

    fn break_inlet(&self, inlet: &Inlet, why: &str) {
        inlet.pipe.finish(Err(unreadable(why)));
        self.close_inlet(inlet);
    }

    /// Ends the streams that came by a connection which has closed.
    pub(in crate::shard) fn end_inlets(&self, lane: LaneId, failure: &Failure) {
        let ended: Vec<Incoming> = {
            let mut incoming = self.streams.incoming.borrow_mut();
            let names = incoming.names(|stream| stream.lane == lane);
            names.into_iter().filter_map(|name| incoming.remove(name)).collect()
        };
        for stream in ended {
            stream.inlet.pipe.finish(Err(failure.clone()));
        }
    }
}

fn unreadable(why: &str) -> Failure {
    Doubt::Unreadable { message: why.to_owned() }.into()
}
