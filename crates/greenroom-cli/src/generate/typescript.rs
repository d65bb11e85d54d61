//! TypeScript: the type of a kind and a value of it, for the SDK's references. `client.ref(chatRoom, "lobby")` has its methods, and
//! in browsers `door(url).ref<typeof chatRoom>("chat_room", "lobby")`.

use std::fmt::Write;

use greenroom_describe::{Description, Method, Schema};
use serde_json::Value;

use super::{camel, head, is_identifier};

/// The module of one kind.
pub(super) fn module(description: &Description) -> String {
    let mut out = head(description, "//");
    out.push_str("import type { Kind } from \"greenroom\";\n");
    for (name, schema) in &description.definitions {
        // A text takes all that is written to it.
        let _ = writeln!(out, "\nexport type {} = {};", camel(name), definition(schema));
    }
    let class = camel(&description.kind);
    for (name, read) in [("Methods", false), ("Reads", true)] {
        let _ = writeln!(out, "\nexport type {class}{name} = {{");
        description
            .methods
            .iter()
            .filter(|method| method.read == read)
            .for_each(|method| self::method(&mut out, method));
        out.push_str("};\n");
    }
    let doc = if description.doc.is_empty() {
        format!("Actors of kind {}.", description.kind)
    } else {
        description.doc.clone()
    };
    let mut variable = class.clone();
    variable[..1].make_ascii_lowercase();
    out.push_str("\nconst called = (): never => {\n  throw new Error(\"called by reference only\");\n};\n");
    let _ = write!(out, "\n{}", comment(&doc, ""));
    let _ = writeln!(out, "export const {variable}: Kind<object, {class}Methods, {class}Reads> = {{");
    let _ = writeln!(out, "  name: {},", Value::from(&*description.kind));
    let mut definition = format!("version: {}", description.version);
    for (name, read) in [("methods", false), ("reads", true)] {
        // References know methods by their names, and streams by their generators.
        let methods = description.methods.iter().filter(|method| method.read == read);
        let methods: Vec<String> = methods
            .map(|method| match (&method.stream, key(&method.name)) {
                (Some(_), name) => format!("async *{name}() {{ called(); }}"),
                (None, name) => format!("{name}: called"),
            })
            .collect();
        if !methods.is_empty() {
            let _ = write!(definition, ", {name}: {{ {} }} as never", methods.join(", "));
        }
    }
    let _ = writeln!(out, "  definition: {{ {definition} }},\n}};");
    out
}

fn method(out: &mut String, method: &Method) {
    let members = method.arguments.members();
    let arguments = match (method.arguments.is_any(), members.is_empty()) {
        (true, _) => ", args?: object".to_owned(),
        (false, true) => String::new(),
        (false, false) => {
            let optional = if members.iter().any(|(name, _)| method.arguments.requires(name)) { "" } else { "?" };
            format!(", args{optional}: {}", object(&method.arguments))
        }
    };
    let answer = match (&method.stream, &method.reply) {
        (Some(item), _) => format!("AsyncGenerator<{}>", of(&item.0)),
        (None, reply) => reply.as_ref().map_or_else(|| "unknown".to_owned(), |reply| of(&reply.0)),
    };
    let mut doc = method.doc.clone();
    if let Some(error) = method.error.as_ref().filter(|error| of(&error.0) != "unknown") {
        let _ = write!(doc, "{}Its own error: {}.", if doc.is_empty() { "" } else { " " }, of(&error.0));
    }
    if !doc.is_empty() {
        out.push_str(&comment(&doc, "  "));
    }
    let _ = writeln!(out, "  {}(c: unknown{arguments}): {answer};", key(&method.name));
}

fn definition(schema: &Schema) -> String {
    match schema.get("type").and_then(Value::as_str) {
        Some("object") if !schema.members().is_empty() => object(schema),
        _ => of(&schema.0),
    }
}

/// An object of members by name.
fn object(schema: &Schema) -> String {
    let members = schema.members().into_iter().map(|(name, ty)| {
        let optional = if schema.requires(name) { "" } else { "?" };
        format!("{}{optional}: {}", key(name), of(ty))
    });
    format!("{{ {} }}", members.collect::<Vec<_>>().join("; "))
}

/// The type of a schema.
fn of(schema: &Value) -> String {
    if let Some(name) = schema["$ref"].as_str() {
        return camel(name.rsplit('/').next().unwrap_or(name));
    }
    if let Some(value) = schema.get("const") {
        return literal(value);
    }
    if let Some(values) = schema["enum"].as_array() {
        return either(values.iter().map(literal));
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
            _ => "unknown".to_owned(),
        },
    }
}

fn of_type(name: &str, schema: &Value) -> String {
    match name {
        "null" => "null".to_owned(),
        "boolean" => "boolean".to_owned(),
        // Beyond 2^53 the SDK gives a `bigint`.
        "integer" if schema.get("maximum").is_none() => "number | bigint".to_owned(),
        "integer" | "number" => "number".to_owned(),
        "string" => "string".to_owned(),
        "array" => match schema["prefixItems"].as_array() {
            Some(items) if !items.is_empty() => format!("[{}]", items.iter().map(of).collect::<Vec<_>>().join(", ")),
            _ => format!("Array<{}>", of(&schema["items"])),
        },
        "object" if schema["properties"].as_object().is_some_and(|members| !members.is_empty()) => {
            object(&Schema(schema.clone()))
        }
        "object" => match &schema["additionalProperties"] {
            // Unlike a `Record`, this may hold itself.
            Value::Object(_) => format!("{{ [key: string]: {} }}", of(&schema["additionalProperties"])),
            _ => "{ [key: string]: unknown }".to_owned(),
        },
        _ => "unknown".to_owned(),
    }
}

fn either(types: impl Iterator<Item = String>) -> String {
    let mut all: Vec<String> = Vec::new();
    types.for_each(|ty| {
        if !all.contains(&ty) {
            all.push(ty)
        }
    });
    if all.iter().any(|ty| ty == "unknown") || all.is_empty() { "unknown".to_owned() } else { all.join(" | ") }
}

fn literal(value: &Value) -> String {
    match value {
        Value::Null | Value::Bool(_) | Value::String(_) | Value::Number(_) => value.to_string(),
        _ => "unknown".to_owned(),
    }
}

/// The name of a member.
fn key(name: &str) -> String {
    if is_identifier(name) { name.to_owned() } else { Value::from(name).to_string() }
}

fn comment(doc: &str, indent: &str) -> String {
    format!("{indent}/** {} */\n", doc.replace("*/", "*\\/"))
}
