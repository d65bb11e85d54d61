//! A node process one of whose shards never finishes a round.

use std::fs::File;
use std::process::{Command, Stdio};
use std::time::Duration;

use greenroom_engines::{Process, free_address, wait_until};
use serde_json::Value;

/// Returns the status and the text of the answer to `path`; `None` without an answer.
fn get(agent: &ureq::Agent, door: &str, path: &str) -> Option<(u16, String)> {
    let mut answer = agent.get(format!("http://{door}{path}")).call().ok()?;
    Some((answer.status().as_u16(), answer.body_mut().read_to_string().ok()?))
}

#[test]
fn a_node_with_a_shard_that_spins_is_not_ready_says_so_and_ends_on_sigterm() {
    let _machine = crate::alone();
    let folder = tempfile::tempdir().expect("a folder");
    let (door, log) = (free_address(), folder.path().join("log"));
    let config = folder.path().join("node.toml");
    std::fs::write(&config, "drain_timeout = 1\n").expect("the folder takes a file");
    let mut command = Command::new(env!("CARGO_BIN_EXE_greenroom"));
    command.args(["node", "--name", "one", "--listen", "127.0.0.1:0", "--http", &door, "--table", "memory:"]);
    command.args(["--kinds", "monitor", "--shards", "2", "--config"]).arg(&config);
    command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(File::create(&log).expect("the folder takes a file"));
    let mut node = Process::start("a node", command).expect("the program starts");
    let said = || std::fs::read_to_string(&log).unwrap_or_default();
    let config = ureq::Agent::config_builder().timeout_global(Some(ASK_TIMEOUT)).http_status_as_error(false);
    let agent: ureq::Agent = config.build().into();
    let ready = || get(&agent, &door, "/readyz");
    assert!(wait_until(HANG, || ready().is_some_and(|(status, _)| status == 200)), "it never starts: {}", said());

    let beat = agent.post(format!("http://{door}/monitor/a/beat")).header("greenroom-timeout", "1s");
    // Its caller gives up. The turn computes on, for longer than the test may take.
    let _ = beat.send(r#"{"work": {"secs": 600, "nanos": 0}, "blocks": "No"}"#);

    let not_ready = || ready().is_some_and(|(status, text)| status == 503 && text.contains("has not finished a round"));
    assert!(wait_until(HANG, not_ready), "{:?}: {}", ready(), said());
    let (_, why) = ready().expect("its other threads answer");
    let shard = why.split("shard ").nth(1).and_then(|rest| rest.split(' ').next()).unwrap_or_default().to_owned();
    assert!(["0", "1"].contains(&&*shard), "the shard is named: {why}");
    assert_eq!(get(&agent, &door, "/healthz").map(|(status, _)| status), Some(200));
    let found = wait_until(HANG, || {
        let (_, text) = get(&agent, &door, "/-/findings").unwrap_or_default();
        let said: Value = serde_json::from_str(&text).unwrap_or_default();
        let stuck = said["findings"].as_array().and_then(|all| all.iter().find(|one| one["check"] == "stuck-shard"));
        stuck.is_some_and(|stuck| {
            stuck["subject"]["shard"].as_u64() == shard.parse().ok()
                && stuck["text"].as_str().is_some_and(|text| text.contains("is not ready"))
        })
    });
    assert!(found, "{:?}", get(&agent, &door, "/-/findings"));

    node.signal(libc::SIGTERM);
    assert!(node.wait(HANG), "SIGTERM does not end it: {}", said());
    let ended = node.ended().map(|ended| ended.to_string()).unwrap_or_default();
    assert!(ended.contains("exit status: 1"), "{ended}: {}", said());
    assert!(said().contains(&format!("the node has left without its shard {shard}")), "{}", said());
}

/// Longer than anything takes that happens at all.
const HANG: Duration = Duration::from_secs(120);
const ASK_TIMEOUT: Duration = Duration::from_secs(10);
