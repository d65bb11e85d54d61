//! Types, as JSON Schema 2020-12 says them, and which of its keywords hold further schemas.

use std::collections::BTreeSet;

use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

/// A schema: `true` for anything, or an object of keywords.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
#[serde(transparent)]
pub struct Schema(pub Value);

impl Schema {
    /// The schema of a value of which nothing is known.
    pub const ANY: Schema = Schema(Value::Bool(true));

    /// Whether it is known to take any value at all.
    pub fn is_any(&self) -> bool {
        is_any(&self.0)
    }

    /// A keyword's value.
    pub fn get(&self, keyword: &str) -> Option<&Value> {
        self.0.get(keyword)
    }

    /// Of an object: the names and types of its members, those of `x-order` first and in that order.
    pub fn members(&self) -> Vec<(&str, &Value)> {
        let Some(Value::Object(properties)) = self.0.get("properties") else { return Vec::new() };
        let order = self.0.get("x-order").and_then(Value::as_array).into_iter().flatten().filter_map(Value::as_str);
        let mut seen = BTreeSet::new();
        let named = order.chain(properties.keys().map(String::as_str)).filter(|name| seen.insert(*name));
        named.filter_map(|name| properties.get_key_value(name).map(|(name, schema)| (&**name, schema))).collect()
    }

    /// Of an object: whether the member `name` must be there.
    pub fn requires(&self, name: &str) -> bool {
        let required = self.0.get("required").and_then(Value::as_array);
        required.is_some_and(|required| required.iter().any(|one| one == name))
    }
}

impl Default for Schema {
    fn default() -> Self {
        Self::ANY
    }
}

/// Whether `schema` is `true`, or an object in which nothing but annotations stands.
pub fn is_any(schema: &Value) -> bool {
    match schema {
        Value::Bool(any) => *any,
        Value::Object(keywords) => keywords.keys().all(|keyword| is_annotation(keyword)),
        _ => false,
    }
}

/// Whether a keyword says nothing of which values are valid.
pub fn is_annotation(keyword: &str) -> bool {
    keyword.starts_with("x-") || ANNOTATIONS.contains(&keyword)
}

/// The schemas that stand right below `keywords`, each with its path from there.
pub fn below(keywords: &Map<String, Value>) -> impl Iterator<Item = (String, &Value)> {
    keywords.iter().flat_map(|(keyword, value)| -> Vec<(String, &Value)> {
        match (holds(keyword), value) {
            (Holds::One, schema) => vec![(keyword.clone(), schema)],
            (Holds::List, Value::Array(schemas)) => {
                schemas.iter().enumerate().map(|(at, schema)| (format!("{keyword}[{at}]"), schema)).collect()
            }
            (Holds::Named, Value::Object(schemas)) => {
                schemas.iter().map(|(name, schema)| (format!("{keyword}.{name}"), schema)).collect()
            }
            _ => Vec::new(),
        }
    })
}

/// What stands behind a keyword.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Holds {
    /// A schema.
    One,
    /// A list of them.
    List,
    /// An object of them by name.
    Named,
    /// Something else.
    Other,
}

pub(crate) fn holds(keyword: &str) -> Holds {
    match keyword {
        "items"
        | "additionalProperties"
        | "not"
        | "if"
        | "then"
        | "else"
        | "contains"
        | "propertyNames"
        | "unevaluatedItems"
        | "unevaluatedProperties"
        | "contentSchema" => Holds::One,
        "allOf" | "anyOf" | "oneOf" | "prefixItems" => Holds::List,
        "properties" | "patternProperties" | "dependentSchemas" => Holds::Named,
        _ => Holds::Other,
    }
}

/// The name that a reference names under `$defs`.
pub fn referred(reference: &str) -> Option<&str> {
    reference.strip_prefix("#/$defs/")
}

/// Keywords of JSON Schema that say nothing of what is valid.
const ANNOTATIONS: &[&str] = &["$comment", "default", "deprecated", "description", "examples", "title"];
