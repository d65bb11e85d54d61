//! The program from outside, which is built with the tests for those chores that run it.

use std::process::Command;

#[test]
fn options_that_are_wrong_are_named_and_nothing_is_started() {
    let wrong =
        [("--nodes two", "--nodes wants a number"), ("--nodes 2", "3 to 20 nodes"), ("--tabel etcd", "--tabel")];
    for (words, remedy) in wrong {
        let output = Command::new(env!("CARGO_BIN_EXE_greenroom-chaos")).args(words.split(' ')).output();
        let output = output.expect("the program starts");
        let said = String::from_utf8_lossy(&output.stderr).into_owned();
        assert!(output.status.code() == Some(2) && said.contains(remedy), "{words}: {said}");
    }
}
