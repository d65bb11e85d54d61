//! Each sort of actor at both endpoints of a node: same answers, same rules.

use bytes::Bytes;
use greenroom::prelude::*;
use greenroom::{Builder, Rule};
use greenroom_grpc::v1::call_reply::Value;
use http_body_util::{BodyExt, Full};
use hyper::client::conn::http1;
use hyper_util::rt::TokioIo;
use serde::{Deserialize, Serialize};
use tokio::net::TcpStream;
use tonic::Code;

use crate::site::{builder, call, failed, open, with};

#[derive(Default, Serialize, Deserialize, Actor)]
struct SavedSum {
    total: u64,
}

#[actor(persistent, save = "turn", kind = "saved_sum")]
impl SavedSum {
    pub async fn add(&mut self, more: u64) -> u64 {
        self.total += more;
        self.total
    }
}

#[derive(Default, Clone, Serialize, Deserialize)]
struct Total {
    total: u64,
}

impl VersionedState for Total {
    type Update = u64;

    fn apply(&mut self, more: &u64) {
        self.total += more;
    }
}

#[derive(Default, Actor)]
struct VersionedSum {
    state: Versioned<Total>,
}

#[actor(kind = "versioned_sum")]
impl VersionedSum {
    #[update]
    pub async fn add(&self, more: u64) -> Result<u64, StateError> {
        self.state.enqueue(more);
        self.state.confirm_updates().await?;
        Ok(self.state.confirmed().0.total)
    }
}

#[derive(Default, Actor)]
struct MachineSum {
    total: Register<u64>,
}

#[actor(reliable, start = "Open", kind = "machine_sum")]
impl MachineSum {
    #[on(add, state = "Open", defer = "Shut")]
    async fn add(&mut self, more: u64) -> u64 {
        *self.total.get_mut() += more;
        *self.total.get()
    }

    #[on(shut, state = "Open")]
    async fn shut(&mut self, cx: &Cx) {
        cx.jump("Shut");
    }
}

/// Adds to a sum that its callers share.
#[derive(Default, Actor)]
struct Adder;

#[actor(workers = 2, kind = "adder")]
impl Adder {
    pub async fn add(&mut self, cx: &Cx, more: u64) -> Result<u64, String> {
        SavedSumRef::of(cx, format!("of {}", cx.key())).add(more).await.map_err(|error| error.to_string())
    }
}

struct SpawnedSum {
    total: u64,
}

impl Actor for SpawnedSum {}

#[actor(kind = "spawned_sum")]
impl SpawnedSum {
    pub async fn add(&mut self, more: u64) -> u64 {
        self.total += more;
        self.total
    }
}

/// Kinds of which each has a method `add` that returns the new total.
const SORTS: [&str; 5] = ["saved_sum", "versioned_sum", "machine_sum", "adder", "spawned_sum"];

fn sorts() -> Builder {
    let registered = builder().register::<SavedSum>().register::<VersionedSum>().register::<MachineSum>();
    registered.register::<Adder>().register::<SpawnedSum>().configure(|config| config.http = Some("127.0.0.1:0".into()))
}

/// Posts to the HTTP endpoint; the status and the body of its answer.
async fn post(node: &Node, kind: &str, key: &str, token: &str) -> (u16, String) {
    let address = node.http_address().expect("it has an HTTP endpoint");
    let stream = TcpStream::connect(&address).await.expect("it connects");
    let (mut sender, connection) = http1::handshake(TokioIo::new(stream)).await.expect("it greets");
    tokio::spawn(connection);
    let request = http::Request::post(format!("/{kind}/{key}/add")).header("host", address.to_string());
    let request = request.header("content-type", "application/json").header("authorization", token);
    let request = request.body(Full::new(Bytes::from_static(br#"{"more": 2}"#))).expect("it is a request");
    let answer = sender.send_request(request).await.expect("it is answered");
    let status = answer.status().as_u16();
    let body = answer.into_body().collect().await.expect("it has a body").to_bytes();
    (status, String::from_utf8_lossy(&body).into_owned())
}

#[tokio::test]
async fn each_sort_of_actor_answers_at_both_endpoints_and_obeys_the_rules_for_its_kind() {
    let folder = tempfile::tempdir().expect("there is room");
    let tokens = folder.path().join("tokens.toml");
    let token = |name: &str, role: &str| {
        format!("[[token]]\nname = {name:?}\nroles = [{role:?}]\ntoken = \"{name}-0123456789abcdef\"\n")
    };
    std::fs::write(&tokens, token("ada", "user") + &token("bob", "guest")).expect("there is room");
    let rule = |kind: &str| Rule {
        roles: vec!["user".into()],
        kind: kind.into(),
        methods: vec!["add".into()],
        keys: "*".into(),
        issuer: None,
    };
    let guarded = sorts().configure(|config| {
        config.auth.tokens = Some(tokens);
        config.allow = SORTS.map(rule).to_vec();
    });
    let (node, mut client) = open(guarded).await;
    let spawned = node.spawn(SpawnedSum { total: 0 }).await.expect("it is spawned");
    for kind in SORTS {
        let key = if kind == "spawned_sum" { spawned.key().to_string() } else { "x".to_owned() };
        let request = || call(kind, &key, "add", r#"{"more": 2}"#);
        let (code, problem) = failed(client.call(with(request(), "authorization", BOB)).await);
        assert_eq!((code, problem.may_have_run), (Code::PermissionDenied, false), "{kind}");
        assert_eq!(post(&node, kind, &key, BOB).await.0, 403, "{kind}");
        let reply =
            client.call(with(request(), "authorization", ADA)).await.unwrap_or_else(|error| panic!("{kind}: {error}"));
        assert_eq!(reply.into_inner().value, Some(Value::Json("2".into())), "{kind}");
        assert_eq!(post(&node, kind, &key, ADA).await, (200, "4".to_owned()), "{kind}");
    }
    let shut = with(call("machine_sum", "x", "shut", ""), "authorization", ADA);
    assert_eq!(failed(client.call(shut).await).0, Code::PermissionDenied, "its method is not allowed");
}

const ADA: &str = "Bearer ada-0123456789abcdef";
const BOB: &str = "Bearer bob-0123456789abcdef";
