//! Tokens, roles and certificates.

use std::path::Path;

use futures_util::stream;
use greenroom::{DoorTls, Rule};
use greenroom_grpc::v1::call_reply::Value;
use greenroom_grpc::v1::stream_request::Of;
use greenroom_grpc::v1::{DescribeRequest, StreamRequest, TopicRequest};
use greenroom_security::identity::Who;
use greenroom_security::issue::Authority;
use tonic::Code;
use tonic::transport::{Certificate, Channel, ClientTlsConfig};
use tonic_health::pb::HealthCheckRequest;
use tonic_health::pb::health_client::HealthClient;
use tonic_reflection::pb::v1::ServerReflectionRequest;
use tonic_reflection::pb::v1::server_reflection_client::ServerReflectionClient;

use crate::client::actors_client::ActorsClient;
use crate::site::{builder, call, channel, failed, open, with};

const ADA: &str = "Bearer ada-0123456789abcdef";
const BOB: &str = "Bearer bob-0123456789abcdef";

/// A node that users may call, and guests may ask for messages.
fn guarded(folder: &Path) -> greenroom::Builder {
    let tokens = folder.join("tokens.toml");
    let token = |name: &str, role: &str| {
        format!("[[token]]\nname = {name:?}\nroles = [{role:?}]\ntoken = \"{name}-0123456789abcdef\"\n")
    };
    std::fs::write(&tokens, token("ada", "user") + &token("bob", "guest")).expect("there is room");
    let rule = |role: &str, method: &str| Rule {
        roles: vec![role.into()],
        kind: "room".into(),
        methods: vec![method.into()],
        keys: "*".into(),
        issuer: None,
    };
    builder().configure(|config| {
        config.auth.tokens = Some(tokens);
        config.allow = vec![rule("user", "*"), rule("guest", "messages")];
    })
}

#[tokio::test]
async fn tokens_and_roles_decide_as_at_the_http_door() {
    let folder = tempfile::tempdir().expect("there is room");
    let (node, mut client) = open(guarded(folder.path())).await;
    let post = || call("room", "a", "post", r#"{"user": "ada", "text": "hi"}"#);
    let cases = [
        (with(post(), "x-other", "1"), Code::Unauthenticated, "unauthenticated"),
        (with(post(), "authorization", "Bearer wrong-0123456789abcdef"), Code::Unauthenticated, "unauthenticated"),
        (with(post(), "authorization", "Basic YTpi"), Code::Unauthenticated, "unauthenticated"),
        (with(post(), "authorization", BOB), Code::PermissionDenied, "forbidden"),
        (
            with(call("purse", "a", "pay", r#"{"amount": 1}"#), "authorization", ADA),
            Code::PermissionDenied,
            "forbidden",
        ),
    ];
    for (request, code, name) in cases {
        let (found, problem) = failed(client.call(request).await);
        assert_eq!((found, problem.name.as_str(), problem.may_have_run), (code, name, false));
    }
    let (code, _) = failed(client.send(with(post(), "authorization", BOB)).await);
    assert_eq!(code, Code::PermissionDenied);
    let counted = StreamRequest { of: Some(Of::Call(call("room", "a", "count", r#"{"to": 1}"#))) };
    let (code, _) = failed(client.stream(with(counted, "authorization", BOB)).await);
    assert_eq!(code, Code::PermissionDenied);
    let news = StreamRequest { of: Some(Of::Topic(TopicRequest { topic: "news".into(), ..TopicRequest::default() })) };
    let (code, _) = failed(client.stream(with(news, "authorization", ADA)).await);
    assert_eq!(code, Code::PermissionDenied);
    let (code, _) = failed(client.describe(DescribeRequest::default()).await);
    assert_eq!(code, Code::Unauthenticated);

    client.call(with(post(), "authorization", ADA)).await.expect("users may");
    let said = client.call(with(call("room", "a", "said", ""), "authorization", ADA)).await.expect("users may");
    assert!(matches!(said.into_inner().value, Some(Value::Json(text)) if text.contains("\"ada\"")));
    let read = client.call(with(call("room", "a", "messages", ""), "authorization", BOB)).await.expect("guests may");
    assert_eq!(read.into_inner().value, Some(Value::Json(r#"["ada: hi"]"#.into())), "what was refused did not run");
    client.describe(with(DescribeRequest::default(), "authorization", BOB)).await.expect("who is known may");

    HealthClient::new(channel(&node).await).check(HealthCheckRequest::default()).await.expect("everybody may");
    let mut reflection = ServerReflectionClient::new(channel(&node).await);
    let asked = ServerReflectionRequest { host: String::new(), message_request: None };
    let refused = reflection.server_reflection_info(stream::iter([asked])).await;
    assert_eq!(refused.expect_err("it takes credentials").code(), Code::Unauthenticated);
}

#[tokio::test]
async fn a_stream_ends_when_its_token_is_withdrawn() {
    let folder = tempfile::tempdir().expect("there is room");
    let fast = guarded(folder.path()).configure(|config| config.reload_every = std::time::Duration::from_millis(20));
    let (_node, mut client) = open(fast).await;
    let endless = StreamRequest { of: Some(Of::Call(call("room", "a", "endless", ""))) };
    let mut items = client.stream(with(endless, "authorization", ADA)).await.expect("users may").into_inner();
    let new = folder.path().join("new.toml");
    std::fs::write(&new, "").expect("there is room");
    std::fs::rename(&new, folder.path().join("tokens.toml")).expect("there is room");
    let ended = loop {
        match items.message().await {
            Ok(Some(_)) => {}
            Ok(None) => panic!("it says why"),
            Err(status) => break failed(Err::<(), _>(status)),
        }
    };
    assert_eq!(ended.0, Code::Unauthenticated);
}

#[tokio::test]
async fn with_a_certificate_it_speaks_tls_and_nothing_else() {
    let folder = tempfile::tempdir().expect("there is room");
    let authority = Authority::new("greenroom").expect("it has a key");
    let issued = authority.issue(Who::Node("a".into()), &["localhost".into()], (-1, 1)).expect("it is issued");
    let path = |name: &str| folder.path().join(name);
    std::fs::write(path("door.pem"), &issued.cert).expect("there is room");
    std::fs::write(path("door.key"), &issued.key).expect("there is room");
    let mut files = DoorTls::default();
    (files.cert, files.key) = (path("door.pem"), path("door.key"));
    let node = builder().configure(|config| config.http_tls = Some(files)).start().await.expect("it starts");
    let address = node.grpc_address().expect("it has a door");
    let port = address.rsplit_once(':').expect("it has a port").1;

    let trust = Certificate::from_pem(&authority.pem().cert);
    let tls = ClientTlsConfig::new().ca_certificate(trust).domain_name("localhost");
    let endpoint = Channel::from_shared(format!("https://localhost:{port}")).expect("it is an address");
    let channel = endpoint.tls_config(tls).expect("it is a configuration").connect().await.expect("it connects");
    let mut client = ActorsClient::new(channel);
    client.call(call("room", "tls", "messages", "")).await.expect("it answers");

    let plain = Channel::from_shared(format!("http://{address}")).expect("it is an address");
    let mut plain = ActorsClient::new(plain.connect_lazy());
    let refused = plain.call(call("room", "tls", "messages", "")).await.expect_err("it is not answered");
    assert_ne!(refused.code(), Code::Ok);
}
