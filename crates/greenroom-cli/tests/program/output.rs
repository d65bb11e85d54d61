//! Output of commands: on a full disk, in a terminal without colours, and where nobody answers.

use std::fs::File;
use std::process::{Command, Stdio};

use crate::processes::{Running, greenroom, text};

const PROGRAM: &str = env!("CARGO_BIN_EXE_greenroom");

#[test]
fn a_command_whose_output_does_not_fit_the_disk_says_so_and_fails() {
    let folder = tempfile::tempdir().unwrap();
    let mut node = Running::start(&["node", "--http", "127.0.0.1:0"], folder.path());
    let door = node.until("HTTP door").pop().unwrap().rsplit(' ').next().unwrap().to_owned();
    let full = || File::options().write(true).open("/dev/full").unwrap();
    for args in
        [&["kinds"][..], &["call", "counter/a", "get"], &["config", "print"], &["completions", "bash"], &["status"]]
    {
        let mut command = Command::new(PROGRAM);
        command.args(args).env("GREENROOM_NODE", &door).stdin(Stdio::null()).stdout(full());
        let output = command.output().unwrap();
        let stderr = text(&output.stderr);
        assert_eq!(output.status.code(), Some(1), "{args:?}: {stderr}");
        assert!(stderr.contains("the output cannot be written: No space left on device"), "{args:?}: {stderr}");
        assert!(!stderr.contains("panicked"), "{args:?}: {stderr}");
    }
    node.signal(libc::SIGTERM);
    assert_eq!(node.end(), Some(0));
    // A node does more than it says.
    let mut command = Command::new(PROGRAM);
    command.args(["node", "--until-stdin-ends"]).stdin(Stdio::null()).stdout(full());
    let output = command.output().unwrap();
    assert!(output.status.success(), "{}", text(&output.stderr));
}

#[test]
fn a_log_has_no_colours_where_nobody_wants_them() {
    let folder = tempfile::tempdir().unwrap();
    let shown = |name: &str, value: &str| {
        let mut command = Command::new("script");
        command.args([
            "--quiet",
            "--return",
            "--command",
            &format!("exec {PROGRAM} node --until-stdin-ends < /dev/null"),
            "/dev/null",
        ]);
        command.env(name, value).env_remove("RUST_LOG").current_dir(folder.path()).stdin(Stdio::null());
        text(&command.output().unwrap().stdout)
    };
    let plain = shown("NO_COLOR", "1");
    assert!(plain.contains("this node has joined the cluster") && !plain.contains('\x1b'), "{plain}");
    let coloured = shown("NO_COLOR", "");
    assert!(coloured.contains('\x1b'), "an empty value is none: {coloured}");
}

#[test]
fn a_request_that_cannot_be_made_is_not_told_as_a_node_that_does_not_answer() {
    let said = |node: &str| text(&greenroom(&["status", "--node", node]).stderr);
    assert!(
        said("http://no.host.invalid:7070").contains("its host is not known here"),
        "{}",
        said("http://no.host.invalid:7070")
    );
    assert!(said("127.0.0.1:1").contains("greenroom demo"), "{}", said("127.0.0.1:1"));
    assert!(said("http://a b:7070").contains("no address of a node"), "{}", said("http://a b:7070"));
}
