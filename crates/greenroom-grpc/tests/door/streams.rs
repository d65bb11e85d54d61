//! Streams of replies, and topics.

use std::sync::atomic::Ordering;

use greenroom::Topic;
use greenroom_grpc::v1::call_request::Arguments;
use greenroom_grpc::v1::stream_item::Value;
use greenroom_grpc::v1::stream_request::Of;
use greenroom_grpc::v1::{CallRequest, StreamItem, StreamRequest, TopicRequest};
use tonic::Code;

use crate::calls::until;
use crate::kinds::OPEN;
use crate::site::{builder, call, failed, open};

fn of(call: CallRequest) -> StreamRequest {
    StreamRequest { of: Some(Of::Call(call)) }
}

fn topic(topic: TopicRequest) -> StreamRequest {
    StreamRequest { of: Some(Of::Topic(topic)) }
}

fn json(item: StreamItem) -> (String, String) {
    match item.value {
        Some(Value::Json(text)) => (item.id, text),
        other => panic!("{other:?} is not JSON"),
    }
}

#[tokio::test]
async fn items_come_in_order_in_each_form_and_end() {
    let (_node, mut client) = open(builder()).await;
    let counted = call("room", "s", "count", r#"{"to": 1000}"#);
    let mut items = client.stream(of(counted.clone())).await.expect("it streams").into_inner();
    for number in 0..1000 {
        let item = items.message().await.expect("it goes on").expect("there is more");
        assert_eq!(json(item), (number.to_string(), number.to_string()));
    }
    assert_eq!(items.message().await.expect("it ends well"), None);

    let arguments = rmp_serde::to_vec_named(&std::collections::BTreeMap::from([("to", 3)])).expect("it has bytes");
    let packed = CallRequest { arguments: Some(Arguments::Msgpack(arguments)), ..counted };
    let mut items = client.stream(of(packed)).await.expect("it streams").into_inner();
    for number in 0..3 {
        let item = items.message().await.expect("it goes on").expect("there is more");
        assert_eq!(item.value, Some(Value::Msgpack(vec![number])));
    }
    assert_eq!(items.message().await.expect("it ends well"), None);
}

#[tokio::test]
async fn a_method_without_a_stream_is_one_item_and_a_failure_is_a_status() {
    let (_node, mut client) = open(builder()).await;
    let mut items = client.stream(of(call("room", "one", "messages", ""))).await.expect("it streams").into_inner();
    assert_eq!(items.message().await.expect("it is there").map(json), Some(("0".into(), "[]".into())));
    assert_eq!(items.message().await.expect("it ends well"), None);
    let (code, _) = failed(client.stream(of(call("room", "one", "cuont", ""))).await);
    assert_eq!(code, Code::NotFound);
    let (code, problem) = failed(client.stream(StreamRequest::default()).await);
    assert_eq!((code, problem.field.as_str()), (Code::InvalidArgument, "of"));
}

#[tokio::test]
async fn a_client_that_leaves_cancels_its_stream() {
    let (_node, mut client) = open(builder()).await;
    let mut items = client.stream(of(call("room", "e", "endless", ""))).await.expect("it streams").into_inner();
    for number in 0..100 {
        let item = items.message().await.expect("it goes on").expect("there is more");
        assert_eq!(json(item).0, number.to_string());
    }
    assert_eq!(OPEN.load(Ordering::SeqCst), 1);
    drop(items);
    until(|| OPEN.load(Ordering::SeqCst) == 0).await;
}

#[tokio::test]
async fn a_topic_is_watched_and_gone_on_with() {
    let (node, mut client) = open(builder()).await;
    let prices: Topic<u64> = Topic::of(&node, "prices/eu");
    let watch =
        |after: &str| topic(TopicRequest { topic: "prices/eu".into(), after: after.into(), ..TopicRequest::default() });
    let mut items = client.stream(watch("")).await.expect("it is watched").into_inner();
    for price in [7, 8] {
        prices.publish(&price).await.expect("it is published");
    }
    let (first, text) = json(items.message().await.expect("it goes on").expect("there is more"));
    assert_eq!(text, "7");
    drop(items);
    let mut items = client.stream(watch(&first)).await.expect("it is watched").into_inner();
    let (_, text) = json(items.message().await.expect("it goes on").expect("there is more"));
    assert_eq!(text, "8", "behind the last one that it had");

    let (code, problem) = failed(client.stream(watch("yesterday")).await);
    assert_eq!((code, problem.field.as_str()), (Code::InvalidArgument, "after"));
    let long = TopicRequest { topic: "prices/eu".into(), queue: 5000, ..TopicRequest::default() };
    let (code, problem) = failed(client.stream(topic(long)).await);
    assert_eq!((code, problem.field.as_str()), (Code::InvalidArgument, "queue"));
}
