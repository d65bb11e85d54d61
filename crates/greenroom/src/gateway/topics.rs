//! The cluster's topics, as JSON.

use serde_json::{Value, json};

use super::problem::Problem;
use super::{Door, asked};
use crate::observe::look::{self, Whom};
use crate::observe::question::Question;
use crate::topic::shown::TOPICS_SHOWN;

/// Which topics are asked for.
#[derive(Debug)]
pub(super) struct Wanted {
    prefix: String,
    after: Option<String>,
    limit: usize,
}

/// Reads `?prefix=prices/&after=prices/eu&limit=100`, of which each may be left out.
///
/// # Errors
/// Something else is asked for.
pub(super) fn wanted(query: Option<&str>) -> Result<(Wanted, Whom), Problem> {
    let mut wanted = Wanted { prefix: String::new(), after: None, limit: LIMIT_DEFAULT };
    let whom = asked::read(query, UNCLEAR, |name, value| {
        match name {
            "prefix" => wanted.prefix = value,
            "after" => wanted.after = Some(value),
            "limit" => wanted.limit = value.parse().ok().filter(|limit| (1..=LIMIT_MAX).contains(limit))?,
            _ => return None,
        }
        Some(())
    })?;
    Ok((wanted, whom))
}

/// The topics that are active, in the order of their names.
pub(super) async fn list(door: &Door, Wanted { prefix, after, limit }: Wanted, whom: &Whom) -> Value {
    let by = json!({ "prefix": prefix, "after": after, "limit": limit });
    let question = Question::Shown { what: TOPICS_SHOWN.to_owned(), by };
    let heard = look::ask::<Value>(&door.node, &question, whom).await;
    let view = door.node.view();
    let mut topics = Vec::new();
    for (id, said) in &heard.said {
        let Some(member) = view.member(*id) else { continue };
        for topic in said.as_array().into_iter().flatten() {
            let mut topic = topic.clone();
            topic["node"] = member.name.as_str().into();
            topics.push(topic);
        }
    }
    topics.sort_by(|one, other| one["topic"].as_str().cmp(&other["topic"].as_str()));
    let more = topics.len() > limit;
    topics.truncate(limit);
    let next = topics.last().filter(|_| more).map(|last| last["topic"].clone());
    heard.with_silent(json!({ "topics": topics, "next": next }))
}

const LIMIT_DEFAULT: usize = 100;
const LIMIT_MAX: usize = 500;
const UNCLEAR: &str = "write which topics are wanted as `?prefix=prices/`, with `&limit=100` (at most 500), `&after=` the last page's `next`, \
    and `&nodes=a,b` if not those of all nodes";
