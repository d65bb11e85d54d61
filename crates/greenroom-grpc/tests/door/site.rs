//! A node with a gRPC door, and clients of it.

use bytes::Bytes;
use greenroom::{Builder, Node};
use greenroom_grpc::Grpc;
use greenroom_grpc::v1::{CallRequest, Problem, call_request};
use http_body_util::Full;
use hyper::client::conn::http2;
use hyper_util::rt::{TokioExecutor, TokioIo};
use prost::Message;
use tokio::net::TcpStream;
use tonic::transport::Channel;
use tonic::{Code, Request, Status};

use crate::client::actors_client::ActorsClient;
use crate::kinds::{Booth, Purse, Room};

/// What a node is put together from.
pub(crate) fn builder() -> Builder {
    let configured = Node::builder().grpc_door(Grpc::default()).journal("memory:").configure(|config| {
        config.grpc = Some("127.0.0.1:0".into());
        config.shards = 1;
        config.reliable.partitions = 2;
    });
    configured.register::<Room>().register::<Booth>().register::<Purse>()
}

/// Opens a node, and a client of its door.
pub(crate) async fn open(builder: Builder) -> (Node, ActorsClient<Channel>) {
    let node = builder.start().await.unwrap_or_else(|error| panic!("{error}"));
    let channel = channel(&node).await;
    (node, ActorsClient::new(channel))
}

pub(crate) async fn channel(node: &Node) -> Channel {
    let address = node.grpc_address().expect("it has a door");
    let endpoint = Channel::from_shared(format!("http://{address}")).expect("it is an address");
    endpoint.connect().await.unwrap_or_else(|error| panic!("{address}: {error}"))
}

/// A call with arguments in JSON.
pub(crate) fn call(kind: &str, key: &str, method: &str, arguments: &str) -> CallRequest {
    CallRequest {
        kind: kind.into(),
        key: key.into(),
        method: method.into(),
        arguments: Some(call_request::Arguments::Json(arguments.into())),
        ..CallRequest::default()
    }
}

/// A request whose metadata has this header.
pub(crate) fn with<T>(message: T, name: &'static str, value: &'static str) -> Request<T> {
    let mut request = Request::new(message);
    request.metadata_mut().insert(name, value.parse().expect("it is a header"));
    request
}

/// The code of a failure, and its problem.
pub(crate) fn failed<T: std::fmt::Debug>(result: Result<T, Status>) -> (Code, Problem) {
    let status = result.expect_err("it must fail");
    let details = RpcStatus::decode(status.details()).expect("it has details");
    let problem = details.details.first().unwrap_or_else(|| panic!("it has no details: {status:?}"));
    assert_eq!(problem.type_url, "type.googleapis.com/greenroom.v1.Problem");
    let problem = Problem::decode(&*problem.value).expect("it is a problem");
    let said = status.metadata().get("may-have-run").map(|said| said.as_bytes().to_vec());
    assert_eq!(said.as_deref(), Some(problem.may_have_run.to_string().as_bytes()), "{status:?}");
    assert_eq!((details.code, &details.message), (status.code() as i32, &status.message().to_owned()));
    (status.code(), problem)
}

/// Calls with a message, by hand; the headers of the answer, which are its trailers too if it has failed.
pub(crate) async fn raw(node: &Node, headers: &[(&'static str, &str)], message: Vec<u8>) -> http::HeaderMap {
    let len = u32::try_from(message.len()).expect("it is short").to_be_bytes();
    let body = [&[0][..], &len, &message].concat();
    raw_bytes(node, "/greenroom.v1.Actors/Call", headers, body).await
}

/// The same, with a body of any bytes.
pub(crate) async fn raw_bytes(
    node: &Node,
    path: &str,
    headers: &[(&'static str, &str)],
    body: Vec<u8>,
) -> http::HeaderMap {
    let stream = TcpStream::connect(node.grpc_address().expect("it has a door")).await.expect("it connects");
    let (mut sender, connection) =
        http2::handshake(TokioExecutor::new(), TokioIo::new(stream)).await.expect("it greets");
    tokio::spawn(connection);
    let mut request = http::Request::post(format!("http://localhost{path}"));
    let all = request.headers_mut().expect("it has headers");
    all.insert("content-type", http::HeaderValue::from_static("application/grpc"));
    for (name, value) in headers {
        all.insert(*name, value.parse().expect("it is a header"));
    }
    let request = request.body(Full::new(Bytes::from(body))).expect("it is a request");
    sender.send_request(request).await.expect("it is answered").headers().clone()
}

/// `google.rpc.Status`, as clients read it.
#[derive(Clone, PartialEq, Message)]
struct RpcStatus {
    #[prost(int32, tag = "1")]
    code: i32,
    #[prost(string, tag = "2")]
    message: String,
    #[prost(message, repeated, tag = "3")]
    details: Vec<prost_types::Any>,
}
