//! Turns of the cluster that failed or were slow, as JSON.

use serde_json::{Value, json};

use super::problem::Problem;
use super::{Door, asked};
use crate::observe::look::{self, Whom};
use crate::observe::question::Question;
use crate::observe::turns::{self, TurnWord, Wanted};

/// Reads `?outcome=slow&kind=room&method=post&seconds=60`, of which each may be left out.
///
/// # Errors
/// Something else is asked for.
pub(super) fn wanted(query: Option<&str>) -> Result<(Wanted, Whom), Problem> {
    let mut wanted = Wanted::default();
    let whom = asked::read(query, UNCLEAR, |name, value| {
        match name {
            "outcome" if value == "failed" || value == "slow" => wanted.slow = value == "slow",
            "kind" => wanted.kind = Some(value),
            "method" => wanted.method = Some(value),
            "seconds" => wanted.seconds = Some(value.parse().ok()?),
            _ => return None,
        }
        Some(())
    })?;
    Ok((wanted, whom))
}

/// The turns that are kept of those wanted: grouped, the largest group first; and each, the last or the slowest first. What errors say
/// is told if `values`.
pub(super) async fn list(door: &Door, wanted: Wanted, whom: &Whom, values: bool) -> Value {
    let (node, slow) = (&door.node, wanted.slow);
    let mut heard = look::ask::<Vec<TurnWord>>(node, &Question::Turns { wanted }, whom).await;
    if !values {
        heard.said.values_mut().flatten().for_each(TurnWord::keep_error_to_itself);
    }
    let view = node.view();
    let named = heard.said.iter().filter_map(|(id, turns)| Some((&*view.member(*id)?.name, turns)));
    let (groups, turns) = turns::told(slow, named.flat_map(|(name, turns)| turns.iter().map(move |turn| (name, turn))));
    heard.with_silent(json!({ "node": node.name(), "groups": groups, "turns": turns }))
}

const UNCLEAR: &str = "write which turns are wanted as `?outcome=failed` or `?outcome=slow`, with `&kind=chat_room`, `&method=post` and \
    `&seconds=60` if not all are, and `&nodes=a,b` if not those of all nodes";
