//! What must hold of a description, whoever wrote it.

use std::collections::{BTreeMap, BTreeSet};

use serde_json::Value;

use crate::contents::{Contents, Method, Options};
use crate::error::Error;
use crate::schema::{self, Schema, referred};
use crate::{
    ARGUMENTS_MAX, DEFINITIONS_MAX, DEPTH_MAX, KIND_LEN_MAX, MEMBERS_MAX, METHODS_MAX, NAME_LEN_MAX, STATES_MAX,
    TOPICS_MAX,
};

pub(crate) fn depth(document: &Value) -> Result<(), Error> {
    fn reaches(value: &Value, left: usize) -> bool {
        match (value, left) {
            (Value::Array(_) | Value::Object(_), 0) => true,
            (Value::Array(values), _) => values.iter().any(|value| reaches(value, left - 1)),
            (Value::Object(members), _) => members.values().any(|value| reaches(value, left - 1)),
            _ => false,
        }
    }
    match reaches(document, DEPTH_MAX) {
        true => Err(Error::wrong("", format!("it is nested deeper than {DEPTH_MAX}: name the types under `$defs`"))),
        false => Ok(()),
    }
}

pub(crate) fn contents(said: &Contents) -> Result<(), Error> {
    let plain = |letter: char| letter.is_ascii_alphanumeric() || matches!(letter, '_' | '-' | '.');
    // A path reads `-`, `.` and `..` as something else.
    let is_name = said.kind.chars().any(|letter| letter.is_ascii_alphanumeric()) && said.kind.chars().all(plain);
    if !is_name || said.kind.len() > KIND_LEN_MAX {
        let why = format!(
            "a kind is a name of at most {KIND_LEN_MAX} ASCII letters, digits, `_`, `-` and `.`, with a letter or digit \
             among them: it stands in URLs"
        );
        return Err(Error::wrong("kind", why));
    }
    if said.version == 0 || said.compatible == 0 || said.compatible > said.version {
        return Err(Error::wrong("compatible", "versions begin with 1, and `compatible` is at most `version`"));
    }
    at_most("methods", said.methods.len(), METHODS_MAX)?;
    at_most("states", said.states.len(), STATES_MAX)?;
    at_most("topics", said.topics.len(), TOPICS_MAX)?;
    at_most("$defs", said.definitions.len(), DEFINITIONS_MAX)?;
    if said.methods.is_empty() {
        return Err(Error::wrong("methods", "nobody could call its actors: describe at least one method"));
    }
    options(&said.options)?;
    let mut names = BTreeSet::new();
    for (at, method) in said.methods.iter().enumerate() {
        let at = format!("methods[{at}]");
        if !names.insert(&*method.name) {
            return Err(Error::wrong(at, format!("there is a method `{}` already", method.name)));
        }
        self::method(&at, method, said)?;
    }
    for (name, definition) in &said.definitions {
        let at = format!("$defs.{name}");
        let plain = |letter: char| letter.is_alphanumeric() || matches!(letter, '_' | '-' | '.');
        if name.is_empty() || name.len() > NAME_LEN_MAX || !name.chars().all(plain) {
            return Err(Error::wrong(at, "name a type with letters, digits, `_`, `-` and `.`"));
        }
        of_type(&at, definition, &said.definitions)?;
        ends(&at, name, &said.definitions)?;
    }
    let mut states = BTreeSet::new();
    for (at, state) in said.states.iter().enumerate() {
        let at = format!("states[{at}]");
        bounded(&at, &state.name)?;
        if state.version == 0 {
            return Err(Error::wrong(at, "versions begin with 1"));
        }
        if !states.insert(&state.name) {
            return Err(Error::wrong(at, format!("there is a state `{}` already", state.name)));
        }
    }
    for (at, topic) in said.topics.iter().enumerate() {
        let at = format!("topics[{at}]");
        bounded(&at, &topic.namespace)?;
        if !names.contains(&*topic.method) {
            return Err(Error::wrong(at, format!("there is no method `{}` to take its events", topic.method)));
        }
    }
    Ok(())
}

fn options(options: &Options) -> Result<(), Error> {
    let Options { start, placement, store, instances, activation, home, protocol, leader, on_error, .. } = options;
    let texts = [
        ("start", start),
        ("placement", placement),
        ("store", store),
        ("instances", instances),
        ("activation", activation),
        ("home", home),
        ("protocol", protocol),
        ("leader", leader),
        ("on_error", on_error),
    ];
    for (name, text) in texts {
        if let Some(text) = text {
            bounded(&format!("options.{name}"), text)?;
        }
    }
    let known = [
        ("instances", instances, &["single", "per_cluster", "adaptive"][..]),
        ("activation", activation, &["optimistic", "pessimistic"]),
        ("on_error", on_error, &["keep", "restart"]),
    ];
    for (name, text, words) in known {
        if let Some(text) = text
            && !words.contains(&&**text)
        {
            return Err(Error::wrong(format!("options.{name}"), format!("write one of {}", words.join(", "))));
        }
    }
    match (start, options.reliable) {
        (Some(_), false) => Err(Error::wrong("options.start", "state machines are reliable: say `reliable` too")),
        _ => Ok(()),
    }
}

fn method(at: &str, method: &Method, said: &Contents) -> Result<(), Error> {
    let letters = |letter: char| letter.is_alphanumeric() || matches!(letter, '_' | '$');
    let name = &method.name;
    if name.is_empty()
        || name.len() > NAME_LEN_MAX
        || !name.chars().all(letters)
        || name.starts_with(|first: char| first.is_numeric())
    {
        let why = format!("name a method with letters, digits and `_`, at most {NAME_LEN_MAX} bytes, as languages do");
        return Err(Error::wrong(format!("{at}.name"), why));
    }
    if method.stream.is_some() && method.reply.is_some() {
        return Err(Error::wrong(
            format!("{at}.reply"),
            "a method answers with a value or with a stream, not with both",
        ));
    }
    if method.update && !method.read {
        return Err(Error::wrong(format!("{at}.update"), "an update of versioned state is a read"));
    }
    let types = [
        ("arguments", Some(&method.arguments)),
        ("reply", method.reply.as_ref()),
        ("error", method.error.as_ref()),
        ("stream", method.stream.as_ref()),
    ];
    for (name, schema) in types {
        if let Some(schema) = schema {
            of_type(&format!("{at}.{name}"), schema, &said.definitions)?;
        }
    }
    arguments(&format!("{at}.arguments"), &method.arguments)?;
    if let Some(states) = &method.states {
        let at = format!("{at}.states");
        at_most(&at, states.len(), STATES_MAX)?;
        states.keys().try_for_each(|state| bounded(&at, state))?;
        if said.options.start.is_none() {
            return Err(Error::wrong(at, "only a state machine has states: say its first one, `options.start`"));
        }
    }
    Ok(())
}

fn arguments(at: &str, arguments: &Schema) -> Result<(), Error> {
    if arguments.is_any() {
        return Ok(());
    }
    if arguments.get("type").and_then(Value::as_str) != Some("object") {
        return Err(Error::wrong(
            at,
            "arguments go by their names: write `\"type\": \"object\"`, or `true` for anything",
        ));
    }
    let members = arguments.members();
    at_most(at, members.len(), ARGUMENTS_MAX)?;
    members.iter().try_for_each(|(name, _)| bounded(at, name))?;
    let required = arguments.get("required").and_then(Value::as_array).into_iter().flatten();
    for name in required {
        if !name.as_str().is_some_and(|name| members.iter().any(|(member, _)| *member == name)) {
            return Err(Error::wrong(format!("{at}.required"), format!("there is no argument {name}")));
        }
    }
    Ok(())
}

/// What must hold of a schema and of all below it.
fn of_type(at: &str, schema: &Schema, definitions: &BTreeMap<String, Schema>) -> Result<(), Error> {
    fn look(at: &str, value: &Value, definitions: &BTreeMap<String, Schema>) -> Result<(), Error> {
        let keywords = match value {
            Value::Bool(_) => return Ok(()),
            Value::Object(keywords) => keywords,
            _ => return Err(Error::wrong(at, "a schema is an object, or `true` for anything")),
        };
        if let Some(moved) = BASE_MOVING.iter().find(|keyword| keywords.contains_key(**keyword)) {
            return Err(Error::wrong(at, format!("`{moved}` is not for descriptions: name types under `$defs` alone")));
        }
        match keywords.get("$ref") {
            None => {}
            Some(Value::String(text)) if referred(text).is_some_and(|name| definitions.contains_key(name)) => {}
            Some(other) => {
                let why = format!("{other} is not the `#/$defs/NAME` of a type that the description has");
                return Err(Error::wrong(format!("{at}.$ref"), why));
            }
        }
        if let Some(Value::Object(members)) = keywords.get("properties") {
            at_most(&format!("{at}.properties"), members.len(), MEMBERS_MAX)?;
        }
        schema::below(keywords).try_for_each(|(path, schema)| look(&format!("{at}.{path}"), schema, definitions))
    }
    look(at, &schema.0, definitions)
}

/// Refuses a type that is another name for itself and nothing else: who follows its references never arrives.
fn ends(at: &str, name: &str, definitions: &BTreeMap<String, Schema>) -> Result<(), Error> {
    let mut reached = Some(name);
    for _ in 0..=definitions.len() {
        let next = reached.and_then(|name| definitions.get(name)).and_then(|schema| schema.get("$ref"));
        reached = next.and_then(Value::as_str).and_then(referred);
        if reached.is_none() {
            return Ok(());
        }
    }
    Err(Error::wrong(at, "the type refers to itself and says nothing else"))
}

fn at_most(at: &str, count: usize, max: usize) -> Result<(), Error> {
    match count > max {
        true => Err(Error::wrong(at, format!("there are {count}; {max} are the most"))),
        false => Ok(()),
    }
}

fn bounded(at: &str, text: &str) -> Result<(), Error> {
    match text.is_empty() || text.len() > NAME_LEN_MAX || text.chars().any(char::is_control) {
        true => {
            Err(Error::wrong(at, format!("a name has 1 to {NAME_LEN_MAX} bytes, and no control characters among them")))
        }
        false => Ok(()),
    }
}

/// Keywords with which a reference could mean something outside of `$defs`.
const BASE_MOVING: &[&str] = &[
    "$anchor",
    "$defs",
    "$dynamicAnchor",
    "$dynamicRef",
    "$id",
    "$recursiveRef",
    "$schema",
    "$vocabulary",
    "definitions",
];
