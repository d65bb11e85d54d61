//! Subscriptions of actors in hosts to topics.

use std::collections::BTreeMap;
use std::sync::Arc;

use bytes::Bytes;
use greenroom_wire::Status;
use greenroom_wire::codec::Codec;
use serde::de::IgnoredAny;
use tokio::sync::oneshot;

use super::turn::with;
use crate::actor::cx::Cx;
use crate::actor::error::{CallError, Never, Refusal};
use crate::actor::key::{self, ActorId, Key};
use crate::actor::reply::{self, ReplyForm, TYPE_VERSION, WireReply};
use crate::here::port::Port;
use crate::shard::Slot;
use crate::shard::calls::Completion;
use crate::shard::chain::PortableChain;
use crate::shard::raw::{Journey, RawParcel};
use crate::topic::{Parcel, Subscription, Terms, Try, follow};

/// Which topics the activations of a shard follow.
#[derive(Default)]
pub(super) struct Followed(BTreeMap<(u32, u32, String), (To, Subscription)>);

/// Where events go.
#[derive(Clone, PartialEq, Eq)]
pub(super) struct To {
    pub(super) method: String,
    /// The argument that an event is; without it, an event is all arguments by their names.
    pub(super) argument: String,
}

impl Followed {
    /// Forgets those of an activation that has ended.
    pub(super) fn forget(&mut self, slot: Slot) {
        let (first, last) =
            ((slot.index, slot.generation, String::new()), (slot.index, slot.generation + 1, String::new()));
        let ended: Vec<_> = self.0.range(first..last).map(|(name, _)| name.clone()).collect();
        ended.iter().for_each(|name| drop(self.0.remove(name)));
    }

    fn cancel(&mut self, slot: Slot, topic: &str) {
        if let Some((_, subscription)) = self.0.remove(&(slot.index, slot.generation, topic.to_owned())) {
            subscription.cancel();
        }
    }
}

/// Has a method of the actor called for each event of a topic, as long as its activation lasts. An instance that is made anew may say so again:
/// nothing is missed.
///
/// # Errors
/// No topic has this name.
pub(super) fn subscribe(cx: &Cx, topic: &str, to: To) -> Result<(), Refusal> {
    key::check(topic)?;
    with(|shard, part| {
        let slot = shard.current_slot()?;
        let mut followed = part.followed.borrow_mut();
        let name = (slot.index, slot.generation, topic.to_owned());
        if followed.0.get(&name).is_some_and(|(known, _)| *known == to) {
            return Some(());
        }
        followed.cancel(slot, topic);
        drop(followed);
        let (port, id, delivered) = (cx.port.clone(), cx.id.clone(), to.clone());
        let deliver = async move |parcel: &Parcel| deliver(&port, &id, &delivered, parcel).await;
        let subscription = follow(cx, Key::from(topic), Terms::default(), deliver);
        part.followed.borrow_mut().0.insert(name, (to, subscription));
        Some(())
    });
    Ok(())
}

/// Ends a subscription: after the delivery that is under way there is no other.
pub(super) fn unsubscribe(topic: &str) {
    with(|shard, part| {
        part.followed.borrow_mut().cancel(shard.current_slot()?, topic);
        Some(())
    });
}

async fn deliver(port: &Arc<Port>, id: &ActorId, to: &To, parcel: &Parcel) -> Try {
    let event = match parcel {
        Parcel::Event(_, event) => event,
        Parcel::Missed(count) => {
            tracing::warn!(actor = %id, ?count, "a subscriber has missed events");
            return Try::Acknowledged;
        }
        Parcel::Began(_) | Parcel::TooSlow => return Try::Acknowledged,
    };
    if let Err(error) = serde_json::from_str::<IgnoredAny>(event) {
        return Try::Hopeless(format!("the event is no JSON: {error}"));
    }
    let node = &port.node;
    let route = match node.kinds().external_route(id.kind.name(), &to.method) {
        Ok(route) => Arc::new(route),
        Err(refusal) => return Try::Hopeless(refusal.to_string()),
    };
    let (sender, receiver) = oneshot::channel();
    let parcel = RawParcel {
        id: id.clone(),
        route,
        payload: arguments(to, event),
        reply: WireReply::gateway(sender, node.next_outside(), ReplyForm::PLAIN),
        deadline: node.deadline(None),
        chain: PortableChain::default(),
        journey: Journey::begins_at(node),
    };
    // A refusal comes by the reply as well.
    let _ = node.enter(id, id.stable_hash(), Box::new(parcel));
    let failure = match receiver.await {
        Err(_) => return Try::Again("the node is stopping".to_owned()),
        Ok(Completion::Value(_) | Completion::Wire { status: Status::Ok | Status::ActorError, .. }) => {
            return Try::Acknowledged;
        }
        Ok(Completion::Wire { payload, .. }) => reply::failure(&payload),
        Ok(Completion::Failed(failure)) => *failure,
    };
    Try::of(Err::<(), _>(CallError::<Never>::from(failure)))
}

/// An event as the arguments of the method that it comes to.
fn arguments(to: &To, event: &str) -> Bytes {
    let mut out = vec![Codec::Json.tag(), TYPE_VERSION];
    if to.argument.is_empty() {
        out.extend_from_slice(event.as_bytes());
    } else {
        let name = serde_json::Value::from(to.argument.as_str()).to_string();
        out.extend([b"{", name.as_bytes(), b":", event.as_bytes(), b"}"].concat());
    }
    Bytes::from(out)
}
