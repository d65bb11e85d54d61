//! Clusters of real processes whose states are in one SQLite file: each has its own, or is refused by name.

use std::path::Path;
use std::process::{Command, Output, Stdio};
use std::time::{Duration, Instant};

use greenroom_engines::{Process, free_address};
use serde_json::Value;

use crate::alone;

/// A node of a cluster of its own, whose states are in the file that others use too.
struct KeptNode {
    door: String,
    process: Process,
}

const PROGRAM: &str = env!("CARGO_BIN_EXE_greenroom");
const PATIENCE: Duration = Duration::from_secs(60);
/// A kind of this program whose turns are saved before they are answered.
const KIND: &str = "kept_register";

/// The command of a node of `cluster`, with more settings.
fn command(cluster: &str, directory: &Path, more: &[&str]) -> Command {
    let store = format!("sqlite:{}", directory.join("states.db").display());
    let file = directory.join(format!("{cluster}.toml"));
    std::fs::write(&file, format!("store = {store:?}\n")).expect("the folder takes a file");
    let mut command = Command::new(PROGRAM);
    command.args(["node", "--cluster", cluster, "--kinds", KIND, "--shards", "1", "--config"]).arg(file).args(more);
    command.stdin(Stdio::null()).stdout(Stdio::null());
    command
}

fn refused(cluster: &str, directory: &Path) -> String {
    let output = command(cluster, directory, &[]).stderr(Stdio::piped()).output().expect("it runs");
    assert_eq!(output.status.code(), Some(1), "{output:?}");
    String::from_utf8_lossy(&output.stderr).into_owned()
}

impl KeptNode {
    fn start(cluster: &str, directory: &Path, more: &[&str]) -> Self {
        let door = free_address();
        let mut command = command(cluster, directory, more);
        command.args(["--http", &door]);
        Self { door, process: Process::start("a node", command).expect("the program starts") }
    }

    /// Returns the answer of a method of the register `ada`.
    fn ask(&self, method: &str, arguments: &str) -> Value {
        let until = Instant::now() + PATIENCE;
        loop {
            let config = ureq::Agent::config_builder().timeout_global(Some(PATIENCE)).http_status_as_error(false);
            let agent: ureq::Agent = config.build().into();
            let answer = agent.post(format!("http://{}/{KIND}/ada/{method}", self.door)).send(arguments);
            let said = answer.map_err(|error| error.to_string()).and_then(|mut answer| {
                let status = answer.status().as_u16();
                let body = answer.body_mut().read_to_string().map_err(|error| error.to_string())?;
                if status == 200 { Ok(body) } else { Err(format!("{status} {body}")) }
            });
            match said {
                Ok(body) => return serde_json::from_str(&body).expect("it is JSON"),
                Err(said) => assert!(Instant::now() < until, "it does not answer: {said}"),
            }
            std::thread::sleep(Duration::from_millis(100));
        }
    }

    fn stop(mut self) {
        self.process.kill();
    }
}

/// Returns the output of `greenroom state` on the file.
fn state(directory: &Path, arguments: &[&str]) -> Output {
    let store = format!("sqlite:{}", directory.join("states.db").display());
    let mut command = Command::new(PROGRAM);
    command.arg("state").args(arguments).env("GREENROOM_STORE", store).stdin(Stdio::null());
    let output = command.output().expect("it runs");
    assert!(output.status.success(), "{arguments:?}: {output:?}");
    output
}

fn listed(directory: &Path) -> Vec<String> {
    let output = state(directory, &["list", "state/"]);
    String::from_utf8_lossy(&output.stdout).lines().map(str::to_owned).collect()
}

#[test]
fn two_clusters_in_one_file_have_states_of_their_own_under_the_same_actor() {
    let _alone = alone();
    let directory = tempfile::tempdir().expect("a temporary directory");
    let alpha = KeptNode::start("alpha", directory.path(), &[]);
    assert_eq!(alpha.ask("swap", r#"{"value": 100}"#)["value"], 0);

    // Nothing says yet whether they are to share states.
    let said = refused("beta", directory.path());
    for part in
        ["states.db", "namespace \"alpha\" (cluster \"alpha\")", "`namespace = \"beta\"`", "`namespace = \"alpha\"`"]
    {
        assert!(said.contains(part), "{part:?} is not in {said}");
    }
    let beta = KeptNode::start("beta", directory.path(), &["--namespace", "beta"]);
    assert_eq!(beta.ask("read", "{}")["value"], 0, "what alpha has is not seen");
    assert_eq!(beta.ask("swap", r#"{"value": 200}"#)["value"], 0);
    assert_eq!(alpha.ask("swap", r#"{"value": 104}"#)["value"], 100);
    alpha.stop();
    beta.stop();
    assert_eq!(
        listed(directory.path()),
        ["state/@alpha/kept_register/self/ada", "state/@beta/kept_register/self/ada"],
        "the names carry the namespace"
    );
    for (cluster, value) in [("alpha", 104), ("beta", 200)] {
        let again = KeptNode::start(cluster, directory.path(), &[]);
        assert_eq!(again.ask("read", "{}")["value"], value, "{cluster} is known from now on");
        again.stop();
    }
    let sharing = KeptNode::start("gamma", directory.path(), &["--namespace", "alpha"]);
    assert_eq!(sharing.ask("read", "{}")["value"], 104, "who says so shares them");
}

#[test]
fn the_states_that_an_earlier_build_left_are_found_and_stay_under_their_names() {
    let _alone = alone();
    let directory = tempfile::tempdir().expect("a temporary directory");
    let alpha = KeptNode::start("alpha", directory.path(), &[]);
    alpha.ask("swap", r#"{"value": 100}"#);
    alpha.stop();
    // As an earlier build would have left it: without a list of namespaces, under a name that carries none.
    let [named, plain] = ["state/@alpha/kept_register/self/ada", "state/kept_register/self/ada"];
    let record = directory.path().join("record");
    std::fs::write(&record, state(directory.path(), &["get", named]).stdout).expect("the folder takes a file");
    state(directory.path(), &["put", plain, "--file", &record.display().to_string()]);
    state(directory.path(), &["delete", named]);
    state(directory.path(), &["delete", "greenroom/namespaces"]);

    let alpha = KeptNode::start("alpha", directory.path(), &[]);
    assert_eq!(alpha.ask("swap", r#"{"value": 104}"#)["value"], 100, "the state is found");
    assert_eq!(listed(directory.path()), [plain], "and saved where an older node of the cluster looks for it");
    assert!(refused("beta", directory.path()).contains("namespace \"alpha\" (cluster \"alpha\")"));
    let namespaces = state(directory.path(), &["namespaces", "list"]);
    assert_eq!(String::from_utf8_lossy(&namespaces.stdout), "alpha\tstate/\talpha\n");
}
