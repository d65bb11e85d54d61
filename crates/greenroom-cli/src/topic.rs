//! `greenroom topic`: publish to a topic, and watch one.

use std::io::{BufRead, BufReader, Write};
use std::time::Duration;

use clap::{Args, Subcommand};
use serde_json::Value;

use crate::call::described;
use crate::door::{NodeAddress, encoded};
use crate::status::{columns, plain, silent, text};

/// What to do with a topic.
#[derive(Args)]
pub(crate) struct TopicCommand {
    #[command(subcommand)]
    command: Command,
}

#[derive(Subcommand)]
enum Command {
    /// Publish an event
    Publish(Publish),
    /// Print events as they come, one a line
    Watch(Watch),
    /// List the topics that are active, with who subscribes and what waits
    List(List),
}

#[derive(Args)]
struct Publish {
    /// The topic, as in prices/eu
    #[arg(value_name = "TOPIC")]
    topic: String,
    /// The event
    #[arg(value_name = "JSON")]
    event: String,
    #[command(flatten)]
    node: NodeAddress,
}

#[derive(Args)]
struct Watch {
    /// The topic, as in prices/eu
    #[arg(value_name = "TOPIC")]
    topic: String,
    /// End after so many events
    #[arg(long, value_name = "EVENTS")]
    count: Option<u64>,
    #[command(flatten)]
    node: NodeAddress,
}

#[derive(Args)]
struct List {
    /// What their names begin with
    #[arg(default_value = "")]
    prefix: String,
    /// So many
    #[arg(long, default_value_t = 100, value_parser = clap::value_parser!(u16).range(1..=500))]
    limit: u16,
    /// Begin behind this one
    #[arg(long, value_name = "TOPIC")]
    after: Option<String>,
    /// Print what the node says as JSON
    #[arg(long)]
    json: bool,
    #[command(flatten)]
    node: NodeAddress,
}

/// Publishes, watches or lists.
pub(crate) fn run(command: &TopicCommand) -> Result<(), String> {
    match &command.command {
        Command::Publish(publish) => publish.run(),
        Command::Watch(watch) => watch.run(),
        Command::List(list) => list.run(),
    }
}

impl Publish {
    fn run(&self) -> Result<(), String> {
        let answer = self.node.door(TIMEOUT)?.publish(&self.topic, &self.event)?;
        if answer.status != 200 {
            return Err(described(answer.status, &answer.body));
        }
        let published: Value = serde_json::from_str(&answer.body).unwrap_or_default();
        let (id, subscribers) = (published["id"].as_str().unwrap_or("?"), &published["subscribers"]);
        println!("event {id} to {subscribers} subscribers");
        Ok(())
    }
}

impl Watch {
    fn run(&self) -> Result<(), String> {
        let mut left = self.count.unwrap_or(u64::MAX);
        let events = self.node.door(TIMEOUT)?.watch(&self.topic)?;
        let mut lines = BufReader::new(events).lines();
        let mut name = None;
        let mut out = std::io::stdout().lock();
        while left > 0 {
            let Some(line) = lines.next() else { return Err("the node ended the stream of events".to_owned()) };
            let line = line.map_err(|error| format!("the connection broke: {error}"))?;
            let Some((field, value)) = line.split_once(": ") else { continue };
            match (field, name.take().as_deref()) {
                ("event", _) => name = Some(value.to_owned()),
                ("data", None) => {
                    left -= 1;
                    let written = writeln!(out, "{value}").and_then(|()| out.flush());
                    written.map_err(|error| format!("nobody reads: {error}"))?;
                }
                ("data", Some("missed")) => eprintln!("greenroom: events are missing here: {value}"),
                ("data", Some(_)) => return Err(described(200, value)),
                _ => {}
            }
        }
        Ok(())
    }
}

impl List {
    fn run(&self) -> Result<(), String> {
        let after = self.after.as_ref().map(|after| format!("&after={}", encoded(after))).unwrap_or_default();
        let path = format!("/-/topics?prefix={}&limit={}{after}", encoded(&self.prefix), self.limit);
        let said = self.node.door(TIMEOUT)?.get_json(&path)?;
        if self.json {
            println!("{}", serde_json::to_string_pretty(&said).unwrap_or_default());
            return Ok(());
        }
        print!("{}", columns(&table(&said)));
        if let Some(next) = said["next"].as_str() {
            println!("go on with --after '{}'", next.escape_debug());
        }
        print!("{}", silent(&said));
        Ok(())
    }
}

fn table(said: &Value) -> Vec<[String; 7]> {
    let head = ["TOPIC", "NODE", "SUBSCRIBERS", "WAITING", "MISSED", "PUBLISHED", "KEPT WAITING BY"].map(str::to_owned);
    let rows = said["topics"].as_array().into_iter().flatten().map(|one| {
        let count = |name: &str| one[name].to_string();
        let [subscribers, waiting, missed] = ["subscribers", "waiting", "missed"].map(count);
        [plain(&one["topic"]), text(&one["node"]), subscribers, waiting, missed, count("published"), count("holding")]
    });
    std::iter::once(head).chain(rows).collect()
}

/// Longer than an event may wait for slow subscribers.
const TIMEOUT: Duration = Duration::from_secs(60);
