//! What no client should send: the door says why, or hangs up, and serves on.

use greenroom_grpc::v1::CallRequest;
use greenroom_grpc::v1::call_request::Arguments;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;
use tonic::Code;

use crate::site::{builder, call, failed, open, raw_bytes};

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
    }
}
