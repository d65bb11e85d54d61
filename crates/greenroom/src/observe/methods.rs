//! What nodes have counted and timed of their actors' methods.

use std::collections::BTreeMap;
use std::time::Duration;

use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

use crate::here::Here;
use crate::here::built_in::is_built_in;
use crate::here::meter::{Class, Distribution, MethodFigures};

/// What a node knows of a method that has been called there.
#[derive(Clone, PartialEq, Debug, Default, Serialize, Deserialize)]
#[serde(default)]
pub(crate) struct MethodWord {
    kind: String,
    method: String,
    turns: u64,
    /// Messages that failed, by how.
    failed: BTreeMap<String, u64>,
    run: Distribution,
    mailbox: Distribution,
}

/// The methods of the program's own kinds that have been called at `node`.
pub(crate) fn figures(node: &Here) -> BTreeMap<(&'static str, &'static str), MethodFigures> {
    let mut methods: BTreeMap<_, MethodFigures> = BTreeMap::new();
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

/// What `node` says of the methods of `kind`, or of all.
pub(super) fn of_node(node: &Here, kind: Option<&str>) -> Vec<MethodWord> {
    let wanted = |name: &str| kind.is_none_or(|kind| kind == name);
    let methods = figures(node).into_iter().filter(|((kind, _), _)| wanted(kind));
    let words = methods.map(|((kind, method), figures)| MethodWord {
        kind: kind.to_owned(),
        method: method.to_owned(),
        turns: figures.turns,
        failed: Class::ALL.map(|class| (class.name().to_owned(), figures.failed(class))).into(),
        mailbox: figures.mailbox(),
        run: figures.took,
    });
    words.collect()
}

/// What several nodes know of each method together.
pub(crate) fn told<'a>(said: impl IntoIterator<Item = &'a MethodWord>) -> Value {
    let mut methods: BTreeMap<(&str, &str), MethodWord> = BTreeMap::new();
    for word in said {
        let sum = methods.entry((&word.kind, &word.method)).or_default();
        sum.turns = sum.turns.saturating_add(word.turns);
        for (class, count) in &word.failed {
            let failed = sum.failed.entry(class.clone()).or_default();
            *failed = failed.saturating_add(*count);
        }
        sum.run.add(&word.run);
        sum.mailbox.add(&word.mailbox);
    }
    let methods = methods.into_iter().map(|((kind, method), sum)| {
        json!({
            "kind": kind, "method": method, "turns": sum.turns, "failed": sum.failed,
            "run": distribution(&sum.run), "mailbox": distribution(&sum.mailbox),
        })
    });
    methods.collect()
}

/// Seconds that parts of them have not exceeded, and how many there are in each class, by its upper end in microseconds.
fn distribution(of: &Distribution) -> Value {
    let quantile = |share| of.quantile(share).map(|bound: Duration| bound.as_secs_f64());
    json!({
        "p50": quantile(0.5), "p90": quantile(0.9), "p99": quantile(0.99), "max": quantile(1.0),
        "buckets": of.classes().map(|(end, count)| json!([end.as_nanos() as f64 / 1e3, count])).collect::<Vec<_>>(),
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::here::meter::Histogram;

    #[test]
    fn what_nodes_know_of_a_method_is_added_before_it_is_divided() {
        let word = |turns: u64, took: u64| {
            let run = Histogram::default();
            (0..turns).for_each(|_| run.add_shared(Duration::from_millis(took)));
            let failed = BTreeMap::from([("error".to_owned(), 1)]);
            let (kind, method, run) = ("room".to_owned(), "post".to_owned(), run.read());
            MethodWord { kind, method, turns, failed, run, ..MethodWord::default() }
        };
        let said = told(&[word(98, 1), word(2, 1_000)]);
        let both = &said[0];
        assert_eq!((&both["turns"], &both["failed"]["error"]), (&json!(100), &json!(2)), "{said}");
        assert!(both["run"]["p50"].as_f64() < Some(0.01) && both["run"]["p99"].as_f64() >= Some(1.0), "{said}");
        assert_eq!(said.as_array().map(Vec::len), Some(1));
    }
}
