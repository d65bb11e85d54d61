//! A cluster of one program is upgraded to another, node by node, while clients call.

use std::collections::BTreeMap;
use std::process::{Command, Stdio};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Mutex, PoisonError};
use std::time::{Duration, Instant};

use greenroom_engines::{Process, free_address, wait_until};
use serde_json::{Value, json};
use tempfile::TempDir;

const OLD: &str = env!("CARGO_BIN_EXE_till-v1");
const NEW: &str = env!("CARGO_BIN_EXE_till-v2");

/// Node processes on a table in a file.
struct Nodes {
    doors: Vec<String>,
    processes: Vec<Process>,
    directory: TempDir,
}

impl Nodes {
    fn start(count: usize, program: &str) -> Self {
        let doors = (0..count).map(|_| free_address()).collect();
        let directory = TempDir::with_prefix("greenroom-upgrade-").expect("a temporary directory");
        let mut nodes = Self { doors, processes: Vec::new(), directory };
        nodes.processes = (0..count).map(|place| nodes.spawn(place, program)).collect();
        nodes
    }

    fn spawn(&self, place: usize, program: &str) -> Process {
        let path = |name: &str| self.directory.path().join(name).display().to_string();
        let mut command = Command::new(program);
        let log = std::fs::OpenOptions::new().create(true).append(true).open(path(&format!("node-{place}.log")));
        command.args(["--name", &format!("node-{place}"), "--listen", "127.0.0.1:0", "--http", &self.doors[place]]);
        command.args(["--table", &format!("sqlite:{}", path("table.db")), "--shards", "1"]);
        // The disk may be busy with other things, and nobody dies here.
        command.args(["--lease", "30s"]);
        command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(log.expect("the node's log opens"));
        Process::start("a node", command).expect("the program starts")
    }

    /// Lets one drain, and starts the other program in its place.
    fn upgrade(&mut self, place: usize, program: &str) {
        self.processes[place].signal(libc::SIGTERM);
        assert!(self.processes[place].wait(PATIENCE), "node-{place} does not end:\n{}", self.said());
        self.processes[place] = self.spawn(place, program);
    }

    /// Waits until each of them knows all of them to host these versions of tills.
    fn all_ready(&self, agent: &ureq::Agent, versions: &[u64]) {
        let ready = wait_until(PATIENCE, || {
            self.doors.iter().all(|door| {
                get(agent, door, "/readyz").is_some()
                    && get(agent, door, "/-/status").is_some_and(|status| hosted(&status) == versions)
            })
        });
        assert!(ready, "the nodes are not one cluster of {versions:?} after {PATIENCE:?}:\n{}", self.said());
    }

    fn said(&self) -> String {
        let last = |place: usize| {
            let path = self.directory.path().join(format!("node-{place}.log"));
            let said = std::fs::read_to_string(path).unwrap_or_default();
            let from = said.len().saturating_sub(2000);
            format!("node-{place}:\n{}\n", said.get(from..).unwrap_or(&said))
        };
        (0..self.doors.len()).map(last).collect()
    }
}

fn get(agent: &ureq::Agent, door: &str, path: &str) -> Option<Value> {
    let mut answer = agent.get(format!("http://{door}{path}")).call().ok().filter(|answer| answer.status() == 200)?;
    let text = answer.body_mut().read_to_string().ok()?;
    Some(serde_json::from_str(&text).unwrap_or(Value::Null))
}

/// The versions of tills that active nodes host, in the order of the nodes' names.
fn hosted(status: &Value) -> Vec<u64> {
    let members = status["cluster"]["members"].as_array().cloned().unwrap_or_default();
    let active = members.iter().filter(|member| member["status"] == "active");
    let versions: BTreeMap<String, u64> = active
        .map(|member| (member["name"].to_string(), member["interfaces"]["till"]["version"].as_u64().unwrap_or(0)))
        .collect();
    versions.into_values().collect()
}

/// What clients were told.
#[derive(Default)]
struct Told {
    done: AtomicBool,
    repeated: AtomicU64,
    longest_millis: AtomicU64,
    /// Visits by the version of the customer that made them.
    visits: Mutex<BTreeMap<u64, u64>>,
    /// Visits by till.
    paid: Mutex<BTreeMap<u64, u64>>,
}

impl Told {
    /// Sends customers to tills, by one door after the other; what was refused is tried again at the next.
    fn drive(&self, doors: &[String], first: u64) {
        // If one fails, all end.
        let _all = WhileLoaded(self);
        let agent = agent();
        let mut turn = first;
        while !self.done.load(Ordering::Acquire) {
            turn += 1;
            let begun = Instant::now();
            let mut attempt = 0;
            let version = loop {
                let door = &doors[(turn as usize + attempt) % doors.len()];
                match visit(&agent, door, turn) {
                    Ok(version) => break version,
                    Err(why) => {
                        attempt += 1;
                        assert!(attempt < TRIES_MAX, "refused {TRIES_MAX} times: {why}");
                        self.repeated.fetch_add(1, Ordering::Relaxed);
                        std::thread::sleep(PAUSE);
                    }
                }
            };
            self.longest_millis.fetch_max(begun.elapsed().as_millis() as u64, Ordering::Relaxed);
            *self.visits.lock().unwrap_or_else(PoisonError::into_inner).entry(version).or_default() += 1;
            *self.paid.lock().unwrap_or_else(PoisonError::into_inner).entry(turn % TILLS).or_default() += 1;
            // Leases are kept in the same file, on a disk that others use.
            std::thread::sleep(PAUSE);
        }
    }

    /// Sends a customer to each till by one door.
    fn visit_all(&self, door: &str) {
        let agent = agent();
        for turn in 0..TILLS {
            let done = (0..TRIES_MAX).find_map(|_| match visit(&agent, door, turn) {
                Ok(version) => Some(version),
                Err(_) => {
                    std::thread::sleep(PAUSE);
                    None
                }
            });
            assert!(done.is_some(), "till {turn} is refused {TRIES_MAX} times by {door}");
            *self.paid.lock().unwrap_or_else(PoisonError::into_inner).entry(turn).or_default() += 1;
        }
    }

    fn visits(&self, version: u64) -> u64 {
        self.visits.lock().unwrap_or_else(PoisonError::into_inner).get(&version).copied().unwrap_or_default()
    }
}

/// Sends a customer to a till: the customer's version, or why nothing has run.
///
/// # Panics
/// When the call failed, or may have run: neither is to be.
fn visit(agent: &ureq::Agent, door: &str, turn: u64) -> Result<u64, String> {
    let url = format!("http://{door}/customer/{}/visit", turn % CUSTOMERS);
    let body = json!({ "till": (turn % TILLS).to_string() }).to_string();
    let mut answer = match agent.post(url).header("content-type", "application/json").send(&body) {
        Ok(answer) => answer,
        Err(ureq::Error::Io(error)) if error.kind() == std::io::ErrorKind::ConnectionRefused => {
            return Err("nobody listens there".to_owned());
        }
        Err(error) => panic!("a call that is not safe to retry: {error}"),
    };
    let status = answer.status();
    let text = answer.body_mut().read_to_string().expect("the answer is whole");
    let said: Value = serde_json::from_str(&text).expect("the answer is JSON");
    match (status.as_u16(), &said["may_have_run"]) {
        (200, _) => Ok(said[0].as_u64().expect("the customer's version")),
        (_, Value::Bool(false)) => Err(text),
        _ => panic!("a call that failed: {status} {text}"),
    }
}

fn agent() -> ureq::Agent {
    ureq::Agent::config_builder().timeout_global(Some(PATIENCE)).http_status_as_error(false).build().into()
}

/// Ends the load when it is dropped, by a panic too.
struct WhileLoaded<'a>(&'a Told);

impl Drop for WhileLoaded<'_> {
    fn drop(&mut self) {
        self.0.done.store(true, Ordering::Release);
    }
}

#[test]
fn a_rolling_upgrade_of_one_program_to_another_fails_no_call() {
    let agent = agent();
    let mut nodes = Nodes::start(3, OLD);
    nodes.all_ready(&agent, &[1, 1, 1]);
    let doors = nodes.doors.clone();
    let told = Told::default();
    std::thread::scope(|threads| {
        for first in 0..CLIENTS {
            let (told, doors) = (&told, &doors);
            threads.spawn(move || told.drive(doors, first * 1_000_003));
        }
        let _loaded = WhileLoaded(&told);
        for (place, versions) in [[2, 1, 1], [2, 2, 1], [2, 2, 2]].iter().enumerate() {
            nodes.upgrade(place, NEW);
            nodes.all_ready(&agent, versions);
            // Customers of both versions have gone to tills, as long as there are both.
            let before = [told.visits(1), told.visits(2)];
            let both = || told.visits(2) > before[1] + ENOUGH && (place == 2 || told.visits(1) > before[0] + ENOUGH);
            wait_until(PATIENCE, || both() || told.done.load(Ordering::Acquire));
            assert!(
                both(),
                "customers of version 1 and 2 did {before:?} visits, and hardly any more:\n{}",
                nodes.said()
            );
        }
    });
    let paid = told.paid.lock().unwrap_or_else(PoisonError::into_inner);
    for (till, visits) in &*paid {
        let url = format!("http://{}/till/{till}/total", doors[0]);
        let mut answer = agent.post(url).send("{}").expect("the door answers");
        let total: Value = serde_json::from_str(&answer.body_mut().read_to_string().unwrap()).unwrap();
        assert_eq!(total, json!([visits, 2]), "till {till}: each visit is paid for once, and the till is of version 2");
    }
    let (old, new) = (told.visits(1), told.visits(2));
    let (repeated, longest) = (told.repeated.load(Ordering::Relaxed), told.longest_millis.load(Ordering::Relaxed));
    println!(
        "{old} visits by version 1, {new} by version 2, {repeated} attempts repeated, the longest took {longest} ms"
    );
}

#[test]
fn tills_that_the_first_upgraded_node_has_saved_are_opened_by_the_others_when_it_is_taken_back() {
    let agent = agent();
    let mut nodes = Nodes::start(2, OLD);
    nodes.all_ready(&agent, &[1, 1]);
    let (doors, told) = (nodes.doors.clone(), Told::default());
    told.visit_all(&doors[1]);
    nodes.upgrade(0, NEW);
    nodes.all_ready(&agent, &[2, 1]);
    told.visit_all(&doors[0]);
    nodes.upgrade(0, OLD);
    nodes.all_ready(&agent, &[1, 1]);
    told.visit_all(&doors[0]);
    for till in 0..TILLS {
        let url = format!("http://{}/till/{till}/total", doors[1]);
        let mut answer = agent.post(url).send("{}").expect("the door answers");
        let total: Value = serde_json::from_str(&answer.body_mut().read_to_string().unwrap()).unwrap();
        assert_eq!(
            total,
            json!([3, 1]),
            "till {till}: each visit is paid for once, and the till is of version 1 again"
        );
    }
}

const CLIENTS: u64 = 4;
const CUSTOMERS: u64 = 24;
const TILLS: u64 = 12;
/// Visits of each version that show that both are at work.
const ENOUGH: u64 = 30;
const TRIES_MAX: usize = 1000;
/// Between two attempts, and between two visits.
const PAUSE: Duration = Duration::from_millis(20);
/// What takes longer never comes, on the busiest of machines.
const PATIENCE: Duration = Duration::from_secs(90);
