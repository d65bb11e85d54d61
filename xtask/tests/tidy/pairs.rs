//! The matrix of pairs of features in the guide has no empty cell, and each test that it names exists.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write;
use std::{env, fs};

use crate::tree::{Tree, root};
use crate::{assert_caught, assert_clean};

/// Verdict on a pair of features.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Verdict {
    Works,
    Refused,
    NotApplicable,
    Fails,
}

impl Verdict {
    fn read(text: &str) -> Option<Self> {
        match text {
            "works" => Some(Self::Works),
            "refused by name" => Some(Self::Refused),
            "not applicable" => Some(Self::NotApplicable),
            "fails" => Some(Self::Fails),
            _ => None,
        }
    }

    fn symbol(self) -> &'static str {
        match self {
            Self::Works => "W",
            Self::Refused => "R",
            Self::NotApplicable => "–",
            Self::Fails => "**F**",
        }
    }

    /// True for verdicts that a test shows.
    fn wants_test(self) -> bool {
        matches!(self, Self::Works | Self::Refused)
    }
}

/// One row of the evidence: two features by their numbers, the verdict on them, and its test or reason.
struct Row<'a> {
    features: [usize; 2],
    verdict: Verdict,
    evidence: &'a str,
}

/// Reads the rows under [`EVIDENCE`]; sentences about those that cannot be read go to `broken`.
fn rows<'a>(page: &'a str, broken: &mut Vec<String>) -> Vec<Row<'a>> {
    let number = |name: &str| FEATURES.iter().position(|feature| *feature == name.trim());
    let mut under = None;
    let mut rows = Vec::new();
    for line in page.split_once(EVIDENCE).map_or("", |(_, rest)| rest).lines() {
        if line.starts_with("## ") {
            break;
        }
        if let Some(heading) = line.strip_prefix("#### ") {
            under = number(heading);
        }
        let Some(cells) = line.strip_prefix("| ").and_then(|line| line.strip_suffix(" |")) else { continue };
        let cells: Vec<&str> = cells.splitn(3, " | ").collect();
        match (under, &cells[..]) {
            (_, ["with", ..]) => {}
            (Some(one), [other, verdict, evidence]) => match (number(other), Verdict::read(verdict)) {
                (Some(other), Some(verdict)) => rows.push(Row { features: [one, other], verdict, evidence }),
                _ => broken.push(format!("{PAGE}: `{line}` names no feature or no verdict")),
            },
            _ => broken.push(format!("{PAGE}: `{line}` is not a row of a feature")),
        }
    }
    rows
}

fn broken_pairs(tree: &Tree) -> Vec<String> {
    let page = tree.text(PAGE).unwrap_or_default();
    let mut broken = Vec::new();
    let rows = rows(page, &mut broken);
    let tests = tests(tree);
    let mut verdicts = BTreeMap::new();
    for Row { features, verdict, evidence } in rows {
        let [one, other] = features;
        let names = format!("{} × {}", FEATURES[one], FEATURES[other]);
        if one == other || verdicts.insert((one.min(other), one.max(other)), verdict).is_some() {
            broken.push(format!("{PAGE}: {names} stands there twice"));
        }
        let named: Vec<&str> = evidence.split('`').skip(1).step_by(2).collect();
        if evidence.trim().is_empty() || verdict.wants_test() && named.is_empty() {
            broken.push(format!("{PAGE}: {names} names no test or reason"));
        }
        let missing = named.iter().filter(|name| verdict.wants_test() && !tests.contains(**name));
        broken.extend(missing.map(|name| format!("{PAGE}: {names} names the test `{name}`, which is nowhere")));
    }
    for (other, name) in FEATURES.iter().enumerate() {
        let empty = FEATURES[..other].iter().enumerate().filter(|(one, _)| !verdicts.contains_key(&(*one, other)));
        broken.extend(empty.map(|(_, one)| format!("{PAGE}: {one} × {name} has no row")));
    }
    if broken.is_empty() && !page.contains(&matrix(&verdicts)) {
        broken.push(format!("{PAGE}: the matrix is not that of its evidence; {WRITE_VARIABLE}=1 {COMMAND}"));
    }
    broken
}

/// Returns the names of all functions that may be tests.
fn tests(tree: &Tree) -> BTreeSet<&str> {
    let sources = tree.files().filter(|(path, _)| [".rs", ".py", ".go"].iter().any(|ending| path.ends_with(ending)));
    let lines = sources.flat_map(|(_, text)| text.lines());
    lines
        .filter_map(|line| {
            let line = line.trim_start().trim_start_matches("pub ").trim_start_matches("async ");
            let name = ["fn ", "def ", "func "].iter().find_map(|start| line.strip_prefix(start))?;
            name.split(['(', '<']).next()
        })
        .collect()
}

/// Returns the matrix as the page has it.
fn matrix(verdicts: &BTreeMap<(usize, usize), Verdict>) -> String {
    let numbers: Vec<String> = (1..=FEATURES.len()).map(|number| number.to_string()).collect();
    let mut text = format!("| | {} |\n|---|{}\n", numbers.join(" | "), "---|".repeat(FEATURES.len()));
    for (one, feature) in FEATURES.iter().enumerate() {
        let cells = (0..FEATURES.len()).map(|other| match verdicts.get(&(one.min(other), one.max(other))) {
            Some(verdict) => verdict.symbol(),
            None => "·",
        });
        writeln!(text, "| {} {feature} | {} |", one + 1, cells.collect::<Vec<_>>().join(" | "))
            .expect("a string takes it");
    }
    text
}

/// Returns the page with the matrix of its evidence between the heading of the matrix and that of the evidence.
fn renewed(page: &str) -> String {
    let rows = rows(page, &mut Vec::new());
    let verdicts = rows.iter().map(|row| {
        let [one, other] = row.features;
        ((one.min(other), one.max(other)), row.verdict)
    });
    let (head, rest) = page.split_once(MATRIX).expect("it has the heading of the matrix");
    let (_, evidence) = rest.split_once(EVIDENCE).expect("it has the heading of the evidence");
    format!("{head}{MATRIX}\n{}\n{EVIDENCE}{evidence}", matrix(&verdicts.collect()))
}

#[test]
fn each_pair_of_features_has_a_verdict_and_its_test() {
    if env::var_os(WRITE_VARIABLE).is_some() {
        let page = fs::read_to_string(root().join(PAGE)).expect("it can be read");
        fs::write(root().join(PAGE), renewed(&page)).expect("it can be written");
    }
    assert_clean(&broken_pairs(&Tree::of_repository()));
}

#[test]
fn a_pair_without_a_verdict_or_with_a_test_that_is_nowhere_is_caught() {
    let mut evidence = String::new();
    for (one, feature) in FEATURES.iter().enumerate() {
        write!(evidence, "\n#### {feature}\n\n| with | verdict | test or reason |\n|---|---|---|\n").unwrap();
        for other in &FEATURES[one + 1..] {
            writeln!(evidence, "| {other} | works | `a_pair_works` |").unwrap();
        }
    }
    let page = renewed(&format!("{MATRIX}\n{EVIDENCE}{evidence}"));
    let test = ("a/tests/b.rs", "#[test]\nfn a_pair_works() {}\n");
    let judge = |page: &str| broken_pairs(&Tree::of(&[(PAGE, page), test]));
    assert_clean(&judge(&page));
    assert_caught(
        &judge(&page.replacen("| persistent | works | `a_pair_works` |\n", "", 1)),
        "virtual × persistent has no row",
    );
    assert_caught(&judge(&page.replacen("`a_pair_works`", "`a_pair_broke`", 1)), "`a_pair_broke`, which is nowhere");
    assert_caught(&judge(&page.replacen("`a_pair_works`", "it does", 1)), "names no test");
    assert_caught(&judge(&page.replacen("works | `a_pair_works`", "fails | not yet", 1)), "not that of its evidence");
}

/// Features of the matrix, in its order.
const FEATURES: [&str; 22] = [
    "virtual",
    "persistent",
    "versioned",
    "reliable",
    "state machine",
    "stateless worker",
    "spawned",
    "topics",
    "streams",
    "reminders",
    "timers",
    "optimiser moves",
    "migration",
    "drain",
    "upgrade",
    "clusters",
    "hosts",
    "HTTP",
    "gRPC",
    "rules",
    "idempotency keys",
    "explorer",
];

/// Page that has the matrix.
const PAGE: &str = "docs/guide/guarantees.md";

const MATRIX: &str = "### The matrix\n";

const EVIDENCE: &str = "### Evidence\n";

const WRITE_VARIABLE: &str = "GREENROOM_WRITE_PAIRS";

const COMMAND: &str = "cargo test -p xtask --test tidy pairs";
