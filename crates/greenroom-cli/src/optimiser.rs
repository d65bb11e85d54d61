//! `greenroom optimiser`: which actors talk with each other, and who would do better elsewhere.

use std::collections::BTreeMap;
use std::io::Write;
use std::time::Duration;

use clap::{Args, Subcommand};
use serde_json::Value;

use crate::call::described;
use crate::door::NodeAddress;
use crate::migrate::split;
use crate::nodes::ask;
use crate::status::{columns, text};

/// What to show.
#[derive(Args)]
pub(crate) struct OptimiserCommand {
    #[command(subcommand)]
    show: Show,
}

#[derive(Subcommand)]
enum Show {
    /// What each node knows of its hot actors, by kind, and how many would do better elsewhere
    Status(Of),
    /// The actors that would do better elsewhere, those that gain most first
    Wishes(Of),
    /// The pairs of actors that talk most
    Graph(Of),
    /// The actors that the optimisers have moved, each node's last one last
    Moves(Moves),
    /// Whom an actor talks with, and what follows from it
    Explain(Explain),
    /// Let no node move actors any more, until it is told to go on or starts anew
    Pause(NodeAddress),
    /// Let all nodes go on
    Resume(NodeAddress),
}

#[derive(Args)]
struct Of {
    /// Lines at most
    #[arg(long, default_value_t = 50)]
    top: usize,
    /// Print what the nodes say as JSON
    #[arg(long)]
    json: bool,
    #[command(flatten)]
    node: NodeAddress,
}

#[derive(Args)]
struct Moves {
    /// Go on, and print each move as it happens, until it is interrupted
    #[arg(long, conflicts_with = "json")]
    follow: bool,
    #[command(flatten)]
    of: Of,
}

#[derive(Args)]
struct Explain {
    /// The actor: its kind and its key, as in chat_room/lobby
    #[arg(value_name = "KIND/KEY")]
    actor: String,
    #[command(flatten)]
    node: NodeAddress,
}

/// Asks all nodes, and prints what they say.
pub(crate) fn run(command: &OptimiserCommand) -> Result<(), String> {
    match &command.show {
        Show::Status(of) => show(of, kinds),
        Show::Wishes(of) => show(of, wishes),
        Show::Graph(of) => show(of, edges),
        Show::Moves(show) if show.follow => follow(&show.of),
        Show::Moves(show) => moves(&show.of),
        Show::Explain(explain) => self::explain(explain),
        Show::Pause(node) => pause(node, "pause"),
        Show::Resume(node) => pause(node, "resume"),
    }
}

fn show(of: &Of, table: fn(&[Value], usize) -> String) -> Result<(), String> {
    let door = of.node.door(TIMEOUT)?;
    let asked = of.top.min(TOP_MAX);
    let path = format!("/-/optimiser?top={asked}");
    let (said, silent) = ask(&door, |door| door.get_json(&path))?;
    if of.json {
        println!("{}", serde_json::to_string_pretty(&said).unwrap_or_default());
        return Ok(());
    }
    let off: Vec<String> =
        said.iter().filter(|advice| advice["mode"] == "off").map(|advice| text(&advice["node"])).collect();
    if !off.is_empty() {
        println!("the optimiser is off on {}; `--optimiser on` or `--optimiser advise` turns it on\n", off.join(", "));
    }
    silent.iter().for_each(|why| println!("not asked: {why}"));
    print!("{}", table(&said, of.top));
    Ok(())
}

fn explain(command: &Explain) -> Result<(), String> {
    let (kind, key) = split(&command.actor)?;
    let door = command.node.door(TIMEOUT)?;
    let (said, silent) = ask(&door, |door| door.get_json_at(&["-", "optimiser", "explain", kind, key]))?;
    silent.iter().for_each(|why| println!("not asked: {why}"));
    let Some(found) = said.iter().find(|found| !found.is_null()) else {
        return Err(format!(
            "no node knows whom {} talks with: it is not among the actors that are sent most, or the optimiser is off where it is",
            command.actor
        ));
    };
    print!("{}", story(found));
    Ok(())
}

fn moves(of: &Of) -> Result<(), String> {
    let door = of.node.door(TIMEOUT)?;
    let (said, silent) = ask(&door, |door| door.get_json("/-/optimiser/moves"))?;
    if of.json {
        println!("{}", serde_json::to_string_pretty(&said).unwrap_or_default());
        return Ok(());
    }
    silent.iter().for_each(|why| println!("not asked: {why}"));
    let mut rows = vec![HEADINGS.map(str::to_owned)];
    for node in &said {
        let moved = node.as_array().map(Vec::as_slice).unwrap_or_default();
        rows.extend(moved.iter().skip(moved.len().saturating_sub(of.top)).map(row));
    }
    print!("{}", columns(&rows));
    Ok(())
}

/// Prints the last moves, and then those to come.
fn follow(of: &Of) -> Result<(), String> {
    let door = of.node.door(TIMEOUT)?;
    let (mut known, mut widths) = (Known::default(), HEADINGS.map(str::len));
    let mut out = std::io::stdout();
    let mut rows = vec![HEADINGS.map(str::to_owned)];
    let mut limit = of.top;
    loop {
        // A node that does not answer now may do so a second later.
        let said = ask(&door, |door| door.get_json("/-/optimiser/moves")).map(|(said, _)| said).unwrap_or_default();
        rows.extend(said.iter().flat_map(|moved| known.news(moved, limit)).map(row));
        for row in rows.drain(..) {
            let fields = row.iter().zip(&mut widths).map(|(field, width)| {
                *width = (*width).max(field.chars().count());
                format!("{field:width$}")
            });
            let line = fields.collect::<Vec<_>>().join("  ");
            if writeln!(out, "{}", line.trim_end()).is_err() {
                return Ok(());
            }
        }
        if out.flush().is_err() {
            return Ok(());
        }
        limit = usize::MAX;
        std::thread::sleep(FOLLOW_EVERY);
    }
}

/// The number of the last move of each node that was printed.
#[derive(Default)]
struct Known(BTreeMap<String, u64>);

impl Known {
    /// The moves of one node that were not printed yet, at most the last `limit`.
    fn news<'a>(&mut self, moved: &'a Value, limit: usize) -> &'a [Value] {
        let moved = moved.as_array().map(Vec::as_slice).unwrap_or_default();
        let number = |moved: &Value| moved["number"].as_u64().unwrap_or_default();
        let Some(last) = moved.last() else { return &[] };
        let known = self.0.entry(text(&last["from"])).or_default();
        let before = std::mem::replace(known, number(last));
        // A node that has started anew counts anew.
        let printed = if before > number(last) { 0 } else { before };
        let news = moved.partition_point(|moved| number(moved) <= printed);
        &moved[news.max(moved.len().saturating_sub(limit))..]
    }
}

fn row(moved: &Value) -> [String; 6] {
    let number = |name: &str| moved[name].as_f64().unwrap_or_default();
    let [actor, why] = ["actor", "why"].map(|name| text(&moved[name]));
    let [from, to] = [("from", 0), ("to", 1)].map(|(name, end)| match &moved["shards"][end] {
        Value::Null => text(&moved[name]),
        shard => format!("{}, shard {shard}", text(&moved[name])),
    });
    [format!("{:.0}", number("at_s")), actor, from, to, format!("{:.1}", number("gain") / 60.0), why]
}

fn pause(node: &NodeAddress, what: &str) -> Result<(), String> {
    let door = node.door(TIMEOUT)?;
    let (said, silent) = ask(&door, |door| {
        let answer = door.post(&["-", "optimiser", what], "{}")?;
        match answer.status {
            200 => serde_json::from_str(&answer.body).map_err(|error| error.to_string()),
            status => Err(described(status, &answer.body)),
        }
    })?;
    for answer in &said {
        let state = if answer["paused"] == true {
            "moves no actors until it is told to go on, or starts anew"
        } else {
            "goes on"
        };
        println!("{} {state}", text(&answer["node"]));
    }
    match silent.is_empty() {
        true => Ok(()),
        false => Err(format!("not told: {}", silent.join("; "))),
    }
}

/// What is known of one actor, in words.
fn story(found: &Value) -> String {
    let percent = |part: &Value| part.as_f64().unwrap_or_default() * 100.0;
    let mut story = format!(
        "{} on {}, shard {}: {:.1} messages a second, of which the last {:.0} count\n",
        text(&found["actor"]),
        text(&found["node"]),
        found["shard"],
        found["rate"].as_f64().unwrap_or_default(),
        found["memory"].as_f64().unwrap_or_default(),
    );
    let mut rows = vec![
        ["this shard".to_owned(), format!("{:.0} %", percent(&found["near"]))],
        ["the node's other shards".to_owned(), format!("{:.0} %", percent(&found["beside"]))],
        ["the node's door and program".to_owned(), format!("{:.0} %", percent(&found["outside"]))],
    ];
    for place in found["places"].as_array().into_iter().flatten() {
        rows.push([text(&place[0]), format!("{:.0} %", percent(&place[1]))]);
    }
    story.push_str(&columns(&rows));
    for partner in found["partners"].as_array().into_iter().flatten() {
        story.push_str(&format!("talks with {} ({:.0})\n", text(&partner[0]), partner[1].as_f64().unwrap_or_default()));
    }
    if found["brought"].is_object() {
        let brought = &found["brought"];
        let ago = brought["ago_seconds"].as_f64().unwrap_or_default();
        story.push_str(&format!("came from {} {ago:.0} s ago: {}\n", text(&brought["from"]), text(&brought["why"])));
    }
    story.push_str(&format!("{}\n", text(&found["why"])));
    story
}

/// What each shard of each node says, with the node's name.
fn shards(said: &[Value]) -> impl Iterator<Item = (String, &Value)> {
    said.iter().flat_map(|advice| {
        let shards = advice["shards"].as_array().into_iter().flatten();
        shards.map(|shard| (text(&advice["node"]), shard))
    })
}

fn kinds(said: &[Value], _: usize) -> String {
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
    let mut said = format!("{}\n{wishes} actors would do better elsewhere\n", columns(&rows));
    if paid + unpaid > 0 {
        said.push_str(&format!(
            "{paid} moves have paid, {unpaid} have not, of those whose actors would do better elsewhere again; {saved:.0} messages were saved\n"
        ));
    }
    said + &pools
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

fn wishes(said: &[Value], top: usize) -> String {
    let mut all: Vec<(String, &Value)> = shards(said)
        .flat_map(|(node, shard)| {
            let wishes = shard["wishes"].as_array().into_iter().flatten();
            wishes.map(move |wish| (node.clone(), wish))
        })
        .collect();
    let gain = |wish: &Value| wish["gain"].as_f64().unwrap_or_default() * wish["rate"].as_f64().unwrap_or_default();
    all.sort_by(|a, b| gain(b.1).total_cmp(&gain(a.1)));
    let mut rows = vec![["ACTOR", "NODE", "WOULD GO TO", "NEARER MESSAGES/S", "COST"].map(str::to_owned)];
    rows.extend(all.into_iter().take(top).map(|(node, wish)| {
        let cost = format!("{:.0} messages", wish["cost"].as_f64().unwrap_or_default());
        [text(&wish["actor"]), node, text(&wish["to"]), format!("{:.1}", gain(wish)), cost]
    }));
    columns(&rows)
}

fn edges(said: &[Value], top: usize) -> String {
    let mut all: Vec<(String, &Value)> = shards(said)
        .flat_map(|(node, shard)| {
            let edges = shard["edges"].as_array().into_iter().flatten();
            edges.map(move |edge| (node.clone(), edge))
        })
        .collect();
    let weight = |edge: &Value| edge["weight"].as_f64().unwrap_or_default();
    all.sort_by(|a, b| weight(b.1).total_cmp(&weight(a.1)));
    let mut rows = vec![["ACTOR", "NODE", "TALKS WITH", "MESSAGES"].map(str::to_owned)];
    rows.extend(
        all.into_iter()
            .take(top)
            .map(|(node, edge)| [text(&edge["actor"]), node, text(&edge["partner"]), format!("{:.0}", weight(edge))]),
    );
    columns(&rows)
}

const TIMEOUT: Duration = Duration::from_secs(5);
const FOLLOW_EVERY: Duration = Duration::from_secs(1);
const HEADINGS: [&str; 6] = ["SECOND", "ACTOR", "FROM", "TO", "NEARER MESSAGES/S", "WHY"];
/// Lines that a node is asked for at most, of each shard.
const TOP_MAX: usize = 1000;

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn wishes_and_edges_of_all_nodes_are_in_one_order() {
        let wish =
            |actor: &str, rate: f64| json!({ "actor": actor, "to": "b", "gain": 0.5, "rate": rate, "cost": 16.0 });
        let edge = |actor: &str, weight: f64| json!({ "actor": actor, "partner": "game/1", "weight": weight });
        let said = [
            json!({ "node": "a", "shards": [{ "wishes": [wish("p/1", 2.0)], "edges": [edge("p/1", 9.0)] }] }),
            json!({ "node": "b", "shards": [{ "wishes": [wish("p/2", 8.0)], "edges": [edge("p/2", 7.0)] }] }),
        ];
        let lines = |text: String| text.lines().skip(1).map(|line| line[..3].to_owned()).collect::<Vec<_>>();
        assert_eq!(lines(wishes(&said, 5)), ["p/2", "p/1"]);
        assert_eq!(lines(edges(&said, 1)), ["p/1"]);
    }

    #[test]
    fn who_follows_moves_sees_each_of_them_once() {
        let moves = |from: &str, numbers: std::ops::Range<u64>| -> Value {
            numbers.map(|number| json!({ "number": number, "from": from })).collect()
        };
        let mut known = Known::default();
        let mut news = |moved: &Value, limit| {
            let news = known.news(moved, limit);
            news.iter().map(|moved| moved["number"].as_u64().unwrap_or_default()).collect::<Vec<_>>()
        };
        assert_eq!(news(&moves("a", 1..6), 2), [4, 5], "the last ones at first");
        assert_eq!(news(&moves("a", 2..8), 9), [6, 7]);
        assert_eq!(news(&moves("b", 1..3), 9), [1, 2], "each node has numbers of its own");
        assert_eq!(news(&moves("a", 2..8), 9), [0; 0]);
        assert_eq!(news(&moves("a", 1..2), 9), [1], "a node that has started anew");
        assert_eq!(news(&json!([]), 9), [0; 0]);
    }

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
    fn a_move_between_shards_says_which_ones() {
        let moved = |shards: Value| row(&json!({ "from": "a", "to": "b", "shards": shards }))[2..4].join(" to ");
        assert_eq!((moved(json!([0, 1])), moved(Value::Null)), ("a, shard 0 to b, shard 1".into(), "a to b".into()));
    }

    #[test]
    fn moves_of_all_nodes_are_judged_together() {
        let judged = |paid: u64, unpaid: u64, saved: f64| {
            let judged = json!({ "paid": paid, "unpaid": unpaid, "saved": saved });
            json!({ "node": "a", "shards": [{ "judged": judged }] })
        };
        let said = kinds(&[judged(7, 1, 100.0), judged(2, 0, -30.0)], 5);
        assert!(said.contains("9 moves have paid, 1 have not") && said.contains("70 messages"), "{said}");
        assert!(!kinds(&[judged(0, 0, 0.0)], 5).contains("paid"));
    }
}
