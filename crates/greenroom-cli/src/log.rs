//! What the program logs: a line an event, which names the actor whose turn has said it, and the trace that is part of.

use std::fmt;
use std::io::IsTerminal;
use std::str::FromStr;

use clap::ValueEnum;
use serde_json::{Map, Value};
use tracing::field::{Field, Visit};
use tracing::{Event, Subscriber};
use tracing_subscriber::filter::Targets;
use tracing_subscriber::fmt::format::Writer;
use tracing_subscriber::fmt::time::{FormatTime, SystemTime};
use tracing_subscriber::fmt::{FmtContext, FormatEvent, FormatFields};
use tracing_subscriber::layer::SubscriberExt;
use tracing_subscriber::registry::LookupSpan;
use tracing_subscriber::util::SubscriberInitExt;

/// How lines are written.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default, ValueEnum)]
pub(crate) enum LogFormat {
    /// For people
    #[default]
    Text,
    /// A JSON object a line
    Json,
}

/// Logs to standard error from here on: what `RUST_LOG` says, or, without it, what is worth a look, and the life of a `node`.
pub(crate) fn begin(format: LogFormat, node: bool) {
    let default = if node { "greenroom=info,warn" } else { "warn" };
    let asked = std::env::var("RUST_LOG").ok().filter(|asked| !asked.is_empty());
    let filter = asked
        .and_then(|asked| Targets::from_str(&asked).ok())
        .unwrap_or_else(|| Targets::from_str(default).expect("it is as Targets are written"));
    let lines = tracing_subscriber::fmt::layer()
        .with_writer(std::io::stderr)
        .with_ansi(format == LogFormat::Text && std::io::stderr().is_terminal() && !is_colour_refused())
        .event_format(Lines(format));
    tracing_subscriber::registry().with(filter).with(lines).init();
}

/// Returns true if the user wants no colours anywhere (https://no-color.org).
fn is_colour_refused() -> bool {
    std::env::var_os("NO_COLOR").is_some_and(|value| !value.is_empty())
}

struct Lines(LogFormat);

impl<S, N> FormatEvent<S, N> for Lines
where
    S: Subscriber + for<'a> LookupSpan<'a>,
    N: for<'a> FormatFields<'a> + 'static,
{
    fn format_event(&self, _: &FmtContext<'_, S, N>, mut out: Writer<'_>, event: &Event<'_>) -> fmt::Result {
        let mut time = String::new();
        SystemTime.format_time(&mut Writer::new(&mut time))?;
        let mut fields = Fields(Map::new());
        event.record(&mut fields);
        let line = Line { time, level: event.metadata().level(), target: event.metadata().target(), fields: fields.0 };
        match self.0 {
            LogFormat::Text => line.text(&mut out),
            LogFormat::Json => writeln!(out, "{}", line.json()),
        }
    }
}

struct Line<'a> {
    time: String,
    level: &'a tracing::Level,
    target: &'a str,
    fields: Map<String, Value>,
}

impl Line<'_> {
    fn text(mut self, out: &mut Writer<'_>) -> fmt::Result {
        let message = self.fields.remove("message");
        let message = message.as_ref().and_then(Value::as_str).unwrap_or_default();
        let (dim, plain) = if out.has_ansi_escapes() { ("\x1b[2m", "\x1b[0m") } else { ("", "") };
        write!(out, "{dim}{}{plain} {:>5} {dim}{}:{plain} {}", self.time, self.level, self.target, one_line(message))?;
        for (name, value) in self.fields.iter().chain(&said_by()) {
            match value {
                Value::String(text) => write!(out, " {dim}{name}={plain}{}", one_line(text))?,
                other => write!(out, " {dim}{name}={plain}{other}")?,
            }
        }
        writeln!(out)
    }

    fn json(self) -> Value {
        let mut line = Map::new();
        line.insert("time".into(), self.time.into());
        line.insert("level".into(), self.level.as_str().into());
        line.insert("target".into(), self.target.into());
        line.extend(self.fields);
        for (name, value) in said_by() {
            line.entry(name).or_insert(value);
        }
        Value::Object(line)
    }
}

/// The actor whose turn runs on this thread, and the trace that it is part of.
fn said_by() -> Map<String, Value> {
    let mut said_by = Map::new();
    if let Some(turn) = greenroom::current_turn() {
        said_by.insert("actor".into(), turn.actor.to_string().into());
        if let Some(trace) = turn.trace {
            said_by.insert("trace".into(), trace.trace_hex().into());
        }
    }
    said_by
}

/// A text that ends no line: what actors are called and say may come from strangers.
fn one_line(text: &str) -> String {
    text.chars().flat_map(|c| if c.is_control() { c.escape_default().collect() } else { vec![c] }).collect()
}

struct Fields(Map<String, Value>);

impl Visit for Fields {
    fn record_debug(&mut self, field: &Field, value: &dyn fmt::Debug) {
        self.0.insert(field.name().into(), format!("{value:?}").into());
    }

    fn record_str(&mut self, field: &Field, value: &str) {
        self.0.insert(field.name().into(), value.into());
    }

    fn record_bool(&mut self, field: &Field, value: bool) {
        self.0.insert(field.name().into(), value.into());
    }

    fn record_i64(&mut self, field: &Field, value: i64) {
        self.0.insert(field.name().into(), value.into());
    }

    fn record_u64(&mut self, field: &Field, value: u64) {
        self.0.insert(field.name().into(), value.into());
    }

    fn record_f64(&mut self, field: &Field, value: f64) {
        self.0.insert(field.name().into(), value.into());
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn line() -> Line<'static> {
        let fields = [("message".to_owned(), "a\nb".into()), ("count".to_owned(), 7.into())].into_iter().collect();
        Line { time: "now".to_owned(), level: &tracing::Level::WARN, target: "greenroom", fields }
    }

    #[test]
    fn an_event_is_one_line_of_text_whatever_it_says() {
        let mut text = String::new();
        line().text(&mut Writer::new(&mut text)).unwrap();
        assert_eq!(text, "now  WARN greenroom: a\\nb count=7\n");
    }

    #[test]
    fn an_event_is_one_json_object() {
        let json = line().json().to_string();
        assert_eq!(json, r#"{"count":7,"level":"WARN","message":"a\nb","target":"greenroom","time":"now"}"#);
    }
}
