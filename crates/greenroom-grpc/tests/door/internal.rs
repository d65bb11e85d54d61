//! The runtime's internal actors, which no client reaches, whatever the rules say.

use std::path::Path;

use greenroom::Rule;
use greenroom_grpc::v1::call_reply::Value;
use greenroom_grpc::v1::call_request::Arguments;
use greenroom_grpc::v1::stream_request::Of;
use greenroom_grpc::v1::{CallRequest, StreamRequest, TopicRequest};
use serde::Serialize;
use serde_json::json;
use tonic::Code;

use crate::site::{builder, call, failed, open, with};

const ADA: &str = "Bearer ada-0123456789abcdef";

/// A node at which ordinary users may call every method of every kind.
fn open_to_users(folder: &Path) -> greenroom::Builder {
    let tokens = folder.join("tokens.toml");
    std::fs::write(&tokens, "[[token]]\nname = \"ada\"\nroles = [\"user\"]\ntoken = \"ada-0123456789abcdef\"\n")
        .expect("there is room");
    let all = Rule {
        roles: vec!["user".into()],
        kind: "*".into(),
        methods: vec!["*".into()],
        keys: "*".into(),
        issuer: None,
    };
    builder().configure(|config| {
        config.auth.tokens = Some(tokens);
        config.allow = vec![all];
    })
}

/// A batch from another partition that acknowledges all numbers there are.
#[derive(Serialize)]
struct Arrived {
    wire: Wire,
}

#[derive(Serialize)]
enum Wire {
    Batch(Batch),
}

#[derive(Serialize)]
struct Batch {
    from: u32,
    life: u64,
    epoch: u64,
    counted: bool,
    round: u32,
    floor: u64,
    first: u64,
    messages: Vec<u8>,
}

fn halting() -> Arguments {
    let (floor, first) = (u64::MAX, u64::MAX);
    let batch = Batch { from: 1, life: 7, epoch: 1, counted: true, round: 0, floor, first, messages: Vec::new() };
    Arguments::Msgpack(rmp_serde::to_vec_named(&Arrived { wire: Wire::Batch(batch) }).expect("it has bytes"))
}

/// A message to another user's purse that names no sender.
fn stealing() -> Arguments {
    let payload = [&[1, 1, 0x81, 0xa6][..], b"amount", &[100]].concat();
    let body = json!({ "Call": { "method": "pay", "arguments": payload } });
    let to = json!({ "kind": "purse", "key": "victim" });
    let letter = json!({ "from": null, "to": to, "birth": null, "creates": false, "call": null, "body": body });
    Arguments::Json(json!({ "letter": letter }).to_string())
}

#[tokio::test]
async fn internal_kinds_are_unknown_to_users_who_may_call_every_kind() {
    let folder = tempfile::tempdir().expect("there is room");
    let (node, mut client) = open(open_to_users(folder.path())).await;
    let pay = || with(call("purse", "victim", "pay", r#"{"amount": 1}"#), "authorization", ADA);
    client.call(pay()).await.expect("users may");

    let asks = |kind: &str, key: &str, method: &str, arguments: Arguments| CallRequest {
        arguments: Some(arguments),
        ..call(kind, key, method, "")
    };
    let reads = r#"{"wish": {"Actor": {"kind": "purse", "key": "victim"}}}"#;
    let mut attacks = vec![
        asks("greenroom.keeper", "a", "spawn", Arguments::Json("{}".into())),
        asks("greenroom.of_a_later_build", "a", "run", Arguments::Json("{}".into())),
    ];
    for partition in ["0", "1"] {
        attacks.extend([
            asks("greenroom.partition", partition, "look", Arguments::Json("{}".into())),
            asks("greenroom.partition", partition, "wish", Arguments::Json(reads.into())),
            asks("greenroom.partition", partition, "told", stealing()),
            asks("greenroom.partition", partition, "called", stealing()),
            asks("greenroom.partition", partition, "arrived", halting()),
        ]);
    }
    for attack in attacks {
        let shown = format!("{attack:?}");
        let streamed = StreamRequest { of: Some(Of::Call(attack.clone())) };
        for (code, problem) in [
            failed(client.call(with(attack.clone(), "authorization", ADA)).await),
            failed(client.send(with(attack, "authorization", ADA)).await),
            failed(client.stream(with(streamed, "authorization", ADA)).await),
        ] {
            assert_eq!(
                (code, &*problem.name, problem.may_have_run),
                (Code::NotFound, "unknown-kind", false),
                "{shown}"
            );
        }
    }
    let paid = client.call(pay()).await.expect("the node's only shard serves on").into_inner();
    assert_eq!(paid.value, Some(Value::Json("2".into())), "nothing was paid from outside");
    node.stop().await;
}

#[tokio::test]
async fn topics_take_what_their_public_methods_take() {
    let folder = tempfile::tempdir().expect("there is room");
    let (node, mut client) = open(open_to_users(folder.path())).await;
    let topic = TopicRequest { topic: "news".into(), ..TopicRequest::default() };
    let watch = with(StreamRequest { of: Some(Of::Topic(topic)) }, "authorization", ADA);
    let mut events = client.stream(watch).await.expect("users may").into_inner();
    let published = call("topics", "news", "publish", r#"{"event": "7"}"#);
    client.call(with(published, "authorization", ADA)).await.expect("users may");
    assert!(events.message().await.expect("it comes").is_some());
    // By it, a client could hold publishers back; watching as `slow` says is for clients.
    let terms = r#"{"terms": {"slow": "Backpressure", "queue_len": 1, "from": null}}"#;
    for _ in 0..2 {
        let subscribe = || with(call("topics", "news", "subscribe", terms), "authorization", ADA);
        let (code, problem) = failed(client.call(subscribe()).await);
        assert_eq!((code, problem.may_have_run), (Code::PermissionDenied, false), "{problem:?}");
        let (call, sent) = (call("topics", "news", "subscribe", terms), client.send(subscribe()).await);
        assert_eq!(failed(sent).0, Code::PermissionDenied);
        let stream = with(StreamRequest { of: Some(Of::Call(call)) }, "authorization", ADA);
        assert_eq!(failed(client.stream(stream).await).0, Code::PermissionDenied);
    }
    for hook in ["activated", "deactivating", "create"] {
        let (code, problem) = failed(client.call(with(call("topics", "news", hook, "{}"), "authorization", ADA)).await);
        assert_eq!((code, &*problem.name), (Code::NotFound, "unknown-method"), "{hook}");
    }
    drop(events);
    node.stop().await;
}
