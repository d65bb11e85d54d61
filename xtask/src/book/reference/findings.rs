//! The page of findings: what nodes find wrong by themselves.

use std::fs;

use super::rust::strings;
use super::table::table;
use super::{read, root};

/// The page, from the checks that nodes make.
pub(super) fn page() -> Result<String, String> {
    let folder = root().join(CHECKS);
    let failed = |error| format!("cannot read {CHECKS}: {error}");
    let mut paths: Vec<_> = fs::read_dir(&folder).map_err(failed)?.flatten().map(|entry| entry.path()).collect();
    paths.sort();
    let mut rows = Vec::new();
    for path in paths.iter().filter(|path| !path.ends_with("mod.rs")) {
        let text = read(path)?;
        rows.push(
            row(&text).ok_or_else(|| format!("{} says no check with a name and a remedy any more", path.display()))?,
        );
    }
    Ok(format!("{HEAD}\n{}", table(&["finding", "what it is", "must hold for", "what to do"], rows)))
}

fn row(text: &str) -> Option<Vec<String>> {
    let about = text.lines().next()?.strip_prefix("//! ")?;
    let (_, check) = text.split_once(": Check = Check {")?;
    let (check, _) = check.split_once("\n};")?;
    let field = |name: &str| check.split_once(&format!("\n    {name}: ")).map(|(_, rest)| rest);
    let name = strings(field("name")?).into_iter().next()?;
    let remedy = strings(field("remedy")?).into_iter().next()?;
    let holds = field("holds")?.split_once(",\n")?.0;
    let holds = holds.trim_start_matches("Duration::from_secs(").trim_end_matches(')').replace('_', "");
    let holds = if holds == "Duration::ZERO" { "no time".to_owned() } else { format!("{holds} s") };
    Some(vec![format!("[`{name}`](../guide/findings.md#{name})"), about.to_owned(), holds, remedy])
}

const CHECKS: &str = "crates/greenroom/src/observe/findings/checks";

const HEAD: &str = "\
# Findings

For who reads what `greenroom findings`, `GET /-/findings` or the console say is wrong. This page is made from the checks in the sources; each finding leads to what the guide says of it. A finding goes when it
has not held for three times as long.
";

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn findings_have_how_long_they_hold_and_what_to_do() {
        let page = page().expect("it can be made");
        for said in [
            "| [`busy-shard`](../guide/findings.md#busy-shard) | One thread has more to do",
            "| 30 s | Look for one actor that does it all",
            "| no time | Renew its files",
        ] {
            assert!(page.contains(said), "{said} is not in\n{page}");
        }
    }
}
