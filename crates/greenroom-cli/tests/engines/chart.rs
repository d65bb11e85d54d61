//! What the Helm chart of `deploy/chart` renders, before a real API server: the server takes it, and nodes with its rights and its
//! environment form a cluster. `cargo xtask chart` keeps the renders what the chart says.

use std::collections::BTreeMap;
use std::fs;
use std::io::{BufRead, BufReader};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Output, Stdio};
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::time::Duration;

use greenroom_engines::{KubeApiserver, unless_missing};
use tempfile::TempDir;

const PROGRAM: &str = env!("CARGO_BIN_EXE_greenroom");

#[test]
fn an_api_server_takes_all_that_the_chart_renders() {
    let Some(server) = unless_missing(KubeApiserver::start()) else { return };
    let cluster = Cluster::with_records(&server);
    let mut taken = BTreeMap::new();
    cluster.namespace("states");
    for render in ["apart", "geo", "insecure", "own-program", "production", "secrets", "small"] {
        for (kind, yaml) in objects(render) {
            let named = yaml.lines().find_map(|line| line.strip_prefix("  namespace: "));
            let Some(path) = path(&kind, named.unwrap_or(NAMESPACE)) else {
                assert!(FOREIGN.contains(&kind.as_str()), "{kind} has no path here");
                continue;
            };
            let asked = cluster.server.create(&format!("{path}?dryRun=All&fieldValidation=Strict"), &yaml);
            asked.unwrap_or_else(|error| panic!("{render}: {kind}: {error}"));
            *taken.entry(kind).or_insert(0) += 1;
        }
    }
    assert_eq!(taken.len(), PATHS.len(), "each kind was asked about: {taken:?}");
}

#[test]
fn a_misspelt_field_of_a_render_is_refused() {
    let Some(server) = unless_missing(KubeApiserver::start()) else { return };
    let cluster = Cluster::with_records(&server);
    let (_, yaml) = objects("insecure").into_iter().find(|(kind, _)| kind == "Deployment").expect("it has nodes");
    let path = path("Deployment", NAMESPACE).expect("it has a path") + "?dryRun=All&fieldValidation=Strict";
    let misspelt = yaml.replace("periodSeconds", "periodSecond");
    let refused = cluster.server.create(&path, &misspelt).expect_err("it is no field").to_string();
    assert!(refused.contains("unknown field") && refused.contains("periodSecond"), "{refused}");
}

#[test]
fn nodes_with_the_charts_rights_and_environment_lose_no_call_when_one_is_told_to_stop() {
    let Some(server) = unless_missing(KubeApiserver::start()) else { return };
    let cluster = Cluster::with_records(&server);
    let account = cluster.account(NAMESPACE, |role| role);
    let mut pods = ["pod-a", "pod-b", "pod-c"].map(|name| Pod::start(name, "insecure", &account, None));
    for pod in &pods {
        assert!(greenroom_engines::wait_until(PATIENCE, || pod.is_ready()), "{} is ready", pod.door);
    }

    let (over, calls) = (AtomicBool::new(false), AtomicUsize::new(0));
    let doors: Vec<_> = pods.iter().map(|pod| pod.door.clone()).collect();
    let failed = std::thread::scope(|scope| {
        let caller = scope.spawn(|| {
            // As a Service: whoever has said lately that it is ready.
            let mut failed = Vec::new();
            let mut round = 0;
            while !over.load(Ordering::Relaxed) {
                let ready: Vec<_> = doors.iter().filter(|door| is_ready(door)).collect();
                for _ in 0..20 {
                    let Some(door) = ready.get(round % ready.len().max(1)) else { break };
                    round += 1;
                    let room = format!("{door}/chat_room/room-{}/post", round % 50);
                    match ureq::post(&room).send(r#"{"user":"ada","text":"hi"}"#) {
                        Ok(_) => _ = calls.fetch_add(1, Ordering::Relaxed),
                        Err(error) => failed.push(format!("{room}: {error}")),
                    }
                }
            }
            failed
        });
        let wait_for = |count: usize| {
            let from = calls.load(Ordering::Relaxed);
            greenroom_engines::wait_until(PATIENCE, || {
                caller.is_finished() || calls.load(Ordering::Relaxed) >= from + count
            });
        };
        wait_for(200);
        let ended = pods[1].terminate();
        assert!(ended.success(), "a node that was told to stop ends well: {ended}");
        wait_for(200);
        over.store(true, Ordering::Relaxed);
        caller.join().expect("the caller does not panic")
    });
    assert!(failed.is_empty(), "{} of {} calls failed: {failed:?}", failed.len(), calls.load(Ordering::Relaxed));
    assert!(calls.load(Ordering::Relaxed) >= 400);
}

#[test]
fn nodes_with_the_charts_secrets_form_a_cluster_by_tls_and_answer_who_has_a_token() {
    let Some(server) = unless_missing(KubeApiserver::start()) else { return };
    let cluster = Cluster::with_records(&server);
    let account = cluster.account(NAMESPACE, |role| role);
    let secrets = Secrets::make();
    let pods = ["pod-a", "pod-b", "pod-c"].map(|name| Pod::start(name, "secrets", &account, Some(&secrets)));
    for pod in &pods {
        assert!(pod.door.starts_with("https://"), "{}", pod.door);
        let is_ready = || secrets.ask(&["ready"], &pod.door).status.success();
        assert!(greenroom_engines::wait_until(PATIENCE, is_ready), "{} is ready", pod.door);
    }
    let [first, second, third] = pods.each_ref().map(|pod| pod.door.as_str());
    let all = || text(&secrets.ask(&["status"], third).stdout).matches(" active").count() == pods.len();
    assert!(greenroom_engines::wait_until(PATIENCE, all), "{}", text(&secrets.ask(&["status"], third).stdout));
    // Rooms are on all nodes, so that calls go from node to node.
    for room in (0..30).map(|number| format!("chat_room/room-{number}")) {
        let posted = secrets.ask(&["call", &room, "post", r#"{"user":"ada","text":"hello"}"#], first);
        assert!(posted.status.success(), "{}", text(&posted.stderr));
        let read = secrets.ask(&["call", &room, "read"], second);
        assert!(text(&read.stdout).contains("hello"), "{}{}", text(&read.stdout), text(&read.stderr));
    }
    let without = Secrets { token: None, ..secrets };
    let refused = without.ask(&["call", "chat_room/lobby", "read"], first);
    assert!(text(&refused.stderr).contains("this takes credentials"), "{}", text(&refused.stderr));
    let stranger = Secrets::make();
    let refused = stranger.ask(&["ready"], first);
    assert!(text(&refused.stderr).contains("certificate"), "another authority's: {}", text(&refused.stderr));
}

#[test]
fn each_verb_of_the_charts_role_is_needed_and_missed_by_its_name() {
    let Some(server) = unless_missing(KubeApiserver::start()) else { return };
    let cluster = Cluster::with_records(&server);
    let all = "verbs: [get, list, create, update, delete]";
    for verb in ["get", "list", "create", "update", "delete"] {
        let namespace = format!("without-{verb}");
        let account = cluster.account(&namespace, |role| {
            assert!(role.contains(all), "{role}");
            role.replace(all, &all.replace(&format!("{verb}, "), "").replace(&format!(", {verb}"), ""))
        });
        let said: Vec<_> = [&["put", "a", "1"][..], &["put", "a", "2"], &["get", "a"], &["list"], &["delete", "a"]]
            .into_iter()
            .map(|words| account.state(&namespace, words))
            .collect();
        let named = format!("cannot {verb} resource");
        let missed = said.iter().any(|output| !output.status.success() && text(&output.stderr).contains(&named));
        assert!(missed, "nobody misses `{verb}`: {said:?}");
    }
    let account = cluster.account("complete", |role| role);
    for words in [&["put", "a", "1"][..], &["put", "a", "2"], &["get", "a"], &["list"], &["delete", "a"]] {
        let output = account.state("complete", words);
        assert!(output.status.success(), "{words:?}: {}", text(&output.stderr));
    }
}

/// An API server that knows the chart's resource, with the namespace of the renders.
struct Cluster<'a> {
    server: &'a KubeApiserver,
    folder: TempDir,
}

impl<'a> Cluster<'a> {
    fn with_records(server: &'a KubeApiserver) -> Self {
        let records = fs::read_to_string(chart().join("crds/greenroomrecords.yaml")).expect("the chart has it");
        let path = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions";
        server.create(path, &records).expect("it is taken");
        let cluster = Self { server, folder: TempDir::new().expect("a folder") };
        cluster.namespace(NAMESPACE);
        assert!(server.wait_for(&format!("/apis/greenroom.dev/v1/namespaces/{NAMESPACE}/greenroomrecords")));
        cluster
    }

    fn namespace(&self, name: &str) {
        let yaml = format!("apiVersion: v1\nkind: Namespace\nmetadata: {{ name: {name} }}\n");
        self.server.create("/api/v1/namespaces", &yaml).expect("a namespace");
    }

    /// The rendered service account in `namespace`, its role changed by `edit`, as a kubeconfig with its token.
    fn account(&self, namespace: &str, edit: impl Fn(String) -> String) -> Account {
        if namespace != NAMESPACE {
            self.namespace(namespace);
        }
        let own = format!("namespace: {NAMESPACE}");
        for (kind, yaml) in objects("insecure") {
            if let "ServiceAccount" | "Role" | "RoleBinding" = kind.as_str() {
                let yaml = yaml.replace(&own, &format!("namespace: {namespace}"));
                let yaml = if kind == "Role" { edit(yaml) } else { yaml };
                self.server.create(&path(&kind, namespace).expect("it has a path"), &yaml).expect("it is taken");
            }
        }
        let path = format!("/api/v1/namespaces/{namespace}/serviceaccounts/shop-greenroom/token");
        let request = "apiVersion: authentication.k8s.io/v1\nkind: TokenRequest\nspec: { expirationSeconds: 3600 }\n";
        let answer = self.server.create(&path, request).expect("a token");
        let body = answer.split_once("\r\n\r\n").expect("a body").1;
        let token = serde_json::from_str::<serde_json::Value>(body).expect("JSON")["status"]["token"].clone();
        let limited = self.server.kubeconfig(KubeApiserver::LIMITED).expect("a kubeconfig");
        let text = fs::read_to_string(limited).expect("it was written");
        let text = text.replace(KubeApiserver::LIMITED, token.as_str().expect("a token"));
        let kubeconfig = self.folder.path().join(format!("{namespace}.kubeconfig"));
        fs::write(&kubeconfig, text).expect("it can be written");
        Account { kubeconfig }
    }
}

/// Who has a service account's token.
struct Account {
    kubeconfig: PathBuf,
}

impl Account {
    /// What `greenroom state` does with the store of `namespace`.
    fn state(&self, namespace: &str, words: &[&str]) -> Output {
        let mut command = Command::new(PROGRAM);
        command.arg("state").args(words).args(["--store", &format!("kube:{namespace}")]);
        command.env("KUBECONFIG", &self.kubeconfig).stdin(Stdio::null()).output().expect("it starts")
    }
}

/// What the secrets of the chart's values hold, as files where they are mounted.
struct Secrets {
    folder: TempDir,
    token: Option<PathBuf>,
}

impl Secrets {
    /// A certificate for any node of the cluster, as cert-manager would issue it, and somebody's token.
    fn make() -> Self {
        let folder = TempDir::new().expect("a folder");
        let run = |words: &[&str]| {
            let mut command = Command::new(PROGRAM);
            let output = command.args(words).current_dir(&folder).stdin(Stdio::null()).output().expect("it starts");
            assert!(output.status.success(), "{words:?}: {}", text(&output.stderr));
            output.stdout
        };
        run(&["certs", "ca", "tls", "--cluster", "shop"]);
        run(&["certs", "node", "tls", "--host", "shop-greenroom.games.svc"]);
        for (file, key) in [("ca.pem", "ca.crt"), ("node.pem", "tls.crt"), ("node.key", "tls.key")] {
            fs::rename(folder.path().join("tls").join(file), folder.path().join("tls").join(key)).expect("it is there");
        }
        fs::create_dir(folder.path().join("tokens")).expect("a folder");
        let token = folder.path().join("ada.token");
        let said = run(&["token", "ada", "--role", "admin", "--file", "tokens/tokens.toml"]);
        fs::write(&token, said).expect("it can be written");
        Self { folder, token: Some(token) }
    }

    fn path(&self) -> String {
        self.folder.path().display().to_string()
    }

    /// What the program says that trusts this authority and shows the token.
    fn ask(&self, words: &[&str], door: &str) -> Output {
        let mut command = Command::new(PROGRAM);
        command.args(words).args(["--node", door, "--ca"]).arg(self.folder.path().join("tls/ca.crt"));
        if let Some(token) = &self.token {
            command.arg("--token-file").arg(token);
        }
        command.stdin(Stdio::null()).output().expect("it starts")
    }
}

/// A node with what a render gives its container, on free ports of this machine.
struct Pod {
    child: Child,
    door: String,
    _files: TempDir,
}

impl Pod {
    fn start(name: &str, render: &str, account: &Account, secrets: Option<&Secrets>) -> Self {
        let files = TempDir::new().expect("a folder");
        let objects = objects(render);
        let of = |kind: &str| &objects.iter().find(|(found, _)| found == kind).expect("it is rendered").1;
        let config = files.path().join("node.toml");
        let (_, text) = of("ConfigMap").split_once("node.toml: |\n").expect("it has the file");
        fs::write(&config, text.lines().map(|line| line.trim_start().to_owned() + "\n").collect::<String>())
            .expect("it can be written");
        let mut command = Command::new(PROGRAM);
        command.arg("node").stdin(Stdio::null()).stdout(Stdio::piped()).env("KUBECONFIG", &account.kubeconfig);
        for (variable, value) in environment(of("Deployment")) {
            // Pods have addresses of their own, and these three have one.
            let value = value.replace("$(POD_IP)", "127.0.0.1").replace(":7000", ":0").replace(":7070", ":0");
            let mounted = secrets.map(|secrets| value.replace("/etc/greenroom", &secrets.path()));
            command.env(variable, mounted.unwrap_or(value));
        }
        command.env("GREENROOM_NAME", name).env("GREENROOM_CONFIG", &config);
        let mut child = command.spawn().expect("the program starts");
        let lines = BufReader::new(child.stdout.take().expect("it is piped")).lines();
        let line = lines.map_while(Result::ok).find(|line| line.contains("HTTP door")).expect("it joins its cluster");
        let (_, door) = line.trim().rsplit_once(' ').expect("it says where");
        let door = door.replace("0.0.0.0", "127.0.0.1");
        Self { child, door, _files: files }
    }

    fn is_ready(&self) -> bool {
        is_ready(&self.door)
    }

    /// What becomes of it after SIGTERM.
    fn terminate(&mut self) -> std::process::ExitStatus {
        // SAFETY: a signal to a child that was not waited for.
        unsafe { libc::kill(i32::try_from(self.child.id()).expect("a process id"), libc::SIGTERM) };
        self.child.wait().expect("it was started here")
    }
}

impl Drop for Pod {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

fn is_ready(door: &str) -> bool {
    ureq::get(format!("{door}/readyz")).call().is_ok()
}

/// The objects of a render, by kind.
fn objects(render: &str) -> Vec<(String, String)> {
    let text = fs::read_to_string(chart().join(format!("renders/{render}.yaml"))).expect("it is in the repository");
    let documents = text.split("---\n").filter(|document| document.contains("kind:"));
    let kind = |document: &str| document.lines().find_map(|line| line.strip_prefix("kind: ")).map(str::to_owned);
    documents.map(|document| (kind(document).expect("it is an object"), document.to_owned())).collect()
}

/// The variables of a rendered container that have values.
fn environment(deployment: &str) -> Vec<(String, String)> {
    let lines: Vec<_> = deployment.lines().map(str::trim).collect();
    let pairs =
        lines.windows(2).filter_map(|pair| Some((pair[0].strip_prefix("- name: ")?, pair[1].strip_prefix("value: ")?)));
    pairs.map(|(name, value)| (name.to_owned(), value.trim_matches('"').to_owned())).collect()
}

fn path(kind: &str, namespace: &str) -> Option<String> {
    let (_, group, plural) = PATHS.iter().find(|(found, ..)| *found == kind)?;
    Some(format!("/{group}/namespaces/{namespace}/{plural}"))
}

fn chart() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../deploy/chart")
}

fn text(bytes: &[u8]) -> String {
    String::from_utf8_lossy(bytes).into_owned()
}

/// Where the renders are at home.
const NAMESPACE: &str = "games";

const PATHS: &[(&str, &str, &str)] = &[
    ("ConfigMap", "api/v1", "configmaps"),
    ("Deployment", "apis/apps/v1", "deployments"),
    ("HorizontalPodAutoscaler", "apis/autoscaling/v2", "horizontalpodautoscalers"),
    ("NetworkPolicy", "apis/networking.k8s.io/v1", "networkpolicies"),
    ("PodDisruptionBudget", "apis/policy/v1", "poddisruptionbudgets"),
    ("Role", "apis/rbac.authorization.k8s.io/v1", "roles"),
    ("RoleBinding", "apis/rbac.authorization.k8s.io/v1", "rolebindings"),
    ("Service", "api/v1", "services"),
    ("ServiceAccount", "api/v1", "serviceaccounts"),
];

/// Kinds of cert-manager and of the Prometheus operator, which a bare API server does not know.
const FOREIGN: &[&str] = &["Certificate", "ServiceMonitor"];

/// Far beyond what is waited for on a busy machine.
const PATIENCE: Duration = Duration::from_secs(90);
