//! The page of the HTTP door's paths.

use super::rust::item;
use super::source;
use super::table::{code, table};

/// The page, from what the door's sources say of each path, and whom they are for.
pub(super) fn page() -> Result<String, String> {
    let (guard, asked) = (source(GUARD)?, source(ASKED)?);
    let mut rows = Vec::new();
    for (file, name) in ENUMS {
        let text = source(file)?;
        let who_may = |variant: &str| match *name {
            "Path" => whom(&guard, variant),
            _ => whom_asked(&guard, &asked, variant),
        };
        let item = item(&text, name).ok_or_else(|| format!("{file} has no enum {name} any more"))?;
        for member in &item.members {
            for (request, what) in requests(&member.doc) {
                rows.push(vec![code(&request), who_may(&member.name)?.to_owned(), what]);
            }
        }
    }
    let path = |row: &Vec<String>| row[0].split_once('/').map(|(_, path)| path.to_owned());
    rows.sort_by_key(|row| (path(row), row[0].clone()));
    Ok(format!("{HEAD}\n{}", table(&["request", "who may", "what it does"], rows)))
}

/// The requests that a text names, each with what it says of it.
fn requests(doc: &str) -> Vec<(String, String)> {
    let mut found: Vec<(String, String)> = Vec::new();
    let mut parts = doc.split('`');
    let mut said = String::new();
    while let (Some(before), span) = (parts.next(), parts.next()) {
        let Some(span) = span else { break };
        said.push_str(before);
        if !METHODS.iter().any(|method| span.strip_prefix(method).is_some_and(|rest| rest.starts_with(" /"))) {
            said.push_str(&format!("`{span}`"));
            continue;
        }
        let own = said.trim_start_matches([',', '.', ' ']).trim_end();
        let what = match (own.strip_suffix(':'), found.last()) {
            (Some(what), _) => what.to_owned(),
            (None, Some((_, before))) if own.is_empty() => before.trim_end_matches('.').to_owned(),
            (None, Some((_, before))) => format!("{}, {}", before.trim_end_matches('.'), own.trim_start_matches("or ")),
            (None, None) => own.to_owned(),
        };
        found.push((span.to_owned(), format!("{what}.")));
        said.clear();
    }
    found
}

/// Whom the guard says that a path is for.
fn whom(guard: &str, variant: &str) -> Result<&'static str, String> {
    let arm =
        arm(guard, "fn whom_for", variant).ok_or_else(|| format!("{GUARD} does not say whom {variant} is for"))?;
    let class: String =
        arm.split("For::").nth(1).unwrap_or_default().chars().take_while(|letter| letter.is_alphabetic()).collect();
    let found = WHOM.iter().find(|(name, _)| *name == class);
    found.map(|(_, said)| *said).ok_or_else(|| format!("{GUARD} has paths for {class}, which the page cannot name"))
}

/// Whom something is for that operators may ask: by what it needs.
fn whom_asked(guard: &str, asked: &str, variant: &str) -> Result<&'static str, String> {
    let needed = arm(asked, "fn needs", variant).and_then(|arm| Some(arm.split_once("Needs::")?.1.to_owned()));
    let needed = needed.ok_or_else(|| format!("{ASKED} does not say what {variant} needs"))?;
    whom(guard, needed.split(|letter: char| !letter.is_alphabetic()).next().unwrap_or_default())
}

/// The arm of a `match` in the function that has this word before its arrow, on however many lines it stands.
fn arm(text: &str, function: &str, word: &str) -> Option<String> {
    let (_, body) = text.split_once(function)?;
    let mut patterns = String::new();
    for line in body.lines().take_while(|line| *line != "}") {
        patterns.push_str(line);
        let Some((before, after)) = patterns.split_once("=>") else { continue };
        if before.split(|letter: char| !letter.is_alphanumeric()).any(|known| known == word) {
            // What it leads to may begin on the next line.
            let more = body.split_once(line).map_or("", |(_, rest)| rest.lines().nth(1).unwrap_or_default());
            return Some(format!("{after}{more}"));
        }
        patterns.clear();
    }
    None
}

const METHODS: &[&str] = &["GET", "POST", "PUT", "DELETE"];

const WHOM: &[(&str, &str)] = &[
    ("Everybody", "everybody"),
    ("Known", "who has credentials"),
    ("Metrics", "roles `metrics`, `admin`"),
    ("Viewers", "roles `viewer`, `operator`, `admin`"),
    ("Operators", "roles `operator`, `admin`"),
    ("Admins", "role `admin`"),
    ("Hosts", "hosts"),
    ("Callers", "whom a rule allows"),
];

const GUARD: &str = "crates/greenroom/src/gateway/guard.rs";

const ASKED: &str = "crates/greenroom/src/gateway/admin.rs";

const ENUMS: &[(&str, &str)] = &[
    ("crates/greenroom/src/gateway/path.rs", "Path"),
    ("crates/greenroom/src/gateway/admin.rs", "Asked"),
    ("crates/greenroom/src/gateway/reliable.rs", "Reliable"),
];

const HEAD: &str = "\
# Paths

For who asks a node's HTTP door by programs. This page is made from the door's sources. Answers are JSON unless it says otherwise, and an error is a
[problem document](errors.md#at-the-http-door). `{name}` stands for one part of the path, percent-encoded; what follows a `?` may be left out.

Without `auth` in its configuration, a door takes calls from everybody who reaches it, and answers what is for `viewer`, `operator`, `admin` and hosts to its own machine alone:
[security](../guide/security.md). A request below `/-/` that changes something has the header `Greenroom-Change`, which says what for.
";

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::BTreeSet;

    #[test]
    fn requests_are_read_out_of_what_is_said() {
        let one = |request: &str, what: &str| (request.to_owned(), what.to_owned());
        assert_eq!(
            requests("Shows `x`: `GET /a`, or of one actor `GET /a/{b}`. Ends: `POST /c`, `POST /d`."),
            [
                one("GET /a", "Shows `x`."),
                one("GET /a/{b}", "Shows `x`, of one actor."),
                one("POST /c", "Ends."),
                one("POST /d", "Ends.")
            ]
        );
    }

    #[test]
    fn each_path_that_the_door_reads_is_on_the_page() {
        let page = page().expect("it can be made");
        let shape = |path: &str| {
            let path = path.split('?').next().unwrap_or_default();
            path.split('/').map(|part| if part.starts_with('{') { "{}" } else { part }).collect::<Vec<_>>().join("/")
        };
        let spans = page.split('`').filter_map(|span| span.split_once(" /").map(|(_, path)| shape(path)));
        let said: BTreeSet<String> = spans.collect();
        let mut count = 0;
        for (file, before) in [(ENUMS[0].0, ""), (ENUMS[2].0, "-/reliable/")] {
            let text = source(file).expect("it is there");
            let arms = text.lines().filter_map(|line| line.trim().strip_prefix('[')?.split_once("] => "));
            for (pattern, _) in arms.filter(|(pattern, _)| !pattern.contains("..")) {
                let parts = pattern
                    .split(", ")
                    .filter(|part| !part.is_empty())
                    .map(|part| if part.starts_with('"') { part.trim_matches('"') } else { "{}" });
                let path = format!("{before}{}", parts.collect::<Vec<_>>().join("/"));
                assert!(said.contains(path.trim_end_matches('/')), "{path} of {file} is not on the page: {said:?}");
                count += 1;
            }
        }
        assert!(count > 30, "only {count} paths were found");
    }

    #[test]
    fn the_guard_is_asked_whom_a_path_is_for() {
        let page = page().expect("it can be made");
        for said in [
            "| `POST /-/drain/{node}` | roles `operator`, `admin` | Let a node hand over what it has, and leave. |",
            "| `GET /-/status` | roles `viewer`, `operator`, `admin` | ",
            "| `GET /-/reliable/parked` | roles `viewer`, `operator`, `admin` | ",
            "| `GET /-/reliable/actor/{kind}/{key}` | roles `operator`, `admin` | ",
            "| `POST /-/clusters/drain/{name}` | role `admin` | ",
            "| `GET /metrics` | roles `metrics`, `admin` | ",
            "| `GET /healthz` | everybody | ",
            "| `GET /-/host` | hosts | ",
            "| `POST /{kind}/{key}/{method}` | whom a rule allows | ",
        ] {
            assert!(page.contains(said), "{said} is not in\n{page}");
        }
    }
}
