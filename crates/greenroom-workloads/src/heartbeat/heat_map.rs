//! Shards by threads of the pool: how long beats take with each.

use std::collections::BTreeSet;

use greenroom::PoolSize;
use serde_json::Value;

use super::measure::{Measured, Setting, latency};
use super::{AS_GOOD, AUTO, middle};
use crate::cli::BeatThreads;
use crate::goals::Goals;
use crate::output::cell;
use crate::plot;

/// The cells as tables: light beats, and those that block.
pub(crate) fn table(cells: &[Value]) -> String {
    let mut text = String::new();
    for (title, members) in TABLES {
        text.push_str(&format!("\n  {title}\n  {:>8}", "shards"));
        let columns = distinct(cells, "threads");
        columns.iter().for_each(|threads| text.push_str(&format!("{:>16}", cell(threads))));
        text.push('\n');
        for shards in distinct(cells, "shards") {
            text.push_str(&format!("  {:>8}", cell(shards)));
            for threads in &columns {
                let shown = at(cells, shards, threads).map_or_else(String::new, |one| shown(one, members));
                text.push_str(&format!("{shown:>16}"));
            }
            text.push('\n');
        }
    }
    text
}

/// The cells as plots: the longer the p99, the darker.
pub(crate) fn svg(cells: &[Value]) -> String {
    TABLES.iter().map(|(title, members)| plot::figure(title, &grid(cells, *members))).collect()
}

fn grid(cells: &[Value], members: [&str; 2]) -> String {
    let (columns, rows) = (distinct(cells, "threads"), distinct(cells, "shards"));
    let p99 = |one: &Value| one[members[1]].as_f64().unwrap_or(0.0).max(1.0).ln();
    let least = cells.iter().map(p99).fold(f64::INFINITY, f64::min);
    let most = cells.iter().map(p99).fold(least + 1e-9, f64::max);
    let (width, height) = (plot::WIDTH / columns.len() as f64, plot::HEIGHT / (rows.len() + 1) as f64);
    let text =
        |x: f64, y: f64, text: &str| format!("<text x=\"{x:.1}\" y=\"{y:.1}\" text-anchor=\"middle\">{text}</text>");
    let mut svg = String::new();
    for (column, threads) in columns.iter().enumerate() {
        svg += &text(plot::LEFT + (column as f64 + 0.5) * width, plot::TOP + height - 8.0, &cell(threads));
    }
    for (row, shards) in rows.iter().enumerate() {
        let y = plot::TOP + (row + 1) as f64 * height;
        svg += &text(plot::LEFT / 2.0, y + height / 2.0, &format!("shards {}", cell(shards)));
        for (column, threads) in columns.iter().enumerate() {
            let Some(one) = at(cells, shards, threads) else { continue };
            let (x, depth) = (plot::LEFT + column as f64 * width, 0.1 + 0.8 * (p99(one) - least) / (most - least));
            svg += &format!(
                "<rect x=\"{x:.1}\" y=\"{y:.1}\" width=\"{:.1}\" height=\"{:.1}\" fill-opacity=\"{depth:.2}\"/>",
                width - 1.0,
                height - 1.0
            );
            svg += &text(x + width / 2.0, y + height / 2.0 + 4.0, &shown(one, members));
        }
    }
    svg
}

/// p50 and p99 in milliseconds; a dash where no such beat was served.
fn shown(one: &Value, members: [&str; 2]) -> String {
    match members.map(|member| one[member].as_f64()) {
        [Some(p50), Some(p99)] => format!("{} / {}", ms(p50), ms(p99)),
        _ => "-".to_owned(),
    }
}

/// Microseconds as milliseconds, with three digits.
fn ms(us: f64) -> String {
    let decimals = match us {
        ..10_000.0 => 2,
        10_000.0..100_000.0 => 1,
        _ => 0,
    };
    format!("{:.decimals$}", us / 1e3)
}

fn at<'a>(cells: &'a [Value], shards: &Value, threads: &Value) -> Option<&'a Value> {
    cells.iter().find(|one| one["shards"] == *shards && one["threads"] == *threads)
}

/// What the cells have in `member`, in their order.
fn distinct<'a>(cells: &'a [Value], member: &str) -> Vec<&'a Value> {
    let mut all: Vec<&Value> = Vec::new();
    for one in cells {
        if !all.contains(&&one[member]) {
            all.push(&one[member]);
        }
    }
    all
}

/// What is wanted of a pool that sizes itself beside the best of the sizes that were tried, with each number of shards.
pub(super) fn goals(goals: &mut Goals, runs: &[Measured]) {
    let shards: BTreeSet<u32> = runs.iter().map(|run| run.setting.shards).collect();
    for shards in shards {
        let tried = runs.iter().filter(|run| run.setting.shards == shards).map(|run| run.setting);
        let tried = tried.filter(|setting| matches!(setting.threads, BeatThreads::Pool(PoolSize::Fixed(_))));
        let tried: Vec<&Measured> = tried.filter_map(|setting| middle(runs, setting)).collect();
        let Some(auto) = middle(runs, Setting { shards, threads: AUTO }) else { continue };
        let Some(best) = tried.iter().min_by(|a, b| price_us(a).total_cmp(&price_us(b))) else { continue };
        if auto.blocking.messages > 0 {
            let apart = auto.pool.last.threads_max.abs_diff(best.pool.last.threads_max);
            let what = format!("shards {shards}: threads from the best of the sweep, {}", best.setting.threads);
            goals.at_most(&what, apart as f64, NEAR_BEST);
        } else {
            let most = tried.iter().map(|run| run.served_per_s()).fold(0.0, f64::max);
            let what = format!("shards {shards}: served to the best of the sweep");
            goals.at_least(&what, auto.served_per_s() / most.max(1e-9), 1.0 - AS_GOOD);
        }
    }
}

/// The mean time of a beat that blocks, and 100 µs for each thread: what the pool itself makes least, and the paper (§5.3).
fn price_us(run: &Measured) -> f64 {
    let threads = run.pool.last.threads_max as f64;
    latency(&run.blocking).map_or(f64::INFINITY, |blocking| blocking.mean + 100.0 * threads)
}

/// How many threads a pool that sizes itself may have more or fewer than the best one.
const NEAR_BEST: f64 = 2.0;
const TABLES: [(&str, [&str; 2]); 2] = [
    ("beats that do not block, by threads of the pool: p50 / p99, ms", ["p50_us", "p99_us"]),
    ("beats that block, by threads of the pool: p50 / p99, ms", ["blocking_p50_us", "blocking_p99_us"]),
];

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn cells() -> Vec<Value> {
        let one = |shards: u32, threads: &str, p99: f64| {
            json!({"shards": shards, "threads": threads, "p50_us": 100.0, "p99_us": p99, "blocking_p50_us": 2000.0,
                   "blocking_p99_us": 2500.0})
        };
        vec![one(1, "fused", 25_000.0), one(1, "4", 200.0), one(2, "fused", 12_000.0), one(2, "4", 150.0)]
    }

    #[test]
    fn a_heat_map_has_a_line_for_each_number_of_shards_and_a_column_for_each_of_threads() {
        let table = table(&cells());
        let lines: Vec<Vec<&str>> = table.lines().map(|line| line.split_whitespace().collect()).collect();
        assert_eq!(lines[2], ["shards", "fused", "4"]);
        assert_eq!(lines[3], ["1", "0.10", "/", "25.0", "0.10", "/", "0.20"]);
        assert_eq!(lines[4], ["2", "0.10", "/", "12.0", "0.10", "/", "0.15"]);
        assert!(table.contains("2.00 / 2.50"), "{table}");
    }

    #[test]
    fn a_plotted_heat_map_has_a_field_for_each_cell() {
        let svg = svg(&cells());
        assert_eq!(svg.matches("<rect").count(), 2 * 4);
        assert!(svg.contains("0.10 / 25.0") && !svg.contains("NaN") && !svg.contains("inf"), "{svg}");
    }
}
