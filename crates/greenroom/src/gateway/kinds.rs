//! What kinds say of themselves: the list of them, one's description, and the OpenAPI document of all.

use std::collections::BTreeMap;
use std::sync::{Arc, PoisonError};

use bytes::Bytes;
use greenroom_describe::{Description, Digest, openapi};
use serde_json::{Value, json};

use super::call::near_kinds;
use super::problem::Problem;
use super::{Door, call, service};
use crate::actor::error::Refusal;
use crate::actor::key::KEY_LEN_MAX;
use crate::here::built_in::is_built_in;

/// All kinds of the cluster, and who hosts them.
pub(super) fn list(door: &Door) -> Value {
    let node = &door.node;
    let mut hosts: BTreeMap<String, Vec<String>> = BTreeMap::new();
    let view = node.view();
    for (_, member) in view.view.active() {
        for kind in member.kinds.iter().filter(|kind| !is_built_in(&kind.name)) {
            hosts.entry(kind.name.clone()).or_default().push(member.name.clone());
        }
    }
    let mut described: BTreeMap<String, Arc<Description>> =
        descriptions(door).into_iter().map(|description| (description.kind.clone(), description)).collect();
    for name in described.keys() {
        hosts.entry(name.clone()).or_default();
    }
    let kinds: Vec<Value> = hosts
        .into_iter()
        .map(|(kind, nodes)| match described.remove(&kind) {
            Some(described) => json!({
                "kind": kind, "nodes": nodes, "version": described.version, "compatible": described.compatible,
                "doc": described.doc, "digest": described.digest(),
                "methods": described.methods.iter().map(|method| &method.name).collect::<Vec<_>>(),
            }),
            None => json!({ "kind": kind, "nodes": nodes }),
        })
        .collect();
    json!({ "node": node.name(), "kinds": kinds })
}

/// What `kind` says of itself.
pub(super) fn one(door: &Door, kind: &str) -> Result<Value, Problem> {
    let hosted = (!is_built_in(kind)).then(|| door.node.kinds().describe(kind)).flatten();
    if let Some(description) = hosted {
        let mut document = description.document().clone();
        document["digest"] = description.digest().to_string().into();
        return Ok(document);
    }
    let view = door.node.view();
    let members = view.view.active().map(|(_, member)| member);
    let host =
        members.filter(|_| !is_built_in(kind)).find(|member| member.kinds.iter().any(|other| other.name == kind));
    match host {
        Some(host) => Err(Problem::described_elsewhere(kind, &host.name, host.http.as_deref())),
        None => {
            let (kind, near) = (call::shortened(kind), near_kinds(door, kind));
            Err(Refusal::UnknownKind { kind, near }.into())
        }
    }
}

/// What may be called here, for tools that read OpenAPI 3.1. It is made when a kind is not as it was.
pub(super) fn openapi(door: &Door) -> Arc<OpenApi> {
    let kinds = door.node.kinds();
    let names = kinds.methods().map(|(name, _)| name).filter(|name| !is_built_in(name));
    let of: Vec<(&'static str, Digest)> = names.filter_map(|name| Some((name, kinds.digest(name)?))).collect();
    // Two that ask at once wait for one document.
    let mut made = door.openapi.lock().unwrap_or_else(PoisonError::into_inner);
    match &*made {
        Some(made) if made.of == of => made.clone(),
        _ => made.insert(Arc::new(OpenApi { text: service::pretty(&document(door)), of })).clone(),
    }
}

/// The OpenAPI document of an endpoint.
pub(super) struct OpenApi {
    pub(super) text: Bytes,
    /// The kinds that it is of.
    of: Vec<(&'static str, Digest)>,
}

fn document(door: &Door) -> Value {
    let config = door.node.config();
    let said = openapi::Door {
        cluster: config.cluster.clone(),
        version: env!("CARGO_PKG_VERSION").to_owned(),
        tokens: door.guard.takes_tokens(),
        certificates: door.guard.takes_certificates(),
        timeout: format!("{} s", config.call_timeout.as_secs_f64()),
        key_len_max: KEY_LEN_MAX,
    };
    let descriptions: Vec<Description> =
        descriptions(door).iter().map(|description| Description::clone(description)).collect();
    openapi::document(&descriptions, &said)
}

fn descriptions(door: &Door) -> Vec<Arc<Description>> {
    let kinds = door.node.kinds();
    let names = kinds.methods().map(|(name, _)| name).filter(|name| !is_built_in(name));
    names.filter_map(|name| kinds.describe(name)).collect()
}
