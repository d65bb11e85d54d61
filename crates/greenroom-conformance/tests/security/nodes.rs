//! Which nodes form a cluster.

use bytes::BytesMut;
use greenroom_security::identity::Identity;
use greenroom_security::link::{Links, PLAIN_WANTED, TLS_WANTED};
use greenroom_wire::{Decoder, Encoder, Frame, Hello, HelloBody, Lane};
use greenroom_world::World;
use greenroom_world::real::RealWorld;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;

use super::*;

#[tokio::test(flavor = "multi_thread")]
async fn nodes_with_certificates_of_one_authority_form_a_cluster() {
    let site = Site::new("music");
    let (a, b) = (site.node("a").await, site.node("b").await);
    both_answer(&a, ["a", "b"]).await;
    both_answer(&b, ["a", "b"]).await;
    assert_eq!(a.refused_connections() + b.refused_connections(), 0);
    a.stop().await;
    b.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_node_without_certificates_or_of_another_authority_does_not_join_and_says_why() {
    let site = Site::new("music");
    let a = site.node("a").await;
    let elsewhere = Authority::new("music").unwrap();
    let strange = site.files("b", &elsewhere, Who::AnyNode);
    let film = site.authority.issue_for(&Identity::new("film", Who::AnyNode), &[], (-1, 1)).unwrap();
    let film = site.write("film", &site.authority, &film);
    let joining = async |name: &str, files: Option<NodeTls>, cluster: &str| {
        let cluster = cluster.to_owned();
        let start = site.builder(name, files).configure(|config| config.cluster = cluster).start();
        match tokio::time::timeout(Duration::from_secs(60), start).await {
            Ok(Err(error)) => error.to_string(),
            Ok(Ok(_)) => panic!("{name} has joined"),
            Err(_) => panic!("{name} gave no answer"),
        }
    };
    let (plain, strange, wrong) = tokio::join!(
        joining("plain", None, "music"),
        joining("b", Some(strange), "music"),
        joining("film", Some(film), "music"),
    );
    assert!(plain.contains(TLS_WANTED), "{plain}");
    assert!(strange.contains("certificates of one authority"), "{strange}");
    assert!(wrong.contains("it is of cluster \"film\""), "{wrong}");
    assert!(a.refused_connections() > 0);
    let count = CounterRef::of(&a, "steady").add(1).await;
    assert_eq!(count.unwrap(), 1);
    a.stop().await;
}

/// Sends `bytes`; the goodbye of the node.
async fn goodbye(node: &Node, bytes: &[u8]) -> String {
    let mut stream = TcpStream::connect(node.address()).await.unwrap();
    stream.write_all(bytes).await.unwrap();
    let mut said = Vec::new();
    stream.read_to_end(&mut said).await.unwrap();
    match Decoder::default().decode(&mut BytesMut::from(&said[..])) {
        Ok(Some(Frame::Goodbye(reason))) => reason.as_str().to_owned(),
        other => panic!("{other:?}"),
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn plain_to_tls_and_tls_to_plain_are_told_what_is_missing() {
    let site = Site::new("music");
    let secure = site.node("a").await;
    let mut hello = BytesMut::new();
    let body = HelloBody::new("music", 7, "b", Lane::User { shard: 0, shards: 1 });
    Encoder::default().hello(&mut hello, &Hello::new(body)).unwrap();
    assert_eq!(goodbye(&secure, &hello).await, TLS_WANTED);
    let plain = Node::builder().register::<Counter>().start().await.unwrap();
    // The beginning of a TLS handshake.
    assert_eq!(goodbye(&plain, b"\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03").await, PLAIN_WANTED);
    secure.stop().await;
    plain.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn who_begins_a_handshake_and_falls_silent_keeps_nobody_out() {
    let site = Site::new("music");
    let a = site.node("a").await;
    let mut silent = Vec::new();
    for _ in 0..100 {
        let mut stream = TcpStream::connect(a.address()).await.unwrap();
        stream.write_all(b"\x16\x03\x01\x02\x00\x01").await.unwrap();
        silent.push(stream);
    }
    let b = site.node("b").await;
    both_answer(&b, ["a", "b"]).await;
    for mut stream in silent {
        let mut rest = Vec::new();
        let closed = tokio::time::timeout(Duration::from_secs(20), stream.read_to_end(&mut rest)).await;
        assert!(closed.is_ok(), "the node keeps a stranger");
    }
    a.stop().await;
    b.stop().await;
}

#[tokio::test]
async fn beyond_loopback_tls_is_wanted_and_the_error_says_so() {
    let error = Node::builder().listen("0.0.0.0:0").start().await.err().unwrap().to_string();
    for word in ["0.0.0.0:0", "TLS", "--tls-dir", "--insecure-listen"] {
        assert!(error.contains(word), "{error}");
    }
    let site = Site::new("music");
    let files = site.files("a", &site.authority, Who::AnyNode);
    let open = || site.builder("a", Some(files.clone())).listen("0.0.0.0:0");
    let error = open().start().await.err().unwrap().to_string();
    assert!(error.contains("cannot dial 0.0.0.0:0") && error.contains("--advertise"), "{error}");
    let node = open().configure(|config| config.advertise = Some("127.0.0.1:0".into())).start().await.unwrap();
    node.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_peer_of_another_cluster_is_refused_though_its_hello_says_otherwise() {
    let site = Site::new("music");
    let a = site.node("a").await;
    let film = site.authority.issue_for(&Identity::new("film", Who::AnyNode), &[], (-1, 1)).unwrap();
    let files = site.write("film", &site.authority, &film);
    let links = Links::secure(&files, "film").unwrap();
    let own = Links::secure(&site.files("b", &site.authority, Who::Node("b".into())), "music").unwrap();
    for (links, name, said) in [(&links, "b", "of cluster \"film\""), (&own, "c", "is for node \"b\"")] {
        let world = RealWorld::start().unwrap();
        let (mut stream, _) = links.dialled(world.connect(a.address()).await.unwrap()).await.unwrap();
        let mut hello = BytesMut::new();
        let body = HelloBody::new("music", 7, name, Lane::User { shard: 0, shards: 1 });
        Encoder::default().hello(&mut hello, &Hello::new(body)).unwrap();
        stream.write_all(&hello).await.unwrap();
        stream.flush().await.unwrap();
        let mut answer = Vec::new();
        stream.read_to_end(&mut answer).await.unwrap();
        let (mut decoder, mut answer) = (Decoder::default(), BytesMut::from(&answer[..]));
        assert!(matches!(decoder.decode(&mut answer), Ok(Some(Frame::Hello(_)))));
        let Ok(Some(Frame::Goodbye(reason))) = decoder.decode(&mut answer) else { panic!("{name} is let in") };
        assert!(reason.as_str().contains(said), "{}", reason.as_str());
    }
    a.stop().await;
}
