//! A run's figures, for programs and for people.

use serde_json::{Value, json};

use crate::driver::{Outcome, Plan, cores};
use crate::{geo, heartbeat};

/// The JSON document of 04-workloads.
pub(crate) fn document(plan: &Plan, outcome: &Outcome) -> Value {
    json!({
        "workload": plan.workload.name(),
        "version": env!("CARGO_PKG_VERSION"),
        "params": plan.params(),
        "results": outcome.results,
        "host": {"cores": cores()},
        "seconds": (outcome.elapsed.as_secs_f64() * 1e3).round() / 1e3,
    })
}

/// The document as a table.
pub(crate) fn table(document: &Value) -> String {
    let title = document["workload"].as_str().unwrap_or_default();
    let params: Vec<String> =
        members(&document["params"]).map(|(name, value)| format!("{name} {}", cell(value))).collect();
    let mut table = format!("{title}: {}\n\n", params.join(", "));
    for (name, value) in members(&document["results"]) {
        match value {
            Value::Array(cells) if name == "cells" => table.push_str(&geo::table(cells)),
            Value::Array(cells) if name == "heat_map" => table.push_str(&heartbeat::table(cells)),
            // For plots and programs: a line a second is for nobody.
            Value::Array(_) if name.ends_with("_over_time") => {}
            Value::Array(all) => table.push_str(&rows(name, all)),
            Value::Object(_) => {
                table.push_str(&format!("  {name}\n"));
                for (quantile, value) in members(value) {
                    table.push_str(&format!("    {quantile:<24}{:>16}\n", cell(value)));
                }
            }
            value => table.push_str(&format!("  {name:<26}{:>16}\n", cell(value))),
        }
    }
    table.push_str(&format!("  {:<26}{:>16}\n", "seconds in all", cell(&document["seconds"])));
    table
}

/// Objects with the same members, as a table of their own.
fn rows(name: &str, all: &[Value]) -> String {
    let mut lines: Vec<Vec<String>> =
        all.iter().map(|row| members(row).map(|(_, value)| cell(value)).collect()).collect();
    lines.insert(0, all.first().into_iter().flat_map(members).map(|(name, _)| name.clone()).collect());
    let columns = lines.iter().map(Vec::len).max().unwrap_or(0);
    let width = |at: usize| lines.iter().filter_map(|line| line.get(at)).map(|text| text.chars().count()).max();
    let widths: Vec<usize> = (0..columns).map(|at| width(at).unwrap_or(0)).collect();
    let mut table = format!("  {name}\n");
    for line in &lines {
        let cells = line.iter().zip(&widths).map(|(text, width)| format!("  {text:>width$}"));
        table.push_str(&format!("  {}\n", cells.collect::<String>()));
    }
    table
}

/// The members of an object, in their order.
pub(crate) fn members(value: &Value) -> impl Iterator<Item = (&String, &Value)> {
    value.as_object().into_iter().flatten()
}

/// A value for people: thousands apart.
pub(crate) fn cell(value: &Value) -> String {
    match value {
        Value::String(text) => text.clone(),
        Value::Number(number) => {
            let text = number.as_f64().filter(|_| number.is_f64()).map_or(number.to_string(), |number| {
                if number.abs() >= 1000.0 { format!("{number:.0}") } else { format!("{number:.3}") }
            });
            let (whole, rest) = text.split_once('.').map_or((text.as_str(), None), |(whole, rest)| (whole, Some(rest)));
            let whole = thousands(whole);
            rest.map_or(whole.clone(), |rest| format!("{whole}.{rest}"))
        }
        other => other.to_string(),
    }
}

fn thousands(digits: &str) -> String {
    let mut apart = String::new();
    for (at, digit) in digits.chars().enumerate() {
        if at > 0 && (digits.len() - at).is_multiple_of(3) && !apart.ends_with('-') {
            apart.push(',');
        }
        apart.push(digit);
    }
    apart
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn objects_in_a_row_stand_below_each_other() {
        let all = [json!({"a": 1, "name": "one"}), json!({"a": 12345, "name": "two"})];
        assert_eq!(rows("runs", &all), "  runs\n         a  name\n         1   one\n    12,345   two\n");
    }

    #[test]
    fn numbers_for_people_have_their_thousands_apart() {
        for (value, text) in
            [(json!(1_234_567), "1,234,567"), (json!(12), "12"), (json!(1234.56), "1,235"), (json!(0.25), "0.250")]
        {
            assert_eq!(cell(&value), text);
        }
    }
}
