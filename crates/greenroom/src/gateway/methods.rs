//! What is counted and timed of actors' methods: of the cluster as JSON, of this node for Prometheus.

use std::time::Duration;

use serde_json::{Value, json};

use super::Door;
use super::metrics::{Page, escaped};
use crate::here::Here;
use crate::here::meter::{Class, Distribution, MethodFigures};
use crate::observe::look::{self, Whom};
use crate::observe::methods::{self, MethodWord, figures};
use crate::observe::question::Question;

/// What is known of the methods of `kind`, or of all, that have been called since the nodes started.
pub(super) async fn list(door: &Door, kind: Option<String>, whom: &Whom) -> Value {
    let heard = look::ask::<Vec<MethodWord>>(&door.node, &Question::Methods { kind }, whom).await;
    let methods = methods::told(heard.said.values().flatten());
    heard.with_silent(json!({ "node": door.node.name(), "methods": methods }))
}

/// Writes what the node knows as metrics: of the methods with most turns by their names, of the others together.
pub(super) fn write(page: &mut Page, node: &Here) {
    let mut methods: Vec<_> = figures(node).into_iter().collect();
    methods.sort_by_key(|(name, figures)| (std::cmp::Reverse(figures.turns), *name));
    if methods.len() > METHODS_MAX {
        let mut others = MethodFigures::default();
        methods.drain(METHODS_MAX..).for_each(|(_, figures)| others.join(&figures));
        methods.push((("other", "other"), others));
    }
    page.family("greenroom_method_turns_total", "counter", "Turns begun.");
    for ((kind, method), figures) in &methods {
        page.line("greenroom_method_turns_total", &labels(kind, method), figures.turns);
    }
    page.family("greenroom_turn_seconds", "histogram", "How long turns took, by those that were timed.");
    for (name, figures) in &methods {
        histogram(page, ("greenroom_turn_seconds", *name), (&figures.took, &figures.took), &BOUNDS);
    }
    page.family("greenroom_mailbox_seconds", "histogram", "How long messages waited before their turns.");
    for (name, figures) in &methods {
        histogram(page, ("greenroom_mailbox_seconds", *name), (&figures.mailbox(), &figures.waited), &BOUNDS[4..]);
    }
    page.family("greenroom_turns_failed_total", "counter", "Messages that failed where their actors are, by how.");
    for ((kind, method), figures) in &methods {
        for class in Class::ALL {
            let labels = format!("{},class=\"{}\"", labels(kind, method), class.name());
            page.line("greenroom_turns_failed_total", &labels, figures.failed(class));
        }
    }
}

fn histogram(
    page: &mut Page,
    (family, (kind, method)): (&str, (&str, &str)),
    (of, summed): (&Distribution, &Distribution),
    bounds: &[Duration],
) {
    let (labels, count) = (labels(kind, method), of.count());
    for bound in bounds {
        page.line(&format!("{family}_bucket"), &format!("{labels},le=\"{}\"", bound.as_secs_f64()), of.up_to(*bound));
    }
    page.line(&format!("{family}_bucket"), &format!("{labels},le=\"+Inf\""), count);
    page.line(&format!("{family}_sum"), &labels, summed.sum().as_secs_f64());
    page.line(&format!("{family}_count"), &labels, count);
}

fn labels(kind: &str, method: &str) -> String {
    format!("kind=\"{}\",method=\"{}\"", escaped(kind), escaped(method))
}

/// Methods that have metrics of their own.
const METHODS_MAX: usize = 128;
/// Each four times the one before, where classes end; messages that wait are told apart from a millisecond on.
const BOUNDS: [Duration; 12] = [
    Duration::from_micros(4),
    Duration::from_micros(16),
    Duration::from_micros(64),
    Duration::from_micros(256),
    Duration::from_micros(1 << 10),
    Duration::from_micros(1 << 12),
    Duration::from_micros(1 << 14),
    Duration::from_micros(1 << 16),
    Duration::from_micros(1 << 18),
    Duration::from_micros(1 << 20),
    Duration::from_micros(1 << 22),
    Duration::from_micros(1 << 24),
];
