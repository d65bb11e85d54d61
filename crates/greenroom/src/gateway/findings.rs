//! What the nodes of a cluster find wrong, as JSON.

use serde_json::{Value, json};

use super::problem::Problem;
use super::{Door, asked};
use crate::observe::findings::{Finding, together};
use crate::observe::look::{self, Whom};
use crate::observe::question::Question;

/// Which nodes are asked.
///
/// # Errors
/// Something else is asked for.
pub(super) fn wanted(query: Option<&str>) -> Result<Whom, Problem> {
    asked::read(query, UNCLEAR, |_, _| None)
}

/// The findings of the nodes, each once and the worst first.
pub(super) async fn list(door: &Door, whom: &Whom) -> Value {
    let mut heard = look::ask::<Vec<Finding>>(&door.node, &Question::Findings, whom).await;
    let findings = together(std::mem::take(&mut heard.said).into_values().flatten());
    heard.with_silent(json!({ "node": door.node.name(), "findings": findings }))
}

const UNCLEAR: &str = "findings of all nodes are `/-/findings`, those of some `/-/findings?nodes=a,b`";
