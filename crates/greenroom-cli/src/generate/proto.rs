//! Protocol buffers: a service a kind, and messages that the gRPC door reads and writes as JSON.
//!
//! Descriptions have no numbers for fields. So a file that was written before is read again: what stands there keeps its number, and
//! the numbers of what is gone, or has changed its type, are never given again.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write;

use greenroom_describe::{Description, Method, Schema, referred};
use serde_json::Value;

use super::{camel, head, identifier};

/// The options of services, which all files import.
pub(super) const OPTIONS: &str = include_str!("../../../greenroom-grpc/proto/greenroom_kind.proto");

/// The file of one kind; `before` is the one that it replaces, if there is one.
pub(super) fn file(description: &Description, before: &str) -> String {
    let mut types =
        Types { definitions: &description.definitions, numbers: Numbers::of(before), taken: BTreeSet::new() };
    types.taken.extend(description.definitions.keys().map(|name| camel(name)));
    let (mut service, mut messages) = (String::new(), String::new());
    // A text takes all that is written to it.
    let _ = write!(service, "\n{}", comment("", &description.doc));
    let _ = writeln!(service, "service {} {{", types.name(&description.kind));
    let _ = writeln!(service, "  option (greenroom.v1.kind) = {};", text(&description.kind));
    for (name, schema) in &description.definitions {
        if let Some(fields) = types.fields(schema) {
            types.message(&mut messages, &camel(name), fields);
        }
    }
    let mut called = BTreeSet::new();
    for method in &description.methods {
        let mut name = camel(&method.name);
        while !called.insert(name.clone()) {
            name.push('_');
        }
        types.method(&mut service, &mut messages, &name, method);
    }
    service.push_str("}\n");
    let package = identifier(&description.kind).to_lowercase();
    let mut out = head(description, "//");
    let _ = writeln!(out, "\nsyntax = \"proto3\";\n\npackage kinds.{package};\n");
    if messages.contains("google.protobuf.") {
        out.push_str("import \"google/protobuf/struct.proto\";\n");
    }
    out.push_str("import \"greenroom_kind.proto\";\n");
    let _ = writeln!(out, "\noption go_package = \"kinds/{package}\";");
    out + &service + &messages
}

/// A field without its number.
struct Field {
    name: String,
    doc: String,
    ty: String,
}

struct Types<'a> {
    definitions: &'a BTreeMap<String, Schema>,
    numbers: Numbers,
    taken: BTreeSet<String>,
}

/// What a value is in a message.
enum Shape {
    One(String),
    Many(String),
    ByText(String),
}

impl Types<'_> {
    /// A name that nothing else in the file has.
    fn name(&mut self, name: &str) -> String {
        let mut own = camel(name);
        while !self.taken.insert(own.clone()) {
            own.push('_');
        }
        own
    }

    fn method(&mut self, service: &mut String, messages: &mut String, name: &str, method: &Method) {
        let (request, answer) = (
            self.name(&format!("{name}Request")),
            match method.stream {
                Some(_) => self.name(&format!("{name}Item")),
                None => self.name(&format!("{name}Reply")),
            },
        );
        let stream = if method.stream.is_some() { "stream " } else { "" };
        service.push_str(&comment("  ", &method.doc));
        let _ = writeln!(service, "  rpc {name}({request}) returns ({stream}{answer}) {{");
        let _ = writeln!(service, "    option (greenroom.v1.method) = {};\n  }}", text(&method.name));
        let field = |name: &str, ty: String| Field { name: name.to_owned(), doc: String::new(), ty };
        let mut fields = vec![Field { doc: "The actor's key.".to_owned(), ..field("key", "string".to_owned()) }];
        let arguments = match self.fields(&method.arguments) {
            Some(fields) if !fields.is_empty() => Some((self.name(&format!("{name}Arguments")), Some(fields))),
            Some(_) => None,
            None => Some((STRUCT.to_owned(), None)),
        };
        fields.extend(arguments.as_ref().map(|(ty, _)| field("arguments", ty.clone())));
        self.message(messages, &request, fields);
        if let Some((ty, Some(fields))) = arguments {
            self.message(messages, &ty, fields);
        }
        let value = match (&method.stream, &method.reply) {
            (Some(item), _) => self.member(&item.0, true),
            (None, Some(reply)) if reply.get("type").is_some_and(|ty| ty == "null") => None,
            (None, Some(reply)) => self.member(&reply.0, true),
            (None, None) => self.member(&Value::Bool(true), true),
        };
        self.message(messages, &answer, value.map(|ty| field("value", ty)).into_iter().collect());
    }

    fn message(&mut self, out: &mut String, name: &str, fields: Vec<Field>) {
        let (numbered, gone) = self.numbers.number(name, &fields);
        if fields.is_empty() && gone.is_empty() {
            let _ = writeln!(out, "\nmessage {name} {{}}");
            return;
        }
        let _ = writeln!(out, "\nmessage {name} {{");
        if !gone.is_empty() {
            let gone: Vec<_> = gone.iter().map(u32::to_string).collect();
            let _ = writeln!(out, "  reserved {};", gone.join(", "));
        }
        for (Field { name, doc, ty }, number) in fields.iter().zip(numbered) {
            let _ = writeln!(out, "{}  {ty} {name} = {number};", comment("  ", doc));
        }
        out.push_str("}\n");
    }

    /// The members of an object as fields; `None` if it is none, or has names that no field may have.
    fn fields(&self, schema: &Schema) -> Option<Vec<Field>> {
        if schema.get("type").and_then(Value::as_str) != Some("object") || schema.0["additionalProperties"].is_object()
        {
            return None;
        }
        let mut seen = BTreeSet::new();
        let field = |(name, ty): (&str, &Value)| {
            let begins = name.starts_with(|first: char| first.is_ascii_alphabetic());
            // What differs by case and `_` alone would be one name in JSON.
            let is_fit = begins && identifier(name) == name && seen.insert(name.replace('_', "").to_lowercase());
            let doc = ty["description"].as_str().unwrap_or_default().to_owned();
            is_fit.then(|| Some(Field { name: name.to_owned(), doc, ty: self.member(ty, schema.requires(name))? }))?
        };
        schema.members().into_iter().map(field).collect()
    }

    /// A member's type, with its label.
    fn member(&self, schema: &Value, is_required: bool) -> Option<String> {
        let (shape, is_nullable) = self.shape(schema, DEPTH_MAX);
        Some(match shape {
            // To be left out and to be null are not the same.
            _ if is_required && is_nullable => VALUE.to_owned(),
            Shape::One(ty) if is_required || !is_scalar(&ty) => ty,
            Shape::One(ty) => format!("optional {ty}"),
            Shape::Many(ty) if is_required => format!("repeated {ty}"),
            Shape::ByText(ty) if is_required => format!("map<string, {ty}>"),
            Shape::Many(_) => LIST.to_owned(),
            Shape::ByText(_) => STRUCT.to_owned(),
        })
    }

    /// What a value is, and whether it may be null.
    fn shape(&self, schema: &Value, depth: u32) -> (Shape, bool) {
        let one = |ty: &str| (Shape::One(ty.to_owned()), false);
        let Some(depth) = depth.checked_sub(1) else { return one(VALUE) };
        if let Some(name) = schema["$ref"].as_str().and_then(referred) {
            return match self.definitions.get(name) {
                Some(definition) if self.is_message(definition) => one(&camel(name)),
                Some(definition) => self.shape(&definition.0, depth),
                None => one(VALUE),
            };
        }
        for keyword in ["anyOf", "oneOf", "allOf"] {
            if let Some(schemas) = schema[keyword].as_array() {
                return either(schemas.iter().map(|schema| self.shape(schema, depth)));
            }
        }
        if let Some(values) = schema["enum"].as_array() {
            return either(values.iter().map(of_value));
        }
        if let Some(value) = schema.get("const") {
            return of_value(value);
        }
        match &schema["type"] {
            Value::String(name) => self.of_type(name, schema, depth),
            Value::Array(names) => {
                either(names.iter().filter_map(Value::as_str).map(|name| self.of_type(name, schema, depth)))
            }
            _ => one(VALUE),
        }
    }

    /// Whether a definition has a message of its own. What its members are does not matter for that.
    fn is_message(&self, definition: &Schema) -> bool {
        let shallow = Types { definitions: &BTreeMap::new(), numbers: Numbers::default(), taken: BTreeSet::new() };
        shallow.fields(definition).is_some()
    }

    fn of_type(&self, name: &str, schema: &Value, depth: u32) -> (Shape, bool) {
        let inner = |schema: &Value| match self.shape(schema, depth) {
            (Shape::One(ty), false) => ty,
            (Shape::Many(_), false) => LIST.to_owned(),
            (Shape::ByText(_), false) => STRUCT.to_owned(),
            (_, true) => VALUE.to_owned(),
        };
        let shape = match name {
            "null" => return (Shape::One(NULL.to_owned()), true),
            "boolean" => Shape::One("bool".to_owned()),
            "integer" if schema["format"].as_str().is_some_and(|format| format.starts_with("uint")) => {
                Shape::One("uint64".to_owned())
            }
            "integer" => Shape::One("int64".to_owned()),
            "number" => Shape::One("double".to_owned()),
            "string" if schema["contentEncoding"] == "base64" => Shape::One("bytes".to_owned()),
            "string" => Shape::One("string".to_owned()),
            "array" if schema["items"].is_object() && !schema["prefixItems"].is_array() => {
                Shape::Many(inner(&schema["items"]))
            }
            "array" => Shape::One(LIST.to_owned()),
            "object" if schema["additionalProperties"].is_object() => {
                Shape::ByText(inner(&schema["additionalProperties"]))
            }
            "object" => Shape::One(STRUCT.to_owned()),
            _ => Shape::One(VALUE.to_owned()),
        };
        (shape, false)
    }
}

/// One of several: their shape, if it is the same.
fn either(shapes: impl Iterator<Item = (Shape, bool)>) -> (Shape, bool) {
    let (mut found, mut is_nullable): (Option<Shape>, bool) = (None, false);
    for (shape, may_be_null) in shapes {
        is_nullable |= may_be_null;
        found = match (found, shape) {
            (found, Shape::One(ty)) if ty == NULL => found,
            (None, shape) => Some(shape),
            (Some(Shape::One(known)), Shape::One(ty)) if known == ty => Some(Shape::One(ty)),
            _ => return (Shape::One(VALUE.to_owned()), false),
        };
    }
    match found {
        Some(Shape::One(ty)) if ty == VALUE => (Shape::One(ty), false),
        Some(shape) => (shape, is_nullable),
        None => (Shape::One(VALUE.to_owned()), false),
    }
}

fn of_value(value: &Value) -> (Shape, bool) {
    let ty = match value {
        Value::Null => return (Shape::One(NULL.to_owned()), true),
        Value::Bool(_) => "bool",
        Value::String(_) => "string",
        Value::Number(number) if number.is_i64() => "int64",
        _ => VALUE,
    };
    (Shape::One(ty.to_owned()), false)
}

fn is_scalar(ty: &str) -> bool {
    matches!(ty, "bool" | "int64" | "uint64" | "double" | "string" | "bytes")
}

/// The numbers of fields, by their messages.
#[derive(Default)]
struct Numbers(BTreeMap<String, Known>);

#[derive(Default)]
struct Known {
    /// The numbers of fields by name and type.
    fields: BTreeMap<(String, String), u32>,
    gone: BTreeSet<u32>,
}

impl Numbers {
    /// Those of a file that was written here: messages stand one behind the other.
    fn of(file: &str) -> Self {
        let mut found = Self::default();
        let mut message = String::new();
        for line in file.lines().map(str::trim) {
            if let Some(name) = line.strip_prefix("message ").and_then(|rest| rest.split_whitespace().next()) {
                message = name.to_owned();
            } else if let Some(numbers) = line.strip_prefix("reserved ") {
                let numbers = numbers.trim_end_matches(';').split(", ").filter_map(|number| number.parse::<u32>().ok());
                found.0.entry(message.clone()).or_default().gone.extend(numbers);
            } else if let Some((field, number)) = line.strip_suffix(';').and_then(|field| field.rsplit_once(" = "))
                && let (Some((ty, name)), Ok(number)) = (field.rsplit_once(' '), number.parse())
            {
                found.0.entry(message.clone()).or_default().fields.insert((name.to_owned(), ty.to_owned()), number);
            }
        }
        found
    }

    /// The numbers of a message's fields, and those that no field may have any more.
    fn number(&mut self, message: &str, fields: &[Field]) -> (Vec<u32>, BTreeSet<u32>) {
        let Known { fields: known, mut gone } = self.0.remove(message).unwrap_or_default();
        gone.extend(known.values());
        let mut last = gone.last().copied().unwrap_or_default();
        let number = |Field { name, ty, .. }: &Field| match known.get(&(name.clone(), ty.clone())) {
            Some(number) => *number,
            None => {
                // Between them are those of the format itself.
                last = if last + 1 == 19_000 { 20_000 } else { last + 1 };
                last
            }
        };
        let numbered: Vec<u32> = fields.iter().map(number).collect();
        gone.retain(|number| !numbered.contains(number));
        (numbered, gone)
    }
}

fn comment(indent: &str, doc: &str) -> String {
    doc.lines().fold(String::new(), |out, line| format!("{out}{indent}// {}\n", line.trim_end()))
}

fn text(value: &str) -> String {
    Value::from(value).to_string()
}

const NULL: &str = "null";
const VALUE: &str = "google.protobuf.Value";
const STRUCT: &str = "google.protobuf.Struct";
const LIST: &str = "google.protobuf.ListValue";
/// References that are followed from one value.
const DEPTH_MAX: u32 = 16;
