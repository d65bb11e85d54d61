//! `greenroom clusters`: the clusters of one actor system.

use std::time::Duration;

use clap::{Args, Subcommand};
use serde_json::Value;

use crate::call::described;
use crate::door::NodeAddress;

/// What to do with clusters.
#[derive(Args)]
pub(crate) struct ClustersCommand {
    #[command(subcommand)]
    action: Action,
}

#[derive(Subcommand)]
enum Action {
    /// Show the list of clusters that a node works by
    List(Show),
    /// Show how far the clusters are with the list, and what a node has counted
    Status(Show),
    /// Add a cluster to the list
    Add {
        /// Its name
        name: String,
        /// Its gateways
        #[arg(value_name = "HOST:PORT", required = true)]
        gateways: Vec<String>,
        #[command(flatten)]
        node: NodeAddress,
    },
    /// Let a cluster give up what it has: it activates nothing any more
    Drain {
        /// Its name
        name: String,
        #[command(flatten)]
        node: NodeAddress,
    },
    /// Take a drained cluster out of the list, or one that was added and never came; with --lost, clusters that are gone for good
    Remove {
        /// Its name; with --lost, the names of all that are lost together
        #[arg(required = true)]
        names: Vec<String>,
        /// They are gone for good. The removal is in force once a majority of the clusters has acknowledged it, and `geo.lost_after` later
        /// what they owned is activated elsewhere
        #[arg(long)]
        lost: bool,
        /// I vouch that no node of them runs: they have no votes, and what they owned is activated elsewhere at once. If one does run,
        /// actors are active twice
        #[arg(long, requires = "lost")]
        vouch: bool,
        #[command(flatten)]
        node: NodeAddress,
    },
}

#[derive(Args)]
struct Show {
    /// Show it as JSON
    #[arg(long)]
    json: bool,
    #[command(flatten)]
    node: NodeAddress,
}

/// Runs the command.
pub(crate) fn run(command: &ClustersCommand) -> Result<(), String> {
    match &command.action {
        Action::List(show) => list(show),
        Action::Status(show) => status(show),
        Action::Add { name, gateways, node } => change(node, &["-", "clusters", "add", name, &gateways.join(",")]),
        Action::Drain { name, node } => change(node, &["-", "clusters", "drain", name]),
        Action::Remove { names, lost: false, node, .. } => match &names[..] {
            [name] => change(node, &["-", "clusters", "remove", name]),
            _ => Err("several clusters are removed together only with --lost; drain and remove one after the other"
                .to_owned()),
        },
        Action::Remove { names, vouch, node, .. } => {
            let how = if *vouch { "remove-vouched" } else { "remove-lost" };
            let path: Vec<&str> = ["-", "clusters", how].into_iter().chain(names.iter().map(String::as_str)).collect();
            change(node, &path)
        }
    }
}

fn read(node: &NodeAddress) -> Result<Value, String> {
    let answer = node.door(TIMEOUT)?.get_at(&["-", "clusters"])?;
    if answer.status != 200 {
        return Err(described(answer.status, &answer.body));
    }
    serde_json::from_str(&answer.body).map_err(|error| error.to_string())
}

fn list(show: &Show) -> Result<(), String> {
    let answer = read(&show.node)?;
    if show.json {
        println!("{}", answer["clusters"]);
        return Ok(());
    }
    for cluster in clusters(&answer) {
        let doors: Vec<&str> = cluster["gateways"].as_array().into_iter().flatten().filter_map(Value::as_str).collect();
        let standings = ["joining", "lost", "draining"];
        let standing = standings.into_iter().find(|standing| cluster[*standing] == true).unwrap_or("full");
        println!("{:16} {standing:9} {}", text(cluster, "name"), doors.join(" "));
    }
    Ok(())
}

fn status(show: &Show) -> Result<(), String> {
    let answer = read(&show.node)?;
    if show.json {
        println!("{answer}");
        return Ok(());
    }
    println!("list {}{}", answer["epoch"], if answer["in_force"] == true { ", in force" } else { "" });
    if let Some(waits_for) = answer["waits_for"].as_str() {
        println!("{waits_for}");
    }
    for cluster in clusters(&answer) {
        let trip = cluster["round_trip_ms"].as_f64().map_or_else(String::new, |trip| format!(", {trip:.1} ms away"));
        let answers = match (cluster["own"] == true, cluster["answers"] == true) {
            (true, _) => "this one".to_owned(),
            (_, true) => format!("answers{trip}"),
            _ => format!("does not answer: {}", cluster["trouble"].as_str().unwrap_or("not dialled yet")),
        };
        let empty = if cluster["empty"] == true { ", empty" } else { "" };
        let standings = ["joining", "draining"];
        let standing = standings.into_iter().find(|standing| cluster[*standing] == true);
        let standing = standing.map_or_else(String::new, |standing| format!(", {standing}"));
        if cluster["lost"] == true {
            println!("{:16} lost: it is dropped when what it may own has run out", text(cluster, "name"));
            continue;
        }
        println!("{:16} list {}{standing}{empty}, {answers}", text(cluster, "name"), cluster["acknowledged"]);
        if let Some(ahead) = cluster["clock_ahead_s"].as_i64() {
            let word = if ahead > 0 { "ahead of" } else { "behind" };
            println!("{:16} its clock is {} s {word} this node's: set both by NTP", "", ahead.unsigned_abs());
        }
    }
    if answer["fenced"] == true {
        println!(
            "this cluster is not confirmed, and may be taken for lost: pessimistic actors are refused here until a majority of the list answers"
        );
    }
    let members =
        clusters(&answer).iter().filter(|cluster| cluster["joining"] != true && cluster["lost"] != true).count();
    let confirmed: Vec<&str> =
        answer["confirmed_by"].as_array().into_iter().flatten().filter_map(Value::as_str).collect();
    println!("confirmed by {} of {members} clusters: {}", confirmed.len(), confirmed.join(", "));
    if let Some(trouble) = answer["list_trouble"].as_str() {
        println!("{trouble}");
    }
    let leases: Vec<&str> = answer["leases"].as_array().into_iter().flatten().filter_map(Value::as_str).collect();
    if !leases.is_empty() {
        println!("home leases: {}", leases.join(", "));
    }
    let actors = &answer["actors"];
    println!(
        "actors of this node's ranges: {} owned, {} doubtful, {} asked for, {} elsewhere",
        actors["owned"], actors["doubtful"], actors["asking"], actors["elsewhere"]
    );
    let counts = &answer["counts"];
    println!("duplicates: {} found, {} ended", counts["duplicates_found"], counts["duplicates_ended"]);
    if counts["updates_lost"] != 0 {
        let of: Vec<&str> = answer["lost_of"].as_array().into_iter().flatten().filter_map(Value::as_str).collect();
        println!(
            "confirmed updates that duplicates could not hand over: {}, lately of {}",
            counts["updates_lost"],
            of.join(", ")
        );
    }
    Ok(())
}

fn change(node: &NodeAddress, path: &[&str]) -> Result<(), String> {
    let answer = node.door(TIMEOUT)?.post(path, "{}")?;
    if answer.status != 202 {
        return Err(described(answer.status, &answer.body));
    }
    let answer: Value = serde_json::from_str(&answer.body).map_err(|error| error.to_string())?;
    match answer["waits_for"].as_str() {
        None => println!("list {} is in force, and spreads", answer["epoch"]),
        Some(waits_for) => println!("list {} is made, and spreads; {waits_for}", answer["epoch"]),
    }
    Ok(())
}

fn clusters(answer: &Value) -> &[Value] {
    answer["clusters"].as_array().map_or(&[], Vec::as_slice)
}

fn text<'a>(of: &'a Value, field: &str) -> &'a str {
    of[field].as_str().unwrap_or_default()
}

const TIMEOUT: Duration = Duration::from_secs(5);
