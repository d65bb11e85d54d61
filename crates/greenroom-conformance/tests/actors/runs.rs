//! One-way messages that an actor sends in a row: they run together, as if each came alone.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use greenroom::Builder;
use greenroom::prelude::*;
use greenroom::{CallInfo, Interceptor};
use serde::{Deserialize, Serialize};

use super::node;

/// Hears numbers, and keeps them while it lives.
#[derive(Default, Actor)]
struct Ear {
    heard: Vec<u64>,
}

#[actor(mailbox = 8)]
impl Ear {
    pub async fn hear(&mut self, cx: &Cx, number: u64, deed: Deed) {
        match deed {
            Deed::Wait => tokio::time::sleep(Duration::from_millis(1)).await,
            Deed::Panic => panic!("as it was asked to"),
            Deed::Leave => cx.deactivate(),
            Deed::TellMouth => MouthRef::of(cx, "echo").echo(number).send(),
            Deed::Nothing => {}
        }
        self.heard.push(number);
    }

    pub async fn heard(&self) -> Vec<u64> {
        self.heard.clone()
    }
}

/// What an [`Ear`] does when it hears something.
#[derive(Clone, Copy, PartialEq, Debug, Serialize, Deserialize)]
enum Deed {
    Nothing,
    Wait,
    Panic,
    Leave,
    TellMouth,
}

/// Says numbers in a row.
#[derive(Default, Actor)]
struct Mouth {
    echoes: Vec<u64>,
}

#[actor(mailbox = 64)]
impl Mouth {
    /// Says `count` numbers to the ear called `key`, doing `deed` with the one `at`; how many were refused, and what was heard in the end.
    pub async fn say(&mut self, cx: &Cx, key: String, count: u64, deed: Deed, at: u64) -> (u64, Vec<u64>) {
        let ear = EarRef::of(cx, key);
        ear.heard().await.expect("it is there");
        let deed_of = |number| if number == at { deed } else { Deed::Nothing };
        let refused = (0..count).filter(|number| ear.hear(*number, deed_of(*number)).try_send().is_err()).count();
        (refused as u64, ear.heard().await.expect("it hears"))
    }

    pub async fn echo(&mut self, number: u64) {
        self.echoes.push(number);
    }

    pub async fn echoes(&self) -> Vec<u64> {
        self.echoes.clone()
    }
}

/// A node of one shard, as messages go to other ones in batches.
async fn hall(equip: impl FnOnce(Builder) -> Builder) -> Node {
    node(|builder| equip(builder.configure(|config| config.shards = 1).register::<Ear>().register::<Mouth>())).await
}

/// A node, and what became of `count` numbers said in a row.
async fn said(count: u64, deed: Deed, at: u64) -> (Node, u64, Vec<u64>) {
    let node = hall(|builder| builder).await;
    let (refused, heard) = MouthRef::of(&node, "one").say("ear".to_owned(), count, deed, at).await.unwrap();
    (node, refused, heard)
}

#[tokio::test]
async fn one_way_messages_in_a_row_are_heard_in_their_order_and_none_is_refused_by_a_mailbox_of_few() {
    let (_node, refused, heard) = said(1000, Deed::Nothing, 0).await;
    assert_eq!((refused, heard), (0, (0..1000).collect()));
}

#[tokio::test]
async fn a_turn_that_waits_among_messages_in_a_row_holds_back_those_behind_it() {
    let (_node, refused, heard) = said(8, Deed::Wait, 3).await;
    assert_eq!((refused, heard), (0, (0..8).collect()));
}

#[tokio::test]
async fn a_panic_among_messages_in_a_row_ends_one_turn_and_those_behind_it_meet_a_fresh_actor() {
    let (_node, refused, heard) = said(8, Deed::Panic, 3).await;
    assert_eq!((refused, heard), (0, (4..8).collect()));
}

#[tokio::test]
async fn an_actor_that_leaves_among_messages_in_a_row_hears_the_others_in_its_next_activation() {
    let (_node, refused, heard) = said(8, Deed::Leave, 3).await;
    assert_eq!((refused, heard), (0, (4..8).collect()));
}

#[tokio::test]
async fn a_turn_among_messages_in_a_row_may_send_on() {
    let (node, refused, heard) = said(8, Deed::TellMouth, 5).await;
    assert_eq!((refused, heard), (0, (0..8).collect()));
    assert_eq!(MouthRef::of(&node, "echo").echoes().await.unwrap(), [5]);
}

#[tokio::test]
async fn each_of_the_messages_in_a_row_is_a_turn_for_who_watches() {
    let seen = Arc::new(AtomicU64::new(0));
    let watch = Counting(seen.clone());
    let node = hall(|builder| builder.intercept(watch)).await;
    let (refused, heard) = MouthRef::of(&node, "one").say("ear".to_owned(), 100, Deed::Nothing, 0).await.unwrap();
    assert_eq!((refused, heard.len()), (0, 100));
    assert_eq!(seen.load(Ordering::SeqCst), 100);
}

/// Counts the turns that hear something.
struct Counting(Arc<AtomicU64>);

impl Interceptor for Counting {
    fn incoming(&self, call: &mut CallInfo<'_>) -> Result<(), Refusal> {
        if call.method() == "hear" {
            self.0.fetch_add(1, Ordering::SeqCst);
        }
        Ok(())
    }
}
