//! The page of metrics: what a living node has at `/metrics`.

use std::collections::BTreeSet;
use std::fs;
use std::io::{BufRead, BufReader, Read, Write};
use std::net::TcpStream;
use std::path::Path;
use std::process::{Child, Stdio};

use super::table::{code, table};
use super::{alone, said};
use crate::step::target;

/// The page, from what a node says that has all there is to measure: two clusters, a journal, certificates, and a call.
pub(super) fn page(program: &Path) -> Result<String, String> {
    let metrics = metrics(&measured(program)?);
    if metrics.len() < 50 {
        return Err(format!("a node has {} metrics only", metrics.len()));
    }
    let rows = metrics.iter().map(|metric| {
        let labels: Vec<String> = metric.labels.iter().map(|label| code(label)).collect();
        vec![
            code(&metric.name),
            metric.kind.clone(),
            unit(&metric.name).to_owned(),
            labels.join(", "),
            metric.help.clone(),
        ]
    });
    Ok(format!("{HEAD}\n{}", table(&["metric", "type", "unit", "labels", "what it is"], rows)))
}

#[derive(Default, Debug, PartialEq, Eq)]
struct Metric {
    name: String,
    kind: String,
    help: String,
    labels: BTreeSet<String>,
}

/// What Prometheus' text format says of its metrics, by name.
fn metrics(text: &str) -> Vec<Metric> {
    let mut metrics: Vec<Metric> = Vec::new();
    for line in text.lines() {
        if let Some((name, help)) = line.strip_prefix("# HELP ").and_then(|line| line.split_once(' ')) {
            metrics.push(Metric { name: name.to_owned(), help: help.to_owned(), ..Metric::default() });
        } else if let Some(metric) = metrics.last_mut() {
            if let Some((_, kind)) = line.strip_prefix("# TYPE ").and_then(|line| line.split_once(' ')) {
                kind.clone_into(&mut metric.kind);
            } else if let Some((_, labels)) = line.split_once('{') {
                let names = labels.split("=\"").filter_map(|part| part.rsplit([',', ' ', '{']).next());
                metric.labels.extend(names.filter(|name| is_name(name) && *name != "le").map(str::to_owned));
            }
        }
    }
    metrics.sort_by(|one, other| one.name.cmp(&other.name));
    metrics
}

fn is_name(text: &str) -> bool {
    !text.is_empty() && text.chars().all(|letter| letter.is_ascii_lowercase() || letter == '_')
}

/// The unit that a metric's name says.
fn unit(name: &str) -> &'static str {
    let name = name.trim_end_matches("_total").trim_end_matches("_left").trim_end_matches("_since_answer");
    ["seconds", "bytes"].into_iter().find(|unit| name.ends_with(unit)).unwrap_or_default()
}

/// The page of metrics of a node that lives for it.
fn measured(program: &Path) -> Result<String, String> {
    let folder = target()?.join("book-node");
    let failed = |error| format!("cannot make {}: {error}", folder.display());
    drop(fs::remove_dir_all(&folder));
    fs::create_dir_all(&folder).map_err(failed)?;
    fs::write(folder.join("node.toml"), CONFIG).map_err(failed)?;
    let certificates = folder.join("certs").display().to_string();
    for what in ["ca", "node"] {
        said(program, &["certs", what, &certificates])?;
    }
    let node = Node::start(program, &folder)?;
    node.ask("POST", "/chat_room/lobby/post", r#"{"user": "ada", "text": "hello"}"#)?;
    node.ask("GET", "/metrics", "")
}

/// A node, which ends when this is dropped.
struct Node {
    process: Child,
    door: String,
}

impl Node {
    fn start(program: &Path, folder: &Path) -> Result<Self, String> {
        let failed = |error| format!("{} does not start: {error}", program.display());
        let mut node = alone(program);
        node.args(["node", "--config", "node.toml", "--tls-dir", "certs", "--hosts", "off", "--journal", "memory:"]);
        node.env("RUST_LOG", "error")
            .args(["--http", "127.0.0.1:0"])
            .current_dir(folder)
            .stdin(Stdio::null())
            .stdout(Stdio::piped());
        let mut process = node.spawn().map_err(failed)?;
        let lines = process.stdout.take().map(BufReader::new).into_iter().flat_map(BufReader::lines);
        let door =
            lines.map_while(Result::ok).find_map(|line| Some(line.split_once("HTTP door is at http://")?.1.to_owned()));
        match door {
            Some(door) => Ok(Self { process, door }),
            None => {
                drop(Self { process, door: String::new() });
                Err("a node for the page of metrics ended before it had joined its cluster; it says above why"
                    .to_owned())
            }
        }
    }

    /// The body of what the door answers.
    fn ask(&self, method: &str, path: &str, body: &str) -> Result<String, String> {
        let failed = |error| format!("{method} {path} at {}: {error}", self.door);
        let mut stream = TcpStream::connect(&self.door).map_err(failed)?;
        let length = body.len();
        let head = format!(
            "{method} {path} HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\nContent-Length: {length}\r\n\r\n"
        );
        stream.write_all((head + body).as_bytes()).map_err(failed)?;
        let mut answer = String::new();
        stream.read_to_string(&mut answer).map_err(failed)?;
        match answer.split_once("\r\n\r\n") {
            Some((head, body)) if head.starts_with("HTTP/1.1 200") => Ok(body.to_owned()),
            _ => Err(format!("{method} {path} is answered by {answer}")),
        }
    }
}

impl Drop for Node {
    fn drop(&mut self) {
        drop(self.process.kill());
        drop(self.process.wait());
    }
}

const CONFIG: &str = r#"cluster = "greenroom"
http_plain = true
[geo]
epoch = 1
[geo.clusters.greenroom]
gateways = []
[geo.clusters.other]
gateways = ["127.0.0.1:1"]
[geo.kinds.wallet]
instances = "per_cluster"
"#;

const HEAD: &str = "\
# Metrics

For who reads a node's numbers. This page is made from what a living node says of itself at `GET /metrics`. How to collect them, and which of them to be woken by:
[monitoring](../guide/monitoring.md). Metrics of type counter count since the node started. Those with the label `shard` have a line for each thread that runs actors, and those with `kind` and `method` one for
each of the methods that are called most; the others are `other`.
";

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn metrics_are_read_with_their_labels_and_units() {
        let text = "# HELP a_seconds Time.\n# TYPE a_seconds histogram\na_seconds_bucket{kind=\"x, le=\",method=\"m\",le=\"1\"} 2\n\
                    # HELP a_bytes_total How many.\n# TYPE a_bytes_total counter\na_bytes_total 4\n";
        let metric = |name: &str, kind: &str, help: &str, labels: &[&str]| Metric {
            name: name.into(),
            kind: kind.into(),
            help: help.into(),
            labels: labels.iter().map(|label| (*label).to_owned()).collect(),
        };
        let expected = [
            metric("a_bytes_total", "counter", "How many.", &[]),
            metric("a_seconds", "histogram", "Time.", &["kind", "method"]),
        ];
        assert_eq!(metrics(text), expected);
        assert_eq!(["a_bytes_total", "a_seconds", "a_total"].map(unit), ["bytes", "seconds", ""]);
    }
}
