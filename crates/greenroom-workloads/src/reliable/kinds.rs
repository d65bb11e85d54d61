//! The actors of the runs. They count in what is kept, so that nothing that is lost or repeated goes unseen; times are taken
//! beside that, as all is in one process.

use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use greenroom::prelude::*;

use crate::kinds::Payload;

/// Hits a ball to and fro with its partner.
#[derive(Default, Actor)]
pub(super) struct Hitter {
    heard: Register<u64>,
    #[volatile]
    hit_at: Option<Instant>,
}

#[actor(reliable, kind = "bench_hitter")]
impl Hitter {
    pub async fn hit(&mut self, cx: &Cx, ball: u64, to: String, payload: Payload) {
        *self.heard.get_mut() += 1;
        if let Some(hit_at) = self.hit_at.take() {
            times().push(hit_at.elapsed());
        }
        if ball == 0 {
            return;
        }
        self.hit_at = Some(Instant::now());
        HitterRef::of(cx, to).hit(ball - 1, cx.key().to_string(), payload).send();
    }

    pub async fn heard(&self) -> u64 {
        *self.heard.get()
    }
}

/// Sends bursts.
#[derive(Default, Actor)]
pub(super) struct Producer {
    sent: Register<u64>,
}

#[actor(reliable, kind = "bench_producer")]
impl Producer {
    pub async fn produce(&mut self, cx: &Cx, count: u64, payload: Payload) -> u64 {
        let consumer = ConsumerRef::of(cx, cx.key().clone());
        for _ in 0..count {
            *self.sent.get_mut() += 1;
            consumer.consume(*self.sent.get(), payload.clone()).send();
        }
        *self.sent.get()
    }
}

/// Counts what comes, and whether it comes in order.
#[derive(Default, Actor)]
pub(super) struct Consumer {
    heard: Register<u64>,
    repeated: Register<u64>,
    last: Register<u64>,
}

#[actor(reliable, kind = "bench_consumer")]
impl Consumer {
    pub async fn consume(&mut self, number: u64, payload: Payload) {
        drop(payload);
        if number <= *self.last.get() {
            *self.repeated.get_mut() += 1;
            return;
        }
        self.last.set(number);
        *self.heard.get_mut() += 1;
    }

    /// Messages, and those that came again.
    pub async fn heard(&self) -> (u64, u64) {
        (*self.heard.get(), *self.repeated.get())
    }
}

/// Adds up what it is called with.
#[derive(Default, Actor)]
pub(super) struct Adder {
    sum: Register<u64>,
}

#[actor(reliable, kind = "bench_adder")]
impl Adder {
    pub async fn add(&mut self, n: u64) -> u64 {
        *self.sum.get_mut() += n;
        *self.sum.get()
    }

    pub async fn sum(&self) -> u64 {
        *self.sum.get()
    }
}

/// Creates others.
#[derive(Default, Actor)]
pub(super) struct Maker {
    made: Register<u64>,
}

#[actor(reliable, kind = "bench_maker")]
impl Maker {
    /// Creates so many.
    pub async fn make(&mut self, cx: &Cx, count: u64) -> Vec<MadeRef> {
        *self.made.get_mut() += count;
        (0..count).map(|_| Made::create(cx)).collect()
    }

    /// How many it has created.
    pub async fn made(&self) -> u64 {
        *self.made.get()
    }
}

/// Has been created.
#[derive(Default, Actor)]
pub(super) struct Made {
    used: Register<u64>,
}

#[actor(reliable, kind = "bench_made")]
impl Made {
    /// An answer says that it is there.
    pub async fn used(&self) -> u64 {
        *self.used.get()
    }
}

/// Round trips of all pairs.
pub(super) fn times() -> MutexGuard<'static, Vec<Duration>> {
    static TIMES: Mutex<Vec<Duration>> = Mutex::new(Vec::new());
    TIMES.lock().unwrap_or_else(PoisonError::into_inner)
}
