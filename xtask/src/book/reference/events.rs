//! The page of events: what nodes remember that has happened.

use super::rust::item;
use super::source;
use super::table::{code, table};

/// The page, from the kinds of events.
pub(super) fn page() -> Result<String, String> {
    let text = source(HAPPENED)?;
    let gone = || format!("{HAPPENED} has no enum Happened that says what it is any more");
    let item = item(&text, "Happened").ok_or_else(gone)?;
    let mut rows = Vec::new();
    for member in &item.members {
        let said = text.split(&format!("Self::{} {{", member.name)).nth(1).and_then(|rest| rest.split_once("say(\""));
        let (_, said) = said.ok_or_else(|| format!("{HAPPENED} does not say what {} is", member.name))?;
        let (event, said) = said.split_once('"').ok_or_else(gone)?;
        let level: String = said.trim_start_matches([',', ' ']).chars().take_while(|c| c.is_alphanumeric()).collect();
        rows.push(vec![code(event), level.to_lowercase(), member.doc.clone()]);
    }
    Ok(format!("{HEAD}\n{}", table(&["event", "level", "what has happened"], rows)))
}

const HAPPENED: &str = "crates/greenroom/src/observe/events/happened.rs";

const HEAD: &str = "\
# Events

For who reads what `greenroom events`, `GET /-/events` or the console say has happened. This page is made from the kinds of events in the sources. How to ask for them, and how long they are
kept: [what happened](../guide/operations.md#what-happened).
";

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn events_have_their_level_and_what_they_are() {
        let page = page().expect("it can be made");
        assert!(page.contains("| `died` | bad | A node was declared dead. |"), "{page}");
        assert!(page.contains("| `lease-lost` | bad | This node stops as its lease is lost. |"), "{page}");
    }
}
