//! What hosts and clients may do that come by the door with credentials.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use greenroom_describe::Description;
use greenroom_host::{Actor, CallError, Cx, Dial, Error, Host, Kind, Turning, arguments, door, payload};
use greenroom_wire::Status;
use greenroom_wire::host::Closing;
use greenroom_world::real::RealWorld;
use serde_json::{Value, json};
use tokio::sync::oneshot;
use tokio::task::JoinHandle;

use super::door::{rule, tokens};
use super::*;

const ADA: &str = "ada-0123456789abcdef";
const BOB: &str = "bob-0123456789abcdef";
const OPS: &str = "ops-0123456789abcdef";

/// A client's session, and how it ends.
async fn client(address: &str, token: &str) -> (Cx, JoinHandle<Result<Closing, Error>>) {
    let (dial, world) = (door(address, Some(token.to_owned())), RealWorld::start().expect("there are threads"));
    let (welcomed, cx) = oneshot::channel();
    let session = tokio::spawn(async move {
        let told = |cx| drop(welcomed.send(cx));
        Host::new("client").session(world, &dial, &mut None, told).await
    });
    (cx.await.expect("the client is let in"), session)
}

async fn call(cx: &Cx, path: [&str; 3], given: Value) -> Result<Value, CallError> {
    let given = payload(&given).expect("it has an encoding");
    let reply = cx.call(path[0], path[1], path[2], &given).await?;
    Ok(arguments(&reply).expect("it is a reply"))
}

/// What the refusal of a call says.
fn denied(result: Result<Value, CallError>) -> String {
    match result {
        Err(CallError::Failed(Status::Refused, said)) => {
            let said: Value = arguments(&said).expect("it is a refusal");
            assert!(said["Refused"]["Denied"]["message"].is_string(), "{said}");
            said.to_string()
        }
        other => panic!("{other:?}"),
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn l18_who_comes_by_the_door_calls_as_who_it_is_and_what_rules_allow() {
    let site = Site::new("music");
    let (node, address) = site.guarded("a").await;
    let (ada, _ada) = client(&address, ADA).await;
    let (bob, _bob) = client(&address, BOB).await;
    let (ops, _ops) = client(&address, OPS).await;
    assert_eq!(call(&ada, ["mirror", "x", "who"], json!({})).await, Ok(json!("ada: user")));
    assert_eq!(call(&ada, ["mirror", "x", "ask"], json!({"key": "y"})).await, Ok(json!("ada: user")));
    assert_eq!(call(&bob, ["mirror", "bob", "who"], json!({})).await, Ok(json!("bob: guest")));
    assert_eq!(call(&ops, ["mirror", "x", "who"], json!({})).await, Ok(json!("ops: admin")));
    let before = node.activations();
    for (cx, path) in [
        (&bob, ["mirror", "z", "who"]),
        (&bob, ["mirror", "bob", "ask"]),
        (&bob, ["counter", "bob", "add"]),
        (&ada, ["counter", "x", "add"]),
        (&ada, ["no_such_kind", "x", "add"]),
        (&ada, ["topics", "prices/eu", "publish"]),
        (&ada, ["topics", "prices/eu", "subscribe"]),
    ] {
        let why = denied(call(cx, path, json!({})).await);
        assert!(why.contains(path[0]) && why.contains("a rule such as"), "{why}");
        // Nobody is told of a one-way message's end: nothing runs.
        let nothing = payload(&json!({})).expect("it has an encoding");
        cx.send(path[0], path[1], path[2], &nothing).await.expect("it is on its way");
    }
    // All that was sent has been looked at before this is answered.
    assert_eq!(call(&bob, ["mirror", "bob", "who"], json!({})).await, Ok(json!("bob: guest")));
    assert_eq!(call(&ada, ["mirror", "x", "who"], json!({})).await, Ok(json!("ada: user")));
    assert_eq!(node.activations(), before, "who was refused has activated nothing");
    node.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_lane_joins_a_session_only_with_the_credentials_of_its_principal() {
    let site = Site::new("music");
    let (node, address) = site.guarded("a").await;
    let (session, other) = (door(&*address, Some(OPS.to_owned())), door(&*address, Some(ADA.to_owned())));
    // The first connection is the control lane, the others are lanes of the node's shards.
    let is_first = AtomicBool::new(true);
    let dial: Dial = Arc::new(move || if is_first.swap(false, Ordering::SeqCst) { session() } else { other() });
    let (welcomed, cx) = oneshot::channel();
    let world = RealWorld::start().expect("there are threads");
    let _session = tokio::spawn(async move {
        Host::new("client").session(world, &dial, &mut None, |cx| drop(welcomed.send(cx))).await
    });
    let cx = cx.await.expect("the client is let in");
    let said = call(&cx, ["mirror", "x", "who"], json!({})).await;
    assert!(said.is_err(), "a lane of another principal was let in: {said:?}");
    let (own, _own) = client(&address, OPS).await;
    assert_eq!(call(&own, ["mirror", "x", "who"], json!({})).await, Ok(json!("ops: admin")));
    node.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn l18_topics_are_for_those_whom_rules_let_publish_there() {
    let site = Site::new("music");
    let rules = vec![rule(&["user"], "topics", &["publish"], "prices/*")];
    let (node, address) = site.guarded_by("a", rules, |builder| builder).await;
    let (ada, _session) = client(&address, ADA).await;
    let event = || json!({"event": "1"});
    assert!(call(&ada, ["topics", "prices/eu", "publish"], event()).await.is_ok());
    denied(call(&ada, ["topics", "wages/eu", "publish"], event()).await);
    node.stop().await;
}

struct Echo;

impl Actor for Echo {
    fn turn<'a>(&'a mut self, cx: &'a Cx, _: &'a str, _: &'a [u8]) -> Turning<'a> {
        Box::pin(async { cx.reply(&"here") })
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn l13_where_nothing_is_said_of_hosts_only_admins_offer_kinds_at_a_door_with_credentials() {
    let site = Site::new("music");
    let (node, address) = site.guarded("a").await;
    let description = Description::of_document(json!({
        "greenroom": 1, "kind": "echo", "version": 1, "compatible": 1, "options": {}, "methods": [{"name": "say", "read": true}],
    }));
    let description = description.expect("it is one");
    let host = |token: &str| {
        let (kind, dial) = (Kind::new(description.clone(), |_| Echo), door(&*address, Some(token.to_owned())));
        async move {
            let world = RealWorld::start().expect("there are threads");
            Host::new("echoes").offer(kind).session(world, &dial, &mut None, |_| {}).await
        }
    };
    let refused = host(ADA).await.expect_err("her role is not for hosts").to_string();
    assert!(refused.contains("hosts.allow") && refused.contains("kinds = [\"echo\"]"), "{refused}");
    let session = tokio::spawn(host(OPS));
    let (ops, _session) = client(&address, OPS).await;
    let said = async {
        while call(&ops, ["echo", "x", "say"], json!({})).await != Ok(json!("here")) {
            tokio::time::sleep(Duration::from_millis(10)).await;
        }
    };
    tokio::time::timeout(PATIENCE, said).await.expect("an admin's host is let in");
    session.abort();
    node.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_session_ends_with_the_credentials_that_it_came_with() {
    let site = Site::new("music");
    let (node, address) = site.guarded("a").await;
    let (ada, mut session) = client(&address, ADA).await;
    let (bob, mut others) = client(&address, BOB).await;
    let (ops, _session) = client(&address, OPS).await;
    // One token is taken out of the file, another one's role is changed.
    write(&site.folder.path().join("tokens.toml"), &tokens(&[("ops", "admin", OPS), ("bob", "user", BOB)]));
    for session in [&mut session, &mut others] {
        let ended = tokio::time::timeout(PATIENCE, session).await.expect("it ends");
        assert_eq!(ended.expect("it does not panic").ok(), Some(Closing::Fenced));
    }
    for cx in [&ada, &bob] {
        assert_eq!(call(cx, ["mirror", "bob", "who"], json!({})).await, Err(CallError::Fenced));
    }
    assert_eq!(call(&ops, ["mirror", "x", "who"], json!({})).await, Ok(json!("ops: admin")));
    let (bob, _session) = client(&address, BOB).await;
    assert_eq!(call(&bob, ["mirror", "x", "who"], json!({})).await, Ok(json!("bob: user")));
    let (dial, world) = (door(&*address, Some(ADA.to_owned())), RealWorld::start().expect("there are threads"));
    let refused = Host::new("client").session(world, &dial, &mut None, |_| {}).await;
    assert!(refused.is_err_and(|error| error.to_string().contains("401")), "the door knows the token no more");
    node.stop().await;
}

/// How long what must come is waited for.
const PATIENCE: Duration = Duration::from_secs(120);
