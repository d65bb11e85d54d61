//! `greenroom kinds`: what can be called, in words.

use std::fmt::Write;
use std::time::Duration;

use clap::Args;
use greenroom_describe::{Description, Method, Schema};
use serde_json::Value;

use crate::door::{Door, NodeAddress};
use crate::status::{columns, text};

/// Which kind, and how to tell.
#[derive(Args)]
pub(crate) struct KindsCommand {
    /// The kind; without one, all of them
    kind: Option<String>,
    /// Print names alone, one a line: of kinds, or of the kind's methods
    #[arg(long, conflicts_with = "json")]
    names: bool,
    /// Print the description as JSON
    #[arg(long)]
    json: bool,
    #[command(flatten)]
    node: NodeAddress,
}

/// Lists the kinds, or tells what one is.
pub(crate) fn run(command: &KindsCommand) -> Result<(), String> {
    let door = command.node.door(TIMEOUT)?;
    match &command.kind {
        Some(kind) => {
            let (description, document) = describe(&door, kind)?;
            match (command.json, command.names) {
                (true, _) => println!("{document:#}"),
                (_, true) => description.methods.iter().for_each(|method| println!("{}", method.name)),
                _ => print!("{}", in_words(&description)),
            }
        }
        None => {
            let listed = door.get_json("/-/kinds")?;
            match (command.json, command.names) {
                (true, _) => println!("{listed:#}"),
                (_, true) => kinds(&listed).iter().for_each(|kind| println!("{}", text(&kind["kind"]))),
                _ => print!("{}", columns(&table(&listed))),
            }
        }
    }
    Ok(())
}

/// What `kind` says of itself, by a node that hosts it; and the document as it came.
pub(crate) fn describe(door: &Door, kind: &str) -> Result<(Description, Value), String> {
    let mut answer = door.get_at(&["-", "kinds", kind])?;
    let ask =
        |body: &str| serde_json::from_str::<Value>(body).ok().and_then(|body| Some(body["ask"].as_str()?.to_owned()));
    if answer.status == 404
        && let Some(other) = ask(&answer.body)
    {
        answer = door.at(&other)?.get_at(&["-", "kinds", kind])?;
    }
    if answer.status != 200 {
        return Err(crate::call::described(answer.status, &answer.body));
    }
    let mut document: Value =
        serde_json::from_str(&answer.body).map_err(|error| format!("the answer is not JSON: {error}"))?;
    document.as_object_mut().and_then(|document| document.remove("digest"));
    let description = Description::of_document(document.clone()).map_err(|error| error.to_string())?;
    Ok((description, document))
}

/// The names of all kinds, in order.
pub(crate) fn names(door: &Door) -> Result<Vec<String>, String> {
    Ok(kinds(&door.get_json("/-/kinds")?).iter().map(|kind| text(&kind["kind"])).collect())
}

fn kinds(listed: &Value) -> &[Value] {
    listed["kinds"].as_array().map_or(&[], Vec::as_slice)
}

fn table(listed: &Value) -> Vec<[String; 4]> {
    let head = ["KIND", "VERSION", "NODES", "METHODS"].map(str::to_owned);
    let list = |value: &Value| {
        let names = value.as_array().into_iter().flatten().map(text);
        names.collect::<Vec<_>>().join(" ")
    };
    let rows = kinds(listed).iter().map(|kind| {
        let version = kind["version"].as_u64().map_or_else(|| "-".to_owned(), |version| version.to_string());
        [text(&kind["kind"]), version, list(&kind["nodes"]), list(&kind["methods"])]
    });
    [head].into_iter().chain(rows).collect()
}

/// A kind and its methods, as signatures.
pub(crate) fn in_words(description: &Description) -> String {
    let mut out = format!("{}, version {}", description.kind, description.version);
    if description.compatible < description.version {
        // A text takes all that is written to it.
        let _ = write!(out, " (serves callers from version {})", description.compatible);
    }
    let traits: Vec<&str> =
        [("persistent", description.options.persistent), ("reliable", description.options.reliable)]
            .into_iter()
            .filter_map(|(name, is)| is.then_some(name))
            .collect();
    if !traits.is_empty() {
        let _ = write!(out, ", {}", traits.join(", "));
    }
    out.push('\n');
    paragraph(&mut out, &description.doc, 2);
    for method in &description.methods {
        let _ = writeln!(out, "\n  {}", signature(method));
        paragraph(&mut out, &method.doc, 6);
    }
    out
}

/// A method and its types.
pub(crate) fn signature(method: &Method) -> String {
    let arguments: Vec<String> = method
        .arguments
        .members()
        .into_iter()
        .map(|(name, ty)| match method.arguments.requires(name) {
            true => format!("{name}: {}", type_in_words(ty)),
            false => format!("{name}?: {}", type_in_words(ty)),
        })
        .collect();
    let arguments =
        if arguments.is_empty() && method.arguments.is_any() { "..".to_owned() } else { arguments.join(", ") };
    let mut text = format!("{}({arguments})", method.name);
    let schema = |schema: &Option<Schema>| schema.as_ref().map(|schema| type_in_words(&schema.0));
    match (schema(&method.stream), schema(&method.reply)) {
        (Some(item), _) => text.push_str(&format!(" -> stream of {item}")),
        (None, Some(reply)) if reply != "null" => text.push_str(&format!(" -> {reply}")),
        _ => {}
    }
    if let Some(error) = schema(&method.error) {
        text.push_str(&match &*error {
            "any" => ", or an error of its own".to_owned(),
            error => format!(", or the error {error}"),
        });
    }
    match (method.read, method.update) {
        (_, true) => text.push_str("   (update)"),
        (true, false) => text.push_str("   (read)"),
        _ => {}
    }
    text
}

/// A type in a few words.
fn type_in_words(schema: &Value) -> String {
    let word = |name: &str| schema[name].as_str();
    if let Some(name) = word("$ref") {
        return name.rsplit('/').next().unwrap_or(name).to_owned();
    }
    let of = |below: &Value| if below.is_null() { "any".to_owned() } else { type_in_words(below) };
    let one = |name: &str| match name {
        "array" if !schema["prefixItems"].is_null() => {
            let items = schema["prefixItems"].as_array().into_iter().flatten().map(type_in_words);
            format!("({})", items.collect::<Vec<_>>().join(", "))
        }
        "array" => format!("[{}]", of(&schema["items"])),
        "object" if schema["additionalProperties"].is_object() => {
            format!("{{name: {}}}", of(&schema["additionalProperties"]))
        }
        other => other.to_owned(),
    };
    match &schema["type"] {
        Value::String(name) => one(name),
        Value::Array(names) => {
            let names: Vec<String> = names.iter().filter_map(Value::as_str).map(one).collect();
            names.join(" or ")
        }
        _ => word("x-rust").map_or_else(|| "any".to_owned(), str::to_owned),
    }
}

/// Text in lines of at most a hundred letters, indented.
fn paragraph(out: &mut String, text: &str, indent: usize) {
    let mut line = String::new();
    for word in text.split_whitespace() {
        if !line.is_empty() && indent + line.len() + 1 + word.len() > LINE_LEN_MAX {
            let _ = writeln!(out, "{:indent$}{line}", "");
            line.clear();
        }
        if !line.is_empty() {
            line.push(' ');
        }
        line.push_str(word);
    }
    if !line.is_empty() {
        let _ = writeln!(out, "{:indent$}{line}", "");
    }
}

const LINE_LEN_MAX: usize = 100;
const TIMEOUT: Duration = Duration::from_secs(10);

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn a_kind_is_told_as_its_signatures() {
        let description = Description::of_document(json!({
            "greenroom": 1, "kind": "chat_room", "version": 2, "doc": "A room.", "options": {"persistent": true},
            "methods": [
                {"name": "post", "doc": "Says it.", "arguments": {"type": "object", "x-order": ["user", "tags"], "required": ["user"],
                    "properties": {"user": {"type": "string"}, "tags": {"type": ["array", "null"], "items": {"type": "string"}}}},
                 "reply": {"type": "null"}, "error": {"$ref": "#/$defs/NotMember"}},
                {"name": "read", "read": true, "arguments": {"type": "object", "properties": {}}, "stream": {"x-rust": "Entry"}},
                {"name": "other"},
            ],
            "$defs": {"NotMember": {"type": "object"}},
        }))
        .expect("it is a description");
        let told = "chat_room, version 2 (serves callers from version 1), persistent\n  A room.\n\n  \
                    post(user: string, tags?: [string] or null), or the error NotMember\n      Says it.\n\n  \
                    read() -> stream of Entry   (read)\n\n  other(..)\n";
        assert_eq!(in_words(&description), told);
    }
}
