//! Python: a class a kind, as a person would write it for the SDK, whose methods nobody runs here. `client.ref(ChatRoom, "lobby")` has them.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write;

use greenroom_describe::{Description, Method, Schema};
use serde_json::Value;

use super::{camel, head, is_identifier};

/// The module of one kind.
pub(super) fn module(description: &Description) -> String {
    let mut body = String::new();
    for (name, schema) in &description.definitions {
        if is_class(schema) {
            structure(&mut body, &camel(name), schema);
        } else {
            let schema = unlooped(&schema.0, name, &description.definitions);
            let _ = writeln!(body, "\n\n{}: TypeAlias = {}", camel(name), text(&of(&schema)));
        }
    }
    let class = camel(&description.kind);
    // A text takes all that is written to it.
    let _ = writeln!(
        body,
        "\n\nclass {class}(gr.Actor, kind={}, version={}):",
        text(&description.kind),
        description.version
    );
    let doc = if description.doc.is_empty() {
        format!("Actors of kind {}.", description.kind)
    } else {
        description.doc.clone()
    };
    let _ = writeln!(body, "    {}", doc_text(&doc));
    for method in &description.methods {
        self::method(&mut body, method);
    }
    let mut out = head(description, "#");
    out.push_str("# pyright: reportUnusedImport=false\nfrom __future__ import annotations\n\n");
    out.push_str("from collections.abc import AsyncIterator\nfrom typing import Any, Literal, NotRequired, TypeAlias, TypedDict\n\n");
    out.push_str("import greenroom as gr\n\nLEFT_OUT: Any = None\n\"\"\"What an argument is that is not sent.\"\"\"\n");
    out + &body
}

/// Whether a definition is a class; others are other names of types.
fn is_class(schema: &Schema) -> bool {
    schema.get("type").and_then(Value::as_str) == Some("object") && !schema.members().is_empty()
}

/// What has another name, but for what leads back to that name: it would have no end, as no class is in between.
fn unlooped(schema: &Value, own: &str, all: &BTreeMap<String, Schema>) -> Value {
    match schema {
        Value::Object(_) if referred(schema).is_some_and(|to| leads(to, own, all, &mut BTreeSet::new())) => true.into(),
        Value::Object(members) => {
            members.iter().map(|(name, member)| (name.clone(), unlooped(member, own, all))).collect()
        }
        Value::Array(items) => items.iter().map(|item| unlooped(item, own, all)).collect(),
        _ => schema.clone(),
    }
}

/// Whether the name `from` stands for `to`, or for what has `to` within it.
fn leads<'a>(from: &'a str, to: &str, all: &'a BTreeMap<String, Schema>, seen: &mut BTreeSet<&'a str>) -> bool {
    fn any<'a>(schema: &'a Value, is: &mut dyn FnMut(&'a str) -> bool) -> bool {
        match schema {
            Value::Object(members) => {
                referred(schema).is_some_and(&mut *is) || members.values().any(|one| any(one, is))
            }
            Value::Array(items) => items.iter().any(|item| any(item, is)),
            _ => false,
        }
    }
    let Some(schema) = all.get(from).filter(|schema| !is_class(schema)) else { return false };
    from == to || (seen.insert(from) && any(&schema.0, &mut |next| leads(next, to, all, seen)))
}

/// The name of the definition that a schema refers to.
fn referred(schema: &Value) -> Option<&str> {
    schema["$ref"].as_str().and_then(|to| to.rsplit('/').next())
}

fn structure(out: &mut String, name: &str, schema: &Schema) {
    let members = schema.members();
    let member = |(name, ty): &(&str, &Value)| match schema.requires(name) {
        true => of(ty),
        false => format!("NotRequired[{}]", of(ty)),
    };
    if members.iter().all(|(name, _)| is_name(name)) {
        let _ = writeln!(out, "\n\nclass {name}(TypedDict):");
        for one in &members {
            let _ = writeln!(out, "    {}: {}", one.0, member(one));
        }
    } else {
        let members: Vec<String> =
            members.iter().map(|one| format!("{}: {}", text(one.0), text(&member(one)))).collect();
        let _ = writeln!(out, "\n\n{name} = TypedDict({}, {{{}}})", text(name), members.join(", "));
    }
}

fn method(out: &mut String, method: &Method) {
    if !is_name(&method.name) {
        let _ = writeln!(out, "\n    # {} has a name that Python does not take.", method.name);
        return;
    }
    if method.arguments.is_any() {
        let _ = writeln!(out, "\n    # {} takes what nobody has said: call it by the kind's name.", method.name);
        return;
    }
    let (required, optional): (Vec<_>, Vec<_>) =
        method.arguments.members().into_iter().partition(|(name, _)| method.arguments.requires(name));
    if let Some((name, _)) = required.iter().chain(&optional).find(|(name, _)| !is_name(name)) {
        let _ =
            writeln!(out, "\n    # {} has an argument {} whose name Python does not take.", method.name, text(name));
        return;
    }
    let required = required.iter().map(|(name, ty)| format!(", {name}: {}", of(ty)));
    let optional = optional.iter().map(|(name, ty)| format!(", {name}: {} = LEFT_OUT", of(ty)));
    let arguments: String = required.chain(optional).collect();
    let answer = match (&method.stream, &method.reply) {
        (Some(item), _) => format!("AsyncIterator[{}]", of(&item.0)),
        (None, reply) => reply.as_ref().map_or_else(|| "Any".to_owned(), |reply| of(&reply.0)),
    };
    out.push('\n');
    if method.read {
        out.push_str("    @gr.read\n");
    }
    let _ = writeln!(out, "    async def {}(self{arguments}) -> {answer}:", method.name);
    let mut doc = method.doc.clone();
    if let Some(error) = method.error.as_ref().filter(|error| of(&error.0) != "Any") {
        let _ = write!(doc, "{}Its own error: {}.", if doc.is_empty() { "" } else { "\n\n        " }, of(&error.0));
    }
    if !doc.is_empty() {
        let _ = writeln!(out, "        {}", doc_text(&doc));
    }
    out.push_str("        raise NotImplementedError\n");
    if method.stream.is_some() {
        out.push_str("        yield\n");
    }
}

/// The annotation of a schema.
fn of(schema: &Value) -> String {
    if let Some(name) = referred(schema) {
        return camel(name);
    }
    if let Some(value) = schema.get("const") {
        return literal(value).unwrap_or_else(|| "Any".to_owned());
    }
    if let Some(values) = schema["enum"].as_array() {
        return either(values.iter().map(|value| literal(value).unwrap_or_else(|| "Any".to_owned())));
    }
    for keyword in ["anyOf", "oneOf"] {
        if let Some(schemas) = schema[keyword].as_array() {
            return either(schemas.iter().map(of));
        }
    }
    match &schema["type"] {
        Value::String(name) => of_type(name, schema),
        Value::Array(names) => either(names.iter().filter_map(Value::as_str).map(|name| of_type(name, schema))),
        _ => match schema["allOf"].as_array().map(Vec::as_slice) {
            Some([one]) => of(one),
            _ => "Any".to_owned(),
        },
    }
}

fn of_type(name: &str, schema: &Value) -> String {
    match name {
        "null" => "None".to_owned(),
        "boolean" => "bool".to_owned(),
        "integer" => "int".to_owned(),
        "number" => "float".to_owned(),
        "string" => "str".to_owned(),
        "array" => match schema["prefixItems"].as_array() {
            Some(items) if !items.is_empty() => {
                format!("tuple[{}]", items.iter().map(of).collect::<Vec<_>>().join(", "))
            }
            _ => format!("list[{}]", of(&schema["items"])),
        },
        "object" => match &schema["additionalProperties"] {
            Value::Object(_) => format!("dict[str, {}]", of(&schema["additionalProperties"])),
            _ => "dict[str, Any]".to_owned(),
        },
        _ => "Any".to_owned(),
    }
}

fn either(types: impl Iterator<Item = String>) -> String {
    let mut all: Vec<String> = Vec::new();
    types.for_each(|ty| {
        if !all.contains(&ty) {
            all.push(ty)
        }
    });
    if all.iter().any(|ty| ty == "Any") || all.is_empty() { "Any".to_owned() } else { all.join(" | ") }
}

fn literal(value: &Value) -> Option<String> {
    match value {
        Value::Null => Some("None".to_owned()),
        Value::Bool(value) => Some(format!("Literal[{}]", if *value { "True" } else { "False" })),
        Value::String(value) => Some(format!("Literal[{}]", text(value))),
        Value::Number(number) if number.is_i64() => Some(format!("Literal[{number}]")),
        _ => None,
    }
}

/// A text, as Python writes it: JSON's escapes are its own too.
fn text(value: &str) -> String {
    Value::from(value).to_string().replace('\u{7f}', "\\u007f")
}

fn doc_text(doc: &str) -> String {
    let doc = doc.replace('\\', "\\\\").replace("\"\"\"", "'''");
    format!("\"\"\"{}{}\"\"\"", doc, if doc.ends_with('"') { " " } else { "" })
}

fn is_name(name: &str) -> bool {
    is_identifier(name) && !KEYWORDS.contains(&name) && !name.starts_with("__")
}

/// What Python keeps for itself.
const KEYWORDS: &[&str] = &[
    "False", "None", "True", "and", "as", "assert", "async", "await", "break", "class", "continue", "def", "del",
    "elif", "else", "except", "finally", "for", "from", "global", "if", "import", "in", "is", "lambda", "nonlocal",
    "not", "or", "pass", "raise", "return", "self", "try", "while", "with", "yield",
];
