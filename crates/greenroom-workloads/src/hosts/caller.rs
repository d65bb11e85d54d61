//! The actor of the node that calls.

use std::time::{Duration, Instant};

use futures_util::future::join_all;
use greenroom::prelude::*;

use crate::report::{Record, Report};

/// What hosts offer here, in whatever language.
#[actor]
#[expect(dead_code, reason = "the attribute makes a reference of it, and nothing in Rust implements it")]
pub(super) trait Echo {
    async fn echo(&mut self, text: String, n: u64) -> String;
}

/// The same in Rust, in the node: what reliable actors in hosts are measured by.
#[derive(Default, Actor)]
pub(super) struct Linked {
    turns: Register<u64>,
}

#[actor(kind = "echo", reliable)]
impl Linked {
    pub async fn echo(&mut self, text: String, n: u64) -> String {
        let _ = n;
        self.turns.set(self.turns.get() + 1);
        text
    }
}

/// Calls actors in hosts.
#[derive(Default, Actor)]
pub(super) struct Caller;

#[actor]
impl Caller {
    /// Calls so many actors for that time, each again as soon as it has answered.
    pub async fn call(&mut self, cx: &Cx, in_flight: u32, time: Duration) -> Report {
        let end = Instant::now() + time;
        let mut all = Record::begin();
        for record in join_all((0..in_flight).map(|key| calls(cx, key, end))).await {
            all.absorb(record);
        }
        all.end()
    }
}

async fn calls(cx: &Cx, key: u32, end: Instant) -> Record {
    let echo = EchoRef::of(cx, key.to_string());
    let mut record = Record::begin();
    let mut n = 0;
    let mut begun = Instant::now();
    while begun < end {
        n += 1;
        match echo.echo(TEXT.to_owned(), n).await {
            Ok(text) if text == TEXT => record.count(1),
            Ok(_) => record.count_lost(1),
            Err(error) => {
                record.fail(&error);
                tokio::time::sleep(PAUSE).await;
            }
        }
        let now = Instant::now();
        record.time(now - begun);
        begun = now;
    }
    record
}

/// With its name and the number, 48 bytes of MessagePack.
pub(super) const TEXT: &str = "thirty-two bytes that come back.";
/// Between a call that failed and the next one.
const PAUSE: Duration = Duration::from_millis(20);
