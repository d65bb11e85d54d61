//! What keeps one description from standing for another.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt;

use serde_json::Value;

use crate::contents::{Contents, Method};
use crate::schema::{Schema, is_any, referred};

/// One difference, in words.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Difference {
    /// What differs, such as ``method `post`, argument `user` ``.
    pub at: String,
    /// How.
    pub how: String,
}

impl fmt::Display for Difference {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: {}", self.at, self.how)
    }
}

pub(crate) fn between(one: &Contents, other: &Contents) -> Vec<Difference> {
    let mut found = Found {
        one: &one.definitions,
        other: &other.definitions,
        differences: Vec::new(),
        compared: BTreeSet::new(),
        left: COMPARISONS_MAX,
    };
    found.unless(one.kind == other.kind, "kind", || format!("`{}`, not `{}`", one.kind, other.kind));
    let versions = (one.version, one.compatible) == (other.version, other.compatible);
    found.unless(versions, "version", || {
        let said = |contents: &Contents| format!("{} compatible with {}", contents.version, contents.compatible);
        format!("{}, not {}", said(one), said(other))
    });
    let options = |contents: &Contents| serde_json::to_value(&contents.options).unwrap_or_default();
    let (ours, theirs) = (options(one), options(other));
    let names: BTreeSet<&String> =
        [&ours, &theirs].iter().filter_map(|said| said.as_object()).flat_map(|said| said.keys()).collect();
    for name in names {
        let (ours, theirs) = (&ours[name], &theirs[name]);
        found.unless(ours == theirs, &format!("option `{name}`"), || format!("{ours}, not {theirs}"));
    }
    found.unless(one.states == other.states, "states", || "not the same ones in the same versions".to_owned());
    found.unless(one.topics == other.topics, "topics", || "not the same ones".to_owned());
    found.missing(one, other);
    for ours in &one.methods {
        if let Some(theirs) = other.methods.iter().find(|theirs| theirs.name == ours.name) {
            found.method(ours, theirs);
        }
    }
    found.differences
}

struct Found<'a> {
    one: &'a BTreeMap<String, Schema>,
    other: &'a BTreeMap<String, Schema>,
    differences: Vec<Difference>,
    /// Types under `$defs` that were compared: their differences are told once.
    compared: BTreeSet<(String, String)>,
    /// How many types may still be compared: a document may name one type in very many places.
    left: usize,
}

impl Found<'_> {
    fn unless(&mut self, same: bool, at: &str, how: impl FnOnce() -> String) {
        if !same && self.differences.len() < DIFFERENCES_MAX {
            self.differences.push(Difference { at: at.to_owned(), how: how() });
        }
    }

    /// Methods that only one of the two has.
    fn missing(&mut self, one: &Contents, other: &Contents) {
        let has = |contents: &Contents, name| contents.methods.iter().any(|method| method.name == name);
        for method in &other.methods {
            self.unless(has(one, &*method.name), &format!("method `{}`", method.name), || "it is missing".to_owned());
        }
        for method in &one.methods {
            self.unless(has(other, &*method.name), &format!("method `{}`", method.name), || "it is new".to_owned());
        }
    }

    fn method(&mut self, ours: &Method, theirs: &Method) {
        let at = format!("method `{}`", ours.name);
        let turn = |method: &Method| match (method.read, method.update) {
            (_, true) => "an update",
            (true, false) => "a read",
            (false, false) => "an exclusive turn",
        };
        self.unless(turn(ours) == turn(theirs), &at, || format!("{}, not {}", turn(ours), turn(theirs)));
        self.unless(ours.stream.is_some() == theirs.stream.is_some(), &at, || {
            let answer = |method: &Method| if method.stream.is_some() { "a stream" } else { "a value" };
            format!("it answers with {}, not with {}", answer(ours), answer(theirs))
        });
        self.unless(ours.states == theirs.states, &at, || "its messages are handled in other states".to_owned());
        self.arguments(&at, &ours.arguments, &theirs.arguments);
        let ends = [
            ("reply", &ours.reply, &theirs.reply),
            ("item", &ours.stream, &theirs.stream),
            ("error", &ours.error, &theirs.error),
        ];
        for (name, ours, theirs) in ends {
            if let (Some(ours), Some(theirs)) = (ours, theirs) {
                self.types(&format!("{at}, {name}"), &ours.0, &theirs.0, DEPTH_MAX);
            }
        }
    }

    fn arguments(&mut self, at: &str, ours: &Schema, theirs: &Schema) {
        if ours.is_any() || theirs.is_any() {
            return;
        }
        self.members(&format!("{at}, argument"), ours, theirs, DEPTH_MAX);
        for (name, _) in ours.members() {
            let known = theirs.members().iter().any(|(other, _)| *other == name);
            self.unless(
                !known || ours.requires(name) == theirs.requires(name),
                &format!("{at}, argument `{name}`"),
                || {
                    let word = |schema: &Schema| if schema.requires(name) { "must be there" } else { "may be missing" };
                    format!("it {}, where it {}", word(ours), word(theirs))
                },
            );
        }
    }

    fn members(&mut self, what: &str, ours: &Schema, theirs: &Schema, left: usize) {
        let (ours, theirs) = (ours.members(), theirs.members());
        for (name, _) in &theirs {
            let known = ours.iter().any(|(other, _)| other == name);
            self.unless(known, &format!("{what} `{name}`"), || "it is missing".to_owned());
        }
        for (name, schema) in &ours {
            match theirs.iter().find(|(other, _)| other == name) {
                Some((_, other)) => self.types(&format!("{what} `{name}`"), schema, other, left),
                None => self.unless(false, &format!("{what} `{name}`"), || "it is new".to_owned()),
            }
        }
    }

    fn types(&mut self, at: &str, ours: &Value, theirs: &Value, left: usize) {
        if let (Some(ours), Some(theirs)) = (reference(ours), reference(theirs))
            && !self.compared.insert((ours.to_owned(), theirs.to_owned()))
        {
            return;
        }
        let (ours, theirs) = (resolved(ours, self.one), resolved(theirs, self.other));
        if left == 0 || self.left == 0 || is_any(ours) || is_any(theirs) {
            return;
        }
        self.left -= 1;
        if let (Some(one), Some(other)) = (names(ours), names(theirs)) {
            let told = |names: &BTreeSet<&str>| names.iter().copied().collect::<Vec<_>>().join(" or ");
            self.unless(one == other, at, || format!("{}, not {}", told(&one), told(&other)));
            if one != other {
                return;
            }
        }
        let (ours, theirs) = (Schema(ours.clone()), Schema(theirs.clone()));
        if ours.get("properties").is_some() && theirs.get("properties").is_some() {
            self.members(&format!("{at}, member"), &ours, &theirs, left - 1);
        }
        if let (Some(ours), Some(theirs)) = (ours.get("items"), theirs.get("items")) {
            self.types(&format!("{at}, items"), ours, theirs, left - 1);
        }
    }
}

/// The name under `$defs` that a schema refers to.
fn reference(schema: &Value) -> Option<&str> {
    schema.get("$ref").and_then(Value::as_str).and_then(referred)
}

/// The schema that a reference leads to.
fn resolved<'a>(schema: &'a Value, definitions: &'a BTreeMap<String, Schema>) -> &'a Value {
    let mut reached = schema;
    for _ in 0..=definitions.len() {
        match reference(reached).and_then(|name| definitions.get(name)) {
            Some(schema) => reached = &schema.0,
            None => break,
        }
    }
    reached
}

/// The names of the types that a value may have, if the schema says them outright.
fn names(schema: &Value) -> Option<BTreeSet<&str>> {
    match schema.get("type")? {
        Value::String(name) => Some([&**name].into()),
        Value::Array(names) => names.iter().map(Value::as_str).collect(),
        _ => None,
    }
}

/// More are not told.
const DIFFERENCES_MAX: usize = 32;
/// More pairs of types are not compared.
const COMPARISONS_MAX: usize = 4096;
/// How deep types are compared: recursive ones have no end.
const DEPTH_MAX: usize = 8;
