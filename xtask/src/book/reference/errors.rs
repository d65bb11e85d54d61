//! The page of errors: what the HTTP door answers, and what the library's calls end with.

use super::rust::{item, message, strings};
use super::source;
use super::table::{code, table};

/// The page, from the door's list of problems and the library's types of errors.
pub(super) fn page() -> Result<String, String> {
    let mut page = format!("{HEAD}\n## At the HTTP door\n\n{}\n{DOOR}\n", problems(&source(PROBLEMS)?)?);
    for (name, file) in TYPES {
        let text = source(file)?;
        let item = item(&text, name).ok_or_else(|| format!("{file} has no enum {name} any more"))?;
        let rows = item.members.iter().map(|member| {
            let said = strings(&member.attributes).first().map(|format| message(format)).unwrap_or_default();
            // A message that is another's says nothing by itself.
            let said = if said == "…" { String::new() } else { said };
            vec![code(&member.name), code(&said), member.doc.clone()]
        });
        let rows = table(&["variant", "it says", "what it means, and what to do"], rows);
        page += &format!("\n## {name}\n\n{}\n\n{rows}", item.doc);
    }
    Ok(page)
}

/// A row for each type of problem.
fn problems(text: &str) -> Result<String, String> {
    let between =
        |start: &str| text.split_once(start).and_then(|(_, rest)| rest.split_once("\n];")).map(|(list, _)| list);
    let list = between("static CLASSES").ok_or_else(|| format!("{PROBLEMS} has no list CLASSES any more"))?;
    let ran = text
        .split_once("const RAN")
        .and_then(|(_, rest)| rest.split_once(';').and_then(|(_, rest)| rest.split_once(';')));
    let ran = strings(ran.ok_or_else(|| format!("{PROBLEMS} has no list RAN any more"))?.0);
    let mut rows = Vec::new();
    for class in list.split("class(").skip(1) {
        let [name, title, explanation] = <[String; 3]>::try_from(strings(class))
            .map_err(|found| format!("{PROBLEMS}: a class of problems has not three texts: {found:?}"))?;
        let status: String = class.split(',').find_map(|part| part.trim().parse::<u16>().ok()).unwrap_or(0).to_string();
        let ran = if ran.contains(&name) { "it may have" } else { "nothing" };
        rows.push(vec![status, code(&name), title, ran.to_owned(), explanation]);
    }
    rows.sort();
    Ok(table(&["status", "type", "title", "what ran", "what it means, and what to do"], rows))
}

/// The library's types of errors that users meet, and where they are.
const TYPES: &[(&str, &str)] = &[
    ("CallError", "crates/greenroom/src/actor/error.rs"),
    ("Refusal", "crates/greenroom/src/actor/error.rs"),
    ("Doubt", "crates/greenroom/src/actor/error.rs"),
    ("StateError", "crates/greenroom/src/state/error.rs"),
    ("UpdateError", "crates/greenroom/src/versioned/enqueued.rs"),
    ("ReminderError", "crates/greenroom/src/time/error.rs"),
    ("PublishError", "crates/greenroom/src/topic/mod.rs"),
    ("NotBegun", "crates/greenroom/src/blocking/error.rs"),
    ("Unmoved", "crates/greenroom/src/actor/migration.rs"),
    ("Error", "crates/greenroom/src/node/error.rs"),
];

const PROBLEMS: &str = "crates/greenroom/src/gateway/problem/classes.rs";

const HEAD: &str = "\
# Errors

For who has an error before them. Afterwards you know what ran, and what helps. This page is made from the sources of the errors; `{name}` stands for what differs.
";

const DOOR: &str = "\
Each answer is a [problem document](../guide/http.md#errors): its `type` is `/-/problems/` and the word here, and `may_have_run` says of the one case what the table
says of all.";

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn all_problems_of_the_door_and_all_variants_are_on_the_page() {
        let page = page().expect("it can be made");
        for said in [
            "| 504 | `timed-out` | No reply before the deadline | it may have | The call may have run.",
            "| 404 | `unknown-kind` | Unknown kind of actor | nothing | ",
            "| `Overloaded` | `{queue} is full ({bound}); retry after a pause, or slow the callers down` | A bounded queue is full.",
            "| `NameTaken` | `a node called {name} is alive",
        ] {
            assert!(page.contains(said), "{said} is not in\n{page}");
        }
    }
}
