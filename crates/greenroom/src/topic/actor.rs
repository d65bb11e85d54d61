//! The built-in kind behind topics: each topic is an actor, found and kept single like all others.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use futures_util::{StreamExt, stream};
use serde::{Deserialize, Serialize};

use super::deliver;
use super::hub::{self, Hub};
use super::queue::{EventId, Next, Queue, Slow};
use crate::actor::cx::Cx;
use crate::actor::interface::{Actor, Why};
use crate::shard::Shard;
use crate::stream::reply_stream::ReplyStream;

/// What an event's publisher is told.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct Published {
    /// The event's name in its topic.
    pub id: EventId,
    /// Subscribers whose queues have it.
    pub subscribers: u64,
}

/// How to subscribe.
#[derive(Clone, Copy, Debug, Serialize, Deserialize)]
pub(crate) struct Terms {
    pub(crate) slow: Slow,
    pub(crate) queue_len: u32,
    /// The first event that is wanted; those from now on if there is none.
    pub(crate) from: Option<EventId>,
}

impl Default for Terms {
    fn default() -> Self {
        Self { slow: Slow::default(), queue_len: QUEUE_LEN_DEFAULT, from: None }
    }
}

/// What a subscriber gets: a topic's reply.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub(crate) enum Parcel {
    /// The first one: which event was the next one when the subscription began.
    Began(EventId),
    Event(EventId, String),
    Missed(Option<u64>),
    TooSlow,
}

impl Parcel {
    /// What it holds, in bytes.
    fn len(&self) -> usize {
        match self {
            Parcel::Event(_, text) => text.len(),
            Parcel::Began(_) | Parcel::Missed(_) | Parcel::TooSlow => 0,
        }
    }
}

/// One topic.
pub(crate) struct Topics {
    hub: Arc<Hub>,
    /// Publishers go in one after the other, so that nobody's events overtake each other while they wait for room.
    gate: tokio::sync::Mutex<()>,
    waiting: AtomicUsize,
}

impl Actor for Topics {
    fn create(cx: &Cx) -> Result<Self, String> {
        let world = cx.port.node.world();
        // Epochs of the directory begin again with a table in memory, and clients come back with ids from before.
        let life = hub::life(world.wall(), world.random());
        let hub = Hub::new(life, cx.port.node.backlog().clone());
        cx.port.node.topics().active.begin(cx.key(), &hub);
        Ok(Self { hub, gate: tokio::sync::Mutex::default(), waiting: AtomicUsize::new(0) })
    }
}

#[greenroom_macros::actor]
impl Topics {
    async fn activated(&mut self, cx: &Cx) -> Result<(), String> {
        let key = cx.key().clone();
        for subscription in cx.port.node.topics().of(&key) {
            let queue = Queue::new(Slow::Backpressure, QUEUE_LEN_DEFAULT);
            if let Some((seat, _)) = self.hub.subscribe(queue, None) {
                let run = deliver::to_kind(cx.port.clone(), key.clone(), subscription, seat);
                Shard::with(|shard| {
                    if let Some(shard) = shard {
                        shard.begin_beside(Some(cx.id()), Box::pin(run));
                    }
                });
            }
        }
        Ok(())
    }

    async fn deactivating(&mut self, cx: &Cx, _why: Why) {
        // Who keeps up has all that was acknowledged to its publishers.
        let world = cx.port.node.world();
        let until = world.now() + FAREWELL;
        while !self.hub.is_drained() && world.now() < until {
            world.sleep_until(world.now() + LOOK_AGAIN).await;
        }
    }

    /// Gives an event, as JSON, to all subscribers.
    pub async fn publish(&self, cx: &Cx, event: String) -> Result<Published, String> {
        if event.len() > EVENT_LEN_MAX {
            return Err(format!(
                "an event of {} bytes is over the limit of {EVENT_LEN_MAX}; publish a smaller one",
                event.len()
            ));
        }
        cx.port.node.topics().check(cx.key()).map_err(|refusal| refusal.to_string())?;
        let _waits = Waits::begin(&self.waiting)?;
        let _turn = self.gate.lock().await;
        let world = cx.port.node.world();
        let mut patience = world.sleep_until(world.now() + PATIENCE);
        let room = std::future::poll_fn(|context| self.hub.poll_room(context));
        tokio::select! {
            biased;
            () = room => {}
            () = &mut patience => {
                let cut = self.hub.cut_off_slow();
                tracing::warn!(topic = %cx.key(), cut, "subscribers that took nothing for too long were cut off");
            }
        }
        let (id, subscribers) = self.hub.publish(event);
        Ok(Published { id, subscribers })
    }

    /// The events from now on, or from behind one that the subscriber has had.
    pub async fn subscribe(&self, terms: Terms) -> Result<ReplyStream<Parcel>, String> {
        let queue = Queue::new(terms.slow, terms.queue_len);
        let subscribed = self.hub.subscribe(queue, terms.from);
        let (seat, next) = subscribed.ok_or("the topic has as many subscribers as it may; end some of them")?;
        let parcels = stream::unfold(Some(seat), |seat| async move {
            let seat = seat?;
            Some(match seat.next().await {
                Next::Event((id, text)) => (Parcel::Event(id, text.to_string()), Some(seat)),
                Next::Missed(count) => (Parcel::Missed(count), Some(seat)),
                Next::TooSlow => (Parcel::TooSlow, None),
            })
        });
        let parcels = stream::once(std::future::ready(Parcel::Began(next))).chain(parcels);
        Ok(ReplyStream::weighed(parcels, Parcel::len))
    }

    /// How many subscribe.
    pub async fn subscribers(&self) -> u64 {
        self.hub.subscribers()
    }
}

/// One of the publishers that wait.
struct Waits<'a>(&'a AtomicUsize);

impl<'a> Waits<'a> {
    fn begin(waiting: &'a AtomicUsize) -> Result<Self, String> {
        let waits = Self(waiting);
        if waiting.fetch_add(1, Ordering::Relaxed) >= PUBLISHERS_MAX {
            return Err(format!(
                "{PUBLISHERS_MAX} events wait for slow subscribers already; publish again after a pause"
            ));
        }
        Ok(waits)
    }
}

impl Drop for Waits<'_> {
    fn drop(&mut self) {
        self.0.fetch_sub(1, Ordering::Relaxed);
    }
}

/// Events that may wait for a subscriber that does not say.
pub(crate) const QUEUE_LEN_DEFAULT: u32 = 256;
/// Longest event, in bytes of its JSON.
const EVENT_LEN_MAX: usize = 1 << 20;
/// Events of one topic whose publishers wait for room.
const PUBLISHERS_MAX: usize = 1024;
/// Time for which publishers wait for a subscriber that takes nothing.
const PATIENCE: Duration = Duration::from_secs(30);
/// Time for subscribers to take what they have when the topic leaves.
const FAREWELL: Duration = Duration::from_secs(2);
const LOOK_AGAIN: Duration = Duration::from_millis(10);

#[cfg(test)]
mod tests {
    use super::TopicsInterface;
    use crate::actor::interface::Interface;
    use crate::here::built_in::TOPICS;

    #[test]
    fn the_kind_of_topics_has_the_name_that_the_floors_below_know() {
        assert_eq!(TopicsInterface::KIND, TOPICS);
        const { assert!(!TopicsInterface::INTERNAL) };
    }
}
