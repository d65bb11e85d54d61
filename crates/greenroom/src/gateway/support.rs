//! All that a cluster says of itself in one document, for who is asked for help: without keys, values and what errors say.

use serde_json::{Value, json};

use super::hidden::Hidden;
use super::path::Path;
use super::{Door, pages};

/// The document. What a page does not tell stands there as its problem.
pub(super) async fn document(door: &Door) -> Value {
    let mut all = json!({ "at": door.node.wall().0, "version": env!("CARGO_PKG_VERSION"), "node": door.node.name() });
    for (name, path, query) in [
        ("overview", Path::Overview, Some("seconds=3600")),
        ("findings", Path::Findings, None),
        ("methods", Path::Methods, None),
        ("failed", Path::Turns, Some("outcome=failed")),
        ("slow", Path::Turns, Some("outcome=slow")),
        ("events", Path::Events, Some("limit=1000")),
        ("waits", Path::Waits, None),
        ("kinds", Path::Kinds, None),
        ("status", Path::Status, None),
        ("moves", Path::Moves, None),
    ] {
        all[name] = match pages::tell(door, &path, query, false).await {
            Ok(told) => told.unwrap_or_default(),
            Err(problem) => problem.document(),
        };
    }
    for event in all["events"]["events"].as_array_mut().into_iter().flatten() {
        if event["event"] == "changed" {
            event["text"] = "somebody has changed something".into();
            event["by"] = Value::Null;
        }
    }
    let view = door.node.view();
    let hosted = view.view.active().flat_map(|(_, member)| &member.kinds);
    let kinds: Vec<String> = hosted.map(|kind| kind.name.clone()).collect();
    Hidden::new(&kinds).hide(&mut all);
    all
}
