//! JWTs at the HTTP door, with keys in a file and fetched from their issuer.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{SystemTime, UNIX_EPOCH};

use base64::Engine;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use greenroom::{Auth, Issuer, Rule};
use ring::rand::SystemRandom;
use ring::signature::{ECDSA_P256_SHA256_FIXED_SIGNING, EcdsaKeyPair, KeyPair};
use serde_json::{Value, json};
use tokio::io::{AsyncReadExt, AsyncWriteExt};

use super::client::post;
use super::streams::Watching;
use super::*;

struct Signer(EcdsaKeyPair, &'static str);

fn encode(bytes: impl AsRef<[u8]>) -> String {
    URL_SAFE_NO_PAD.encode(bytes)
}

impl Signer {
    fn new(id: &'static str) -> Self {
        let (random, how) = (SystemRandom::new(), &ECDSA_P256_SHA256_FIXED_SIGNING);
        let pkcs8 = EcdsaKeyPair::generate_pkcs8(how, &random).unwrap();
        Self(EcdsaKeyPair::from_pkcs8(how, pkcs8.as_ref(), &random).unwrap(), id)
    }

    fn keys(signers: &[&Signer]) -> String {
        let key = |Signer(pair, id): &&Signer| {
            let point = pair.public_key().as_ref();
            json!({ "kty": "EC", "crv": "P-256", "kid": id, "x": encode(&point[1..33]), "y": encode(&point[33..]) })
        };
        json!({ "keys": signers.iter().map(key).collect::<Vec<Value>>() }).to_string()
    }

    fn header(&self, algorithm: &str, change: &Value) -> String {
        let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap().as_secs();
        let mut claims =
            json!({ "iss": "https://id", "aud": "greenroom", "sub": "ada", "exp": now + 60, "roles": ["user"] });
        for (name, value) in change.as_object().unwrap() {
            claims[name] = value.clone();
        }
        let head = json!({ "alg": algorithm, "kid": self.1 }).to_string();
        let message = format!("{}.{}", encode(head), encode(claims.to_string()));
        let signature = self.0.sign(&SystemRandom::new(), message.as_bytes()).unwrap();
        format!("authorization: Bearer {message}.{}", encode(signature))
    }
}

async fn guarded(site: &Site, keys: String) -> (Node, String) {
    let issuer = json!({ "issuer": "https://id", "audience": "greenroom", "keys": keys });
    let issuer: Issuer = serde_json::from_value(issuer).unwrap();
    let auth = Auth { jwt: vec![issuer], ..Auth::default() };
    let all = Rule {
        roles: vec!["user".into()],
        kind: "*".into(),
        methods: vec!["*".into()],
        keys: "*".into(),
        issuer: None,
    };
    let configure = move |config: &mut Config| (config.auth, config.allow) = (auth, vec![all]);
    let node = site.builder("a", None).http("127.0.0.1:0").configure(configure).start().await.unwrap();
    let door = node.http_address().unwrap();
    (node, door)
}

async fn ask(door: &str, header: &str) -> u16 {
    post(door, "/counter/x/place", &[header], "{}").await.status
}

#[tokio::test(flavor = "multi_thread")]
async fn a_token_of_the_issuer_is_taken_and_every_other_is_not() {
    let site = Site::new("music");
    let (signer, other) = (Signer::new("one"), Signer::new("one"));
    let file = site.folder.path().join("jwks.json");
    write(&file, &Signer::keys(&[&signer]));
    let (node, door) = guarded(&site, file.display().to_string()).await;
    for (header, status) in [
        (signer.header("ES256", &json!({})), 200),
        (signer.header("ES256", &json!({ "roles": ["guest"] })), 403),
        (signer.header("ES256", &json!({ "exp": 1 })), 401),
        (signer.header("ES256", &json!({ "aud": "elsewhere" })), 401),
        (signer.header("ES256", &json!({ "iss": "https://elsewhere" })), 401),
        (signer.header("none", &json!({})), 401),
        (signer.header("HS256", &json!({})), 401),
        (other.header("ES256", &json!({})), 401),
        (Signer::new("two").header("ES256", &json!({})), 401),
        ("authorization: Bearer a.b.c".to_owned(), 401),
        ("x: y".to_owned(), 401),
    ] {
        assert_eq!(ask(&door, &header).await, status, "{header}");
    }
    // New keys in the file are taken up, and the old one is worth nothing then.
    let next = Signer::new("two");
    write(&file, &Signer::keys(&[&next]));
    let until = std::time::Instant::now() + Duration::from_secs(10);
    while ask(&door, &next.header("ES256", &json!({}))).await != 200 {
        assert!(std::time::Instant::now() < until, "the new key is not taken");
        tokio::time::sleep(Duration::from_millis(10)).await;
    }
    assert_eq!(ask(&door, &signer.header("ES256", &json!({}))).await, 401);
    node.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_stream_ends_when_its_token_expires() {
    let site = Site::new("music");
    let signer = Signer::new("one");
    let file = site.folder.path().join("jwks.json");
    write(&file, &Signer::keys(&[&signer]));
    let (node, door) = guarded(&site, file.display().to_string()).await;
    let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap().as_secs();
    // Taken for as long as clocks may differ, which is 30 s.
    let header = signer.header("ES256", &json!({ "exp": now - 27 }));
    let mut watching = Watching::open(&door, "GET", "/topics/prices", &header).await;
    assert_eq!(watching.status().await, 200);
    assert_eq!(post(&door, "/topics/prices", &[&header], "7").await.status, 200);
    watching.until("data: 7\n\n").await;
    let problem = watching.problem().await;
    assert_eq!(problem["type"], "/-/problems/unauthenticated");
    assert!(problem["detail"].as_str().unwrap().contains("the token has expired"), "{problem}");
    node.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn one_name_of_two_issuers_is_two_callers() {
    let site = Site::new("music");
    let signer = Signer::new("one");
    let (keys, tokens) = (site.folder.path().join("jwks.json"), site.folder.path().join("tokens.toml"));
    write(&keys, &Signer::keys(&[&signer]));
    write(&tokens, &door::tokens(&[("ada", "user", "ada-0123456789abcdef")]));
    let issuer = |more: Value| {
        let mut issuer = json!({ "issuer": "https://id", "audience": "greenroom", "keys": keys.display().to_string() });
        issuer.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
        serde_json::from_value::<Issuer>(issuer).unwrap()
    };
    let start = async |more: Value, issuer_of_rule: Option<&str>| {
        let auth = Auth { tokens: Some(tokens.clone()), jwt: vec![issuer(more)], ..Auth::default() };
        let named =
            Rule { issuer: issuer_of_rule.map(str::to_owned), ..door::rule(&["*"], "counter", &["*"], "{name}") };
        let configure = move |config: &mut Config| (config.auth, config.allow) = (auth, vec![named]);
        site.builder("a", None).http("127.0.0.1:0").configure(configure).start().await
    };
    let refused = start(json!({}), None).await.map(drop).expect_err("one name may be two callers").to_string();
    assert!(refused.contains("rule 1") && refused.contains("`issuer`"), "{refused}");
    let [theirs, admin] = [json!(["user"]), json!(["viewer", "operator", "admin"])]
        .map(|roles| signer.header("ES256", &json!({ "roles": roles })));
    for (more, issuer, own, jwt, may_drain) in [
        (json!({}), "own", 200, 403, 403),
        (json!({ "may_give": ["user"] }), "https://id", 403, 200, 403),
        (json!({ "may_give": ["admin"] }), "own", 200, 403, 200),
    ] {
        let node = start(more.clone(), Some(issuer)).await.unwrap();
        let door = node.http_address().unwrap();
        let ask = async |header: &str| post(&door, "/counter/ada/place", &[header], "{}").await.status;
        assert_eq!((ask(door::ADA).await, ask(&theirs).await), (own, jwt), "{issuer}");
        let status = client::get(&door, "/-/status", &[&admin]).await;
        assert_eq!(status.status, may_drain, "{more}: {status:?}");
        assert_eq!(status.body.contains("`may_give`"), may_drain == 403, "{status:?}");
        node.stop().await;
    }
}

/// Serves what `keys` says at a loopback address, and counts how often it was asked.
async fn serve(keys: String, asked: Arc<AtomicU64>) -> String {
    let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = listener.local_addr().unwrap();
    tokio::spawn(async move {
        loop {
            let (mut stream, _) = listener.accept().await.unwrap();
            let mut request = [0; 2048];
            let _ = stream.read(&mut request).await;
            asked.fetch_add(1, Ordering::Relaxed);
            let answer = format!("HTTP/1.1 200 OK\r\ncontent-length: {}\r\n\r\n{keys}", keys.len());
            let _ = stream.write_all(answer.as_bytes()).await;
        }
    });
    format!("http://{address}/jwks.json")
}

#[tokio::test(flavor = "multi_thread")]
async fn keys_are_fetched_and_strangers_cannot_have_them_fetched_at_will() {
    let site = Site::new("music");
    let signer = Signer::new("one");
    let asked = Arc::new(AtomicU64::new(0));
    let url = serve(Signer::keys(&[&signer]), asked.clone()).await;
    let (node, door) = guarded(&site, url).await;
    let until = std::time::Instant::now() + Duration::from_secs(10);
    while ask(&door, &signer.header("ES256", &json!({}))).await != 200 {
        assert!(std::time::Instant::now() < until, "the keys were not fetched");
        tokio::time::sleep(Duration::from_millis(10)).await;
    }
    let before = asked.load(Ordering::Relaxed);
    assert!(before <= 2, "{before}");
    for _ in 0..50 {
        assert_eq!(ask(&door, &Signer::new("unknown").header("ES256", &json!({}))).await, 401);
    }
    assert_eq!(asked.load(Ordering::Relaxed), before, "each unknown key has the issuer asked");
    node.stop().await;
}
