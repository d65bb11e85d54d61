//! What no client should send: the door says why, or hangs up, and serves on.

use std::time::Duration;

use greenroom_grpc::v1::CallRequest;
use greenroom_grpc::v1::call_request::Arguments;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;
use tonic::Code;

use crate::site::{builder, call, failed, open, raw, raw_bytes};

#[tokio::test]
async fn a_message_beyond_the_bound_is_refused_and_nothing_ran() {
    let (_node, mut client) = open(builder().configure(|config| config.http_body_len_max = 10_000)).await;
    let post =
        |len: usize| call("room", "big", "post", &format!(r#"{{"user": "ada", "text": "{}"}}"#, "x".repeat(len)));
    client.call(post(9_000)).await.expect("it is within");
    let (code, problem) = failed(client.call(post(10_001)).await);
    assert_eq!((code, problem.name.as_str(), problem.may_have_run), (Code::ResourceExhausted, "too-large", false));
    let said = client.call(post(1)).await.expect("the connection goes on").into_inner();
    assert_eq!(said.value, Some(greenroom_grpc::v1::call_reply::Value::Json("2".into())));
}

#[tokio::test]
async fn arguments_that_are_no_map_or_no_message_pack_are_refused() {
    let (_node, mut client) = open(builder()).await;
    let deep = [&[0x81, 0xa1, b'a'][..], &[0x91; 10_000]].concat();
    let torn = vec![0x82, 0xa1, b'a'];
    let long = vec![0xdf, 0xff, 0xff, 0xff, 0xff];
    for bytes in [vec![0xc1], vec![0x93, 1, 2, 3], torn, long, deep] {
        let request = CallRequest { arguments: Some(Arguments::Msgpack(bytes)), ..call("room", "m", "add", "") };
        let (code, problem) = failed(client.call(request).await);
        assert_eq!((code, problem.may_have_run), (Code::InvalidArgument, false), "{problem:?}");
    }
    let nested = format!(r#"{{"a": {}1{}, "b": 1}}"#, "[".repeat(10_000), "]".repeat(10_000));
    let (code, _) = failed(client.call(call("room", "m", "add", &nested)).await);
    assert_eq!(code, Code::InvalidArgument);
}

#[tokio::test]
async fn bytes_that_are_no_http_2_end_their_connection_alone() {
    let (node, mut client) = open(builder()).await;
    let address = node.grpc_address().expect("it has a door");
    let preface = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n".to_vec();
    let frame = |kind: u8, len: u32, body: &[u8]| {
        [&preface[..], &len.to_be_bytes()[1..], &[kind, 0, 0, 0, 0, 1], body].concat()
    };
    let hostile = [
        b"GET / HTTP/1.1\r\nhost: a\r\n\r\n".to_vec(),
        vec![0xff; 4096],
        [&preface[..], &[0xff; 64]].concat(),
        frame(0, 0x00ff_ffff, &[0; 64]),
        frame(1, 16, &[0xff; 16]),
    ];
    for bytes in hostile {
        let mut stream = TcpStream::connect(&address).await.expect("it connects");
        stream.write_all(&bytes).await.expect("it is written");
        let mut rest = Vec::new();
        // Reset or closed: it ends.
        let _ = stream.read_to_end(&mut rest).await;
    }
    client.call(call("room", "h", "messages", "")).await.expect("others are served");
}

#[tokio::test]
async fn what_is_no_grpc_is_answered_by_http_and_a_web_page_is_refused() {
    let (node, _client) = open(builder()).await;
    let code = async |path: &str, headers: &[(&'static str, &str)], body: &[u8]| {
        let answer = raw_bytes(&node, path, headers, body.to_vec()).await;
        answer.get("grpc-status").map(|code| code.to_str().expect("it is text").to_owned())
    };
    let path = "/greenroom.v1.Actors/Call";
    assert_eq!(code(path, &[("content-type", "application/json")], b"{}").await, None);
    assert_eq!(code(path, &[("content-type", "application/grpc-web")], b"").await, None);
    let nothing = b"\0\0\0\0\0";
    assert_eq!(code("/other.Service/Call", &[], nothing).await.as_deref(), Some("12"));
    assert_eq!(code("/greenroom.v1.Actors/Other", &[], nothing).await.as_deref(), Some("12"));
    assert_eq!(code(path, &[("origin", "http://evil.example")], nothing).await.as_deref(), Some("7"));
    // A message that is none, and one that is not all there.
    for torn in [&b"\0\0\0\0\x02\xff\xff"[..], b"\0\0\0\0\x09\xff", b"\x01\0\0\0\0", b"\0\0"] {
        assert!(code(path, &[], torn).await.is_some_and(|code| code != "0"), "{torn:?}");
        let answer = raw_bytes(&node, path, &[], torn.to_vec()).await;
        assert_eq!(answer.get("may-have-run").map(http::HeaderValue::as_bytes), Some(&b"false"[..]), "{answer:?}");
    }
    for path in ["/other.Service/Call", "/greenroom.v1.Actors/Other"] {
        let answer = raw_bytes(&node, path, &[], nothing.to_vec()).await;
        assert_eq!(answer.get("may-have-run").map(http::HeaderValue::as_bytes), Some(&b"false"[..]), "{answer:?}");
    }
}

#[tokio::test]
async fn a_connection_that_says_nothing_or_half_a_preface_is_closed_and_one_that_greets_may_wait() {
    let bounds = |config: &mut greenroom::Config| {
        config.http_head_timeout = Duration::from_millis(300);
        config.http_idle_timeout = Duration::from_secs(3600);
    };
    let (node, mut client) = open(builder().configure(bounds)).await;
    let address = node.grpc_address().expect("it has a door");
    for said in [&b""[..], b"PRI * HTTP/2.0"] {
        let mut stream = TcpStream::connect(&address).await.expect("it connects");
        stream.write_all(said).await.expect("it is written");
        let mut rest = Vec::new();
        let closed = tokio::time::timeout(Duration::from_secs(60), stream.read_to_end(&mut rest)).await;
        assert!(closed.is_ok(), "{said:?} may not keep a place");
    }
    let mut greeted = TcpStream::connect(&address).await.expect("it connects");
    greeted.write_all(b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n\0\0\0\x04\0\0\0\0\0").await.expect("it is written");
    tokio::time::sleep(Duration::from_millis(900)).await;
    let (mut said, mut last) = (Vec::new(), [0; 1024]);
    while let Ok(len @ 1..) = greeted.try_read(&mut last) {
        said.extend_from_slice(&last[..len]);
    }
    assert!(!said.is_empty(), "the node has greeted, too");
    let open = greeted.try_read(&mut last);
    assert!(open.is_err_and(|error| error.kind() == std::io::ErrorKind::WouldBlock), "it stays");
    client.call(call("room", "h", "messages", "")).await.expect("others are served");
}

#[tokio::test]
async fn an_idle_connection_is_closed_in_order_and_a_client_does_not_notice() {
    let (node, mut client) =
        open(builder().configure(|config| config.http_idle_timeout = Duration::from_millis(200))).await;
    for _ in 0..3 {
        client.call(call("room", "i", "messages", "")).await.expect("it is answered, on another connection perhaps");
        tokio::time::sleep(Duration::from_millis(900)).await;
    }
    let address = node.grpc_address().expect("it has a door");
    let mut idle = TcpStream::connect(&address).await.expect("it connects");
    idle.write_all(b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n\0\0\0\x04\0\0\0\0\0").await.expect("it is written");
    let mut said = Vec::new();
    let closed = tokio::time::timeout(Duration::from_secs(60), idle.read_to_end(&mut said)).await;
    assert!(closed.is_ok(), "it is closed");
    // Frames of type 7 are GOAWAY: nine bytes of head, of which the fourth is the type.
    let mut rest = &said[..];
    let mut types = Vec::new();
    while rest.len() >= 9 {
        types.push(rest[3]);
        let len = usize::from(rest[0]) << 16 | usize::from(rest[1]) << 8 | usize::from(rest[2]);
        rest = rest.get(9 + len..).unwrap_or_default();
    }
    assert!(types.contains(&7), "{types:?}");
}

#[tokio::test]
async fn a_refusal_reaches_a_client_that_is_still_sending_and_says_that_nothing_ran() {
    let (node, _client) = open(builder()).await;
    let big = vec![b'x'; 4_000_000];
    let headers = [("authorization", "Bearer old")];
    let arguments = Some(Arguments::Msgpack(big));
    let message = prost::Message::encode_to_vec(&CallRequest { arguments, ..call("room", "h", "add", "") });
    let answer = raw(&node, &headers, message).await;
    assert_eq!(answer.get("may-have-run").map(http::HeaderValue::as_bytes), Some(&b"false"[..]), "{answer:?}");
}
