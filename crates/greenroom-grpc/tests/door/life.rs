//! The door's life: health, reflection, and the drain.

use std::sync::atomic::Ordering;

use greenroom_grpc::v1::call_reply::Value;
use greenroom_grpc::v1::stream_request::Of;
use greenroom_grpc::v1::{StreamRequest, TopicRequest};
use tonic::Code;
use tonic_health::pb::HealthCheckRequest;
use tonic_health::pb::health_check_response::ServingStatus;
use tonic_health::pb::health_client::HealthClient;
use tonic_reflection::pb::v1::ServerReflectionRequest;
use tonic_reflection::pb::v1::server_reflection_client::ServerReflectionClient;
use tonic_reflection::pb::v1::server_reflection_request::MessageRequest;
use tonic_reflection::pb::v1::server_reflection_response::MessageResponse;

use crate::calls::until;
use crate::kinds::{GO_ON, WAITING};
use crate::site::{builder, call, channel, failed, open};

#[tokio::test]
async fn a_drain_is_told_and_calls_in_flight_end() {
    let (node, mut client) = open(builder()).await;
    let mut health = HealthClient::new(channel(&node).await);
    let asked = HealthCheckRequest { service: "greenroom.v1.Actors".into() };
    let checked = health.check(asked.clone()).await.expect("it answers").into_inner();
    assert_eq!(checked.status(), ServingStatus::Serving);
    let unknown = health.check(HealthCheckRequest { service: "other".into() }).await.expect_err("there is none");
    assert_eq!(unknown.code(), Code::NotFound);
    let mut watched = health.watch(asked).await.expect("it is watched").into_inner();
    let first = watched.message().await.expect("it says").expect("how it is");
    assert_eq!(first.status(), ServingStatus::Serving);

    let watch = TopicRequest { topic: "news".into(), ..TopicRequest::default() };
    let mut news =
        client.stream(StreamRequest { of: Some(Of::Topic(watch)) }).await.expect("it is watched").into_inner();
    let mut waits = client.clone();
    let waiting = tokio::spawn(async move { waits.call(call("room", "w", "wait", "")).await });
    until(|| WAITING.load(Ordering::SeqCst) == 1).await;
    let drained = node.clone();
    let draining = tokio::spawn(async move { drained.drain().await });
    let next = watched.message().await.expect("it says").expect("how it is");
    assert_eq!(next.status(), ServingStatus::NotServing);
    let (code, problem) = failed(client.call(call("room", "w", "messages", "")).await);
    assert_eq!((code, problem.may_have_run), (Code::Unavailable, false));

    GO_ON.notify_one();
    let reply = waiting.await.expect("it ends").expect("it is answered").into_inner();
    assert_eq!(reply.value, Some(Value::Json("\"over\"".into())));
    let (code, problem) = failed(news.message().await);
    assert_eq!((code, problem.name.as_str()), (Code::Unavailable, "stopping"));
    draining.await.expect("it ends");
}

#[tokio::test]
async fn tools_see_the_services_and_their_messages() {
    let (node, _client) = open(builder()).await;
    let mut reflection = ServerReflectionClient::new(channel(&node).await);
    let mut asked = async |request: MessageRequest| {
        let request = ServerReflectionRequest { host: String::new(), message_request: Some(request) };
        let mut answers = reflection
            .server_reflection_info(futures_util::stream::iter([request]))
            .await
            .expect("it answers")
            .into_inner();
        answers.message().await.expect("it answers").and_then(|answer| answer.message_response)
    };
    let Some(MessageResponse::ListServicesResponse(services)) =
        asked(MessageRequest::ListServices(String::new())).await
    else {
        panic!("it lists its services")
    };
    let names: Vec<&str> = services.service.iter().map(|service| service.name.as_str()).collect();
    assert!(names.contains(&"greenroom.v1.Actors") && names.contains(&"grpc.health.v1.Health"), "{names:?}");
    let symbol = MessageRequest::FileContainingSymbol("greenroom.v1.Actors".into());
    let Some(MessageResponse::FileDescriptorResponse(file)) = asked(symbol).await else { panic!("it has a file") };
    assert!(!file.file_descriptor_proto.is_empty());
    let needed = MessageRequest::FileByFilename("google/protobuf/struct.proto".into());
    assert!(matches!(asked(needed).await, Some(MessageResponse::FileDescriptorResponse(_))), "with what it imports");
}

#[tokio::test]
async fn a_program_without_the_door_says_so() {
    let builder = greenroom::Node::builder().configure(|config| config.grpc = Some("127.0.0.1:0".into()));
    let error = builder.start().await.expect_err("it does not start").to_string();
    assert!(error.contains("gRPC") && error.contains("grpc_door"), "{error}");
}

#[tokio::test]
async fn beyond_loopback_it_wants_tls_and_credentials() {
    let exposed = builder().configure(|config| config.grpc = Some("0.0.0.0:0".into()));
    let error = exposed.start().await.expect_err("it does not start").to_string();
    assert!(error.contains("the gRPC door") && error.contains("TLS and credentials"), "{error}");
}
