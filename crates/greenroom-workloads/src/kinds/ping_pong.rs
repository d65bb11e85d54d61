//! Ping-pong: pairs of actors, one message in flight each unless asked for more.

use std::time::{Duration, Instant};

use greenroom::prelude::*;
use serde::{Deserialize, Serialize};

use super::tally::TallyRef;
use super::{Extent, Payload, Style, payload};
use crate::report::Record;

/// What a [`Ping`] is asked to do.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct PingOrder {
    /// The key of its [`Pong`].
    pub partner: String,
    /// How the two talk.
    pub style: Style,
    /// Messages in flight, of those that are one-way.
    pub window: u32,
    /// Bytes that each message carries.
    pub payload: usize,
    /// How long they talk.
    pub extent: Extent,
    /// The key of the tally that gets the report.
    pub tally: String,
}

/// Sends pings, one at a time, and times the pongs.
#[derive(Default, Actor)]
pub struct Ping {
    order: Option<PingOrder>,
    talk: Option<Talk>,
}

/// A talk of one-way messages.
struct Talk {
    pong: PongRef,
    tally: TallyRef,
    extent: Extent,
    /// Pings and pongs.
    sent: u64,
    heard: u64,
    /// The ping whose answer is waited for with a watch.
    timed: Option<(u64, Instant)>,
    record: Record,
}

#[actor]
impl Ping {
    /// Learns what to do, and makes itself known to its partner.
    pub async fn prepare(&mut self, cx: &Cx, order: PingOrder) -> Result<(), String> {
        let partner = PongRef::of(cx, order.partner.as_str());
        self.order = Some(order);
        partner.meet(cx.key().to_string()).await.map_err(|error| error.to_string())
    }

    /// Starts the talk and returns at once: the tally hears of its end.
    pub async fn start(&mut self, cx: &Cx, until_ns: Option<u64>) -> Result<(), String> {
        let Some(mut order) = self.order.take() else { return Err("`prepare` comes first".into()) };
        order.extent.until_ns = until_ns;
        match order.style {
            Style::Call => PingRef::of(cx, cx.key()).run(order).send(),
            Style::Send => self.open(cx, order),
        }
        Ok(())
    }

    /// Talks by request and reply until the end.
    pub async fn run(&mut self, cx: &Cx, order: PingOrder) {
        let pong = PongRef::of(cx, order.partner);
        let mut message = payload(order.payload);
        let mut record = Record::begin();
        let mut failed_in_row = 0;
        let mut round = 0;
        while !order.extent.is_over(round) && failed_in_row < FAILED_IN_ROW_MAX {
            let sent = order.extent.times(round).then(Instant::now);
            round += 1;
            match pong.ping(message).await {
                Ok(back) => {
                    record.count(2);
                    failed_in_row = 0;
                    message = back;
                    if let Some(sent) = sent {
                        record.time(sent.elapsed());
                    }
                }
                Err(error) => {
                    record.fail(&error);
                    failed_in_row += 1;
                    message = payload(order.payload);
                    tokio::time::sleep(PAUSE).await;
                }
            }
        }
        TallyRef::of(cx, order.tally).report(record.end()).send();
    }

    /// A one-way answer: sends the next ping, or reports.
    pub async fn pong(&mut self, payload: Payload) {
        let Some(talk) = &mut self.talk else { return };
        talk.record.count(2);
        if let Some((_, sent)) = talk.timed.take_if(|(ping, _)| *ping == talk.heard) {
            talk.record.time(sent.elapsed());
        }
        talk.heard += 1;
        if !talk.extent.is_over(talk.sent) {
            talk.ping(payload);
        } else if talk.heard == talk.sent {
            self.close();
        }
    }
}

impl Ping {
    fn open(&mut self, cx: &Cx, order: PingOrder) {
        let pong = PongRef::of(cx, order.partner);
        let tally = TallyRef::of(cx, order.tally);
        let talk = Talk { pong, tally, extent: order.extent, sent: 0, heard: 0, timed: None, record: Record::begin() };
        let talk = self.talk.insert(talk);
        while talk.sent < u64::from(order.window) && !talk.extent.is_over(talk.sent) {
            talk.ping(payload(order.payload));
        }
        if talk.sent == 0 {
            self.close();
        }
    }

    fn close(&mut self) {
        if let Some(talk) = self.talk.take() {
            talk.tally.report(talk.record.end()).send();
        }
    }
}

impl Talk {
    fn ping(&mut self, payload: Payload) {
        if self.timed.is_none() && self.extent.times(self.sent) {
            self.timed = Some((self.sent, Instant::now()));
        }
        self.sent += 1;
        self.pong.serve(payload).send();
    }
}

/// Answers pings.
#[derive(Default, Actor)]
pub struct Pong {
    partner: Option<PingRef>,
}

#[actor]
impl Pong {
    /// Answers a ping with what it carries.
    pub async fn ping(&mut self, payload: Payload) -> Payload {
        payload
    }

    /// Makes the ping called `partner` known, for one-way messages.
    pub async fn meet(&mut self, cx: &Cx, partner: String) {
        self.partner = Some(PingRef::of(cx, partner));
    }

    /// A one-way ping: answered by one to the partner.
    pub async fn serve(&mut self, payload: Payload) {
        if let Some(partner) = &self.partner {
            partner.pong(payload).send();
        }
    }
}

/// Time between a failed call and the next one.
const PAUSE: Duration = Duration::from_millis(10);
/// Failed calls in a row after which a talk is given up.
const FAILED_IN_ROW_MAX: u32 = 2000;
