//! Clusters whose membership table is in a real engine: `greenroom node --table URL` on each, and `status` when it fails.

use std::io::{BufRead, BufReader};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use greenroom_engines::{Error, Etcd, KubeApiserver, Minio, Postgres, Redis, unless_missing};

const PROGRAM: &str = env!("CARGO_BIN_EXE_greenroom");

/// A node that is killed when the test is over.
struct Node {
    child: Child,
    door: String,
}

impl Node {
    fn start(name: &str, table: &str) -> Self {
        let mut command = Command::new(PROGRAM);
        command.args(["node", "--name", name, "--http", "127.0.0.1:0", "--table", table]).stdin(Stdio::null());
        let mut child = command.stdout(Stdio::piped()).spawn().expect("the program starts");
        let lines = BufReader::new(child.stdout.take().expect("it is piped")).lines();
        let door = lines.map_while(Result::ok).find(|line| line.contains("HTTP door")).expect("it joins its cluster");
        let door = door.rsplit(' ').next().unwrap_or_default().to_owned();
        Self { child, door }
    }

    fn ask(&self, args: &[&str]) -> String {
        let output = Command::new(PROGRAM).args(args).args(["--node", &self.door]).output().expect("it starts");
        String::from_utf8_lossy(&output.stdout).into_owned() + &String::from_utf8_lossy(&output.stderr)
    }

    /// Asks for the status until `wanted` is in it.
    fn status_until(&self, wanted: impl Fn(&str) -> bool) -> String {
        let began = Instant::now();
        loop {
            let status = self.ask(&["status"]);
            if wanted(&status) {
                return status;
            }
            assert!(began.elapsed() < PATIENCE, "it never came to be: {status}");
        }
    }
}

impl Drop for Node {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

fn active(status: &str) -> usize {
    status.lines().filter(|line| line.contains(" active ")).count()
}

/// Two nodes meet in the engine's table, and one calls an actor wherever it is.
fn nodes_meet<E>(started: Result<E, Error>, url: impl Fn(&E) -> String) {
    let Some(engine) = unless_missing(started) else { return };
    let nodes = ["a", "b"].map(|name| Node::start(name, &url(&engine)));
    for node in &nodes {
        let status = node.status_until(|status| active(status) == 2);
        assert!(status.contains("last answered") && !status.contains("FAILS"), "{status}");
    }
    let posted = nodes[0].ask(&["call", "chat_room/lobby", "post", r#"{"user":"ada","text":"hi"}"#]);
    assert_eq!(posted.trim(), "1");
    let read = nodes[1].ask(&["call", "chat_room/lobby", "read"]);
    assert!(read.contains("\"text\":\"hi\""), "{read}");
}

#[test]
fn nodes_meet_in_redis() {
    nodes_meet(Redis::start(), Redis::url);
}

#[test]
fn nodes_meet_in_etcd() {
    nodes_meet(Etcd::start(), Etcd::url);
}

#[test]
fn nodes_meet_in_a_bucket() {
    nodes_meet(Minio::start(), Minio::url);
}

#[test]
fn nodes_meet_in_postgres() {
    nodes_meet(Postgres::start(), Postgres::url);
}

#[test]
fn a_node_tells_when_its_table_fails_and_when_it_is_back() {
    let Some(mut postgres) = unless_missing(Postgres::start()) else { return };
    let node = Node::start("a", &postgres.url());
    node.status_until(|status| active(status) >= 1 && !status.contains("FAILS"));
    postgres.stop_immediate();
    let status = node.status_until(|status| status.contains("FAILS a ("));
    assert!(!status.contains(Postgres::PASSWORD), "{status}");
    postgres.restart().expect("it starts again");
    node.status_until(|status| !status.contains("FAILS"));
}

#[test]
fn nodes_meet_in_kubernetes() {
    let Some(server) = unless_missing(KubeApiserver::start()) else { return };
    server.create("/apis/apiextensions.k8s.io/v1/customresourcedefinitions", CRD).expect("it is valid");
    assert!(server.wait_for("/apis/greenroom.dev/v1/namespaces/default/greenroomrecords"));
    let kubeconfig = server.kubeconfig(KubeApiserver::ADMIN).expect("it is written");
    nodes_meet(Ok(()), |()| format!("kube:default?kubeconfig={}", kubeconfig.display()));
}

#[test]
fn a_table_that_is_not_there_is_named_without_its_password() {
    let mut command = Command::new(PROGRAM);
    let output = command.args(["node", "--table", "postgres://ada:lace@127.0.0.1:1/x"]).output().expect("it starts");
    let said = String::from_utf8_lossy(&output.stderr);
    assert_eq!(output.status.code(), Some(1), "{said}");
    assert!(said.contains("127.0.0.1:1") && !said.contains("lace"), "{said}");
}

/// What the guide tells operators to apply.
const CRD: &str = include_str!("../../../greenroom-store-kube/manifests/crd.yaml");

const PATIENCE: Duration = Duration::from_secs(60);
