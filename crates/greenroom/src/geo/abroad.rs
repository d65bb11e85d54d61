//! Calls on a shard whose actor may be in another cluster.

use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use greenroom_protocols::gsi::{Call, CallId, ClusterId};
use greenroom_wire::{ChainView, ExtensionView};
use greenroom_world::Timestamp;
use tokio::sync::oneshot;

use super::letter::{Blob, Operation};
use super::{Geo, LETTER_ROOM};
use crate::actor::error::Refusal;
use crate::actor::key::ActorId;
use crate::actor::reply::{ReplyForm, WireReply};
use crate::cluster::directory::Entry;
use crate::here::location::Asker;
use crate::shard::baggage::{self, Baggage};
use crate::shard::calls::Completion;
use crate::shard::chain::{CallPath, PortableChain};
use crate::shard::late::last_moment;
use crate::shard::raw::{Journey, RawCall, RawParcel};
use crate::shard::submit::refuse_reply;
use crate::shard::{AnyParcel, Shard};

impl Shard {
    /// Hands a message to the machine of its actor.
    #[cold]
    pub(crate) fn go_abroad(&self, geo: &Arc<Geo>, mut parcel: RawParcel) {
        // A grant that came back with it has been taken back: it must not be again, when the parcel is delivered anew.
        parcel.journey.grant = None;
        let node = &self.port().node;
        let Some(directory) = node.directory() else {
            return Box::new(parcel).refuse(Refusal::Recovering);
        };
        if parcel.payload.len() > LETTER_ROOM {
            let message =
                format!("{} bytes are more than the {LETTER_ROOM} that go to other clusters", parcel.payload.len());
            return Box::new(parcel).refuse(Refusal::Unsendable { message });
        }
        if geo.waiting() >= WAITING_MAX {
            let queue = "what waits for other clusters".to_owned();
            return Box::new(parcel).refuse(Refusal::Overloaded { queue, bound: WAITING_MAX as u64 });
        }
        let extension = match parcel.chain.baggage.as_deref() {
            None => Bytes::new(),
            Some(load) => match baggage::written(Some(load), parcel.chain.wanted(), None) {
                Ok(extension) => Bytes::copy_from_slice(extension.view().as_bytes()),
                Err(error) => return Box::new(parcel).refuse(Refusal::Unsendable { message: error.to_string() }),
            },
        };
        let waiting = parcel.chain.link.as_ref().map_or(&[][..], |path| path.view().as_bytes());
        let waiting = Bytes::copy_from_slice(waiting);
        let awaited = parcel.reply.is_awaited();
        // What nobody waits for must end some time, too.
        let one_way = self.now() + node.config().call_timeout;
        let deadline = if parcel.deadline == Timestamp::NEVER { one_way } else { parcel.deadline };
        let methods = node.kinds().methods().find(|(kind, _)| *kind == parcel.route.kind_name);
        let method = methods.zip(parcel.route.index).and_then(|((_, all), at)| all.get(usize::from(at)));
        let operation = Operation {
            method: parcel.route.method.as_str().into(),
            payload: Blob(parcel.payload.clone()),
            deadline: deadline.as_nanos(),
            awaited,
            chain: Blob(waiting),
            extension: Blob(extension),
        };
        let repeatable = method.is_some_and(|method| method.is_repeatable());
        // What becomes of it is known here before its caller gives up.
        let drift = deadline.since(self.now()) / DRIFT_PART;
        let limit = last_moment(Duration::ZERO, self.now(), deadline) - drift;
        let call = Call { id: CallId(geo.next_call()), operation, repeatable, deadline: limit };
        let key = Entry::new(parcel.id.clone());
        let asker = Asker {
            origin: parcel.journey.origin,
            from: parcel.journey.from,
            near: self.id().raw(),
            outside: false,
            wanted: parcel.chain.wanted(),
        };
        let host = directory.early_host(node, &key, asker);
        directory.call_abroad(geo, self.now(), &key, (call, parcel, host));
    }

    /// Runs a call that came in at another cluster, as this one owns its actor.
    #[cold]
    pub(crate) fn run_for_cluster(
        &self,
        id: &ActorId,
        operation: Operation,
        caller: Option<ClusterId>,
        reply: Option<(oneshot::Sender<Completion>, u32)>,
    ) {
        let node = &self.port().node;
        let Operation { method, payload, deadline, chain, extension, .. } = operation;
        let form = ReplyForm::asked_by(&payload.0);
        let reply = reply.map_or_else(WireReply::nobody, |(sender, number)| WireReply::gateway(sender, number, form));
        let read = ExtensionView::parse(&extension.0).and_then(|extension| match extension.is_empty() {
            true => Ok(None),
            false => Baggage::read(extension).map(Some),
        });
        let (Ok(baggage), Ok(path)) = (read, ChainView::parse(&chain.0)) else {
            let message = "another cluster wrote it in a way that cannot be read here".to_owned();
            return refuse_reply(reply, Refusal::Invalid { field: String::new(), message });
        };
        let baggage = match caller {
            Some(_) => Some(Arc::new(Baggage { caller, ..baggage.as_deref().cloned().unwrap_or_default() })),
            None => baggage,
        };
        let route = match node.kinds().external_route(id.kind.name(), &method) {
            Ok(route) => Arc::new(route),
            Err(refusal) => return refuse_reply(reply, refusal),
        };
        let journey = Journey::begins_at(node);
        self.submit_raw(RawCall {
            key: &id.key,
            route: &route,
            payload: &payload.0,
            reply,
            deadline: Timestamp::from_nanos(deadline),
            chain: PortableChain { link: CallPath::of(path), baggage }.into(),
            journey,
            sender: None,
        });
    }
}

/// The caller's clock may gain so much of its time on this one: a hundredth for each of them.
const DRIFT_PART: u32 = 50;
/// Calls of one node that may wait for other clusters.
const WAITING_MAX: i64 = 100_000;
