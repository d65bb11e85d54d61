//! Services of kinds, which an operator gives the door as descriptors: `greenroom generate --lang proto` writes them.
//!
//! Their messages are read and written as the JSON of protocol buffers: a request has the actor's `key` and the method's `arguments`, an
//! answer its `value`.

use std::collections::BTreeMap;
use std::sync::Arc;

use prost_reflect::{
    Cardinality, DescriptorPool, ExtensionDescriptor, Kind, MessageDescriptor, MethodDescriptor, ServiceDescriptor,
    Value,
};

/// What is wrong with descriptors: who has given them is at fault.
#[derive(Debug, thiserror::Error)]
#[error(
    "{0}; write them by `protoc --include_imports --descriptor_set_out=FILE` from what `greenroom generate --lang proto` has written"
)]
pub struct NotServices(pub(crate) String);

/// Methods, by the paths of their requests.
#[derive(Clone, Default)]
pub(crate) struct Services {
    methods: Arc<BTreeMap<String, Typed>>,
}

/// A method with messages of its own.
#[derive(Clone, Debug)]
pub(crate) struct Typed {
    pub(crate) kind: String,
    pub(crate) method: String,
    pub(crate) request: MessageDescriptor,
    pub(crate) answer: MessageDescriptor,
    pub(crate) is_stream: bool,
}

impl Services {
    /// Takes in all services of an encoded `FileDescriptorSet` that say which kind they are of.
    pub(crate) fn add(&mut self, set: &[u8]) -> Result<(), NotServices> {
        let pool =
            DescriptorPool::decode(set).map_err(|error| NotServices(format!("they are no descriptors: {error}")))?;
        let named = |name| pool.get_extension_by_name(name);
        let (Some(kind), Some(method)) = (named("greenroom.v1.kind"), named("greenroom.v1.method")) else {
            return Err(NotServices("they lack greenroom_kind.proto".to_owned()));
        };
        let mut methods = BTreeMap::clone(&self.methods);
        let before = methods.len();
        for service in pool.services() {
            let Some(kind) = text(&service.options(), &kind) else { continue };
            for called in service.methods() {
                let typed = typed(&kind, &called, &method).map_err(|what| wrong(&service, &called, &what))?;
                methods.insert(format!("/{}/{}", service.full_name(), called.name()), typed);
            }
        }
        if methods.len() == before {
            return Err(NotServices("no service of theirs has the option greenroom.v1.kind".to_owned()));
        }
        self.methods = Arc::new(methods);
        Ok(())
    }

    /// The method of a request's path.
    pub(crate) fn find(&self, path: &str) -> Option<&Typed> {
        self.methods.get(path)
    }

    /// Whether there is a service of this name.
    pub(crate) fn has(&self, service: &str) -> bool {
        let from = format!("/{service}/");
        self.methods.range(from.clone()..).next().is_some_and(|(path, _)| path.starts_with(&from))
    }
}

fn typed(kind: &str, called: &MethodDescriptor, option: &ExtensionDescriptor) -> Result<Typed, String> {
    let method = text(&called.options(), option).ok_or("it has no option greenroom.v1.method")?;
    let (request, answer) = (called.input(), called.output());
    if called.is_client_streaming() {
        return Err("actors take no streams of a client".to_owned());
    }
    let key = request.get_field_by_name("key").filter(|key| matches!(key.kind(), Kind::String));
    if key.is_none() {
        return Err(format!("{} has no text `key`, which names the actor", request.full_name()));
    }
    let arguments = request.get_field_by_name("arguments");
    let is_one = |field: &prost_reflect::FieldDescriptor| {
        matches!(field.kind(), Kind::Message(_)) && field.cardinality() != Cardinality::Repeated
    };
    if arguments.is_some_and(|arguments| !is_one(&arguments)) {
        return Err(format!("`arguments` of {} is no message", request.full_name()));
    }
    Ok(Typed { kind: kind.to_owned(), method, request, answer, is_stream: called.is_server_streaming() })
}

fn text(options: &prost_reflect::DynamicMessage, option: &ExtensionDescriptor) -> Option<String> {
    match &*options.get_extension(option) {
        Value::String(text) if !text.is_empty() => Some(text.clone()),
        _ => None,
    }
}

fn wrong(service: &ServiceDescriptor, method: &MethodDescriptor, what: &str) -> NotServices {
    NotServices(format!("{}/{}: {what}", service.full_name(), method.name()))
}
