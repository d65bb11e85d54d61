//! What strangers cannot do.

use std::time::{Duration, Instant};

use greenroom::Inspected;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;

use crate::client::{call, get, post, raw, read};
use crate::kinds::{node, open};

const HALF_A_SECOND: Duration = Duration::from_millis(500);

#[tokio::test]
async fn a_body_over_the_limit_is_413() {
    let (node, door) = open(node().configure(|config| config.http_body_len_max = 1000)).await;
    let body = |len: usize| format!("{{\"text\":\"{}\"}}", "x".repeat(len));
    assert_eq!(call(&door, "/notes/a/size", &body(900)).await.body, "900");
    call(&door, "/notes/a/size", &body(1001)).await.problem(413, "too-large");
    let declared = "POST /notes/a/size HTTP/1.1\r\nhost: localhost\r\ncontent-length: 99999999999\r\n\r\n";
    raw(&door, declared.as_bytes()).await.problem(413, "too-large");
    let mut chunked = b"POST /notes/a/size HTTP/1.1\r\nhost: localhost\r\ntransfer-encoding: chunked\r\n\r\n".to_vec();
    for _ in 0..20 {
        chunked.extend_from_slice(format!("64\r\n{}\r\n", "x".repeat(100)).as_bytes());
    }
    raw(&door, &chunked).await.problem(413, "too-large");
    node.stop().await;
}

#[tokio::test]
async fn a_head_over_the_limit_is_refused() {
    let (node, door) = open(node()).await;
    let many: String = (0..100).map(|at| format!("x-{at}: y\r\n")).collect();
    assert_eq!(raw(&door, &post("/notes/a/all", &many, "")).await.status, 431);
    let long = format!("x: {}\r\n", "y".repeat(100_000));
    assert_eq!(raw(&door, &post("/notes/a/all", &long, "")).await.status, 431);
    assert_eq!(call(&door, "/notes/a/all", "").await.status, 200);
    node.stop().await;
}

#[tokio::test]
async fn calls_over_the_limit_are_503_while_the_node_still_tells_how_it_is() {
    let (node, door) = open(node().configure(|config| config.http_requests_max = 1)).await;
    let busy = door.clone();
    let dozing = tokio::spawn(async move { call(&busy, "/notes/a/doze", r#"{"ms":1000}"#).await });
    tokio::time::sleep(Duration::from_millis(300)).await;
    let answer = call(&door, "/notes/b/all", "").await;
    answer.problem(503, "overloaded");
    assert_eq!(answer.header("retry-after"), Some("1"));
    assert_eq!(get(&door, "/healthz").await.status, 200);
    assert_eq!(dozing.await.unwrap().status, 200);
    node.stop().await;
}

#[tokio::test]
async fn callers_of_one_slow_actor_leave_room_for_others() {
    let (node, door) = open(node().configure(|config| config.http_requests_max = 8)).await;
    let mut dozing = Vec::new();
    for _ in 0..40 {
        let door = door.clone();
        let doze = async move { call(&door, "/notes/slow/doze", r#"{"ms":1500}"#).await };
        dozing.push(tokio::spawn(doze));
    }
    // All but its share are refused at once.
    while dozing.iter().filter(|doze| doze.is_finished()).count() < 36 {
        tokio::task::yield_now().await;
    }
    assert_eq!(call(&door, "/notes/other/all", "").await.status, 200);
    call(&door, "/notes/slow/doze", r#"{"ms":1}"#).await.problem(503, "overloaded");
    let mut refused = 0;
    for doze in dozing {
        let answer = doze.await.unwrap();
        refused += usize::from(answer.status == 503);
        assert!(answer.status == 200 || answer.status == 503 && answer.header("retry-after").is_some(), "{answer:?}");
    }
    assert_eq!(refused, 36);
    node.stop().await;
}

#[tokio::test]
async fn the_openapi_document_is_of_the_kinds_that_there_are() {
    let (node, door) = open(node()).await;
    let documents = [get(&door, "/openapi.json").await, get(&door, "/openapi.json").await];
    assert_eq!(documents[0].body, documents[1].body);
    assert!(documents[0].json()["paths"]["/notes/{key}/size"].is_object(), "{documents:?}");
    node.stop().await;
}

#[tokio::test]
async fn a_client_that_sends_a_byte_a_while_is_closed() {
    let (node, door) = open(
        node()
            .configure(|config| (config.http_head_timeout, config.http_body_timeout) = (HALF_A_SECOND, HALF_A_SECOND)),
    )
    .await;
    let mut head = TcpStream::connect(&door).await.unwrap();
    let began = Instant::now();
    let mut closed = false;
    for byte in b"POST /notes/a/all HTTP/1.1\r\nhost: localhost\r\n".iter().cycle() {
        tokio::time::sleep(Duration::from_millis(50)).await;
        let mut end = [0; 1];
        if head.write_all(&[*byte]).await.is_err() || matches!(head.try_read(&mut end), Ok(0)) {
            closed = true;
            break;
        }
        if began.elapsed() > Duration::from_secs(60) {
            break;
        }
    }
    assert!(closed, "the head may take half a second");

    let mut body = TcpStream::connect(&door).await.unwrap();
    body.write_all(b"POST /notes/a/all HTTP/1.1\r\nhost: localhost\r\ncontent-length: 100\r\n\r\n{").await.unwrap();
    read(&mut body).await.problem(408, "slow-request");
    assert_eq!(body.read(&mut [0; 1]).await.unwrap_or(0), 0);
    node.stop().await;
}

#[tokio::test]
async fn an_idle_connection_is_closed_after_its_time_and_a_working_one_is_not() {
    let (node, door) = open(node().configure(|config| config.http_idle_timeout = Duration::from_millis(300))).await;
    assert_eq!(call(&door, "/notes/a/doze", r#"{"ms":1000}"#).await.status, 200);
    let mut kept = TcpStream::connect(&door).await.unwrap();
    for _ in 0..2 {
        kept.write_all(&post("/notes/a/all", "", "")).await.unwrap();
        assert_eq!(read(&mut kept).await.status, 200);
    }
    let closed = tokio::time::timeout(Duration::from_secs(60), kept.read(&mut [0; 1])).await;
    assert_eq!(closed.expect("it is closed").unwrap_or(0), 0);
    node.stop().await;
}

#[tokio::test]
async fn many_idle_connections_keep_nobody_out() {
    let (node, door) = open(node().configure(|config| config.http_connections_max = 500)).await;
    let mut idle = Vec::new();
    for at in 0..3000 {
        let mut stream = TcpStream::connect(&door).await.expect("the door accepts");
        if at % 2 == 0 {
            // Some say nothing, some begin and never end.
            let _ = stream.write_all(b"POST /no").await;
        }
        idle.push(stream);
        if at % 500 == 499 {
            assert_eq!(call(&door, "/notes/a/all", "").await.status, 200, "after {at}");
        }
    }
    let status = get(&door, "/-/status").await.json();
    assert!(status["http"]["connections"].as_u64().unwrap() <= 500, "{status}");
    drop(idle);
    node.stop().await;
}

#[tokio::test]
async fn garbage_leaves_the_door_serving() {
    let (node, door) = open(node()).await;
    let mut state = 0x9E37_79B9_7F4A_7C15_u64;
    for len in 0..200 {
        let mut bytes: Vec<u8> = Vec::new();
        for _ in 0..len {
            state ^= state << 13;
            state ^= state >> 7;
            state ^= state << 17;
            bytes.push(state as u8);
        }
        let mut stream = TcpStream::connect(&door).await.unwrap();
        if len % 3 == 0 {
            bytes.splice(0..0, *b"POST /notes/");
        }
        let _ = stream.write_all(&bytes).await;
        let _ = stream.write_all(b"\r\n\r\n").await;
    }
    for request in [
        "GET http://other/notes/a/all HTTP/1.1\r\n\r\n",
        "CONNECT a:1 HTTP/1.1\r\nhost: localhost\r\n\r\n",
        "OPTIONS * HTTP/1.1\r\nhost: localhost\r\n\r\n",
        "GET / HTTP/9.9\r\n\r\n",
        "POST /notes/a/all HTTP/1.1\r\nhost: localhost\r\ncontent-length: -1\r\n\r\n",
        "POST /notes/a/all HTTP/1.1\r\nhost: localhost\r\ncontent-length: 1\r\ncontent-length: 2\r\n\r\n",
    ] {
        let answer = raw(&door, request.as_bytes()).await;
        assert!((400..500).contains(&answer.status) || answer.status == 505, "{request:?} gives {answer:?}");
    }
    assert_eq!(call(&door, "/notes/a/all", "").await.status, 200);
    node.stop().await;
}

#[tokio::test]
async fn a_door_whose_connections_all_work_still_tells_how_the_node_is() {
    let (node, door) = open(node().configure(|config| config.http_connections_max = 4)).await;
    let mut dozing = Vec::new();
    for key in ["a", "b", "c", "d"] {
        let door = door.clone();
        let doze = async move { call(&door, &format!("/notes/{key}/doze"), r#"{"ms":8000}"#).await.status };
        dozing.push(tokio::spawn(doze));
        while !matches!(node.inspect("notes", key).await, Inspected::Here(_)) {
            tokio::task::yield_now().await;
        }
    }
    for path in ["/healthz", "/readyz", "/metrics", "/-/status", "/-/waits?over=100ms"] {
        assert_eq!(get(&door, path).await.status, 200, "{path}");
    }
    assert!(dozing.iter().all(|doze| !doze.is_finished()), "nobody waited for the calls");
    let answer = call(&door, "/notes/x/all", "").await;
    answer.problem(503, "overloaded");
    assert!(answer.header("retry-after").is_some());
    for doze in dozing {
        assert_eq!(doze.await.unwrap(), 200);
    }
    assert_eq!(call(&door, "/notes/x/all", "").await.status, 200);
    node.stop().await;
}

#[tokio::test]
async fn waits_tell_of_turns_that_run_for_long() {
    let (node, door) = open(node()).await;
    let dozing = {
        let door = door.clone();
        tokio::spawn(async move { call(&door, "/notes/a/doze", r#"{"ms":1500}"#).await })
    };
    tokio::time::sleep(Duration::from_millis(500)).await;
    let waits = get(&door, "/-/waits?over=200ms").await.json();
    assert_eq!(waits["turns"][0]["turn"], "notes/a.doze", "{waits}");
    assert!(waits["turns"][0]["running_seconds"].as_f64() >= Some(0.2), "{waits}");
    get(&door, "/-/waits?over=soon").await.problem(400, "bad-request");
    assert_eq!(dozing.await.unwrap().status, 200);
    node.stop().await;
}
