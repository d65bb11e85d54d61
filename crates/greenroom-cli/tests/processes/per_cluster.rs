//! Reliable kinds in a multi-cluster of real processes: each cluster has actors of its own, and the configuration must say so.

use std::process::{Command, Output, Stdio};
use std::time::{Duration, Instant};

use greenroom_engines::{Process, free_address};

use crate::alone;

/// A node of one of two clusters that hosts wallets.
struct WalletNode {
    door: String,
    _process: Process,
}

const PROGRAM: &str = env!("CARGO_BIN_EXE_greenroom");
const PATIENCE: Duration = Duration::from_secs(60);
const DECLARED: &str = "[geo.kinds.wallet]\ninstances = \"per_cluster\"\n";

/// The configuration of a node of cluster `name`, with a journal of that cluster's own.
fn configured(name: &str, gateways: &[(&str, String); 2], directory: &std::path::Path, kinds: &str) -> String {
    let own = gateways.iter().find(|(cluster, _)| *cluster == name).map(|(_, gateway)| gateway).expect("it is one");
    let journal = directory.join(format!("{name}-journal.db"));
    let mut file = format!("cluster = \"{name}\"\n[reliable]\njournal = \"sqlite:{}\"\n", journal.display());
    let table = directory.join(format!("{name}-table.db"));
    file = format!("table = \"sqlite:{}\"\n{file}", table.display());
    file += &format!("partitions = 4\n[geo]\ngateway = \"{own}\"\n");
    for (cluster, gateway) in gateways {
        file += &format!("[geo.clusters.{cluster}]\ngateways = [\"{gateway}\"]\n");
    }
    let path = directory.join(format!("{name}.toml"));
    std::fs::write(&path, file + kinds).expect("the folder takes a file");
    path.display().to_string()
}

fn ended(arguments: &[&str]) -> (Output, String) {
    let output = Command::new(PROGRAM).args(arguments).stdin(Stdio::null()).output().expect("it runs");
    let said = String::from_utf8_lossy(&output.stderr).into_owned();
    (output, said)
}

impl WalletNode {
    fn start(file: &str) -> Self {
        let door = free_address();
        let mut command = Command::new(PROGRAM);
        command.args(["node", "--config", file, "--http", &door, "--shards", "1", "--kinds", "wallet"]);
        command.stdin(Stdio::null()).stdout(Stdio::null());
        Self { door, _process: Process::start("a node", command).expect("the program starts") }
    }

    /// Asks for a payment once. Returns the status and the body, or why there is none.
    fn asked_to_pay(&self) -> String {
        let agent: ureq::Agent =
            ureq::Agent::config_builder().timeout_global(Some(PATIENCE)).http_status_as_error(false).build().into();
        let asked = agent.post(format!("http://{}/wallet/ada/pay", self.door)).header("Idempotency-Key", "one");
        match asked.send(r#"{"order": "one", "to": "bob", "amount": 5}"#) {
            Ok(mut answer) => {
                format!("{} {}", answer.status(), answer.body_mut().read_to_string().unwrap_or_default())
            }
            Err(error) => error.to_string(),
        }
    }

    fn pay(&self) {
        let until = Instant::now() + PATIENCE;
        loop {
            let answer = self.asked_to_pay();
            if answer.starts_with("200") {
                return;
            }
            assert!(Instant::now() < until, "it does not pay: {answer}");
            std::thread::sleep(Duration::from_millis(100));
        }
    }

    fn clusters(&self, action: &[&str]) -> String {
        let said = Command::new(PROGRAM).arg("clusters").args(action).args(["--node", &self.door]).output();
        let said = said.expect("it runs");
        format!("{}{}", String::from_utf8_lossy(&said.stdout), String::from_utf8_lossy(&said.stderr))
    }

    /// Makes a change of the list, as soon as the list before it is in force.
    fn changes(&self, action: &[&str], list: &str) {
        let until = Instant::now() + PATIENCE;
        loop {
            let said = self.clusters(action);
            if said.contains(&format!("{list} is made")) {
                return;
            }
            assert!(Instant::now() < until, "it does not {action:?}: {said}");
            std::thread::sleep(Duration::from_millis(100));
        }
    }

    /// Waits until `greenroom clusters status` has such a line of the cluster.
    fn shows(&self, cluster: &str, wanted: impl Fn(&str) -> bool) {
        let until = Instant::now() + PATIENCE;
        loop {
            let said = self.clusters(&["status"]);
            if said.lines().any(|line| line.starts_with(cluster) && wanted(line)) {
                return;
            }
            assert!(Instant::now() < until, "it does not show what is awaited of {cluster}: {said}");
            std::thread::sleep(Duration::from_millis(100));
        }
    }
}

/// A node of each of two clusters that hear each other. The first one makes changes of the list.
fn two_clusters() -> (tempfile::TempDir, [WalletNode; 2]) {
    let directory = tempfile::tempdir().expect("a temporary directory");
    let gateways = ["eu", "us"].map(|name| (name, free_address()));
    let [eu, us] = ["eu", "us"].map(|name| WalletNode::start(&configured(name, &gateways, directory.path(), DECLARED)));
    eu.shows("us", |line| line.contains(", answers"));
    (directory, [eu, us])
}

#[test]
fn a_node_does_not_start_with_a_reliable_kind_that_does_not_declare_one_actor_per_cluster() {
    let directory = tempfile::tempdir().expect("a temporary directory");
    let gateways = ["eu", "us"].map(|name| (name, free_address()));
    let single = "[geo.kinds.wallet]\ninstances = \"single\"\nactivation = \"pessimistic\"\n";
    for (kinds, setting) in [("", "does not declare `instances"), (single, "instances = \"single\"`")] {
        let file = configured("eu", &gateways, directory.path(), kinds);
        for arguments in [&["config", "check", &file][..], &["node", "--config", &file, "--kinds", "wallet"]] {
            let (output, said) = ended(arguments);
            assert_eq!(output.status.code(), Some(1), "{arguments:?}: {output:?}");
            for part in ["\"wallet\" is reliable", setting, "`[geo.kinds.wallet]`", "instances = \"per_cluster\""] {
                assert!(said.contains(part), "{arguments:?}: {part:?} is not in {said}");
            }
        }
        let (output, said) = ended(&["config", "check", "--without-examples", &file]);
        assert_eq!(output.status.code(), Some(0), "a node without that kind may run by it: {said}");
    }
    let file = configured("eu", &gateways, directory.path(), DECLARED);
    let (output, said) = ended(&["config", "check", &file]);
    assert_eq!(output.status.code(), Some(0), "{said}");
}

#[test]
fn a_cluster_is_not_empty_while_its_journal_holds_reliable_actors() {
    let _alone = alone();
    let (_directory, [eu, us]) = two_clusters();
    us.pay();
    eu.changes(&["drain", "us"], "list 2");
    eu.shows("us", |line| line.contains("list 2"));
    let refused = eu.clusters(&["remove", "us"]);
    assert!(refused.contains("its journal holds reliable actors") && refused.contains("remove --lost us"), "{refused}");
    eu.shows("us", |line| !line.contains(", empty") && line.contains(", answers"));
}

#[test]
fn a_cluster_that_is_paid_at_after_its_drain_is_not_removed() {
    let _alone = alone();
    let (_directory, [eu, us]) = two_clusters();
    eu.changes(&["drain", "us"], "list 2");
    let answer = loop {
        let answer = us.asked_to_pay();
        if answer.starts_with("200") || answer.contains("drains") {
            break answer;
        }
        std::thread::sleep(Duration::from_millis(20));
    };
    if !answer.starts_with("200") {
        // It was closed by then, and nothing can be lost.
        return;
    }
    eu.shows("us", |line| line.contains("list 2"));
    for _ in 0..40 {
        let refused = eu.clusters(&["remove", "us"]);
        assert!(!refused.contains("list 3"), "the payment is lost with the cluster: {refused}");
        std::thread::sleep(Duration::from_millis(100));
    }
    eu.shows("us", |line| !line.contains(", empty"));
}

#[test]
fn a_cluster_that_drains_and_holds_nothing_takes_no_payment_and_is_removed() {
    let _alone = alone();
    let (directory, [eu, us]) = two_clusters();
    eu.changes(&["drain", "us"], "list 2");
    eu.shows("us", |line| line.contains("draining, empty"));
    let answer = us.asked_to_pay();
    assert!(answer.contains("503") && answer.contains("drains"), "{answer}");
    // A node that starts again does not open what was closed.
    drop(us);
    let us = WalletNode::start(&directory.path().join("us.toml").display().to_string());
    let until = Instant::now() + PATIENCE;
    loop {
        let answer = us.asked_to_pay();
        assert!(!answer.starts_with("200"), "it takes what the other cluster believes that it does not have: {answer}");
        if answer.contains("drains") {
            break;
        }
        assert!(Instant::now() < until, "it does not say why it refuses: {answer}");
        std::thread::sleep(Duration::from_millis(20));
    }
    eu.changes(&["remove", "us"], "list 3");
}
