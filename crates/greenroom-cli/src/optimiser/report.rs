//! How the optimisers stand: hot actors by kind, what was gained, and what stands in the way.

use serde_json::Value;

use super::shards;
use crate::status::{columns, text};

/// A line for the nodes that move nobody, for each reason, and one that is empty.
pub(super) fn resting(said: &[Value]) -> String {
    let mut lines = String::new();
    for (mode, paused, why) in [
        ("off", None, "the optimiser is off; `--optimiser on` or `--optimiser advise` turns it on"),
        ("advise", None, "the optimiser moves nobody, as its mode is `advise`; `--optimiser on` lets it"),
        ("on", Some(true), "the optimiser is paused; `greenroom optimiser resume` lets it go on"),
    ] {
        let rests =
            |advice: &&Value| advice["mode"] == mode && (paused.is_none() || advice["paused"].as_bool() == paused);
        let nodes: Vec<String> = said.iter().filter(rests).map(|advice| text(&advice["node"])).collect();
        if !nodes.is_empty() {
            lines.push_str(&format!("on {} {why}\n", nodes.join(", ")));
        }
    }
    if lines.is_empty() { lines } else { lines + "\n" }
}

/// The hot actors of each shard by kind, and what there is to say of them.
pub(super) fn kinds(said: &[Value], _: usize) -> String {
    let mut rows =
        vec![["NODE", "SHARD", "KIND", "ACTORS", "MESSAGES/S", "OTHER SHARDS", "OTHER NODES"].map(str::to_owned)];
    let percent = |part: &Value| format!("{:.1} %", part.as_f64().unwrap_or_default() * 100.0);
    let (mut wishes, mut paid, mut unpaid, mut saved) = (0, 0, 0, 0.0);
    for (node, shard) in shards(said) {
        let judged = |what: &str| shard["judged"][what].as_u64().unwrap_or_default();
        wishes += shard["wishes_len"].as_u64().unwrap_or_default();
        (paid, unpaid) = (paid + judged("paid"), unpaid + judged("unpaid"));
        saved += shard["judged"]["saved"].as_f64().unwrap_or_default();
        for kind in shard["kinds"].as_array().into_iter().flatten() {
            rows.push([
                node.clone(),
                shard["shard"].to_string(),
                text(&kind["kind"]),
                kind["actors"].to_string(),
                format!("{:.0}", kind["rate"].as_f64().unwrap_or_default()),
                percent(&kind["beside"]),
                percent(&kind["away"]),
            ]);
        }
    }
    let pools = far(said) + &pools(said) + &stalls(said);
    let mut said = format!("{}\n{} would do better elsewhere\n", columns(&rows), many(wishes, "actor"));
    if paid + unpaid > 0 {
        let brought = if saved < 0.0 { "were put farther" } else { "were saved" };
        said.push_str(&format!(
            "{} paid and {} did not, of those whose actors would do better elsewhere again; {} {brought}\n",
            many(paid, "move"),
            many(unpaid, "move"),
            many(saved.abs().round() as u64, "message"),
        ));
    }
    said + &pools
}

/// So many of something.
fn many(count: u64, what: &str) -> String {
    format!("{count} {what}{}", if count == 1 { "" } else { "s" })
}

/// A line for each pool of threads for what blocks that is used.
fn pools(said: &[Value]) -> String {
    let used = said.iter().filter(|advice| advice["pool"]["begun"].as_u64().is_some_and(|begun| begun > 0));
    let line = |advice: &Value| {
        let pool = &advice["pool"];
        let (threads, most, waiting) = (&pool["threads"], &pool["threads_max"], &pool["waiting"]);
        format!(
            "{} has {threads} of {most} threads for what blocks, for which {waiting} wait: {}\n",
            text(&advice["node"]),
            text(&pool["why"])
        )
    };
    used.map(line).collect()
}

/// A line for each kind whose actors are called from another cluster and stay, and what to do about it.
fn far(said: &[Value]) -> String {
    let mut lines = String::new();
    for advice in said {
        for far in advice["far"].as_array().into_iter().flatten() {
            let [kind, cluster, node] = [&far["kind"], &far["cluster"], &advice["node"]].map(text);
            lines.push_str(&format!(
                "{} actors of kind {kind} on {node} get most of their calls from cluster {cluster}, and cannot follow them: `home = \"lease:{cluster}\"` saves \
                 these calls the way between the clusters\n",
                far["actors"],
            ));
        }
    }
    lines
}

/// A line for each method that keeps a shard from others, and what to do about it.
fn stalls(said: &[Value]) -> String {
    let mut lines = String::new();
    for advice in said {
        for stall in advice["pool"]["stalls"].as_array().into_iter().flatten() {
            let does = if stall["waits"] == true { "waits" } else { "computes" };
            lines.push_str(&format!(
                "{} on {} {does} for {:.1} ms without an await, seen {} times, and all others on its shard wait for it: \
                 write `#[blocking]` before it, or use `cx.blocking`\n",
                text(&stall["method"]),
                text(&advice["node"]),
                stall["micros"].as_f64().unwrap_or_default() / 1000.0,
                stall["times"],
            ));
        }
    }
    lines
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn pools_say_what_they_have_and_why_where_something_blocks() {
        let pool = |begun: u64| {
            let pool = json!({ "threads": 2, "threads_max": 4, "waiting": 0, "begun": begun, "why": "nothing comes" });
            json!({ "node": "a", "shards": [], "pool": pool })
        };
        let said = kinds(&[pool(7)], 5);
        assert!(said.ends_with("a has 2 of 4 threads for what blocks, for which 0 wait: nothing comes\n"), "{said}");
        assert!(!kinds(&[pool(0)], 5).contains("threads"));
    }

    #[test]
    fn kinds_that_another_cluster_calls_are_named() {
        let far = json!([{ "kind": "seat", "cluster": "us", "actors": 3 }]);
        let said = kinds(&[json!({ "node": "a", "shards": [], "far": far })], 5);
        assert!(said.contains("3 actors of kind seat on a get most of their calls from cluster us"), "{said}");
    }

    #[test]
    fn methods_that_keep_their_shard_are_named_with_a_remedy() {
        let stall = json!({ "method": "letter.seal", "times": 12, "micros": 2345, "waits": true });
        let said = stalls(&[json!({ "node": "a", "pool": { "stalls": [stall] } })]);
        let begins = "letter.seal on a waits for 2.3 ms without an await, seen 12 times,";
        assert!(said.starts_with(begins) && said.contains("`#[blocking]`"), "{said}");
        assert_eq!(stalls(&[json!({ "node": "a", "pool": { "stalls": [] } })]), "");
    }

    #[test]
    fn moves_of_all_nodes_are_judged_together() {
        let judged = |paid: u64, unpaid: u64, saved: f64| {
            let judged = json!({ "paid": paid, "unpaid": unpaid, "saved": saved });
            json!({ "node": "a", "shards": [{ "judged": judged }] })
        };
        let said = kinds(&[judged(7, 1, 100.0), judged(2, 0, -30.0)], 5);
        assert!(said.contains("9 moves paid and 1 move did not") && said.contains("70 messages were saved"), "{said}");
        assert!(kinds(&[judged(0, 1, -3.0)], 5).contains("3 messages were put farther"));
        assert!(!kinds(&[judged(0, 0, 0.0)], 5).contains("paid"));
    }

    #[test]
    fn nodes_that_move_nobody_are_named_with_what_lets_them() {
        let node = |name: &str, mode: &str, paused: bool| json!({ "node": name, "mode": mode, "paused": paused });
        assert_eq!(resting(&[node("a", "on", false)]), "");
        let said = resting(&[
            node("a", "on", true),
            node("b", "off", false),
            node("c", "advise", true),
            node("d", "on", true),
            node("e", "on", false),
        ]);
        let lines: Vec<&str> = said.lines().collect();
        assert!(lines[0].starts_with("on b the optimiser is off") && lines[1].starts_with("on c "), "{said}");
        assert!(lines[2].starts_with("on a, d ") && lines[2].contains("`greenroom optimiser resume`"), "{said}");
    }
}
