//! An OpenAPI 3.1 document of what a door's callers may ask of kinds.

use serde_json::{Map, Value, json};

use crate::contents::Method;
use crate::description::Description;
use crate::schema::{Holds, Schema, holds, referred};

/// What a door says of itself.
#[derive(Clone, Debug, Default)]
pub struct Door {
    /// The cluster's name.
    pub cluster: String,
    /// The version of the program.
    pub version: String,
    /// Whether it takes bearer tokens.
    pub tokens: bool,
    /// Whether it takes clients' certificates.
    pub certificates: bool,
    /// The longest that a call may take, as a duration's text.
    pub timeout: String,
    /// The longest key, in bytes.
    pub key_len_max: usize,
}

/// The document. The same descriptions and door give the same one.
pub fn document(descriptions: &[Description], door: &Door) -> Value {
    let (mut paths, mut schemas, mut tags) = (Map::new(), Map::new(), Vec::new());
    schemas.insert("Problem".to_owned(), problem());
    for description in descriptions {
        tags.push(json!({ "name": description.kind, "description": description.doc }));
        for (name, schema) in &description.definitions {
            schemas.insert(component(&description.kind, name), moved(&description.kind, &schema.0));
        }
        for method in &description.methods {
            paths.insert(format!("/{}/{{key}}/{}", description.kind, method.name), path(description, method, door));
        }
    }
    let mut document = json!({
        "openapi": "3.1.0",
        "info": {
            "title": format!("Actors of cluster {:?}", door.cluster),
            "version": door.version,
            "description": "Each method of an actor is a POST with a JSON object of its arguments. The actor is always there: \
                            its kind and its key are its name, and its first call activates it.",
        },
        "tags": tags,
        "paths": paths,
        "components": {
            "schemas": schemas,
            "parameters": parameters(door),
            "responses": responses(),
        },
    });
    let mut schemes = Map::new();
    if door.tokens {
        schemes.insert("token".to_owned(), json!({ "type": "http", "scheme": "bearer" }));
    }
    if door.certificates {
        schemes.insert("certificate".to_owned(), json!({ "type": "mutualTLS" }));
    }
    if !schemes.is_empty() {
        let any: Vec<Value> = schemes.keys().map(|name| json!({ name: [] })).collect();
        document["security"] = any.into();
        document["components"]["securitySchemes"] = schemes.into();
    }
    document
}

fn path(description: &Description, method: &Method, door: &Door) -> Value {
    let kind = &description.kind;
    let mut operation = json!({
        "operationId": format!("{kind}.{}", method.name),
        "tags": [kind],
        "parameters": [reference("parameters", "timeout")],
        "responses": answers(description, method, door),
    });
    if !method.doc.is_empty() {
        operation["description"] = method.doc.clone().into();
    }
    if description.options.reliable
        && let Some(parameters) = operation["parameters"].as_array_mut()
    {
        parameters.push(reference("parameters", "idempotency_key"));
    }
    operation["requestBody"] = json!({
        "required": method.arguments.get("required").is_some(),
        "content": { "application/json": { "schema": body(kind, &method.arguments) } },
    });
    let mut path = json!({ "parameters": [reference("parameters", "key")], "post": operation });
    if method.stream.is_some() && method.read && !method.update {
        let mut got = path["post"].take();
        path["post"] = got.clone();
        if let Some(got) = got.as_object_mut() {
            got.remove("requestBody");
        }
        got["operationId"] = format!("{kind}.{}.events", method.name).into();
        let arguments = json!({
            "name": "arguments", "in": "query",
            "description": "The arguments as JSON, for browsers' EventSource.",
            "content": { "application/json": { "schema": body(kind, &method.arguments) } },
        });
        if let Some(parameters) = got["parameters"].as_array_mut() {
            parameters.push(arguments);
        }
        path["get"] = got;
    }
    path
}

/// The body is an object also where nothing is known of it.
fn body(kind: &str, arguments: &Schema) -> Value {
    match arguments.is_any() {
        true => json!({ "type": "object" }),
        false => moved(kind, &arguments.0),
    }
}

fn answers(description: &Description, method: &Method, door: &Door) -> Value {
    let kind = &description.kind;
    let mut answers = json!({});
    answers["200"] = match (&method.stream, &method.reply) {
        (Some(item), _) => json!({
            "description": "Server-sent events: each has an item's JSON as `data` and its number, from 0, as `id`. The last event is \
                            `end`, or `error` with a problem as `data`.",
            "content": { "text/event-stream": { "schema": {
                "type": "string", "contentMediaType": "application/json", "contentSchema": moved(kind, &item.0),
            } } },
        }),
        (None, reply) => json!({
            "description": "What the method returns.",
            "content": { "application/json": { "schema": reply.as_ref().map_or(true.into(), |reply| moved(kind, &reply.0)) } },
        }),
    };
    for (status, _, name) in PROBLEMS {
        answers[*status] = reference("responses", name);
    }
    if method.stream.is_some() {
        answers["406"] = reference("responses", "OnlyEvents");
    }
    if door.tokens || door.certificates {
        answers["401"] = reference("responses", "Unauthenticated");
    }
    if let Some(error) = &method.error {
        answers["422"] = json!({
            "description": "The method's own error.",
            "content": { "application/problem+json": { "schema": { "allOf": [
                reference("schemas", "Problem"),
                { "type": "object", "properties": { "error": moved(kind, &error.0) }, "required": ["error"] },
            ] } } },
        });
    }
    answers
}

fn parameters(door: &Door) -> Value {
    json!({
        "key": {
            "name": "key", "in": "path", "required": true,
            "description": "The actor's key: any text without control characters, percent-encoded.",
            "schema": { "type": "string", "minLength": 1, "maxLength": door.key_len_max },
        },
        "timeout": {
            "name": "Greenroom-Timeout", "in": "header",
            "description": format!("How long the client waits: a number and `ms`, `s` or `m`; at most {}.", door.timeout),
            "schema": { "type": "string", "pattern": "^[1-9][0-9]*(ms|s|m)$" },
        },
        "idempotency_key": {
            "name": "Idempotency-Key", "in": "header",
            "description": "Lets the call run once however often it is made: repeats get the recorded answer.",
            "schema": { "type": "string", "minLength": 1, "maxLength": 255 },
        },
    })
}

fn responses() -> Value {
    let also = [
        ("", "The answer is a stream: ask with `Accept: text/event-stream`.", "OnlyEvents"),
        ("", "No credentials came, or bad ones.", "Unauthenticated"),
    ];
    let all = PROBLEMS.iter().chain(&also).map(|(_, description, name)| {
        let problem = json!({ "application/problem+json": { "schema": reference("schemas", "Problem") } });
        ((*name).to_owned(), json!({ "description": description, "content": problem }))
    });
    all.collect::<Map<String, Value>>().into()
}

/// Problems that any call may end with: status, what it means, and its name here.
const PROBLEMS: &[(&str, &str, &str)] = &[
    (
        "400",
        "The arguments, the key or a header are malformed; `field` is the path of what is wrong. Nothing ran.",
        "Malformed",
    ),
    ("403", "It is not allowed. Nothing ran.", "Forbidden"),
    ("404", "There is no such kind or method; `near` has names like it. Nothing ran.", "Unknown"),
    ("408", "The body did not come in time. Nothing ran.", "Slow"),
    ("409", "The chain of calls would have waited for itself. Nothing ran.", "Cycle"),
    ("413", "The body is over the limit. Nothing ran.", "TooLarge"),
    ("421", "The Host is no name of this door. Nothing ran.", "UnknownHost"),
    ("500", "The turn panicked, or has not been committed.", "Failed"),
    ("502", "A connection or node was lost: the call may have run.", "Lost"),
    ("503", "The node cannot take the call now. Nothing ran; retry after the seconds in `Retry-After`.", "Unavailable"),
    ("504", "The time is over; `may_have_run` says whether the call may have run.", "Late"),
];

fn problem() -> Value {
    json!({
        "type": "object",
        "description": "A problem document (RFC 9457).",
        "properties": {
            "type": { "type": "string" },
            "title": { "type": "string" },
            "status": { "type": "integer" },
            "detail": { "type": "string" },
            "may_have_run": { "type": "boolean", "description": "Whether a retry could make something run twice." },
            "field": { "type": "string", "description": "The path of what is wrong in the arguments." },
            "near": { "type": "array", "items": { "type": "string" } },
        },
        "required": ["type", "title", "status", "detail", "may_have_run"],
    })
}

fn reference(section: &str, name: &str) -> Value {
    json!({ "$ref": format!("#/components/{section}/{name}") })
}

/// The name of a kind's type among those of all kinds: letters, digits, `.`, `_` and `-`, and all others by their numbers.
fn component(kind: &str, name: &str) -> String {
    let mut component = format!("{kind}.");
    for letter in name.chars() {
        match letter.is_ascii_alphanumeric() || matches!(letter, '.' | '-' | '_') {
            true => component.push(letter),
            false => component.push_str(&format!("_{:x}_", u32::from(letter))),
        }
    }
    component
}

/// The schema with its references to where the kind's types are in the document.
fn moved(kind: &str, schema: &Value) -> Value {
    let Value::Object(keywords) = schema else { return schema.clone() };
    let moved = keywords.iter().map(|(keyword, value)| {
        let value = match (holds(keyword), value) {
            (_, Value::String(name)) if keyword == "$ref" => {
                let name = referred(name).map(|name| format!("#/components/schemas/{}", component(kind, name)));
                name.map_or_else(|| value.clone(), Value::from)
            }
            (Holds::One, schema) => moved(kind, schema),
            (Holds::List, Value::Array(schemas)) => schemas.iter().map(|schema| moved(kind, schema)).collect(),
            (Holds::Named, Value::Object(schemas)) => {
                let schemas = schemas.iter().map(|(name, schema)| (name.clone(), moved(kind, schema)));
                schemas.collect::<Map<String, Value>>().into()
            }
            _ => value.clone(),
        };
        (keyword.clone(), value)
    });
    moved.collect::<Map<String, Value>>().into()
}
