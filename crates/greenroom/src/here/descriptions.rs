//! Descriptions of the kinds that are compiled in, made when somebody asks.

use greenroom_describe::{Contents, Description, FORMAT, Handling, Method, Options, Save, Schema, State};
use greenroom_protocols::node::Instances;
use serde_json::{Map, Value, json};

use super::kinds::AnyKind;
use crate::actor::interface::{self, MethodInfo, Travels};
use crate::actor::signature::{Declared, Parameter, Signature, Type};
use crate::state::Saving;

/// What `kind`, called `name`, says of itself. `None` if it says too much, of which the log then tells.
pub(crate) fn of(name: &str, kind: &dyn AnyKind) -> Option<Description> {
    let Declared { doc, signatures, states } = kind.declared();
    let mut types = Types::default();
    let methods = kind.methods().iter().enumerate();
    let methods = methods.map(|(at, info)| method(*info, signatures.get(at), &mut types)).collect();
    let versions = kind.state_versions();
    let states_stored = kind.states().into_iter().map(|(name, versioned)| State {
        version: versions.get(name).map_or(1, |versions| versions.reads),
        name: name.to_owned(),
        versioned,
    });
    let contents = Contents {
        format: FORMAT,
        kind: name.to_owned(),
        version: kind.offer().version,
        compatible: kind.offer().compatible,
        doc: doc.to_owned(),
        options: options(kind, states),
        methods,
        states: states_stored.collect(),
        topics: Vec::new(),
        definitions: types.definitions(),
    };
    match Description::of(&contents) {
        Ok(description) => Some(description),
        Err(error) => {
            tracing::warn!(kind = name, %error, "the kind cannot be described");
            None
        }
    }
}

fn options(kind: &dyn AnyKind, states: &[&str]) -> Options {
    let said = kind.options();
    let interface::Options { persistent, reliable, mailbox, in_flight, optimise, .. } = said;
    let text = |text: &str| (!text.is_empty()).then(|| text.to_owned());
    let instances = match (said.adaptive, said.instances) {
        (true, _) => Some("adaptive"),
        (false, Instances::PerCluster) => Some("per_cluster"),
        _ => None,
    };
    Options {
        persistent,
        reliable,
        mailbox,
        in_flight,
        optimise,
        migrate: kind.travels() == Travels::Carrying,
        start: states.first().map(|state| (*state).to_owned()),
        placement: text(said.placement).filter(|placement| placement != "balanced"),
        workers: (said.workers > 0).then_some(said.workers),
        idle_ms: said.idle.and_then(|idle| u64::try_from(idle.as_millis()).ok()),
        save: match said.saving {
            Saving::Explicit => None,
            Saving::EachTurn => Some(Save::Turn),
            Saving::Every(pause) => u64::try_from(pause.as_millis()).ok().map(Save::AfterMs),
        },
        store: text(said.store),
        instances: instances.map(str::to_owned),
        activation: (said.instances == Instances::Pessimistic).then(|| "pessimistic".to_owned()),
        home: text(said.home),
        protocol: text(said.protocol),
        leader: text(said.leader),
        on_error: None,
    }
}

fn method(info: MethodInfo, signature: Option<&Signature>, types: &mut Types) -> Method {
    let MethodInfo { name, read, update } = info;
    let mut method = Method {
        name: name.to_owned(),
        doc: String::new(),
        read,
        update,
        arguments: Schema::ANY,
        reply: None,
        error: None,
        stream: None,
        states: None,
    };
    let Some(signature) = signature else { return method };
    signature.doc.clone_into(&mut method.doc);
    method.arguments = arguments(signature, types);
    let answer = Some(Schema(types.written(signature.reply, signature.written)));
    match signature.streams {
        true => method.stream = answer,
        false => method.reply = answer,
    }
    method.error = (!matches!(signature.error, Type::Never))
        .then(|| Schema(types.written(signature.error, signature.error_written)));
    let handled = signature.handled.iter().filter_map(|(state, how)| {
        let how = match *how {
            "run" => Handling::Run,
            "defer" => Handling::Defer,
            "ignore" => Handling::Ignore,
            _ => return None,
        };
        Some(((*state).to_owned(), how))
    });
    method.states = (!signature.handled.is_empty()).then(|| handled.collect());
    method
}

fn arguments(signature: &Signature, types: &mut Types) -> Schema {
    if !signature.named {
        return Schema::ANY;
    }
    let properties: Map<String, Value> = signature
        .parameters
        .iter()
        .map(|Parameter { name, written, ty, .. }| ((*name).to_owned(), types.written(ty, written)))
        .collect();
    let required: Vec<&str> =
        signature.parameters.iter().filter(|parameter| parameter.required).map(|parameter| parameter.name).collect();
    let mut schema = json!({ "type": "object", "properties": properties });
    if !required.is_empty() {
        schema["required"] = json!(required);
    }
    if signature.parameters.len() > 1 {
        schema["x-order"] = signature.parameters.iter().map(|parameter| parameter.name).collect();
    }
    Schema(schema)
}

/// Schemas of types, and the types that these refer to: the generator writes JSON Schema 2020-12 unless it is told otherwise.
#[derive(Default)]
struct Types {
    #[cfg(feature = "schemars")]
    generator: schemars::SchemaGenerator,
}

impl Types {
    fn written(&mut self, ty: &Type, written: &str) -> Value {
        match self.schema(ty) {
            schema if written.is_empty() => schema,
            Value::Object(mut keywords) => {
                keywords.insert("x-rust".to_owned(), written.into());
                keywords.into()
            }
            Value::Bool(true) => json!({ "x-rust": written }),
            other => other,
        }
    }

    fn schema(&mut self, ty: &Type) -> Value {
        match ty {
            Type::Any => true.into(),
            Type::Never => false.into(),
            Type::Null => json!({ "type": "null" }),
            Type::Bool => json!({ "type": "boolean" }),
            Type::Integer { min, max } => {
                let mut schema = json!({ "type": "integer" });
                // What is as wide as numbers on the wire are says no more than that it is a whole number.
                if *min >= 0 || i64::try_from(*min).is_ok_and(|min| min > i64::MIN) {
                    schema["minimum"] = i64::try_from(*min).unwrap_or_default().into();
                }
                if let Some(max) = i64::try_from(*max).ok().filter(|max| *max < i64::MAX) {
                    schema["maximum"] = max.into();
                }
                schema
            }
            Type::Number => json!({ "type": "number" }),
            Type::Text => json!({ "type": "string" }),
            Type::Character => json!({ "type": "string", "minLength": 1, "maxLength": 1 }),
            Type::List(of) => json!({ "type": "array", "items": self.schema(of) }),
            Type::Set(of) => json!({ "type": "array", "items": self.schema(of), "uniqueItems": true }),
            Type::Array(of, len) => {
                json!({ "type": "array", "items": self.schema(of), "minItems": len, "maxItems": len })
            }
            Type::Tuple(of) => {
                let items: Vec<Value> = of.iter().map(|of| self.schema(of)).collect();
                json!({ "type": "array", "prefixItems": items, "minItems": of.len(), "maxItems": of.len() })
            }
            Type::Map(of) => json!({ "type": "object", "additionalProperties": self.schema(of) }),
            Type::Maybe(of) => maybe(self.schema(of)),
            #[cfg(feature = "schemars")]
            Type::Schema(of) => of(&mut self.generator).to_value(),
        }
    }

    #[cfg(feature = "schemars")]
    fn definitions(mut self) -> std::collections::BTreeMap<String, Schema> {
        self.generator.take_definitions(true).into_iter().map(|(name, schema)| (name, Schema(schema))).collect()
    }

    #[cfg(not(feature = "schemars"))]
    fn definitions(self) -> std::collections::BTreeMap<String, Schema> {
        Default::default()
    }
}

/// The schema of a value or `null`.
fn maybe(schema: Value) -> Value {
    match schema {
        Value::Object(mut keywords) => match keywords.get("type").cloned() {
            Some(Value::String(name)) => {
                keywords.insert("type".to_owned(), json!([name, "null"]));
                keywords.into()
            }
            _ => json!({ "anyOf": [Value::Object(keywords), { "type": "null" }] }),
        },
        other => other,
    }
}
