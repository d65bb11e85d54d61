//! Tell: one-way messages as fast as they go, never so many that a mailbox refuses one.

use std::collections::VecDeque;
use std::future::{IntoFuture, poll_fn};
use std::pin::Pin;
use std::task::Poll;

use greenroom::prelude::*;
use serde::{Deserialize, Serialize};

use super::tally::TallyRef;
use super::{Extent, Payload, payload};
use crate::report::{Record, unix_ns};

/// What a [`Teller`] is asked to do.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct TellOrder {
    /// Its place among the tellers.
    pub here: u32,
    /// How many tellers there are.
    pub senders: u32,
    /// How many listeners there are.
    pub actors: u32,
    /// What the listeners' keys begin with; their places follow.
    pub prefix: String,
    /// Bytes that each message carries.
    pub payload: usize,
    /// How many messages it sends to each listener.
    pub extent: Extent,
    /// The key of the tally that gets the report.
    pub tally: String,
}

/// Sends to all listeners in turn.
#[derive(Default, Actor)]
pub struct Teller;

#[actor]
impl Teller {
    /// Starts sending and returns at once: the tally hears of its end.
    pub async fn start(&mut self, cx: &Cx, order: TellOrder) {
        TellerRef::of(cx, cx.key()).run(order).send();
    }

    /// Sends bursts to the listeners in turn. Each burst ends with a call that is answered when the burst has been heard,
    /// and what is not answered is bounded.
    pub async fn run(&mut self, cx: &Cx, order: TellOrder) {
        let mut record = Record::begin();
        let listeners: Vec<ListenerRef> =
            (0..order.actors).map(|place| ListenerRef::of(cx, key(&order.prefix, place))).collect();
        let share = (MAILBOX_LEN / order.senders.max(1)).max(2);
        let burst = u64::from((share / 2).clamp(1, BURST_LEN));
        let unheard_max = (share / (burst as u32 + 1)).max(1) as usize * listeners.len().max(1);
        let fair = (UNHEARD_SUM_MAX / u64::from(order.senders.max(1))).min(UNHEARD_LEN_MAX);
        let unheard_max = unheard_max.min((fair / burst) as usize).max(1);
        let mut unheard = VecDeque::with_capacity(unheard_max);
        let mut sent = 0;
        'all: while order.extent.until_ns.is_some() || sent < order.extent.rounds {
            let len = if order.extent.until_ns.is_some() { burst } else { burst.min(order.extent.rounds - sent) };
            for listener in &listeners {
                if order.extent.until_ns.is_some_and(|until| unix_ns() >= until) {
                    break 'all;
                }
                record.count(len);
                for _ in 0..len {
                    listener.hear(payload(order.payload)).send();
                }
                unheard.push_back(Begun::begin(listener.heard().into_future()).await);
                if unheard.len() >= unheard_max
                    && let Some(first) = unheard.pop_front()
                    && let Err(error) = first.end().await
                {
                    record.fail(&error);
                }
            }
            sent += len;
        }
        for burst in unheard {
            if let Err(error) = burst.end().await {
                record.fail(&error);
            }
        }
        TallyRef::of(cx, order.tally).report(record.end()).send();
    }

    /// How many messages the listeners have heard: each `step`th of the first `actors`, from the one at `first`.
    pub async fn heard(&self, cx: &Cx, prefix: String, actors: u32, first: u32, step: u32) -> Result<u64, String> {
        let mut sum = 0;
        for place in (first..actors).step_by(step.max(1) as usize) {
            sum += ListenerRef::of(cx, key(&prefix, place)).heard().await.map_err(|error| error.to_string())?;
        }
        Ok(sum)
    }
}

/// Counts what it hears.
#[derive(Default, Actor)]
pub struct Listener {
    heard: u64,
}

#[actor(mailbox = 65536)]
impl Listener {
    /// A one-way message.
    pub async fn hear(&mut self, payload: Payload) {
        drop(payload);
        self.heard += 1;
    }

    /// How many there were.
    pub async fn heard(&self) -> u64 {
        self.heard
    }
}

/// A future that has been polled once, so that its request is on the way before anybody waits for the answer.
enum Begun<F: Future> {
    Ended(F::Output),
    Open(F),
}

impl<F: Future + Unpin> Begun<F> {
    async fn begin(mut future: F) -> Self {
        let polled = poll_fn(|context| Poll::Ready(Pin::new(&mut future).poll(context))).await;
        match polled {
            Poll::Ready(output) => Begun::Ended(output),
            Poll::Pending => Begun::Open(future),
        }
    }

    async fn end(self) -> F::Output {
        match self {
            Begun::Ended(output) => output,
            Begun::Open(future) => future.await,
        }
    }
}

/// The key of the listener at `place`.
fn key(prefix: &str, place: u32) -> String {
    format!("{prefix}-{place}")
}

/// Messages that all tellers together leave at one listener: half of what its mailbox holds.
const MAILBOX_LEN: u32 = 32_768;
/// Messages to one listener before the next one's turn.
const BURST_LEN: u32 = 64;
/// Messages that one teller has on the way, so that no queue on it is filled by one teller.
const UNHEARD_LEN_MAX: u64 = 8192;
/// Messages that all tellers have on the way: half of what the inbox of a shard holds.
const UNHEARD_SUM_MAX: u64 = 32_768;
