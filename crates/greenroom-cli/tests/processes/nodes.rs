//! Node processes of one cluster.

use std::fs::OpenOptions;
use std::net::TcpListener;
use std::os::unix::process::CommandExt;
use std::path::PathBuf;
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use tempfile::TempDir;

/// Nodes that are started again with their names and doors. They are killed when this is dropped or the thread ends that
/// started them.
pub(crate) struct Nodes {
    nodes: Vec<NodeProcess>,
    table: String,
    directory: TempDir,
}

struct NodeProcess {
    name: String,
    door: String,
    child: Child,
}

impl Nodes {
    /// Starts so many on a table in a file, and waits until they are one cluster.
    pub(crate) fn on_sqlite(count: usize) -> Self {
        let directory = TempDir::with_prefix("greenroom-processes-").expect("a temporary directory");
        let table = format!("sqlite:{}", directory.path().join("table.db").display());
        Self::start(count, table, directory)
    }

    fn start(count: usize, table: String, directory: TempDir) -> Self {
        let listeners: Vec<_> = (0..count).map(|_| TcpListener::bind("127.0.0.1:0").expect("a free port")).collect();
        let doors: Vec<_> =
            listeners.iter().map(|bound| bound.local_addr().expect("it is bound").to_string()).collect();
        drop(listeners);
        let mut nodes = Self { nodes: Vec::new(), table, directory };
        for (place, door) in doors.into_iter().enumerate() {
            let name = format!("node-{place}");
            let child = nodes.spawn(&name, &door);
            nodes.nodes.push(NodeProcess { name, door, child });
        }
        nodes.all_ready();
        nodes
    }

    fn spawn(&self, name: &str, door: &str) -> Child {
        let log = OpenOptions::new().create(true).append(true).open(self.log(name)).expect("the node's log opens");
        let mut command = Command::new(env!("CARGO_BIN_EXE_greenroom"));
        command.args(["node", "--name", name, "--listen", "127.0.0.1:0", "--http", door, "--table", &self.table]);
        command.args(["--kinds", "counter", "--shards", "1"]);
        command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(log);
        let tie = || {
            // SAFETY: a system call that touches no memory of this process.
            match unsafe { libc::prctl(libc::PR_SET_PDEATHSIG, libc::SIGKILL) } {
                0 => Ok(()),
                _ => Err(std::io::Error::last_os_error()),
            }
        };
        // SAFETY: between fork and exec the closure makes one system call, and allocates nothing.
        unsafe { command.pre_exec(tie) }.spawn().expect("the program starts")
    }

    /// Where they answer, as `host:port`.
    pub(crate) fn doors(&self) -> Vec<String> {
        self.nodes.iter().map(|node| node.door.clone()).collect()
    }

    /// How many there are.
    pub(crate) fn count(&self) -> usize {
        self.nodes.len()
    }

    /// Kills one as `kill -9` does.
    pub(crate) fn kill(&mut self, place: usize) {
        let child = &mut self.nodes[place].child;
        // An error means that it has ended already.
        let _ = child.kill();
        child.wait().expect("it is our child");
    }

    /// Starts one again that has ended.
    pub(crate) fn restart(&mut self, place: usize) {
        let NodeProcess { name, door, .. } = &self.nodes[place];
        let child = self.spawn(name, door);
        self.nodes[place].child = child;
    }

    /// Starts those again that have ended by themselves, as a supervisor would; how many.
    pub(crate) fn revive(&mut self) -> usize {
        let ended = |node: &mut NodeProcess| node.child.try_wait().expect("it is our child").is_some();
        let dead: Vec<usize> = (0..self.count()).filter(|place| ended(&mut self.nodes[*place])).collect();
        dead.iter().for_each(|place| self.restart(*place));
        dead.len()
    }

    /// Waits until each of them answers for all of them.
    pub(crate) fn all_ready(&mut self) {
        let until = Instant::now() + START_TIMEOUT;
        let agent: ureq::Agent = ureq::Agent::config_builder().timeout_global(Some(ASK_TIMEOUT)).build().into();
        while !self.doors().iter().all(|door| knows(&agent, door, self.count())) {
            assert!(Instant::now() < until, "the nodes are not one cluster after {START_TIMEOUT:?}:\n{}", self.said());
            self.revive();
            std::thread::sleep(Duration::from_millis(50));
        }
    }

    /// The last of what each of them said.
    fn said(&self) -> String {
        let last = |node: &NodeProcess| {
            let said = std::fs::read_to_string(self.log(&node.name)).unwrap_or_default();
            let lines: Vec<&str> = said.lines().rev().take(20).collect();
            format!("{}:\n{}\n", node.name, lines.into_iter().rev().collect::<Vec<_>>().join("\n"))
        };
        self.nodes.iter().map(last).collect()
    }

    fn log(&self, name: &str) -> PathBuf {
        self.directory.path().join(format!("{name}.log"))
    }
}

impl Drop for Nodes {
    fn drop(&mut self) {
        for place in 0..self.count() {
            self.kill(place);
        }
        if std::thread::panicking() {
            eprintln!("{}", self.said());
        }
    }
}

fn knows(agent: &ureq::Agent, door: &str, members: usize) -> bool {
    let get = |path: &str| agent.get(format!("http://{door}{path}")).call().ok();
    get("/readyz").is_some()
        && get("/").and_then(|mut answer| answer.body_mut().read_to_string().ok()).is_some_and(|body| {
            let about: serde_json::Value = serde_json::from_str(&body).unwrap_or_default();
            about["members"].as_array().is_some_and(|all| all.len() == members)
        })
}

/// A start that takes longer is none, on the busiest of machines.
const START_TIMEOUT: Duration = Duration::from_secs(90);
const ASK_TIMEOUT: Duration = Duration::from_secs(5);
