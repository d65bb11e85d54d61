//! A cluster at a glance, as JSON.

use std::collections::BTreeMap;

use serde_json::Value;

use super::Door;
use super::problem::Problem;
use crate::observe;
use crate::observe::word::NodeWord;

/// What a request for `/-/overview` says of how much of the past it wants: `?seconds=600`.
///
/// # Errors
/// Something else is asked for.
pub(super) fn seconds(query: Option<&str>) -> Result<u32, Problem> {
    let Some(query) = query else { return Ok(SECONDS_DEFAULT) };
    let read = query.strip_prefix("seconds=").and_then(|seconds| seconds.parse().ok());
    read.filter(|seconds| (1..=SECONDS_MAX).contains(seconds)).ok_or_else(|| {
        Problem::bad_request(&format!(
            "write of how much of the past you want to hear as `?seconds=600`, at most {SECONDS_MAX}"
        ))
    })
}

/// The cluster, with the last `seconds` of it.
pub(super) fn overview(door: &Door, seconds: u32) -> Value {
    let node = &door.node;
    let said = BTreeMap::from([(node.me(), NodeWord::of(node, seconds))]);
    observe::overview::told(node, seconds, &said)
}

const SECONDS_DEFAULT: u32 = 300;
const SECONDS_MAX: u32 = 3_600;
