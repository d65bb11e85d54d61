//! Bringing events to actors: again and again, until they are acknowledged.

use std::future::Future;
use std::sync::Arc;
use std::time::Duration;

use serde::de::DeserializeOwned;

use super::actor::{Parcel, Terms, TopicsRef};
use super::hub::Seat;
use super::kinds::KindSubscription;
use super::queue::Next;
use super::{Delivery, decoded};
use crate::actor::call::Call;
use crate::actor::error::{CallError, Doubt, HOST_LOST_ACTIVATING, Refusal};
use crate::actor::interface::Method;
use crate::actor::key::Key;
use crate::here::built_in::TOPICS;
use crate::here::node::Node;
use crate::here::port::Port;
#[cfg(feature = "rehearsal")]
use crate::shard::rehearsal::{Insists, note_insists};

/// What has become of one try.
pub(crate) enum Try {
    /// The subscriber has it: it ran, or has said no.
    Acknowledged,
    /// It may not have it.
    Again(String),
    /// The process died in which it was to get it, perhaps of that.
    Lost(String),
    /// It can never have it.
    Hopeless(String),
}

impl Try {
    pub(crate) fn of<T, E>(result: Result<T, CallError<E>>) -> Self {
        match result {
            Ok(_) | Err(CallError::Actor(_)) => Try::Acknowledged,
            Err(CallError::Refused(Refusal::Activation { message })) if message == HOST_LOST_ACTIVATING => {
                Try::Lost(message)
            }
            Err(CallError::Refused(refusal)) if refusal.retry_after().is_none() => Try::Hopeless(refusal.to_string()),
            Err(CallError::Refused(refusal)) => Try::Again(refusal.to_string()),
            Err(CallError::Unknown(doubt @ (Doubt::HostLost { .. } | Doubt::Disconnected { .. }))) => {
                Try::Lost(doubt.to_string())
            }
            Err(CallError::Unknown(doubt)) => Try::Again(doubt.to_string()),
            Err(CallError::Cycle(path)) => Try::Again(format!("it would wait for itself: {}", path.join(" -> "))),
        }
    }
}

/// Tries until it is acknowledged, or 30 s have passed.
async fn insist<F: Future<Output = Try>>(port: &Port, topic: &Key, mut attempt: impl FnMut() -> F) {
    let world = port.node.world();
    let until = world.now() + PATIENCE;
    let (mut pause, mut deaths) = (PAUSE_MIN, 0);
    loop {
        #[cfg(feature = "rehearsal")]
        note_insists(Insists::Tries);
        let tried = attempt().await;
        #[cfg(feature = "rehearsal")]
        note_insists(Insists::Not);
        deaths += u32::from(matches!(tried, Try::Lost(_)));
        let why = match tried {
            Try::Acknowledged => return,
            Try::Lost(why) if deaths >= DEATHS_MAX => {
                format!("{deaths} processes have died during its delivery: {why}")
            }
            Try::Lost(why) | Try::Again(why) if world.now() + pause < until => {
                tracing::debug!(%topic, why, "an event is delivered again");
                #[cfg(feature = "rehearsal")]
                note_insists(Insists::Rests);
                world.sleep_until(world.now() + pause).await;
                pause = (pause * 2).min(PAUSE_MAX);
                continue;
            }
            Try::Lost(why) | Try::Again(why) | Try::Hopeless(why) => why,
        };
        tracing::error!(%topic, why, "an event could not be delivered and is given up");
        return port.node.topics().failed.count(TOPICS, &format!("topic {topic}: {why}"));
    }
}

/// Delivers what comes to `seat` to the actors of a kind, until the topic's activation ends.
pub(crate) async fn to_kind(port: Arc<Port>, topic: Key, subscription: Arc<dyn KindSubscription>, seat: Seat) {
    let node = Node::at(port.clone());
    let key = subscription.key(&topic);
    loop {
        match seat.next().await {
            Next::Event((_, text)) => {
                insist(&port, &topic, || subscription.deliver(&node, &key, &text)).await;
            }
            Next::Missed(count) => tracing::warn!(%topic, ?count, "events were not delivered to a kind"),
            Next::TooSlow => return,
        }
    }
}

/// Follows a topic, wherever it goes, and has `deliver` tried with all that comes.
pub(crate) async fn to_actor(port: Arc<Port>, topic: Key, mut terms: Terms, deliver: impl AsyncFn(&Parcel) -> Try) {
    let node = Node::at(port.clone());
    let mut pause = PAUSE_MIN;
    loop {
        let subscribed = TopicsRef::of(&node, topic.clone()).subscribe(terms).await;
        match subscribed {
            Ok(mut parcels) => {
                while let Some(Ok(parcel)) = parcels.next().await {
                    pause = PAUSE_MIN;
                    if let Parcel::Began(next) = parcel {
                        terms.from.get_or_insert(next);
                        continue;
                    }
                    insist(&port, &topic, || deliver(&parcel)).await;
                    if let Parcel::Event(id, _) = parcel {
                        terms.from = Some(id.following());
                    }
                }
            }
            Err(error) => tracing::debug!(%topic, error = %error, "a subscription is tried again"),
        }
        let world = port.node.world();
        world.sleep_until(world.now() + pause).await;
        pause = (pause * 2).min(PAUSE_MAX);
    }
}

/// Delivers by the calls that `call` makes.
pub(crate) fn by_calls<E, R, M>(
    to: R,
    call: impl Fn(&R, Delivery<E>) -> Option<Call<M>>,
) -> impl AsyncFn(&Parcel) -> Try
where
    E: DeserializeOwned,
    M: Method,
{
    async move |parcel| by_call(parcel, &to, &call).await
}

async fn by_call<E, R, M>(parcel: &Parcel, to: &R, call: &impl Fn(&R, Delivery<E>) -> Option<Call<M>>) -> Try
where
    E: DeserializeOwned,
    M: Method,
{
    let delivery = match decoded(parcel) {
        Ok(Some(delivery)) => delivery,
        Ok(None) => return Try::Acknowledged,
        Err(error) => return Try::Hopeless(error.to_string()),
    };
    match call(to, delivery) {
        Some(call) => Try::of(call.await),
        None => Try::Acknowledged,
    }
}

/// Processes, nodes or hosts, that may die during the delivery of an event before it is given up.
const DEATHS_MAX: u32 = 3;
/// Time in which a delivery is tried.
const PATIENCE: Duration = Duration::from_secs(30);
const PAUSE_MIN: Duration = Duration::from_millis(20);
const PAUSE_MAX: Duration = Duration::from_secs(1);
