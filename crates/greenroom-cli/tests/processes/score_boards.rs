//! A versioned state of two clusters of real processes: score boards, of which each cluster has an instance.

use std::net::TcpListener;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::Arc;
use std::time::{Duration, Instant};

use greenroom_engines::{Process, free_address};
use greenroom_relay::{Gates, Relay};
use serde_json::{Value, json};

use crate::alone;

/// Two clusters of one node each, and the link between them.
pub(super) struct Clusters {
    pub(super) eu: Site,
    pub(super) us: Site,
    gates: Arc<Gates<&'static str>>,
    directory: tempfile::TempDir,
}

pub(super) struct Site {
    name: &'static str,
    door: String,
    file: PathBuf,
    process: Process,
}

impl Clusters {
    /// Clusters whose boards are kept as `kept` says, once they hear each other.
    pub(super) fn start(kept: &str) -> Self {
        let directory = tempfile::tempdir().expect("a temporary directory");
        let gates = Arc::new(Gates::default());
        let gateways = [("eu", "us"), ("us", "eu")].map(|(name, other)| {
            let own = free_address();
            let relay = Relay::new(own.clone(), gates.clone()).between(other, name).round_trip(FAR);
            let far = relay.start(TcpListener::bind("127.0.0.1:0").expect("a free port")).expect("it listens");
            (name, own, far.to_string())
        });
        let start = |at: usize| {
            let (name, own, _) = &gateways[at];
            let shared = directory.path().join("shared.db");
            let mut file = format!("cluster = \"{name}\"\nstore = \"sqlite:{}\"\n", shared.display());
            file += &format!("table = \"sqlite:{}\"\n", directory.path().join(format!("{name}.db")).display());
            file += &format!("[geo]\ngateway = \"{own}\"\nlook_again_every = 2\n");
            for (cluster, _, far) in &gateways {
                file += &format!("[geo.clusters.{cluster}]\ngateways = [\"{far}\"]\n");
            }
            file += kept;
            Site::start(name, &file, directory.path())
        };
        let (eu, us) = (start(0), start(1));
        let clusters = Self { eu, us, gates, directory };
        clusters.hear_each_other();
        clusters
    }

    /// Cuts the link, and waits until both sides know.
    pub(super) fn cut(&self) {
        self.gates.cut(&"eu", &"us");
        for site in [&self.eu, &self.us] {
            site.hears(false);
        }
    }

    /// Heals the link, and waits until both sides know.
    pub(super) fn heal(&self) {
        self.gates.heal(&"eu", &"us");
        self.hear_each_other();
    }

    fn hear_each_other(&self) {
        for site in [&self.eu, &self.us] {
            site.hears(true);
        }
    }

    /// Waits until both show these scores, and no other ones are confirmed.
    pub(super) fn both_show(&self, expected: &Value) {
        let until = Instant::now() + PATIENCE;
        loop {
            let shown = [&self.eu, &self.us].map(|site| site.ask("scores", &json!({})));
            if shown.iter().all(|shown| shown == expected) {
                break;
            }
            assert!(Instant::now() < until, "{shown:?} is not {expected}");
            std::thread::sleep(Duration::from_millis(100));
        }
        for site in [&self.eu, &self.us] {
            assert_eq!(site.ask("latest", &json!({})), *expected, "what is confirmed, seen from {}", site.name);
        }
    }
}

impl Site {
    fn start(name: &'static str, file: &str, directory: &Path) -> Self {
        let path = directory.join(format!("{name}.toml"));
        std::fs::write(&path, file).expect("the folder takes a file");
        let door = free_address();
        let process = Self::process(name, &door, &path);
        Self { name, door, file: path, process }
    }

    fn process(name: &str, door: &str, file: &Path) -> Process {
        let mut command = Command::new(env!("CARGO_BIN_EXE_greenroom"));
        let kinds = "score_board,counter";
        command.args(["node", "--name", name, "--http", door, "--shards", "1", "--kinds", kinds, "--config"]);
        command.arg(file).stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null());
        Process::start("a node", command).expect("the program starts")
    }

    /// Kills the node, and starts it anew.
    fn kill_and_start(&mut self) {
        self.process.kill();
        self.process = Self::process(self.name, &self.door, &self.file);
    }

    /// One try of a call of the board.
    pub(super) fn try_to(&self, method: &str, arguments: &Value) -> Result<Value, String> {
        self.try_call("score_board/cup", method, arguments)
    }

    /// One try of a call of an actor.
    pub(super) fn try_call(&self, actor: &str, method: &str, arguments: &Value) -> Result<Value, String> {
        let config = ureq::Agent::config_builder().timeout_global(Some(Duration::from_secs(10)));
        let agent: ureq::Agent = config.http_status_as_error(false).build().into();
        let asked = agent.post(format!("http://{}/{actor}/{method}", self.door)).send(arguments.to_string());
        let mut answer = asked.map_err(|error| error.to_string())?;
        let body = answer.body_mut().read_to_string().map_err(|error| error.to_string())?;
        if answer.status() == 200 { serde_json::from_str(&body).map_err(|error| error.to_string()) } else { Err(body) }
    }

    /// What a method answers that changes nothing, as soon as it does.
    pub(super) fn ask(&self, method: &str, arguments: &Value) -> Value {
        let until = Instant::now() + PATIENCE;
        loop {
            match self.try_to(method, arguments) {
                Ok(answer) => return answer,
                Err(said) => assert!(Instant::now() < until, "{} does not answer: {said}", self.name),
            }
            std::thread::sleep(Duration::from_millis(100));
        }
    }

    /// What a command of the program says of the node.
    pub(super) fn told(&self, command: &[&str]) -> String {
        let mut program = Command::new(env!("CARGO_BIN_EXE_greenroom"));
        let said = program.args(command).args(["--node", &self.door]).output().expect("it runs");
        String::from_utf8_lossy(&said.stdout).into_owned()
    }

    /// Waits until the other cluster answers it, or does not any more.
    fn hears(&self, answers: bool) {
        let word = if answers { ", answers" } else { "does not answer" };
        let until = Instant::now() + PATIENCE;
        loop {
            let said = self.told(&["clusters", "status"]);
            if said.contains(word) {
                return;
            }
            assert!(Instant::now() < until, "{} does not say {word:?}: {said}", self.name);
            std::thread::sleep(Duration::from_millis(100));
        }
    }
}

pub(super) fn won(player: &str) -> Value {
    json!({"player": player, "points": 1})
}

/// Both sides note points, together and apart; nothing waits for the link, and all is confirmed once it is healed.
fn boards_go_on_apart(kept: &str) {
    let _alone = alone();
    let clusters = Clusters::start(kept);
    let (eu, us) = (&clusters.eu, &clusters.us);
    let version = eu.try_to("won_for_sure", &won("ada")).expect("all is well");
    let seen = us.ask("since", &json!({"version": version}));
    assert_eq!(seen, json!({"ada": 1}), "who has seen it in eu sees it in us");
    us.try_to("won_for_sure", &won("bo")).expect("all is well");
    clusters.both_show(&json!({"ada": 1, "bo": 1}));

    clusters.cut();
    for points in 2..=20 {
        for (site, player) in [(eu, "ada"), (us, "bo")] {
            let shown = site.try_to("won", &won(player)).expect("it needs nobody else");
            assert_eq!(shown[player], points, "its own are seen at once");
        }
    }
    clusters.heal();
    clusters.both_show(&json!({"ada": 20, "bo": 20}));
}

#[test]
fn boards_in_a_store_go_on_apart_and_are_one_again() {
    boards_go_on_apart(IN_STORE);
}

#[test]
fn boards_in_memory_go_on_apart_and_are_one_again() {
    boards_go_on_apart(IN_MEMORY);
}

/// A node is killed while points are confirmed: what was is there once, what was in doubt once or not at all.
fn what_is_confirmed_survives_a_kill(kept: &str, killed: &str) {
    let _alone = alone();
    let mut clusters = Clusters::start(kept);
    let mut sure = 0;
    let mut tried = 0;
    for round in 0..3 {
        for site in [&clusters.eu, &clusters.us] {
            for _ in 0..10 {
                tried += 1;
                sure += u64::from(site.try_to("won_for_sure", &won("ada")).is_ok());
            }
            // Both instances have it, and either may be lost.
            site.ask("latest", &json!({}));
        }
        assert!(sure >= (round + 1) * 10, "{sure} of {tried}");
        let victim = if killed == "eu" { &mut clusters.eu } else { &mut clusters.us };
        let in_flight = {
            let (door, name) = (victim.door.clone(), victim.name);
            let call = move || {
                let config = ureq::Agent::config_builder().timeout_global(Some(Duration::from_secs(10)));
                let agent: ureq::Agent = config.http_status_as_error(false).build().into();
                let url = format!("http://{door}/score_board/cup/won_for_sure");
                let answer = agent.post(url).send(won("ada").to_string());
                answer.is_ok_and(|answer| answer.status() == 200)
            };
            std::thread::Builder::new().name(name.to_owned()).spawn(call).expect("a thread")
        };
        std::thread::sleep(FAR / 3);
        victim.kill_and_start();
        tried += 1;
        // What only a leader knows in memory goes with it.
        sure += u64::from(in_flight.join().expect("it ends") && kept == IN_STORE);
        clusters.hear_each_other();
    }
    let until = Instant::now() + PATIENCE;
    let latest = loop {
        let [here, there] = [&clusters.eu, &clusters.us].map(|site| site.ask("latest", &json!({})));
        if here == there {
            break here["ada"].as_u64().expect("a number");
        }
        assert!(Instant::now() < until, "they do not agree: {here} and {there}");
    };
    assert!((sure..=tried).contains(&latest), "{latest} of {sure} to {tried}");
}

#[test]
fn confirmed_points_in_a_store_survive_a_killed_node() {
    what_is_confirmed_survives_a_kill(IN_STORE, "us");
}

#[test]
fn confirmed_points_in_memory_survive_the_leader() {
    what_is_confirmed_survives_a_kill(IN_MEMORY, "eu");
}

/// What `greenroom state` does in the store of both clusters.
fn state(clusters: &Clusters, verb: &str, more: &[&str]) {
    let store = format!("sqlite:{}", clusters.directory.path().join("shared.db").display());
    let mut program = Command::new(env!("CARGO_BIN_EXE_greenroom"));
    let done = program.args(["state", verb, "--store", &store]).args(more).output().expect("it runs");
    assert!(done.status.success(), "{}", String::from_utf8_lossy(&done.stderr));
}

#[test]
fn boards_go_on_from_what_an_operator_has_put_back_into_the_store() {
    let _alone = alone();
    let clusters = Clusters::start(IN_STORE);
    let sites = [&clusters.eu, &clusters.us];
    for site in sites {
        site.try_to("won_for_sure", &won("ada")).expect("all is well");
    }
    clusters.both_show(&json!({"ada": 2}));
    let backup = clusters.directory.path().join("backup.jsonl");
    let backup = backup.to_str().expect("a path of plain letters");
    state(&clusters, "export", &["--output", backup]);
    for site in sites {
        site.try_to("won_for_sure", &won("ada")).expect("all is well");
    }
    clusters.both_show(&json!({"ada": 4}));

    state(&clusters, "import", &["--replace", backup]);
    for site in sites {
        site.try_to("won", &won("bo")).expect("it needs nobody else");
    }
    clusters.both_show(&json!({"ada": 2, "bo": 2}));
}

const IN_STORE: &str = "[geo.stores]\ndefault = \"eu\"\n";
const IN_MEMORY: &str = "[kinds.score_board]\nprotocol = \"vlb\"\nleader = \"eu\"\n";
/// The round trip between the clusters.
const FAR: Duration = Duration::from_millis(60);
/// Time for what comes by itself.
pub(super) const PATIENCE: Duration = Duration::from_secs(60);
