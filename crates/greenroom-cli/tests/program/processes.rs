//! The program from outside: processes, signals and what is printed.

use std::io::{BufRead, BufReader, Read, Write};
use std::os::unix::net::UnixDatagram;
use std::os::unix::process::ExitStatusExt;
use std::path::Path;
use std::process::{Child, ChildStdout, Command, Output, Stdio};
use std::time::{Duration, Instant};

const PROGRAM: &str = env!("CARGO_BIN_EXE_greenroom");
/// Far longer than anything takes that comes at all.
const PATIENCE: Duration = Duration::from_secs(180);

/// A running `greenroom`, killed when the test is over.
pub(crate) struct Running {
    child: Child,
    said: BufReader<ChildStdout>,
}

impl Running {
    pub(crate) fn start(args: &[&str], temporary: &Path) -> Self {
        Self::start_as(Command::new(PROGRAM), args, temporary)
    }

    pub(crate) fn start_as(mut command: Command, args: &[&str], temporary: &Path) -> Self {
        command.args(args).env("TMPDIR", temporary).stdin(Stdio::piped()).stdout(Stdio::piped());
        let mut child = command.spawn().expect("the program starts");
        let said = BufReader::new(child.stdout.take().expect("it is piped"));
        Self { child, said }
    }

    /// Reads lines up to the first that holds `wanted`, which is the last of those returned.
    pub(crate) fn until(&mut self, wanted: &str) -> Vec<String> {
        let mut lines = Vec::new();
        let until = Instant::now() + PATIENCE;
        loop {
            let mut line = String::new();
            assert!(Instant::now() < until, "{wanted:?} is not said; what is: {lines:#?}");
            assert_ne!(self.said.read_line(&mut line).unwrap(), 0, "{wanted:?} is not in {lines:#?}");
            lines.push(line.trim_end().to_owned());
            if line.contains(wanted) {
                return lines;
            }
        }
    }

    fn press(&mut self, keys: &str) {
        let input = self.child.stdin.as_mut().expect("it is piped");
        input.write_all(keys.as_bytes()).and_then(|()| input.flush()).expect("it reads");
    }

    pub(crate) fn signal(&self, signal: i32) {
        // SAFETY: the child has not been waited for, so that its id is still its own.
        assert_eq!(unsafe { libc::kill(self.child.id() as i32, signal) }, 0);
    }

    /// Its exit code, once it has ended.
    pub(crate) fn end(&mut self) -> Option<i32> {
        let mut rest = String::new();
        // All that is said must be taken, or the program waits for it.
        let _ = self.said.read_to_string(&mut rest);
        self.child.wait().expect("it is our child").code()
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

pub(crate) fn greenroom(args: &[&str]) -> Output {
    Command::new(PROGRAM).args(args).stdin(Stdio::null()).output().expect("the program starts")
}

pub(crate) fn text(bytes: &[u8]) -> String {
    String::from_utf8_lossy(bytes).into_owned()
}

fn is_running(pid: u32) -> bool {
    // A zombie has ended; whoever inherits it will wait for it.
    std::fs::read_to_string(format!("/proc/{pid}/stat"))
        .is_ok_and(|stat| stat.rsplit(')').next().is_some_and(|rest| !rest.trim_start().starts_with('Z')))
}

fn wait_for_ends(pids: &[u32]) {
    let until = Instant::now() + PATIENCE;
    while pids.iter().any(|pid| is_running(*pid)) {
        assert!(Instant::now() < until, "some of {pids:?} still run");
        std::thread::sleep(Duration::from_millis(20));
    }
}

/// The process ids in the demo's invitation.
fn processes(lines: &[String]) -> Vec<u32> {
    let line = lines.iter().find(|line| line.contains("is process")).expect("it names its processes");
    line.split(|c: char| !c.is_ascii_alphanumeric())
        .filter_map(|word| word.parse().ok())
        .filter(|pid| *pid > 3)
        .collect()
}

/// The first node's door in the demo's invitation.
fn address(lines: &[String]) -> String {
    let line = lines.iter().find(|line| line.contains("in a browser:")).expect("it says where the console is");
    let (door, _) = line.rsplit(' ').next().unwrap_or_default().split_once("/-/console/").expect("an address");
    door.to_owned()
}

/// Asks again until the answer is as wanted.
pub(crate) fn until_says(args: &[&str], wanted: impl Fn(&str) -> bool) {
    let until = Instant::now() + PATIENCE;
    while !wanted(&text(&greenroom(args).stdout)) {
        assert!(Instant::now() < until, "{args:?} says {}", text(&greenroom(args).stdout));
        std::thread::sleep(Duration::from_millis(50));
    }
}

/// Does what a printed curl line would do: its status and what came back.
fn curl(line: &str) -> (u16, String) {
    let agent: ureq::Agent = ureq::Agent::config_builder().http_status_as_error(false).build().into();
    let url = line.rsplit(' ').next().unwrap();
    let mut answer = if let Some((_, rest)) = line.split_once("-d '") {
        let (body, _) = rest.split_once('\'').unwrap();
        agent.post(url).send(body)
    } else if line.contains("-X POST") {
        agent.post(url).send_empty()
    } else {
        agent.get(url).call()
    }
    .unwrap_or_else(|error| panic!("{line}: {error}"));
    (answer.status().as_u16(), answer.body_mut().read_to_string().unwrap())
}

#[test]
fn a_command_ends_without_a_word_when_nobody_reads_it_any_more() {
    // More than a pipe holds.
    let asked = ["completions", "bash"];
    let mut child = Command::new(PROGRAM).args(asked).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
    drop(child.stdout.take());
    let output = child.wait_with_output().unwrap();
    assert_eq!(String::from_utf8_lossy(&output.stderr), "");
    assert_eq!(output.status.signal(), Some(libc::SIGPIPE), "{:?}", output.status);
}

#[test]
fn the_demo_answers_its_curl_lines_and_leaves_nothing_behind() {
    let temporary = tempfile::tempdir().unwrap();
    let log = tempfile::NamedTempFile::new().unwrap();
    let mut command = Command::new(PROGRAM);
    command.env_remove("RUST_LOG").stderr(log.reopen().unwrap());
    let mut demo = Running::start_as(command, &["demo", "--port", "0"], temporary.path());
    let lines = demo.until("Ctrl-C");
    let pids = processes(&lines);
    assert_eq!(pids.len(), 3, "{lines:#?}");
    let curls: Vec<&String> = lines.iter().filter(|line| line.trim_start().starts_with("curl")).collect();
    assert!(curls.len() >= 5, "{lines:#?}");
    for line in curls {
        let (status, body) = curl(line);
        let expected = if line.contains("chat_rom") { 404 } else { 200 };
        assert_eq!(status, expected, "{line}: {body}");
        if line.contains("lobby/read") && expected == 200 {
            assert!(body.contains("hello"), "{body}");
        }
    }
    demo.signal(libc::SIGINT);
    assert_eq!(demo.end(), Some(0));
    let said = std::fs::read_to_string(log.path()).unwrap();
    assert!(!said.contains("INFO"), "its nodes' lives are not the demo: {said}");
    wait_for_ends(&pids);
    assert_eq!(std::fs::read_dir(temporary.path()).unwrap().count(), 0, "the table's directory is gone");
}

#[test]
fn the_nodes_of_a_demo_that_is_killed_end() {
    let temporary = tempfile::tempdir().unwrap();
    let mut demo = Running::start(&["demo", "--port", "0", "--quiet"], temporary.path());
    let pids = processes(&demo.until("Ctrl-C"));
    assert!(pids.iter().all(|pid| is_running(*pid)));
    demo.signal(libc::SIGKILL);
    wait_for_ends(&pids);
}

#[test]
fn keys_in_a_terminal_kill_a_node_of_the_demo_and_start_it_again_and_send_players_about() {
    let temporary = tempfile::tempdir().unwrap();
    // It gives the program a terminal, whose keys come by a pipe. A shell in between would be interrupted too.
    let command = ["--quiet", "--return", "--command", &format!("exec {PROGRAM} demo --port 0"), "/dev/null"];
    let mut demo = Running::start_as(Command::new("script"), &command, temporary.path());
    let lines = demo.until("Ctrl-C");
    let door = address(&lines);
    demo.press("2");
    demo.until("Node demo-2 is killed, as by kill -9");
    wait_for_ends(&processes(&lines)[1..2]);
    demo.press("2");
    let again = demo.until("Node demo-2 starts again, as process").pop().unwrap();
    let again: u32 = again.trim_end_matches('.').rsplit(' ').next().unwrap().parse().unwrap();
    assert!(is_running(again));
    until_says(&["status", "--node", &door], |status| status.matches("active").count() >= 3);

    demo.press("m");
    demo.until("Players go to nodes by chance");
    until_says(&["methods", "--node", &door], |methods| {
        methods.lines().any(|line| line.split_whitespace().take(2).eq(["player", "go"]))
    });
    demo.press("\x03");
    demo.until("nothing is left behind");
    assert_eq!(demo.end(), Some(0));
    wait_for_ends(&[again]);
}

#[test]
fn a_key_cuts_the_link_between_the_demos_clusters_and_heals_it() {
    let temporary = tempfile::tempdir().unwrap();
    let mut demo = Running::start(&["demo", "--port", "0", "--quiet", "--clusters", "2"], temporary.path());
    let door = address(&demo.until("Ctrl-C"));
    let status = ["clusters", "status", "--node", &door];
    let far = |status: &str, says: &str| status.lines().any(|line| line.starts_with("there") && line.contains(says));
    until_says(&status, |status| far(status, " answers"));
    demo.press("c");
    demo.until("The link is cut");
    until_says(&status, |status| far(status, "does not answer"));
    demo.press("c");
    demo.until("The link is healed");
    until_says(&status, |status| far(status, " answers"));
    demo.signal(libc::SIGINT);
    assert_eq!(demo.end(), Some(0));
}

#[test]
fn a_node_answers_call_and_status_and_stops_on_sigterm() {
    let temporary = tempfile::tempdir().unwrap();
    // Nobody waits so long for a test: a node that ends has waited for neither.
    let config = temporary.path().join("node.toml");
    std::fs::write(&config, "stop_timeout = 36000.0\ndrain_timeout = 36000.0\n").unwrap();
    let log = tempfile::NamedTempFile::new().unwrap();
    let mut command = Command::new(PROGRAM);
    command.env_remove("RUST_LOG").stderr(log.reopen().unwrap());
    let args = ["node", "--name", "solo", "--http", "127.0.0.1:0", "--config", config.to_str().unwrap()];
    let mut node = Running::start_as(command, &args, temporary.path());
    let door = node.until("HTTP door").pop().unwrap().rsplit(' ').next().unwrap().to_owned();

    let posted = greenroom(&["call", "chat_room/a b/c", "post", r#"{"user":"ada","text":"hi"}"#, "--node", &door]);
    assert_eq!((posted.status.code(), text(&posted.stdout).trim()), (Some(0), "1"), "{posted:?}");
    let read = greenroom(&["call", "chat_room/a b/c", "read", "--node", &door]);
    assert!(text(&read.stdout).contains("\"text\":\"hi\""), "{read:?}");
    for (args, said) in [
        (&["call", "chat_rom/a", "read", "--node", &door][..], "did you mean \"chat_room\""),
        (&["call", "chat_room/a", "post", "{\"user\":7}", "--node", &door], "argument \"user\""),
        (&["call", "chat_room", "read", "--node", &door], "KIND/KEY"),
        (&["call", "chat_room/a", "read", "--node", "127.0.0.1:1"], "greenroom demo"),
        (&["status", "--node", "127.0.0.1:1"], "greenroom demo"),
    ] {
        let output = greenroom(args);
        assert_eq!(output.status.code(), Some(1), "{output:?}");
        assert!(text(&output.stderr).contains(said), "{output:?}");
        assert!(output.stdout.is_empty(), "{output:?}");
    }
    let status = text(&greenroom(&["status", "--node", &door]).stdout);
    for said in [
        "cluster greenroom",
        "table   memory:, last answered",
        "chat_room",
        "presence",
        "solo",
        "active",
        "ACTIVATIONS",
    ] {
        assert!(status.contains(said), "{said} is not in {status}");
    }

    node.signal(libc::SIGTERM);
    assert_eq!(node.end(), Some(0));
    let said = std::fs::read_to_string(log.path()).unwrap();
    assert!(said.contains("it hands over what it has") && !said.contains("is cut"), "{said}");
}

/// Starts the program that follows with hang-ups as they are at a terminal, whatever this process ignores.
fn hearing_hang_ups() -> Command {
    let mut command = Command::new("env");
    command.arg("--default-signal=HUP");
    command
}

#[test]
fn a_node_whose_terminal_hangs_up_drains_unless_hang_ups_are_ignored() {
    let temporary = tempfile::tempdir().unwrap();
    let log = tempfile::NamedTempFile::new().unwrap();
    let start = |program: &[&str], args: &[&str]| {
        let mut command = hearing_hang_ups();
        command.args(program).env_remove("RUST_LOG").stderr(log.reopen().unwrap());
        let mut node = Running::start_as(command, args, temporary.path());
        node.until("HTTP door");
        node
    };
    let mut node = start(&[PROGRAM], &["node", "--http", "127.0.0.1:0"]);
    node.signal(libc::SIGHUP);
    assert_eq!(node.end(), Some(0));
    let said = std::fs::read_to_string(log.path()).unwrap();
    assert!(said.contains("it hands over what it has"), "{said}");

    let mut node = start(&["nohup", PROGRAM], &["node", "--http", "127.0.0.1:0"]);
    node.signal(libc::SIGHUP);
    std::thread::sleep(Duration::from_millis(300));
    assert!(is_running(node.child.id()), "a hang-up that is ignored ended it");
    node.signal(libc::SIGTERM);
    assert_eq!(node.end(), Some(0));
}

#[test]
fn a_program_whose_terminal_hangs_up_is_told_to_end_with_its_node() {
    let temporary = tempfile::tempdir().unwrap();
    let told = temporary.path().join("told");
    let script = format!("trap 'touch {}; exit 0' TERM; echo runs; while :; do sleep 0.05; done", told.display());
    let args = ["run", "--http", "127.0.0.1:0", "sh", "-c", &script];
    let mut command = hearing_hang_ups();
    command.arg(PROGRAM);
    let mut run = Running::start_as(command, &args, temporary.path());
    run.until("runs");
    run.signal(libc::SIGHUP);
    assert_eq!(run.end(), Some(0));
    assert!(told.exists(), "the program was not told");
}

#[test]
fn a_node_that_is_told_to_stop_is_not_ready_and_serves_for_its_drain_delay() {
    let temporary = tempfile::tempdir().unwrap();
    let mut command = Command::new(PROGRAM);
    command.env("GREENROOM_DRAIN_DELAY", "10m");
    let mut node = Running::start_as(command, &["node", "--http", "127.0.0.1:0"], temporary.path());
    let door = node.until("HTTP door").pop().unwrap().rsplit(' ').next().unwrap().to_owned();
    let ready = || greenroom(&["ready", "--node", &door]);
    // A busy machine may answer too late for a probe.
    while text(&ready().stdout).trim() != "ready" {
        std::thread::sleep(Duration::from_millis(20));
    }

    node.signal(libc::SIGTERM);
    let refused = || {
        let said = ready();
        said.status.code() == Some(1) && text(&said.stderr).contains("about to leave")
    };
    while !refused() {
        std::thread::sleep(Duration::from_millis(20));
    }
    let posted = greenroom(&["call", "chat_room/a", "post", r#"{"user":"ada","text":"hi"}"#, "--node", &door]);
    assert_eq!(posted.status.code(), Some(0), "{posted:?}");
    assert!(text(&greenroom(&["status", "--node", &door]).stdout).contains("active"));

    // A second signal ends the delay.
    node.signal(libc::SIGTERM);
    assert_eq!(node.end(), Some(0));
    assert_eq!(ready().status.code(), Some(1));
}

#[test]
fn a_supervisor_hears_that_a_node_is_ready_lives_and_stops() {
    let temporary = tempfile::tempdir().unwrap();
    let path = temporary.path().join("notify");
    let socket = UnixDatagram::bind(&path).unwrap();
    let hear = || {
        let mut heard = [0; 64];
        let len = socket.recv(&mut heard).unwrap();
        text(&heard[..len])
    };
    let mut command = Command::new(PROGRAM);
    command.env("NOTIFY_SOCKET", &path).env("WATCHDOG_USEC", "100000");
    let mut node = Running::start_as(command, &["node", "--http", "127.0.0.1:0"], temporary.path());
    assert_eq!(hear(), "READY=1");
    assert_eq!([hear(), hear()], ["WATCHDOG=1"; 2]);
    node.signal(libc::SIGTERM);
    while hear() != "STOPPING=1" {}
    assert_eq!(node.end(), Some(0));
}

#[test]
fn the_systemd_unit_is_in_order_exposes_little_and_outlasts_a_drain() {
    let unit = include_str!("../../../../deploy/greenroom@.service");
    let shown = text(&greenroom(&["config", "print"]).stdout);
    let seconds = |text: &str, name: &str| -> f64 {
        let value =
            text.lines().find_map(|line| line.strip_prefix(name)).unwrap_or_else(|| panic!("no {name} in {text}"));
        value.parse().unwrap()
    };
    let drain = seconds(&shown, "drain_delay = ") + seconds(&shown, "drain_timeout = ");
    assert!(seconds(unit, "TimeoutStopSec=") > drain);
    // A path would be right below one prefix alone: without, systemd looks into /usr/local/bin and /usr/bin.
    let starts: Vec<_> = unit.lines().filter_map(|line| line.strip_prefix("ExecStart=")).collect();
    let [start] = starts[..] else { panic!("one program is started: {starts:?}") };
    let (program, words) = start.split_once(' ').unwrap();
    assert_eq!(program, "greenroom");

    if Command::new("systemd-analyze").arg("--version").output().is_err() {
        eprintln!("NOT TESTED: systemd-analyze is not installed, so that nobody has looked at the unit");
        return;
    }
    let temporary = tempfile::tempdir().unwrap();
    let path = temporary.path().join("greenroom@shop.service");
    std::fs::write(&path, unit.replace(start, &format!("{PROGRAM} {words}"))).unwrap();
    for args in [&["verify"][..], &["security", "--offline=true", "--threshold=15"]] {
        let output = Command::new("systemd-analyze").args(args).arg(&path).output().unwrap();
        assert!(
            output.status.success() && output.stderr.is_empty(),
            "{} {}",
            text(&output.stdout),
            text(&output.stderr)
        );
    }
}

#[test]
fn a_configuration_is_checked_and_shown_without_its_passwords() {
    let temporary = tempfile::tempdir().unwrap();
    let file = temporary.path().join("node.toml");
    let path = file.to_str().unwrap();
    let check = |text: &str| {
        std::fs::write(&file, text).unwrap();
        greenroom(&["config", "check", path])
    };
    let good = "cluster = \"shop\"\ndrain_delay = 5\n[stores]\nbig = \"postgres://ada:lace@db/x\"\n";
    for (wrong, said) in [
        ("clustr = \"x\"", "did you mean \"cluster\""),
        ("lease = 0.1", "lease"),
        ("http = \"0.0.0.0:7070\"", "--tls-dir"),
        ("[stores]\nbig = \"sqlit:x\"", "stores.big"),
        ("drain_delay = \"soon\"", "drain_delay"),
        ("listen = \"127.0.0.1\"", "HOST:PORT"),
        ("http = \"localhost:70700\"", "HOST:PORT"),
        ("listen = \"0.0.0.0:7000\"\ninsecure_listen = true", "--advertise"),
        ("listen = \"[::]:7000\"\ninsecure_listen = true", "--advertise"),
        ("cluster = \"\"", "cluster"),
        ("[geo]\nepoch = 1", "geo.clusters"),
        ("[[auth.jwt]]\nissuer = \"i\"\naudience = \"a\"\nkeys = \"k\"\nalgorithms = [\"HS256\"]", "HS256"),
        ("[[auth.jwt]]\nissuer = \"i\"\naudience = \"a\"\nkeys = \"http://id.example/keys\"", "in the clear"),
    ] {
        let output = check(wrong);
        assert_eq!(output.status.code(), Some(1), "{output:?}");
        assert!(text(&output.stderr).contains(said), "{output:?}");
    }
    let taken = |output: Output| match cfg!(feature = "postgres") {
        true => assert_eq!(output.status.code(), Some(0), "{output:?}"),
        false => assert!(text(&output.stderr).contains("built without PostgreSQL"), "{output:?}"),
    };
    taken(check(good));

    let shown = greenroom(&["config", "print", "--config", path, "--cluster", "mill"]);
    let shown = text(&shown.stdout);
    for said in ["cluster = \"mill\"", "drain_delay = 5.0", "drain_timeout = 30.0", "postgres://ada:***@db/x"] {
        assert!(shown.contains(said), "{said} is not in {shown}");
    }
    assert!(!shown.contains("lace"), "{shown}");
    // What is printed is a configuration again.
    taken(check(&shown));
}

#[test]
fn the_program_writes_a_page_of_all_its_commands() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().to_str().unwrap();
    let written = greenroom(&["manual", "--markdown", path]);
    assert!(written.status.success(), "{}", text(&written.stderr));
    let page = std::fs::read_to_string(folder.path().join("commands.md")).unwrap();
    for said in [
        "\n## greenroom config print\n",
        "| `--drain-delay <TIME>` | Time for which the node goes on serving after SIGTERM, while /readyz answers 503, before it drains: for \
         load balancers that hear late. | `0s` | `GREENROOM_DRAIN_DELAY` |",
        "greenroom call [OPTIONS] [KIND/KEY]",
    ] {
        assert!(page.contains(said), "{said:?} is not in\n{page}");
    }
    let help = text(&greenroom(&["help"]).stdout);
    let commands = help.lines().skip_while(|line| *line != "Commands:").skip(1).take_while(|line| !line.is_empty());
    for command in commands.filter_map(|line| line.split_whitespace().next()).filter(|name| *name != "help") {
        assert!(page.contains(&format!("\n## greenroom {command}\n")), "{command}");
    }
}

#[test]
fn a_node_tells_its_life_without_being_asked_to() {
    let temporary = tempfile::tempdir().unwrap();
    let log = temporary.path().join("log");
    let mut command = Command::new(PROGRAM);
    command.env_remove("RUST_LOG").stderr(std::fs::File::create(&log).unwrap());
    let args = ["node", "--name", "solo", "--http", "127.0.0.1:0"];
    let mut node = Running::start_as(command, &args, temporary.path());
    node.until("HTTP door");
    node.signal(libc::SIGTERM);
    assert_eq!(node.end(), Some(0));
    let life = std::fs::read_to_string(log).unwrap();
    for said in ["INFO greenroom", "this node has joined the cluster", "this node has left the cluster"] {
        assert!(life.contains(said), "{said:?} is not in {life}");
    }
}

#[test]
fn a_node_that_is_tied_to_its_input_ends_with_it() {
    let temporary = tempfile::tempdir().unwrap();
    let mut node = Running::start(&["node", "--until-stdin-ends"], temporary.path());
    std::thread::sleep(Duration::from_millis(500));
    drop(node.child.stdin.take());
    assert_eq!(node.end(), Some(0));
}

#[test]
fn a_node_that_cannot_run_names_the_remedy() {
    let taken = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let taken = taken.local_addr().unwrap().to_string();
    for (args, said) in [
        (&["node", "--http", &taken][..], "choose another address"),
        (&["node", "--listen", "0.0.0.0:0"], "--insecure-listen"),
        (&["node", "--kinds", "chat_rom"], "did you mean \"chat_room\""),
        (&["node", "--table", "sqlit:/tmp/x"], "did you mean \"sqlite\""),
    ] {
        let output = greenroom(args);
        assert_eq!(output.status.code(), Some(1), "{output:?}");
        assert!(text(&output.stderr).contains(said), "{output:?}");
    }
}
