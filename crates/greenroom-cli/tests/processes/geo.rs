//! Two clusters of real processes, of one node each, configured by files.

use std::fs::File;
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use greenroom_engines::{Process, free_address};
use serde_json::Value;

use crate::alone;

struct Site {
    name: &'static str,
    door: String,
    process: Process,
    /// What the node says of itself.
    log: std::path::PathBuf,
}

impl Site {
    fn start(name: &'static str, gateways: &[(&str, String)], directory: &std::path::Path) -> Self {
        let own = gateways.iter().find(|(cluster, _)| *cluster == name).map(|(_, gateway)| gateway).expect("it is one");
        let mut file = format!("cluster = \"{name}\"\n[geo]\ngateway = \"{own}\"\nlook_again_every = 2\n");
        for (cluster, gateway) in gateways {
            file += &format!("[geo.clusters.{cluster}]\ngateways = [\"{gateway}\"]\n");
        }
        Self::configured(name, &file, directory)
    }

    /// A node of a cluster whose counters are activated nowhere while a cluster is silent.
    fn pessimistic(name: &'static str, gateways: &[(&str, String)], directory: &std::path::Path) -> Self {
        let own = gateways.iter().find(|(cluster, _)| *cluster == name).map(|(_, gateway)| gateway).expect("it is one");
        let mut file = format!("cluster = \"{name}\"\n[geo]\ngateway = \"{own}\"\nlost_after = 10\n");
        for (cluster, gateway) in gateways {
            file += &format!("[geo.clusters.{cluster}]\ngateways = [\"{gateway}\"]\n");
        }
        Self::configured(name, &(file + "[geo.kinds.counter]\nactivation = \"pessimistic\"\n"), directory)
    }

    /// A node of the cluster `name`, which finds the list of clusters in a store, or puts `listed` there.
    fn with_store(name: &'static str, own: &str, listed: &str, directory: &std::path::Path) -> Self {
        Self::configured(name, &Self::file(name, own, listed, directory), directory)
    }

    fn file(name: &str, own: &str, listed: &str, directory: &std::path::Path) -> String {
        let lists = directory.join("lists.db");
        format!(
            "cluster = \"{name}\"\n[stores]\nlists = \"sqlite:{}\"\n[geo]\ngateway = \"{own}\"\nstore = \"lists\"\n{listed}",
            lists.display()
        )
    }

    fn configured(name: &'static str, file: &str, directory: &std::path::Path) -> Self {
        let path = directory.join(format!("{name}.toml"));
        std::fs::write(&path, file).expect("the folder takes a file");
        let door = free_address();
        let mut command = Command::new(env!("CARGO_BIN_EXE_greenroom"));
        command.args(["node", "--name", name, "--http", &door, "--shards", "1", "--kinds", "counter", "--config"]);
        let log = directory.join(format!("{name}.log"));
        let written = File::options().create(true).append(true).open(&log).expect("the folder takes a file");
        command.arg(path).stdin(Stdio::null()).stdout(Stdio::null()).stderr(written);
        Self { name, door, process: Process::start("a node", command).expect("the program starts"), log }
    }

    /// What a method of a counter answers, asked once.
    fn ask_once(&self, key: &str, method: &str, arguments: &str) -> Result<Value, String> {
        let config = ureq::Agent::config_builder().timeout_global(Some(PATIENCE));
        let agent: ureq::Agent = config.http_status_as_error(false).build().into();
        let asked = agent.post(format!("http://{}/counter/{key}/{method}", self.door)).send(arguments);
        let mut answer = asked.map_err(|error| error.to_string())?;
        let body = answer.body_mut().read_to_string().map_err(|error| error.to_string())?;
        match answer.status().as_u16() {
            200 => Ok(serde_json::from_str(&body).expect("it is JSON")),
            status => Err(format!("{status} {body}")),
        }
    }

    /// What a method of a counter answers, as soon as one is had.
    fn ask(&self, key: &str, method: &str, arguments: &str) -> Value {
        let until = Instant::now() + PATIENCE;
        loop {
            let said = match self.ask_once(key, method, arguments) {
                Ok(answer) => return answer,
                Err(said) => said,
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
        self.shows(text, |said| said.contains(text));
    }

    /// Waits until it hears a cluster, which works by a list.
    fn hears(&self, cluster: &str) {
        let heard = |line: &str| line.starts_with(cluster) && line.contains(", answers") && !line.contains("list 0");
        self.shows(cluster, |said| said.lines().any(heard));
    }

    fn shows(&self, what: &str, shown: impl Fn(&str) -> bool) {
        let until = Instant::now() + PATIENCE;
        loop {
            let said = self.clusters(&["status"]);
            if shown(&said) {
                return;
            }
            let log = || std::fs::read_to_string(&self.log).unwrap_or_default();
            assert!(Instant::now() < until, "{} does not show {what:?}: {said}\nIts log:\n{}", self.name, log());
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
    eu.says("us               list 2, draining, empty, answers");
    assert_eq!(eu.ask("mover", "node", "{}"), "eu");
    assert!(eu.clusters(&["remove", "us"]).contains("list 3"));
    assert!(!eu.clusters(&["list"]).contains("us "));
}

#[test]
fn a_list_in_a_store_is_changed_at_any_node_of_any_cluster() {
    let _alone = alone();
    let directory = tempfile::tempdir().expect("a temporary directory");
    let (east, west) = (free_address(), free_address());
    let listed = format!("[geo.clusters.eu]\ngateways = [\"{east}\"]\n");
    let eu = Site::with_store("eu", &east, &listed, directory.path());
    eu.says("this one");
    assert_eq!(eu.ask("early", "add", r#"{"amount": 1}"#), 1);

    let unlisted = directory.path().join("unlisted.toml");
    std::fs::write(&unlisted, Site::file("us", &west, "", directory.path())).expect("the folder takes a file");
    let mut command = Command::new(env!("CARGO_BIN_EXE_greenroom"));
    let ended = command.args(["node", "--kinds", "counter", "--config"]).arg(unlisted).output().expect("it runs");
    let refused = String::from_utf8_lossy(&ended.stderr);
    assert!(refused.contains("greenroom clusters add us"), "who is not listed is told what helps: {refused}");
    assert!(eu.clusters(&["add", "us", &west]).contains("list 2"));
    let us = Site::with_store("us", &west, "", directory.path());
    us.says("eu               list 3,");
    eu.says("us               list 3,");
    assert_eq!(us.ask("early", "add", r#"{"amount": 1}"#), 2, "it is one actor");

    assert!(eu.clusters(&["add", "asia", &free_address()]).contains("list 4"));
    us.says("eu               list 4,");
    us.says("asia             list 0, joining");
    assert!(us.clusters(&["add", "asia", "x:1"]).contains("already in the list"), "twice");
    assert!(us.clusters(&["remove", "asia"]).contains("list 5"), "it never came");
}

#[test]
fn a_cluster_that_starts_anew_with_a_table_in_memory_is_served_at_once() {
    let _alone = alone();
    let directory = tempfile::tempdir().expect("a temporary directory");
    let gateways = ["eu", "us"].map(|name| (name, free_address()));
    let eu = Site::start("eu", &gateways, directory.path());
    eu.says("this one");
    for (life, count) in [(0, 2), (1, 5), (2, 8)] {
        let mut us = Site::start("us", &gateways, directory.path());
        us.hears("eu");
        eu.hears("us");
        if life == 0 {
            assert_eq!(eu.ask("shared", "add", r#"{"amount": 1}"#), 1);
        }
        // Each is the first of its number in this life, and of a number that eu has run in the one before.
        assert_eq!(us.ask_once("shared", "add", r#"{"amount": 1}"#), Ok(count.into()), "life {life}");
        assert_eq!(us.ask_once("shared", "node", "{}"), Ok("eu".into()), "its own answer, in life {life}");
        assert_eq!(us.ask_once("shared", "add", r#"{"amount": 2}"#), Ok((count + 2).into()), "life {life}");
        us.process.kill();
        eu.says("does not answer");
    }
}

#[test]
fn a_cluster_that_is_gone_or_never_came_does_not_freeze_the_list() {
    let _alone = alone();
    let directory = tempfile::tempdir().expect("a temporary directory");
    let gateways = ["eu", "gone", "us"].map(|name| (name, free_address()));
    let mut eu = Site::pessimistic("eu", &gateways, directory.path());
    let us = Site::pessimistic("us", &gateways, directory.path());
    eu.hears("us");
    us.hears("eu");
    let refused = eu.ask_once("frozen", "add", r#"{"amount": 1}"#).expect_err("a cluster is silent");
    assert!(refused.contains("gone"), "{refused}");
    let refused = eu.clusters(&["drain", "us"]);
    assert!(refused.contains("`greenroom clusters remove --lost gone`"), "{refused}");
    let refused = eu.clusters(&["remove", "--lost", "us"]);
    assert!(refused.contains("is not lost: it answers"), "{refused}");
    assert!(eu.clusters(&["remove", "--lost", "gone"]).contains("list 2"));
    eu.says("gone             lost");
    assert!(eu.ask_once("frozen", "add", r#"{"amount": 1}"#).is_err(), "it may live, and own it");
    eu.says("us               list 3");
    assert_eq!(eu.ask("frozen", "add", r#"{"amount": 1}"#), 1, "what it may have owned has run out");

    assert!(eu.clusters(&["add", "mistyped", &free_address()]).contains("list 4"));
    eu.says("mistyped         list 0, joining");
    eu.says("us               list 4");
    assert_eq!(us.ask("other", "node", "{}"), "us", "nobody waits for it");
    assert!(eu.clusters(&["remove", "mistyped"]).contains("list 5"));
    us.says("list 5, in force");

    eu.process.kill();
    us.says("does not answer");
    let refused = us.clusters(&["remove", "--lost", "eu"]);
    assert!(refused.contains("1 of 2 clusters would acknowledge the change (us)"), "{refused}");
    let made = us.clusters(&["remove", "--lost", "--vouch", "eu"]);
    assert!(made.contains("list "), "us stands in for the first cluster: {made}");
    assert_eq!(us.ask("frozen", "node", "{}"), "us", "what was lost with eu goes on");
    assert!(!us.clusters(&["list"]).contains("eu "));
}

#[test]
fn the_cluster_that_leaves_is_drained_at_its_own_node_where_the_list_is_in_a_store() {
    let _alone = alone();
    let directory = tempfile::tempdir().expect("a temporary directory");
    let (east, west) = (free_address(), free_address());
    let listed = format!("[geo.clusters.eu]\ngateways = [\"{east}\"]\n[geo.clusters.us]\ngateways = [\"{west}\"]\n");
    let eu = Site::with_store("eu", &east, &listed, directory.path());
    eu.says("this one");
    let us = Site::with_store("us", &west, "", directory.path());
    us.says("answers");
    eu.says("answers");
    us.says("eu               list 1,");
    eu.says("us               list 1,");
    assert_eq!(us.ask("mover", "node", "{}"), "us");
    assert!(us.clusters(&["drain", "us"]).contains("list 2"));
    us.says("us               list 2, draining, empty");
    us.says("eu               list 2");
    assert!(us.clusters(&["remove", "us"]).contains("list 3"));
    eu.says("list 3");
    assert_eq!(eu.ask("mover", "node", "{}"), "eu");
}

/// Time for what comes by itself.
const PATIENCE: Duration = Duration::from_secs(60);
