//! Problems, as gRPC says them: a code, and the details.

use std::fmt::Display;

use bytes::Bytes;
use greenroom::door;
use prost::Message;
use prost_types::Any;
use serde_json::{Value, json};
use tonic::metadata::{MetadataMap, MetadataValue};
use tonic::{Code, Status};

use crate::v1::Problem;

/// The status of a problem.
pub(crate) fn of(problem: &door::Problem) -> Status {
    let document = problem.document();
    let detail = if problem.name() == "only-events" { ONLY_STREAM } else { problem.detail() };
    let said = Problem {
        name: problem.name().to_owned(),
        may_have_run: document["may_have_run"].as_bool().unwrap_or(true),
        error_json: document.get("error").map(Value::to_string).unwrap_or_default(),
        field: document["field"].as_str().unwrap_or_default().to_owned(),
        retry_after_ms: problem.retry_after().map(|pause| u32::try_from(pause.as_millis()).unwrap_or(u32::MAX)),
        document_json: document.to_string(),
    };
    status(code(problem.name()), detail, said)
}

/// What a client has written wrongly, with the path to it.
pub(crate) fn invalid(field: &str, message: &str) -> Status {
    let document = json!({ "detail": message, "field": field, "may_have_run": false });
    let said = Problem {
        name: "invalid-arguments".to_owned(),
        field: field.to_owned(),
        document_json: document.to_string(),
        ..Problem::default()
    };
    status(Code::InvalidArgument, &format!("{field:?}: {message}"), said)
}

/// A reply that cannot be written in the form of the arguments.
pub(crate) fn unreadable(error: &impl Display) -> Status {
    let message = format!("the reply cannot be written in the form of the arguments: {error}; the call has run");
    let document = json!({ "detail": message, "may_have_run": true });
    let said = Problem {
        name: "unknown-outcome".to_owned(),
        may_have_run: true,
        document_json: document.to_string(),
        ..Problem::default()
    };
    status(Code::Unknown, &message, said)
}

/// A status that the library below has found before any method was called, as problems are said.
pub(crate) fn not_run(found: &Status) -> Status {
    let document = json!({ "detail": found.message(), "may_have_run": false });
    let said = Problem { name: "bad-request".to_owned(), document_json: document.to_string(), ..Problem::default() };
    status(found.code(), found.message(), said)
}

fn status(code: Code, message: &str, said: Problem) -> Status {
    let may_have_run = if said.may_have_run { "true" } else { "false" };
    let mut metadata = MetadataMap::new();
    metadata.insert(MAY_HAVE_RUN, MetadataValue::from_static(may_have_run));
    let detail = Any { type_url: PROBLEM.to_owned(), value: said.encode_to_vec() };
    let details = RpcStatus { code: code as i32, message: message.to_owned(), details: vec![detail] };
    Status::with_details_and_metadata(code, message, Bytes::from(details.encode_to_vec()), metadata)
}

/// The code of a type of problem. Codes are what gRPC's own retries go by: UNAVAILABLE only where nothing ran and another try
/// may do.
fn code(name: &str) -> Code {
    match name {
        "actor-error" => Code::FailedPrecondition,
        "overloaded" | "too-large" => Code::ResourceExhausted,
        "unavailable" | "stopping" | "incompatible-version" => Code::Unavailable,
        "unknown-kind" | "unknown-method" | "described-elsewhere" | "dead-letter" => Code::NotFound,
        "invalid-arguments" | "invalid-key" | "bad-request" | "only-events" => Code::InvalidArgument,
        "unauthenticated" => Code::Unauthenticated,
        "forbidden" | "denied" | "other-site" => Code::PermissionDenied,
        "cycle" | "not-committed" => Code::Aborted,
        "timed-out" | "expired" | "slow-request" => Code::DeadlineExceeded,
        "panicked" | "unknown-outcome" => Code::Unknown,
        _ => Code::Internal,
    }
}

/// `google.rpc.Status`, which carries the details.
#[derive(Clone, PartialEq, Message)]
struct RpcStatus {
    #[prost(int32, tag = "1")]
    code: i32,
    #[prost(string, tag = "2")]
    message: String,
    #[prost(message, repeated, tag = "3")]
    details: Vec<Any>,
}

/// The trailer that says whether a turn may have begun.
pub(crate) const MAY_HAVE_RUN: &str = "may-have-run";
/// What a `Call` of a method hears that answers by a stream.
const ONLY_STREAM: &str = "the method answers by a stream: call it by greenroom.v1.Actors/Stream";
/// The name of the detail's type.
const PROBLEM: &str = "type.googleapis.com/greenroom.v1.Problem";
