//! The list of claims in the conformance tests' `README.md` is that of the tests.

use std::fmt::Write;
use std::{env, fs};

use crate::tree::{Tree, root};
use crate::{assert_caught, assert_clean};

/// Where claims are tested, and what the tests run on.
const PLACES: &[(&str, &str)] = &[
    ("greenroom-conformance/tests/conformance", "In the simulated world, under many seeds"),
    ("greenroom-conformance/tests/actors", "On one real node"),
    ("greenroom-conformance/tests/state", "On one real node, with stores that fail"),
    ("greenroom-conformance/tests/reliable", "On one real node, with a journal"),
    ("greenroom-conformance/tests/door", "At the HTTP door"),
    ("greenroom-cli/tests/processes", "On real processes"),
    ("greenroom-upgrade/tests", "On real processes of two programs"),
];

/// Where the list stands.
const LIST: &str = "crates/greenroom-conformance/tests/conformance/README.md";

/// The list, as it should be.
fn list(tree: &Tree) -> String {
    let mut text = String::new();
    let mut count = 0;
    for (place, world) in PLACES {
        let folder = format!("crates/{place}/");
        let files = tree.sources().filter_map(|(path, text)| Some((path.strip_prefix(folder.as_str())?, text)));
        let areas = files.map(|(file, text)| (file, about(text), claims(text)));
        let areas: Vec<_> = areas.filter(|(_, _, claims)| !claims.is_empty()).collect();
        if areas.is_empty() {
            continue;
        }
        writeln!(text, "\n## {world}: `{place}`").expect("a string takes it");
        for (file, about, claims) in areas {
            writeln!(text, "\n### {file}: {about}\n").expect("a string takes it");
            for claim in claims {
                count += 1;
                writeln!(text, "- {}", claim.replace('_', " ")).expect("a string takes it");
            }
        }
    }
    format!("{HEAD}\nThere are {count} of them.\n{text}")
}

/// The first sentence of a file's documentation.
fn about(text: &str) -> String {
    let lines = text.lines().map_while(|line| line.strip_prefix("//! "));
    let all = lines.collect::<Vec<_>>().join(" ");
    let end = all.find(". ").unwrap_or_else(|| all.trim_end_matches('.').len());
    all[..end].to_owned()
}

/// The names of the tests in a file.
fn claims(text: &str) -> Vec<String> {
    let mut names = Vec::new();
    let mut is_test = false;
    for line in text.lines() {
        let function = line.trim_start_matches("async ").strip_prefix("fn ");
        if line.starts_with("#[test]") || line.starts_with("#[tokio::test") {
            is_test = true;
        } else if let (true, Some(function)) = (is_test, function) {
            names.push(function.split('(').next().unwrap_or_default().to_owned());
            is_test = false;
        }
    }
    names
}

fn stale_list(tree: &Tree) -> Vec<String> {
    let stale = tree.text(LIST) != Some(&list(tree));
    let remedy = format!("{LIST} is not the list of the tests any more; {WRITE_VARIABLE}=1 {COMMAND}");
    stale.then_some(remedy).into_iter().collect()
}

#[test]
fn the_list_of_claims_is_that_of_the_tests() {
    let tree = Tree::of_repository();
    if env::var_os(WRITE_VARIABLE).is_some() {
        fs::write(root().join(LIST), list(&tree)).expect("it can be written");
        return;
    }
    assert_clean(&stale_list(&tree));
}

#[test]
fn a_claim_that_is_not_in_the_list_is_caught() {
    let place = "crates/greenroom-conformance/tests/door/keys.rs";
    let test = "//! Keys at the door.\n\n#[test]\nfn a_key_is_bounded() {}\n";
    let expected = list(&Tree::of(&[(place, test)]));
    assert!(expected.contains("### keys.rs: Keys at the door\n\n- a key is bounded\n"), "{expected}");
    assert_clean(&stale_list(&Tree::of(&[(place, test), (LIST, &expected)])));
    assert_caught(&stale_list(&Tree::of(&[(place, &test.replace("bounded", "free")), (LIST, &expected)])), LIST);
}

const WRITE_VARIABLE: &str = "GREENROOM_WRITE_CLAIMS";

const COMMAND: &str = "cargo test -p xtask --test tidy claims";

const HEAD: &str = "\
# What Greenroom promises

Each line is a claim and the name of the test that would fail if it were not so. The list is written by
`GREENROOM_WRITE_CLAIMS=1 cargo test -p xtask --test tidy claims`, and a test compares it with the tests.

```sh
cargo test -p greenroom-conformance                     # all claims of the simulated world, a few seeds each
cargo xtask seeds --count 10000 --test chaos            # those whose names contain `chaos`, under 10,000 seeds each
cargo xtask chaos --minutes 10 --seed 1 --table etcd    # real processes under faults
```
";
