//! The actors that tests call.

use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use futures_util::{Stream, StreamExt, stream};
use greenroom::prelude::*;
use serde::{Deserialize, Serialize};
use tokio::sync::Notify;

/// Streams that have a producer.
pub(crate) static OPEN: AtomicU64 = AtomicU64::new(0);
/// Lets those go on who wait in [`Room::wait`].
pub(crate) static GO_ON: Notify = Notify::const_new();
/// Who has begun to wait there.
pub(crate) static WAITING: AtomicU64 = AtomicU64::new(0);
/// Who has begun to linger.
pub(crate) static LINGERING: AtomicU64 = AtomicU64::new(0);
/// Who has begun to hang.
pub(crate) static HANGING: AtomicU64 = AtomicU64::new(0);

#[derive(Default, Actor)]
pub(crate) struct Room {
    messages: Vec<String>,
}

#[derive(Debug, Serialize, Deserialize)]
pub(crate) struct NotMember {
    pub(crate) user: String,
}

struct Produced;

impl Drop for Produced {
    fn drop(&mut self) {
        OPEN.fetch_sub(1, Ordering::SeqCst);
    }
}

#[actor]
impl Room {
    pub async fn post(&mut self, user: String, text: String) -> Result<u64, NotMember> {
        if user == "stranger" {
            return Err(NotMember { user });
        }
        self.messages.push(format!("{user}: {text}"));
        Ok(self.messages.len() as u64)
    }

    pub async fn messages(&self) -> Vec<String> {
        self.messages.clone()
    }

    pub async fn add(&self, a: u64, b: u64) -> u64 {
        a + b
    }

    pub async fn said(&self, cx: &Cx) -> Vec<Option<String>> {
        let trace = cx.trace().map(|trace| trace.to_string());
        let who = cx.principal().map(|who| who.name().to_owned());
        vec![cx.context().get("tenant").map(str::to_owned), trace, who]
    }

    /// Longer than any test's deadline.
    pub async fn hang(&mut self) {
        HANGING.fetch_add(1, Ordering::SeqCst);
        tokio::time::sleep(Duration::from_secs(60)).await;
    }

    /// Until its caller has gone.
    pub async fn linger(&mut self, cx: &Cx) {
        LINGERING.fetch_add(1, Ordering::SeqCst);
        cx.cancelled().await;
    }

    pub async fn wait(&self) -> String {
        WAITING.fetch_add(1, Ordering::SeqCst);
        GO_ON.notified().await;
        "over".to_owned()
    }

    pub fn count(&self, to: u64) -> impl Stream<Item = u64> {
        stream::iter(0..to)
    }

    pub fn endless(&self) -> impl Stream<Item = u64> {
        OPEN.fetch_add(1, Ordering::SeqCst);
        let produced = Produced;
        stream::iter(0..).map(move |number| {
            let _ = &produced;
            number
        })
    }
}

/// Takes one message at a time, and lets nobody wait.
#[derive(Default, Actor)]
pub(crate) struct Booth;

#[actor(in_flight = 1)]
impl Booth {
    pub async fn hang(&mut self) {
        HANGING.fetch_add(1, Ordering::SeqCst);
        tokio::time::sleep(Duration::from_secs(60)).await;
    }

    pub async fn ask(&mut self) {}
}

#[derive(Default, Actor)]
pub(crate) struct Purse {
    paid: u64,
}

#[actor(reliable)]
impl Purse {
    pub async fn pay(&mut self, amount: u64) -> u64 {
        self.paid += amount;
        self.paid
    }
}
