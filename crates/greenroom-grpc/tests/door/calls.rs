//! Calls, in each form, and each way that they fail.

use std::sync::atomic::Ordering;
use std::time::Duration;

use greenroom_grpc::v1::call_request::Arguments;
use greenroom_grpc::v1::{CallRequest, DescribeRequest, call_reply};
use prost_types::value::Kind;
use prost_types::{Struct, Value};
use tonic::{Code, Request};

use prost::Message;

use crate::kinds::{HANGING, LINGERING};
use crate::site::{builder, call, failed, open, raw, with};

#[tokio::test]
async fn a_reply_has_the_form_of_the_arguments() {
    let (_node, mut client) = open(builder()).await;
    let mut said = async |arguments: Option<Arguments>| {
        let request = CallRequest { arguments, ..call("room", "forms", "add", "") };
        client.call(request).await.expect("it answers").into_inner().value
    };
    let json = said(Some(Arguments::Json(r#"{"a": 2, "b": 9007199254740991}"#.into()))).await;
    assert_eq!(json, Some(call_reply::Value::Json("9007199254740993".into())), "no digit is lost");

    let bytes = rmp_serde::to_vec_named(&std::collections::BTreeMap::from([("a", 2), ("b", 3)])).expect("it has bytes");
    let packed = said(Some(Arguments::Msgpack(bytes))).await;
    assert_eq!(packed, Some(call_reply::Value::Msgpack(vec![5])));

    let number = |value| Value { kind: Some(Kind::NumberValue(value)) };
    let fields = Struct { fields: [("a".to_owned(), number(2.0)), ("b".to_owned(), number(3.0))].into() };
    assert_eq!(said(Some(Arguments::Fields(fields))).await, Some(call_reply::Value::Fields(number(5.0))));

    let none = CallRequest { arguments: None, ..call("room", "forms", "messages", "") };
    let reply = client.call(none).await.expect("it answers").into_inner();
    assert_eq!(reply.value, Some(call_reply::Value::Json("[]".into())));
}

#[tokio::test]
async fn what_is_sent_arrives_and_is_not_waited_for() {
    let (_node, mut client) = open(builder()).await;
    client.send(call("room", "sent", "post", r#"{"user": "ada", "text": "hi"}"#)).await.expect("it is on its way");
    let messages = client.call(call("room", "sent", "messages", "")).await.expect("it answers").into_inner();
    assert_eq!(messages.value, Some(call_reply::Value::Json(r#"["ada: hi"]"#.into())));
    let (code, _) = failed(client.send(call("room", "sent", "pots", "{}")).await);
    assert_eq!(code, Code::NotFound);
}

#[tokio::test]
async fn the_methods_own_error_comes_with_its_value_in_each_form() {
    let (_node, mut client) = open(builder()).await;
    let request = call("room", "own", "post", r#"{"user": "stranger", "text": "hi"}"#);
    let arguments = std::collections::BTreeMap::from([("user", "stranger"), ("text", "hi")]);
    let packed = Some(Arguments::Msgpack(rmp_serde::to_vec_named(&arguments).expect("it has bytes")));
    for request in [request.clone(), CallRequest { arguments: packed, ..request }] {
        let (code, problem) = failed(client.call(request).await);
        assert_eq!((code, problem.name.as_str()), (Code::FailedPrecondition, "actor-error"));
        assert_eq!((problem.error_json.as_str(), problem.may_have_run), (r#"{"user":"stranger"}"#, true));
    }
}

#[tokio::test]
async fn what_means_nothing_is_refused_by_name() {
    let (_node, mut client) = open(builder()).await;
    let cases = [
        (call("rooom", "a", "post", "{}"), Code::NotFound, "unknown-kind"),
        (call("room", "a", "pots", "{}"), Code::NotFound, "unknown-method"),
        (call("room", "", "post", "{}"), Code::InvalidArgument, "invalid-key"),
        (call("room", "a", "post", "[1]"), Code::InvalidArgument, "invalid-arguments"),
        (call("room", "a", "post", "{\"user\": "), Code::InvalidArgument, "invalid-arguments"),
        (call("room", "a", "count", r#"{"to": 1}"#), Code::InvalidArgument, "only-events"),
        (
            CallRequest { idempotency_key: "\n".into(), ..call("purse", "a", "pay", r#"{"amount": 1}"#) },
            Code::InvalidArgument,
            "invalid-arguments",
        ),
        (
            CallRequest { idempotency_key: "a".into(), ..call("room", "a", "messages", "") },
            Code::InvalidArgument,
            "invalid-arguments",
        ),
        (
            CallRequest { context: [(String::new(), "x".to_owned())].into(), ..call("room", "a", "messages", "") },
            Code::InvalidArgument,
            "invalid-arguments",
        ),
    ];
    for (request, code, name) in cases {
        let shown = format!("{request:?}");
        let (found, problem) = failed(client.call(request).await);
        assert_eq!((found, problem.name.as_str()), (code, name), "{shown}");
        assert!(!problem.may_have_run, "{shown}");
        assert!(problem.document_json.contains("detail"), "{problem:?}");
    }
}

#[tokio::test]
async fn a_call_of_a_stream_is_told_how_to_ask_for_it() {
    let (_node, mut client) = open(builder()).await;
    let status = client.call(call("room", "a", "count", r#"{"to": 1}"#)).await.expect_err("it is a stream");
    assert!(status.message().contains("greenroom.v1.Actors/Stream"), "{status}");
}

#[tokio::test]
async fn wrong_arguments_are_told_by_their_path() {
    let (_node, mut client) = open(builder()).await;
    let (code, problem) = failed(client.call(call("room", "a", "post", r#"{"user": "ada", "text": 7}"#)).await);
    assert_eq!((code, problem.field.as_str(), problem.may_have_run), (Code::InvalidArgument, "text", false));
    let nan = Value { kind: Some(Kind::NumberValue(f64::NAN)) };
    let arguments = Some(Arguments::Fields(Struct { fields: [("a".to_owned(), nan)].into() }));
    let (code, problem) = failed(client.call(CallRequest { arguments, ..call("room", "a", "add", "") }).await);
    assert_eq!((code, problem.field.as_str()), (Code::InvalidArgument, "a"));
}

#[tokio::test]
async fn a_deadline_that_passes_leaves_open_whether_the_turn_ran() {
    let (node, mut client) = open(builder()).await;
    // By hand, as other clients give up by themselves when their time is over.
    let hang = call("room", "late", "hang", "{}").encode_to_vec();
    let answer = raw(&node, &[("grpc-timeout", "50m")], hang).await;
    let said = |name: &str| answer.get(name).map(|said| said.to_str().expect("it is text"));
    assert_eq!((said("grpc-status"), said("may-have-run")), (Some("4"), Some("true")));
    let (code, problem) = failed(client.call(with(call("room", "a", "add", "{}"), "grpc-timeout", "soon")).await);
    assert_eq!((code, problem.field.as_str()), (Code::InvalidArgument, "grpc-timeout"));
}

#[tokio::test]
async fn nobody_waits_longer_than_the_node_lets_them() {
    let (_node, mut client) = open(builder().configure(|config| config.call_timeout = Duration::from_millis(50))).await;
    let mut request = Request::new(call("room", "late", "hang", "{}"));
    request.set_timeout(Duration::from_secs(60));
    let (code, problem) = failed(client.call(request).await);
    assert_eq!((code, problem.name.as_str(), problem.may_have_run), (Code::DeadlineExceeded, "timed-out", true));
}

#[tokio::test]
async fn a_client_that_hangs_up_cancels_its_call() {
    let (_node, mut client) = open(builder().configure(|config| config.call_timeout = Duration::from_secs(600))).await;
    let mut left = client.clone();
    let calling = tokio::spawn(async move { left.call(call("room", "left", "linger", "{}")).await });
    until(|| LINGERING.load(Ordering::SeqCst) == 1).await;
    calling.abort();
    // Its turn was the only one, and would be for good.
    let next = client.call(call("room", "left", "post", r#"{"user": "ada", "text": "hi"}"#)).await.expect("it answers");
    assert_eq!(next.into_inner().value, Some(call_reply::Value::Json("1".into())));
}

#[tokio::test]
async fn a_full_queue_is_resource_exhausted_and_nothing_ran() {
    let (_node, mut client) = open(builder()).await;
    let began = HANGING.load(Ordering::SeqCst);
    let mut first = client.clone();
    let _busy = tokio::spawn(async move { first.call(call("booth", "a", "hang", "{}")).await });
    until(|| HANGING.load(Ordering::SeqCst) > began).await;
    let (code, problem) = failed(client.call(call("booth", "a", "ask", "{}")).await);
    assert_eq!((code, problem.name.as_str()), (Code::ResourceExhausted, "overloaded"));
    assert!(!problem.may_have_run);
}

#[tokio::test]
async fn a_repeat_under_an_idempotency_key_runs_once() {
    let (_node, mut client) = open(builder()).await;
    let pay = |key: &str| CallRequest { idempotency_key: key.into(), ..call("purse", "a", "pay", r#"{"amount": 5}"#) };
    let mut paid = async |request: CallRequest| {
        let reply = client.call(request).await.unwrap_or_else(|status| panic!("{status:?}"));
        reply.into_inner().value
    };
    let json = |text: &str| Some(call_reply::Value::Json(text.into()));
    assert_eq!(paid(pay("order 17")).await, json("5"));
    assert_eq!(paid(pay("order 17")).await, json("5"), "it is the first one's answer");
    assert_eq!(paid(pay("order 18")).await, json("10"));
}

#[tokio::test]
async fn context_and_trace_go_along() {
    let (_node, mut client) = open(builder()).await;
    let trace = "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01";
    let said =
        CallRequest { context: [("tenant".to_owned(), "blue".to_owned())].into(), ..call("room", "c", "said", "") };
    let reply = client.call(with(said, "traceparent", trace)).await.expect("it answers").into_inner();
    let Some(call_reply::Value::Json(text)) = reply.value else { panic!("it is JSON") };
    let said: Vec<Option<String>> = serde_json::from_str(&text).expect("it is a list");
    assert_eq!(said[0].as_deref(), Some("blue"));
    assert!(said[1].as_deref().is_some_and(|trace| trace.contains("0af7651916cd43dd8448eb211c80319c")), "{said:?}");
    let by_header = with(call("room", "c", "said", ""), "baggage", "tenant=green");
    let reply = client.call(by_header).await.expect("it answers").into_inner();
    assert!(matches!(reply.value, Some(call_reply::Value::Json(text)) if text.contains("green")));
}

#[tokio::test]
async fn kinds_describe_themselves() {
    let (_node, mut client) = open(builder()).await;
    let all = client.describe(DescribeRequest::default()).await.expect("it answers").into_inner().kinds;
    let names: Vec<&str> = all.iter().map(|kind| kind.name.as_str()).collect();
    assert_eq!(names, ["booth", "purse", "room"]);
    let room = &all[2];
    assert!(room.methods.contains(&"post".to_owned()) && room.version == 1 && room.nodes.len() == 1, "{room:?}");
    let one = client.describe(DescribeRequest { kind: "room".into() }).await.expect("it answers").into_inner().kinds;
    assert_eq!((one.len(), &one[0].methods, &one[0].digest), (1, &room.methods, &room.digest));
    let description: serde_json::Value = serde_json::from_str(&one[0].description).expect("it is JSON");
    assert_eq!(description["kind"], "room");
    let (code, problem) = failed(client.describe(DescribeRequest { kind: "rom".into() }).await);
    assert_eq!((code, problem.name.as_str()), (Code::NotFound, "unknown-kind"));
    assert!(problem.document_json.contains("\"near\":[\"room\"]"), "{problem:?}");
}

/// Waits until `holds`.
pub(crate) async fn until(holds: impl Fn() -> bool) {
    while !holds() {
        tokio::time::sleep(Duration::from_millis(5)).await;
    }
}
