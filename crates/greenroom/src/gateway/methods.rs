//! What a node has counted and timed of its actors' methods, as JSON and for Prometheus.

use std::collections::BTreeMap;
use std::time::Duration;

use serde_json::{Value, json};

use super::Door;
use super::metrics::{Page, escaped};
use crate::here::Here;
use crate::here::built_in::is_built_in;
use crate::here::meter::{Class, Distribution, MethodFigures};

type Methods = BTreeMap<(&'static str, &'static str), MethodFigures>;

/// What is known of the methods of `kind`, or of all, that have been called here since the node started.
pub(super) fn list(door: &Door, kind: Option<&str>) -> Value {
    let wanted = |name: &str| kind.is_none_or(|kind| kind == name);
    let methods: Vec<Value> = of_program(&door.node)
        .iter()
        .filter(|((kind, _), _)| wanted(kind))
        .map(|((kind, method), figures)| {
            json!({
                "kind": kind, "method": method, "turns": figures.turns,
                "failed": Class::ALL.map(|class| (class.name().to_owned(), json!(figures.failed(class)))).into_iter().collect::<serde_json::Map<_, _>>(),
                "run": distribution(&figures.took),
                "mailbox": distribution(&figures.mailbox()),
            })
        })
        .collect();
    json!({ "node": door.node.name(), "methods": methods })
}

/// Seconds that parts of them have not exceeded, and how many there are in each class, by its upper end in microseconds.
fn distribution(of: &Distribution) -> Value {
    let quantile = |share| of.quantile(share).map(|bound: Duration| bound.as_secs_f64());
    json!({
        "p50": quantile(0.5), "p90": quantile(0.9), "p99": quantile(0.99), "max": quantile(1.0),
        "buckets": of.classes().map(|(end, count)| json!([end.as_nanos() as f64 / 1e3, count])).collect::<Vec<_>>(),
    })
}

/// Writes the same as metrics: of the methods with most turns by their names, of the others together.
pub(super) fn write(page: &mut Page, node: &Here) {
    let mut methods: Vec<_> = of_program(node).into_iter().collect();
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

/// The methods of the program's own kinds.
fn of_program(node: &Here) -> Methods {
    let mut methods = Methods::new();
    for gauges in node.gauges() {
        gauges.meters().read(|kind, number, meter| {
            let kind = kind.name();
            if is_built_in(kind) || !meter.is_used() {
                return;
            }
            let method = node.kinds().methods_of(kind).get(number).map_or("other", |method| method.name);
            methods.entry((kind, method)).or_default().add(meter);
        });
    }
    methods
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
