//! The list of claims in `README.md` is that of the tests.

use std::collections::BTreeMap;
use std::fmt::Write;
use std::path::{Path, PathBuf};
use std::{env, fs};

/// Where claims are tested, from this crate's folder, and what the tests run on.
const PLACES: &[(&str, &str)] = &[
    ("../greenroom-conformance/tests/conformance", "In the simulated world, under many seeds"),
    ("../greenroom/tests/actors", "On one real node"),
    ("../greenroom/tests/state", "On one real node, with stores that fail"),
    ("../greenroom/tests/reliable", "On one real node, with a journal"),
    ("../greenroom/tests/door", "At the HTTP door"),
    ("../greenroom-cli/tests/processes", "On real processes"),
    ("../greenroom-upgrade/tests", "On real processes of two programs"),
];

/// The name of this file, whose test is about the list alone.
const THIS: &str = "claims.rs";

/// One file of tests: what it is about, and its claims.
struct Area {
    about: String,
    claims: Vec<String>,
}

/// The list, as it should be.
fn list() -> String {
    let mut text = String::new();
    let mut count = 0;
    for (place, world) in PLACES {
        let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join(place);
        let areas = areas(&folder);
        if areas.is_empty() {
            continue;
        }
        writeln!(text, "\n## {world}: `{}`", place.trim_start_matches("../")).expect("a string takes it");
        for (file, area) in areas {
            writeln!(text, "\n### {file}: {}\n", area.about).expect("a string takes it");
            for claim in area.claims {
                count += 1;
                writeln!(text, "- {}", claim.replace('_', " ")).expect("a string takes it");
            }
        }
    }
    format!("{HEAD}\nThere are {count} of them.\n{text}")
}

/// The files of tests in `folder`, by their paths in there.
fn areas(folder: &Path) -> BTreeMap<String, Area> {
    let mut areas = BTreeMap::new();
    let mut folders = vec![folder.to_owned()];
    while let Some(next) = folders.pop() {
        for entry in fs::read_dir(&next).expect("the folder is there").flatten() {
            let path: PathBuf = entry.path();
            if path.is_dir() {
                folders.push(path);
            } else if path.extension().is_some_and(|extension| extension == "rs") {
                let name = path.strip_prefix(folder).expect("it is in there").display().to_string();
                let text = fs::read_to_string(&path).expect("it is a text");
                let claims = claims(&text);
                if !claims.is_empty() && name != THIS {
                    areas.insert(name, Area { about: about(&text), claims });
                }
            }
        }
    }
    areas
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

#[test]
fn the_list_of_claims_is_that_of_the_tests() {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/conformance/README.md");
    let expected = list();
    if env::var_os(WRITE_VARIABLE).is_some() {
        fs::write(&path, expected).expect("it can be written");
        return;
    }
    let found = fs::read_to_string(&path).unwrap_or_default();
    assert!(
        found == expected,
        "{} is not the list of the tests any more; {WRITE_VARIABLE}=1 cargo test -p greenroom-conformance claims",
        path.display()
    );
}

const WRITE_VARIABLE: &str = "GREENROOM_WRITE_CLAIMS";

const HEAD: &str = "\
# What Greenroom promises

Each line is a claim and the name of the test that would fail if it were not so. The list is written by
`GREENROOM_WRITE_CLAIMS=1 cargo test -p greenroom-conformance claims`, and a test compares it with the tests.

```sh
cargo test -p greenroom-conformance                     # all claims of the simulated world, a few seeds each
cargo xtask seeds --count 10000 --test chaos            # those whose names contain `chaos`, under 10,000 seeds each
cargo xtask chaos --minutes 10 --seed 1 --table etcd    # real processes under faults
```
";
