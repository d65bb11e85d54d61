//! Settings from outside: a check says what a node says, an empty value is none, and what is printed is read again.

use std::path::Path;
use std::process::{Command, Output, Stdio};

use crate::processes::{Running, greenroom, text, until_says};

const PROGRAM: &str = env!("CARGO_BIN_EXE_greenroom");

/// The outputs of a check of `content`, and of a node that is started by it, which ends if it starts.
fn both(folder: &Path, content: &str) -> [Output; 2] {
    let file = folder.join("node.toml");
    std::fs::write(&file, content).unwrap();
    let path = file.to_str().unwrap();
    let mut node = Command::new(PROGRAM);
    // Its input has ended, so that it stops as soon as it runs.
    node.args(["node", "--http", "127.0.0.1:0", "--config", path, "--until-stdin-ends"]).stdin(Stdio::null());
    [greenroom(&["config", "check", path]), node.output().unwrap()]
}

#[test]
fn a_check_refuses_what_a_node_refuses_and_nothing_else() {
    let folder = tempfile::tempdir().unwrap();
    for (content, said) in [
        ("http_origins = [\"https://app.example.org\"]", ""),
        ("http_origins = [\"https://app.example.org/\"]", "http_origins"),
        ("http_origins = [\"https://app.example.org:443\"]", "http_origins"),
        ("http_origins = [\"*\"]", "http_origins"),
        ("http_hosts = [\"*.example.org\"]", ""),
        ("http_hosts = [\"https://games.example.org\"]", "http_hosts"),
        ("http_hosts = [\"a.example b.example\"]", "http_hosts"),
        ("name = \"a\\u0000b\"", "control character"),
        ("roles = [\"a\\u0007\"]", "control character"),
        ("advertise = \"\"", ""),
        ("advertise = \"nohost\"", "advertise"),
        ("advertise = \"a b:7000\"", "advertise"),
        ("[hosts]\nlisten = \"foo\"", "unix:PATH"),
        ("[hosts]\nlisten = \"unix:\"", "unix:PATH"),
        ("[reliable]\njournal = \"memory:\"\npartitions = 0", "partitions"),
        ("[reliable.outlets]\nx = \"ftp://h\"", "ftp"),
        ("call_timeout = 0", "call_timeout"),
        ("http_body_len_max = 0", "http_body_len_max"),
        ("console = \"look\"", ""),
    ] {
        for output in both(folder.path(), content) {
            let stderr = text(&output.stderr);
            assert_eq!(output.status.success(), said.is_empty(), "{content}: {stderr}");
            assert!(stderr.contains(said), "{content}: {stderr}");
        }
    }
}

#[test]
fn a_variable_that_is_empty_is_not_set() {
    let folder = tempfile::tempdir().unwrap();
    let names = [
        "NAME",
        "CLUSTER",
        "HTTP",
        "GRPC",
        "LISTEN",
        "ADVERTISE",
        "TABLE",
        "JOURNAL",
        "NAMESPACE",
        "HOSTS",
        "KINDS",
        "ROLE",
        "LEASE",
        "SHARDS",
        "CONFIG",
        "TOKENS",
        "TLS_DIR",
        "HTTP_ORIGINS",
        "HTTP_HOSTS",
        "CONSOLE",
        "OPTIMISER",
        "IDLE",
        "INSECURE_LISTEN",
        "DRAIN_DELAY",
        "RERUN",
        "LOG_FORMAT",
    ];
    let plain = greenroom(&["config", "print"]);
    let mut printed = Command::new(PROGRAM);
    let mut node = Command::new(PROGRAM);
    for name in names {
        printed.env(format!("GREENROOM_{name}"), "");
        node.env(format!("GREENROOM_{name}"), "");
    }
    let output = printed.args(["config", "print"]).output().unwrap();
    assert_eq!((text(&output.stderr), text(&output.stdout)), (String::new(), text(&plain.stdout)));
    node.args(["node", "--until-stdin-ends"]).stdin(Stdio::null()).current_dir(folder.path());
    let output = node.output().unwrap();
    assert!(output.status.success(), "{}", text(&output.stderr));
}

#[test]
fn a_node_whose_address_does_not_lead_to_it_says_so() {
    let folder = tempfile::tempdir().unwrap();
    // Nothing listens at a port that was just free.
    let free = std::net::TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap().to_string();
    let args = ["node", "--name", "far", "--http", "127.0.0.1:0", "--advertise", &free];
    let mut node = Running::start(&args, folder.path());
    let door = node.until("HTTP door").pop().unwrap().rsplit(' ').next().unwrap().to_owned();
    until_says(&["findings", "--node", &door], |findings| {
        findings.contains("address-unreachable")
            && findings.contains(&free)
            && findings.contains("--advertise HOST:PORT")
    });
    node.signal(libc::SIGTERM);
    assert_eq!(node.end(), Some(0));
}

#[test]
fn what_is_printed_is_read_again_for_every_flag() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("printed.toml");
    let path = file.to_str().unwrap();
    let certificates = folder.path().join("certs");
    let certificates = certificates.to_str().unwrap();
    let tokens = folder.path().join("tokens.toml");
    let tokens = tokens.to_str().unwrap();
    assert!(greenroom(&["certs", "ca", certificates]).status.success());
    assert!(greenroom(&["certs", "node", certificates]).status.success());
    assert!(greenroom(&["token", "ada", "--role", "admin", "--file", tokens]).status.success());
    let values = [
        ("config", ""),
        ("name", "a"),
        ("cluster", "mill"),
        ("listen", "127.0.0.1:7001"),
        ("advertise", "127.0.0.1:7002"),
        ("http", "127.0.0.1:7003"),
        ("grpc", "127.0.0.1:7004"),
        ("http-host", "a.example"),
        ("http-origin", "https://a.example"),
        ("console", "look"),
        ("hide-keys", "wallet"),
        ("table", "memory:"),
        ("namespace", "n"),
        ("lease", "5s"),
        ("journal", "memory:"),
        ("rerun", ""),
        ("optimiser", "off"),
        ("hosts", "off"),
        ("role", "r"),
        ("shards", "2"),
        ("kinds", "chat_room"),
        ("call-timeout", "3s"),
        ("idle", "1m"),
        ("stop-timeout", "2s"),
        ("drain-delay", "1s"),
        ("tls-dir", certificates),
        ("tls-ca", ""),
        ("tls-cert", ""),
        ("tls-key", ""),
        ("tokens", tokens),
        ("http-plain", ""),
        ("http-proxied", ""),
        ("insecure-listen", ""),
        ("without-examples", ""),
    ];
    // Each flag that there is has its line above.
    let help = text(&greenroom(&["config", "print", "--help"]).stdout);
    let flags = help
        .split_whitespace()
        .filter_map(|word| word.strip_prefix("--"))
        .map(|word| word.trim_end_matches(['.', ',', ')', ']', '`']));
    for flag in flags.filter(|flag| !["help", "log-format", "grpc-services"].contains(flag)) {
        assert!(values.iter().any(|(known, _)| *known == flag), "no value for --{flag}");
    }
    for (flag, value) in values.iter().filter(|(flag, _)| !["config", "tls-ca", "tls-cert", "tls-key"].contains(flag)) {
        let name = format!("--{flag}");
        let mut args = vec!["config", "print", &name];
        if !value.is_empty() {
            args.push(value);
        }
        let printed = greenroom(&args);
        assert!(printed.status.success(), "{flag}: {}", text(&printed.stderr));
        std::fs::write(&file, &printed.stdout).unwrap();
        let checked = greenroom(&["config", "check", path]);
        assert!(checked.status.success(), "--{flag}: {}\n{}", text(&checked.stderr), text(&printed.stdout));
        let again = greenroom(&["config", "print", "--config", path]);
        assert_eq!(text(&again.stdout), text(&printed.stdout), "--{flag}");
    }
}

#[test]
fn a_node_measures_the_files_of_its_stores() {
    let folder = tempfile::tempdir().unwrap();
    let table = format!("sqlite:{}", folder.path().join("table.db").display());
    let args = ["node", "--http", "127.0.0.1:0", "--table", &table, "--journal", &table];
    let mut node = Running::start(&args, folder.path());
    let door = node.until("HTTP door").pop().unwrap().rsplit(' ').next().unwrap().to_owned();
    let metric = |name: &str| {
        let agent: ureq::Agent = ureq::Agent::config_builder().proxy(None).build().into();
        let page = agent.get(format!("{door}/metrics")).call().unwrap().body_mut().read_to_string().unwrap();
        let lines: Vec<f64> =
            page.lines().filter_map(|line| line.strip_prefix(name)?.rsplit(' ').next()?.parse().ok()).collect();
        lines
    };
    let until = std::time::Instant::now() + std::time::Duration::from_secs(60);
    while metric("greenroom_store_bytes{store=\"table\"}").is_empty() {
        assert!(std::time::Instant::now() < until, "no store is measured");
        std::thread::sleep(std::time::Duration::from_millis(100));
    }
    // One file for several purposes is measured once.
    for name in ["greenroom_store_bytes{", "greenroom_store_free_bytes{", "greenroom_store_log_bytes{"] {
        let values = metric(name);
        assert!(values.len() == 1 && values[0] > 0.0, "{name}: {values:?}");
    }
    node.signal(libc::SIGTERM);
    assert_eq!(node.end(), Some(0));
}
