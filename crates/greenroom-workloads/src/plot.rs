//! A page of plots that needs nothing from elsewhere: inline SVG.

mod lines;

use serde_json::Value;

use crate::driver::Outcome;
use crate::heartbeat;
use crate::output::{cell, members};

/// The page for one run: its latencies, if it has any, beside those that they are compared with, what is told over time, and all
/// its figures.
pub(crate) fn page(document: &Value, outcome: &Outcome) -> String {
    let latency_ns = &outcome.latency_ns;
    let title = format!("greenroom bench {}", document["workload"].as_str().unwrap_or_default());
    let params: Vec<String> =
        members(&document["params"]).map(|(name, value)| format!("{name} {}", cell(value))).collect();
    let heat_map = document["results"]["heat_map"].as_array().map_or_else(String::new, |cells| heartbeat::svg(cells));
    let mut plots = heat_map + &lines::over_time(&document["results"]);
    if !latency_ns.is_empty() {
        let beside: Vec<(&str, &[Bucket])> =
            outcome.beside_ns.iter().map(|(name, latency)| (name.as_str(), latency.as_slice())).collect();
        plots += &(quantiles(latency_ns, &beside) + &distribution(latency_ns));
    }
    format!(
        "<!doctype html>\n<html lang=\"en\"><head><meta charset=\"utf-8\"><title>{title}</title>\n<style>{STYLE}</style>\
         </head>\n<body><h1>{title}</h1>\n<p>{}, {} cores</p>\n{plots}{}</body></html>\n",
        escape(&params.join(", ")),
        cell(&document["host"]["cores"]),
        figures(&document["results"]),
    )
}

/// A time in nanoseconds, and how many round trips took it.
type Bucket = (u64, u64);

/// Latency against the share of round trips that took at most so long, beside others by their names.
fn quantiles(latency_ns: &[Bucket], beside: &[(&str, &[Bucket])]) -> String {
    let all: Vec<Bucket> = beside.iter().fold(latency_ns.to_vec(), |all, (_, other)| [&all, *other].concat());
    let scale = Scale::over(&all);
    let total: u64 = latency_ns.iter().map(|(_, count)| count).sum();
    // Each 9 of the quantile is as wide as the one before.
    let nines = (total.max(10) as f64).log10().ceil();
    let mut svg = scale.grid();
    for nine in 0..=nines as u32 {
        let share = 100.0 * (1.0 - 0.1f64.powi(nine as i32));
        let x = LEFT + f64::from(nine) / nines * WIDTH;
        svg += &format!("<text x=\"{x:.1}\" y=\"{:.1}\" text-anchor=\"middle\">{share} %</text>", TOP + HEIGHT + 18.0);
    }
    svg += &quantile_line(latency_ns, &scale, nines, 0);
    for (place, (_, other)) in beside.iter().enumerate() {
        svg += &quantile_line(other, &scale, nines, place + 1);
    }
    let names: Vec<&str> = beside.iter().map(|(name, _)| *name).collect();
    let title = if names.is_empty() { String::new() } else { format!(", beside {}", names.join(", ")) };
    figure(&format!("Round trips by quantile{title}"), &svg)
}

/// One line of quantiles: the `place`th of the figure.
fn quantile_line(latency_ns: &[Bucket], scale: &Scale, nines: f64, place: usize) -> String {
    let total: u64 = latency_ns.iter().map(|(_, count)| count).sum();
    let mut seen = 0;
    let mut points = Vec::new();
    for (value, count) in latency_ns {
        let beyond = (1.0 - seen as f64 / total.max(1) as f64).max(10f64.powf(-nines));
        points.push(format!("{:.1},{:.1}", LEFT + -beyond.log10() / nines * WIDTH, scale.y(*value)));
        seen += count;
    }
    format!("<polyline class=\"line{place}\" points=\"{}\"/>", points.join(" "))
}

/// How many round trips took how long, in slices of equal ratio.
fn distribution(latency_ns: &[Bucket]) -> String {
    let scale = Scale::over(latency_ns);
    let mut slices = [0u64; SLICES];
    for (value, count) in latency_ns {
        let at = scale.share(*value) * SLICES as f64;
        slices[(at as usize).min(SLICES - 1)] += count;
    }
    let most = slices.iter().copied().max().unwrap_or(1).max(1) as f64;
    let width = WIDTH / SLICES as f64;
    let mut svg = String::new();
    for (at, count) in slices.iter().enumerate() {
        let height = *count as f64 / most * HEIGHT;
        let (x, y) = (LEFT + at as f64 * width, TOP + HEIGHT - height);
        svg += &format!("<rect x=\"{x:.1}\" y=\"{y:.1}\" width=\"{:.1}\" height=\"{height:.1}\"/>", width - 1.0);
    }
    for (value, label) in scale.decades() {
        let x = LEFT + scale.share(value) * WIDTH;
        svg += &format!("<text x=\"{x:.1}\" y=\"{:.1}\" text-anchor=\"middle\">{label}</text>", TOP + HEIGHT + 18.0);
    }
    figure("Round trips by time", &svg)
}

fn figures(results: &Value) -> String {
    let (mut rows, mut lists) = (String::new(), String::new());
    for (name, value) in members(results) {
        if name.ends_with("_over_time") {
            continue;
        }
        let mut row = |name: &str, value: &Value| {
            rows.push_str(&format!("<tr><th>{}</th><td>{}</td></tr>\n", escape(name), escape(&cell(value))));
        };
        match value {
            Value::Object(_) => members(value).for_each(|(part, value)| row(&format!("{name} {part}"), value)),
            Value::Array(_) if name == "heat_map" => {}
            Value::Array(all) if all.iter().any(Value::is_object) => lists.push_str(&list(name, all)),
            value => row(name, value),
        }
    }
    format!("<h2>Figures</h2>\n<table>{rows}</table>\n{lists}")
}

/// Objects with the same members, as a table of their own that may be wider than the page.
fn list(name: &str, all: &[Value]) -> String {
    let row = |tag: &str, cells: &mut dyn Iterator<Item = String>| {
        let cells: String = cells.map(|cell| format!("<{tag}>{}</{tag}>", escape(&cell))).collect();
        format!("<tr>{cells}</tr>\n")
    };
    let mut rows = row("th", &mut all.first().into_iter().flat_map(members).map(|(name, _)| name.clone()));
    for one in all {
        rows.push_str(&row("td", &mut members(one).map(|(_, value)| cell(value))));
    }
    format!("<h2>{}</h2>\n<div><table>{rows}</table></div>\n", escape(&name.replace('_', " ")))
}

/// A plot under its title.
pub(crate) fn figure(title: &str, svg: &str) -> String {
    let (width, height) = (LEFT + WIDTH + 30.0, TOP + HEIGHT + 30.0);
    format!("<h2>{title}</h2>\n<svg viewBox=\"0 0 {width} {height}\" role=\"img\">{svg}</svg>\n")
}

/// A logarithmic scale of times.
struct Scale {
    low: f64,
    high: f64,
}

impl Scale {
    fn over(latency_ns: &[Bucket]) -> Self {
        let least = latency_ns.iter().map(|(value, _)| *value).min().unwrap_or(1).max(1) as f64;
        let most = latency_ns.iter().map(|(value, _)| *value).max().unwrap_or(1).max(1) as f64;
        Self { low: least.log10().floor(), high: most.log10().ceil().max(least.log10().floor() + 1.0) }
    }

    fn share(&self, value: u64) -> f64 {
        ((value.max(1) as f64).log10() - self.low) / (self.high - self.low)
    }

    fn y(&self, value: u64) -> f64 {
        TOP + HEIGHT * (1.0 - self.share(value))
    }

    fn decades(&self) -> impl Iterator<Item = (u64, String)> + use<> {
        (self.low as u32..=self.high as u32).map(|decade| (10u64.pow(decade), time(10u64.pow(decade))))
    }

    fn grid(&self) -> String {
        let mut svg = String::new();
        for (value, label) in self.decades() {
            let y = self.y(value);
            svg += &format!("<line x1=\"{LEFT}\" x2=\"{:.1}\" y1=\"{y:.1}\" y2=\"{y:.1}\"/>", LEFT + WIDTH);
            svg += &format!("<text x=\"{:.1}\" y=\"{:.1}\" text-anchor=\"end\">{label}</text>", LEFT - 6.0, y + 4.0);
        }
        svg
    }
}

fn time(ns: u64) -> String {
    match ns {
        0..1_000 => format!("{ns} ns"),
        1_000..1_000_000 => format!("{} µs", ns / 1_000),
        1_000_000..1_000_000_000 => format!("{} ms", ns / 1_000_000),
        _ => format!("{} s", ns / 1_000_000_000),
    }
}

fn escape(text: &str) -> String {
    text.replace('&', "&amp;").replace('<', "&lt;").replace('>', "&gt;")
}

pub(crate) const LEFT: f64 = 70.0;
pub(crate) const TOP: f64 = 10.0;
pub(crate) const WIDTH: f64 = 700.0;
pub(crate) const HEIGHT: f64 = 260.0;
const SLICES: usize = 70;
const STYLE: &str = "body{font:15px system-ui,sans-serif;max-width:50rem;margin:2rem auto;padding:0 1rem;color:#222}\
    svg{width:100%}svg text{font-size:12px;fill:#555}line{stroke:#ddd}polyline{fill:none;stroke:#2a7;stroke-width:2}\
    .line1{stroke:#c60}.line2{stroke:#36c}.key0{fill:#2a7}.key1{fill:#c60}.key2{fill:#36c}\
    rect{fill:#2a7}th{text-align:left;font-weight:normal;padding-right:2rem}td{text-align:right}\
    div{overflow-x:auto}div th{padding-right:1rem}div td{padding-right:1rem;text-align:left}";

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn a_page_holds_its_plots_and_asks_nobody_for_anything() {
        let document = json!({"workload": "big", "params": {}, "results": {"errors": 0, "moves_over_time": [
            {"second": 0, "off": 0, "on": 3}, {"second": 1, "on": 4}], "rows": [{"locality": "off", "p50_us": 3.5}]},
            "host": {"cores": 2}});
        let latency_ns = vec![(900, 3), (1_000, 1), (2_000_000, 1)];
        let outcome = Outcome {
            beside_ns: vec![("off".to_owned(), latency_ns.clone()), ("nothing".to_owned(), Vec::new())],
            latency_ns,
            ..Outcome::default()
        };
        let page = page(&document, &outcome);
        assert_eq!(page.matches("<svg").count(), 3);
        let row = ["<tr><th>locality</th><th>p50_us</th></tr>", "<tr><td>off</td><td>3.500</td></tr>"];
        assert!(row.iter().all(|row| page.contains(row)), "lists are tables: {page}");
        // A quarter of the way from 0 to 4 moves, and of the way from second 0 to 1.
        assert!(page.contains(">1</text>") && page.contains(">0.25 s</text>"), "{page}");
        for outside in ["http:", "https:", "<script", "NaN", "inf"] {
            assert!(!page.contains(outside), "{outside}");
        }
    }
}
