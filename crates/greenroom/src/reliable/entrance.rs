//! The way in: who calls a reliable actor calls its partition.

use std::sync::Arc;

use bytes::Bytes;
use greenroom_protocols::delivery::Call;
use greenroom_world::Timestamp;

use super::RELIABLE;
use super::answers::Answering;
use super::name::{Body, Letter, Named, Payload};
use crate::actor::error::Refusal;
use crate::actor::key::{ActorId, Kind, check};
use crate::actor::reference::Inner;
use crate::actor::reply::{AnyReply, refused};
use crate::node::shared::Shared;
use crate::shard::Shard;
use crate::shard::mail::{AnyMail, Described, Form, written};
use crate::shard::raw::RawCall;
use crate::shard::turns::Chain;

impl Shared {
    /// Whether actors of `kind` are reliable, whose interface is this.
    pub(crate) fn is_reliable(&self, kind: Kind, interface: &Described) -> bool {
        interface.reliable || self.kinds().is_reliable(kind)
    }

    /// The same, for who does not know the interface.
    pub(crate) fn is_reliable_kind(&self, kind: Kind) -> bool {
        self.kinds().is_reliable(kind)
            || (self.kinds().find(kind).is_none()
                && self.view().hosts(kind).is_some_and(|hosts| hosts.placement == RELIABLE))
    }
}

/// A message on its way to a partition.
struct Entering {
    to: Named,
    method: Arc<str>,
    arguments: Bytes,
    /// Whoever waits for the reply.
    reply: Option<Box<dyn AnyReply>>,
    deadline: Timestamp,
    chain: Chain,
}

impl Shard {
    /// Takes a message for a reliable actor on its way.
    pub(crate) fn submit_reliable(&self, target: &Arc<Inner>, mail: &mut dyn AnyMail) -> Result<(), Refusal> {
        let (interface, deadline) = (mail.interface(), mail.deadline());
        let (method, written) = match mail.form() {
            Form::Typed(method) => (method, Some(written(mail)?)),
            Form::Wire(method) => (method, None),
            // Such are for activations that somebody holds in his hand.
            Form::Ended | Form::Tick | Form::Taken => {
                mail.clear();
                return Ok(());
            }
        };
        let chain = mail.chain().map(std::mem::take).unwrap_or_default();
        let reply = mail.reply().filter(|reply| reply.awaited()).map(|reply| reply.take());
        let arguments = written.or_else(|| mail.take_wire().map(|call| call.payload)).unwrap_or_default();
        mail.clear();
        let (to, method) = (Named::of(&target.id), interface.name(method).into());
        self.enter_partition(Entering { to, method, arguments, reply, deadline, chain });
        Ok(())
    }

    /// The same, for a message that came as bytes.
    pub(crate) fn submit_reliable_raw(&self, call: RawCall<'_>, id: &ActorId) {
        let RawCall { route, payload, reply, deadline, chain, .. } = call;
        let reply = reply.is_awaited().then(|| Box::new(reply) as Box<dyn AnyReply>);
        let arguments = Bytes::copy_from_slice(payload);
        let method = route.method.as_str().into();
        self.enter_partition(Entering { to: Named::of(id), method, arguments, reply, deadline, chain });
    }

    fn enter_partition(&self, entering: Entering) {
        let Entering { to, method, arguments, reply, deadline, chain } = entering;
        let node = &self.port().node;
        let partitions = node.config().reliable.partitions;
        if let Err(refusal) = to.check(partitions) {
            return reply.into_iter().for_each(|reply| reply.finish(refused(refusal.clone())));
        }
        let key = chain.baggage.as_ref().and_then(|baggage| baggage.idempotency.as_deref());
        if let Err(refusal) = key.map_or(Ok(()), check) {
            return reply.into_iter().for_each(|reply| reply.finish(refused(refusal.clone())));
        }
        let call = reply.is_some().then(|| {
            let request = fingerprint(&method, &arguments);
            match key {
                Some(key) => Call { key: format!("{to}#{key}"), request, recorded: true },
                None => {
                    let key = format!("{:x}-{:x}-{:x}", node.me().0, node.birth(), node.world().random());
                    Call { key, request, recorded: false }
                }
            }
        });
        let partition = self.partition(to.partition(partitions));
        let carried = match chain.baggage.as_ref().map_or(Ok(None), |baggage| baggage.carried()) {
            Ok(carried) => carried.map(Payload),
            Err(refusal) => return reply.into_iter().for_each(|reply| reply.finish(refused(refusal.clone()))),
        };
        let body = Body::Call { method, arguments: Payload(arguments), carried };
        let letter = Letter { from: None, birth: to.birth(), to, creates: false, call, body };
        match reply {
            Some(reply) => self.call_for(partition.called(letter), Box::new(Answering(reply)), deadline, chain),
            None => partition.told(letter).send(),
        }
    }
}

/// A number that tells requests under one idempotency key apart (FNV-1a).
fn fingerprint(method: &str, arguments: &[u8]) -> u64 {
    let mix = |hash: u64, byte: &u8| (hash ^ u64::from(*byte)).wrapping_mul(0x0100_0000_01b3);
    method.as_bytes().iter().chain(&[0]).chain(arguments).fold(0xcbf2_9ce4_8422_2325, mix)
}
