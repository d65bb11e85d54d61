//! Node processes of one cluster.

use std::fs::OpenOptions;
use std::path::PathBuf;
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use greenroom_engines::{Process, free_address};
use tempfile::TempDir;

/// Nodes that are started again with their names and doors. They are killed when this is dropped.
pub(crate) struct Nodes {
    nodes: Vec<NodeProcess>,
    table: String,
    kinds: &'static str,
    directory: TempDir,
}

struct NodeProcess {
    name: String,
    door: String,
    process: Process,
}

impl Nodes {
    /// Starts so many on a table in a file, and waits until they are one cluster.
    pub(crate) fn on_sqlite(count: usize) -> Self {
        Self::on_sqlite_with(count, "")
    }

    /// The same, of nodes that move actors.
    pub(crate) fn optimised(count: usize) -> Self {
        Self::on_sqlite_with(count, "[optimiser]\nmode = \"on\"\n")
    }

    fn on_sqlite_with(count: usize, more: &str) -> Self {
        let directory = directory();
        let table = format!("sqlite:{}", directory.path().join("table.db").display());
        Self::start_with(count, table, directory, KINDS, more)
    }

    /// The same, with a journal of reliable actors in another file.
    pub(crate) fn with_journal(count: usize) -> Self {
        let directory = directory();
        let table = format!("sqlite:{}", directory.path().join("table.db").display());
        let journal = format!("sqlite:{}", directory.path().join("journal.db").display());
        Self::over(count, table, &journal, directory)
    }

    /// The same, over the journal at `journal`.
    pub(crate) fn with_journal_at(count: usize, journal: &str) -> Self {
        let directory = directory();
        let table = format!("sqlite:{}", directory.path().join("table.db").display());
        Self::over(count, table, journal, directory)
    }

    fn over(count: usize, table: String, journal: &str, directory: TempDir) -> Self {
        let more = format!("[reliable]\njournal = {journal:?}\npartitions = 16\n");
        Self::start_with(count, table, directory, KINDS_WITH_JOURNAL, &more)
    }

    /// Starts so many on the table at `url`, and waits until they are one cluster.
    #[cfg(feature = "postgres")]
    pub(crate) fn on(count: usize, url: String) -> Self {
        Self::start(count, url, directory())
    }

    #[cfg(feature = "postgres")]
    fn start(count: usize, table: String, directory: TempDir) -> Self {
        Self::start_with(count, table, directory, KINDS, "")
    }

    fn start_with(count: usize, table: String, directory: TempDir, kinds: &'static str, more: &str) -> Self {
        let doors: Vec<_> = (0..count).map(|_| free_address()).collect();
        let config = format!("[history]\nchat_room = 8\n{more}");
        std::fs::write(directory.path().join(CONFIG), config).expect("the folder takes a file");
        let mut nodes = Self { nodes: Vec::new(), table, kinds, directory };
        for (place, door) in doors.into_iter().enumerate() {
            let name = format!("node-{place}");
            let process = nodes.spawn(&name, &door);
            nodes.nodes.push(NodeProcess { name, door, process });
        }
        nodes.all_ready();
        nodes
    }

    fn spawn(&self, name: &str, door: &str) -> Process {
        let log = OpenOptions::new().create(true).append(true).open(self.log(name)).expect("the node's log opens");
        let mut command = Command::new(env!("CARGO_BIN_EXE_greenroom"));
        command.args(["node", "--name", name, "--listen", "127.0.0.1:0", "--http", door, "--table", &self.table]);
        command.args(["--kinds", self.kinds, "--shards", "1"]);
        command.arg("--config").arg(self.directory.path().join(CONFIG));
        command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(log);
        Process::start("a node", command).expect("the program starts")
    }

    /// Where they answer, as `host:port`.
    pub(crate) fn doors(&self) -> Vec<String> {
        self.nodes.iter().map(|node| node.door.clone()).collect()
    }

    /// How many there are.
    pub(crate) fn count(&self) -> usize {
        self.nodes.len()
    }

    /// The place of the node called `name`.
    #[cfg(feature = "postgres")]
    pub(crate) fn place(&self, name: &str) -> usize {
        self.nodes.iter().position(|node| node.name == name).expect("a node of the cluster")
    }

    /// Kills one as `kill -9` does.
    pub(crate) fn kill(&mut self, place: usize) {
        self.nodes[place].process.kill();
    }

    /// The name of one.
    pub(crate) fn name(&self, place: usize) -> String {
        self.nodes[place].name.clone()
    }

    /// Waits until one has ended by itself.
    ///
    /// # Panics
    /// When it does not.
    pub(crate) fn wait_ended(&mut self, place: usize) {
        let ended = self.nodes[place].process.wait(START_TIMEOUT);
        assert!(ended, "the node does not end:\n{}", self.said());
    }

    /// Sends a signal to one.
    pub(crate) fn signal(&self, place: usize, signal: i32) {
        self.nodes[place].process.signal(signal);
    }

    /// Starts those again that were killed or have ended by themselves, as a supervisor would.
    pub(crate) fn revive(&mut self) {
        for place in 0..self.count() {
            if self.nodes[place].process.ended().is_some() {
                let NodeProcess { name, door, .. } = &self.nodes[place];
                self.nodes[place].process = self.spawn(name, door);
            }
        }
    }

    /// Kills all and starts them again: nothing but the store knows what was.
    pub(crate) fn all_anew(&mut self) {
        (0..self.count()).for_each(|place| self.kill(place));
        self.all_ready();
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
    pub(crate) fn said(&self) -> String {
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
        if std::thread::panicking() {
            eprintln!("{}", self.said());
        }
    }
}

/// In memory where that can be: a disk that still writes what was built holds up writes for longer than a lease lasts, and
/// then nodes stop, as they must. A killed process loses nothing there either.
fn directory() -> TempDir {
    let memory = std::path::Path::new("/dev/shm");
    let place = if memory.is_dir() { memory.to_owned() } else { std::env::temp_dir() };
    TempDir::with_prefix_in("greenroom-processes-", place).expect("a temporary directory")
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
const KINDS: &str = "counter,alarm,chat_room,user,presence";
const KINDS_WITH_JOURNAL: &str = "counter,alarm,chat_room,user,presence,wallet";
/// The file of their common configuration, in their folder.
const CONFIG: &str = "node.toml";
