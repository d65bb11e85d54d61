//! `greenroom call`: one call from the command line.

use std::time::Duration;

use clap::Args;
use greenroom_describe::Description;
use serde_json::Value;

use crate::door::NodeAddress;
use crate::interfaces;

/// Which method to call, of which actor.
#[derive(Args)]
pub(crate) struct CallCommand {
    /// The actor: its kind and its key, as in chat_room/lobby
    #[arg(value_name = "KIND/KEY", required_unless_present = "help_for")]
    actor: Option<String>,
    /// The method
    #[arg(required_unless_present = "help_for")]
    method: Option<String>,
    /// A JSON object with the method's arguments by name
    #[arg(value_name = "JSON", default_value = "{}")]
    arguments: String,
    /// A pair of the call's request context; may be given more than once
    #[arg(long = "context", value_name = "KEY=VALUE", value_parser = pair)]
    context: Vec<(String, String)>,
    /// Tell what actors of a kind can be asked, and call nobody
    #[arg(long, value_name = "KIND", conflicts_with = "actor")]
    help_for: Option<String>,
    #[command(flatten)]
    node: NodeAddress,
}

fn pair(text: &str) -> Result<(String, String), String> {
    let (key, value) = text.split_once('=').ok_or("it has no value; write KEY=VALUE")?;
    Ok((key.to_owned(), value.to_owned()))
}

/// Calls the method and prints what it returns.
pub(crate) fn run(command: &CallCommand) -> Result<(), String> {
    let CallCommand { actor, method, arguments, context, help_for, node } = command;
    let (Some(actor), Some(method)) = (actor, method) else {
        let kind = help_for.as_deref().unwrap_or_default();
        let (description, _) = interfaces::describe(&node.door(TIMEOUT)?, kind)?;
        print!("{}\n{}", interfaces::in_words(&description), example(&description));
        return Ok(());
    };
    let (kind, key) =
        actor.split_once('/').ok_or_else(|| format!("{actor:?} has no key; write KIND/KEY, as in chat_room/lobby"))?;
    let answer = node.door(TIMEOUT)?.call_with(kind, key, method, arguments, context)?;
    if answer.status == 200 {
        println!("{}", answer.body);
        return Ok(());
    }
    Err(described(answer.status, &answer.body))
}

/// A call to begin with.
fn example(description: &Description) -> String {
    let Some(method) = description.methods.first() else { return String::new() };
    let arguments: Vec<String> = method
        .arguments
        .members()
        .into_iter()
        .filter(|(name, _)| method.arguments.requires(name))
        .map(|(name, ty)| format!("{}: {}", Value::from(name), sample(ty)))
        .collect();
    format!("For example:\n  greenroom call {}/KEY {} '{{{}}}'\n", description.kind, method.name, arguments.join(", "))
}

/// A value that the type may take, as far as it is known.
fn sample(ty: &Value) -> &'static str {
    let name = ty["type"].as_str().or_else(|| ty["type"][0].as_str());
    match name {
        Some("string") => "\"..\"",
        Some("integer" | "number") => "1",
        Some("boolean") => "true",
        Some("array") => "[]",
        Some("object") => "{}",
        _ => "null",
    }
}

/// A problem document in words, or what a door says in a line instead.
pub(crate) fn described(status: u16, body: &str) -> String {
    reason(body).unwrap_or_else(|| format!("the door answers {status}"))
}

/// What a door says of why it does not do what it was asked for, if it says that.
pub(crate) fn reason(body: &str) -> Option<String> {
    let Ok(problem) = serde_json::from_str::<Value>(body) else {
        let line = body.trim();
        let is_one = !line.is_empty() && line.len() <= LINE_LEN_MAX && !line.contains(['<', '{']);
        return (is_one && !line.chars().any(char::is_control)).then(|| line.to_owned());
    };
    let text = |name: &str| problem[name].as_str().filter(|text| !text.is_empty());
    let (title, detail) = (text("title"), text("detail"));
    let field = text("field").map(|field| format!(" (argument {field:?})")).unwrap_or_default();
    match (title, detail) {
        (Some(title), Some(detail)) => Some(format!("{title}{field}: {}", beyond(title, detail))),
        (Some(title), None) => Some(format!("{title}{field}")),
        (None, detail) => detail.map(str::to_owned),
    }
}

/// What the detail says beyond the title, with which it may begin.
fn beyond<'a>(title: &str, detail: &'a str) -> &'a str {
    let said = detail.get(..title.len()).is_some_and(|begin| begin.eq_ignore_ascii_case(title));
    if said { detail[title.len()..].strip_prefix(": ").unwrap_or(detail) } else { detail }
}

/// Longest line that is taken for what a door says to people.
const LINE_LEN_MAX: usize = 200;
/// Longer than any call may take.
const TIMEOUT: Duration = Duration::from_secs(120);

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_problem_is_told_in_words() {
        let body = r#"{"title":"T","detail":"D","field":"f","status":400}"#;
        assert_eq!(described(400, body), "T (argument \"f\"): D");
        let twice = r#"{"title":"It fails","detail":"it fails: as it does","field":"","status":400}"#;
        assert_eq!(described(400, twice), "It fails: as it does");
        assert_eq!(described(502, "<html>"), "the door answers 502");
    }
}
