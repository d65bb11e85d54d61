//! The example application over two clusters, whose script cuts the link between them.

use std::path::Path;
use std::process::{Command, Stdio};

use greenroom_engines::free_port;

use crate::alone;

#[test]
fn people_in_two_clusters_go_on_while_the_link_is_cut_and_see_the_same_once_it_is_healed() {
    let _alone = alone();
    let script = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../examples/two-clusters.sh");
    let mut command = Command::new("bash");
    command.arg(script).env("GREENROOM", env!("CARGO_BIN_EXE_greenroom")).stdin(Stdio::null());
    for port in ["EU_DOOR", "US_DOOR", "EU_GATEWAY", "US_GATEWAY", "EU_FAR", "US_FAR"] {
        command.env(port, free_port().to_string());
    }
    let output = command.output().expect("there is a bash");
    let said = String::from_utf8_lossy(&output.stdout).into_owned();
    assert!(output.status.success(), "{said}\n{}", String::from_utf8_lossy(&output.stderr));
    let (before, after) = said.split_once("== what everyone sees now").expect("it comes to its end");
    let apart = before.split_once("== both sides go on").expect("it says what it does").1;
    let (in_eu, in_us) = apart.split_once("in us:").expect("it shows both sides");
    assert!(in_eu.contains("anybody there?") && in_eu.contains(r#"on a node of "eu""#), "{said}");
    assert!(in_us.contains("it is quiet here") && in_us.contains(r#"on a node of "us""#), "{said}");
    for post in ["good morning", "good night", "anybody there?", "it is quiet here"] {
        assert_eq!(after.matches(post).count(), 2, "{post:?} is in both, once: {said}");
    }
    assert_eq!(after.matches(r#"[["bob",6],["ada",5]]"#).count(), 2, "{said}");
}
