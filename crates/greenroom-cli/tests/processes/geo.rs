//! Two clusters of real processes, of one node each, configured by files.

use std::net::TcpListener;
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use greenroom_engines::Process;
use serde_json::Value;

use crate::alone;

struct Site {
    name: &'static str,
    door: String,
    process: Process,
}

impl Site {
    fn start(name: &'static str, gateways: &[(&str, String)], directory: &std::path::Path) -> Self {
        let own = gateways.iter().find(|(cluster, _)| *cluster == name).map(|(_, gateway)| gateway).expect("it is one");
        let mut file = format!("cluster = \"{name}\"\n[geo]\ngateway = \"{own}\"\nlook_again_every = 2\n");
        for (cluster, gateway) in gateways {
            file += &format!("[geo.clusters.{cluster}]\ngateways = [\"{gateway}\"]\n");
        }
        let path = directory.join(format!("{name}.toml"));
        std::fs::write(&path, file).expect("the folder takes a file");
        let door = free_address();
        let mut command = Command::new(env!("CARGO_BIN_EXE_greenroom"));
        command.args(["node", "--name", name, "--http", &door, "--shards", "1", "--kinds", "counter", "--config"]);
        command.arg(path).stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null());
        Self { name, door, process: Process::start("a node", command).expect("the program starts") }
    }

    /// What a method of a counter answers, as soon as one is had.
    fn ask(&self, key: &str, method: &str, arguments: &str) -> Value {
        let config = ureq::Agent::config_builder().timeout_global(Some(Duration::from_secs(10)));
        let agent: ureq::Agent = config.http_status_as_error(false).build().into();
        let until = Instant::now() + PATIENCE;
        loop {
            let asked = agent.post(format!("http://{}/counter/{key}/{method}", self.door)).send(arguments);
            let said = match asked {
                Ok(mut answer) if answer.status() == 200 => {
                    let body = answer.body_mut().read_to_string().expect("an answer has a body");
                    return serde_json::from_str(&body).expect("it is JSON");
                }
                Ok(mut answer) => answer.body_mut().read_to_string().unwrap_or_default(),
                Err(error) => error.to_string(),
            };
            assert!(Instant::now() < until, "{} does not answer: {said}", self.name);
            std::thread::sleep(Duration::from_millis(100));
        }
    }

    /// What `greenroom clusters` says of the node.
    fn clusters(&self, action: &[&str]) -> String {
        let mut command = Command::new(env!("CARGO_BIN_EXE_greenroom"));
        let said = command.arg("clusters").args(action).args(["--node", &self.door]).output().expect("it runs");
        format!("{}{}", String::from_utf8_lossy(&said.stdout), String::from_utf8_lossy(&said.stderr))
    }

    /// Waits until `greenroom clusters status` says `text`.
    fn says(&self, text: &str) {
        let until = Instant::now() + PATIENCE;
        loop {
            let said = self.clusters(&["status"]);
            if said.contains(text) {
                return;
            }
            assert!(Instant::now() < until, "{} does not say {text:?}: {said}", self.name);
            std::thread::sleep(Duration::from_millis(100));
        }
    }
}

#[test]
fn an_actor_is_one_over_two_clusters_of_processes() {
    let _alone = alone();
    let directory = tempfile::tempdir().expect("a temporary directory");
    let gateways = ["eu", "us"].map(|name| (name, free_address()));
    let mut eu = Site::start("eu", &gateways, directory.path());
    let us = Site::start("us", &gateways, directory.path());
    eu.says("answers");
    us.says("answers");
    assert_eq!(eu.ask("shared", "add", r#"{"amount": 1}"#), 1);
    assert_eq!(us.ask("shared", "add", r#"{"amount": 1}"#), 2);
    assert_eq!([&eu, &us].map(|site| site.ask("shared", "node", "{}")), ["eu", "eu"]);
    assert!(us.clusters(&["list"]).contains(&gateways[0].1));
    assert!(us.clusters(&["drain", "us"]).contains("cluster \"eu\""), "changes are made where the first cluster is");

    eu.process.kill();
    us.says("does not answer");
    assert_eq!(us.ask("shared", "node", "{}"), "us", "it goes on where it is called");
}

#[test]
fn a_drained_cluster_gives_up_what_it_has_and_leaves() {
    let _alone = alone();
    let directory = tempfile::tempdir().expect("a temporary directory");
    let gateways = ["eu", "us"].map(|name| (name, free_address()));
    let eu = Site::start("eu", &gateways, directory.path());
    let us = Site::start("us", &gateways, directory.path());
    us.says("answers");
    assert_eq!(us.ask("mover", "node", "{}"), "us");
    eu.says("us               list 1, answers");
    assert!(eu.clusters(&["remove", "us"]).contains("is not draining"));
    assert!(eu.clusters(&["drain", "us"]).contains("list 2"));
    eu.says("us               list 2, empty, answers");
    assert_eq!(eu.ask("mover", "node", "{}"), "eu");
    assert!(eu.clusters(&["remove", "us"]).contains("list 3"));
    assert!(!eu.clusters(&["list"]).contains("us "));
}

fn free_address() -> String {
    let listener = TcpListener::bind("127.0.0.1:0").expect("a free port");
    listener.local_addr().expect("it is bound").to_string()
}

/// Time for what comes by itself.
const PATIENCE: Duration = Duration::from_secs(60);
