//! Figures over time, as lines.

use std::collections::BTreeMap;

use serde_json::Value;

use super::{HEIGHT, LEFT, TOP, WIDTH, escape, figure};
use crate::output::members;

/// A figure for each list of `results` that is told over time: its points hold a `second`, and a value of each line.
pub(super) fn over_time(results: &Value) -> String {
    let told = members(results).filter_map(|(name, value)| Some((name.strip_suffix("_over_time")?, value.as_array()?)));
    told.map(|(name, points)| lines(&name.replace('_', " "), points)).collect()
}

fn lines(name: &str, points: &[Value]) -> String {
    let mut lines: BTreeMap<&str, Vec<(f64, f64)>> = BTreeMap::new();
    for point in points {
        let Some(second) = point["second"].as_f64() else { continue };
        for (line, value) in members(point).filter(|(line, _)| *line != "second") {
            lines.entry(line).or_default().extend(value.as_f64().map(|value| (second, value)));
        }
    }
    let all = || lines.values().flatten();
    let last = all().map(|(second, _)| *second).fold(1.0, f64::max);
    let most = all().map(|(_, value)| *value).fold(0.0, f64::max);
    let top = if most > 0.0 { most } else { 1.0 };
    let x = |second: f64| LEFT + second / last * WIDTH;
    let y = |value: f64| TOP + HEIGHT * (1.0 - value / top);
    let mut svg = String::new();
    for step in 0..=STEPS {
        let part = f64::from(step) / f64::from(STEPS);
        let (line_y, label) = (y(top * part), short(top * part));
        svg += &format!("<line x1=\"{LEFT}\" x2=\"{:.1}\" y1=\"{line_y:.1}\" y2=\"{line_y:.1}\"/>", LEFT + WIDTH);
        svg += &format!("<text x=\"{:.1}\" y=\"{:.1}\" text-anchor=\"end\">{label}</text>", LEFT - 6.0, line_y + 4.0);
        let second = last * part;
        let (text_x, text_y) = (x(second), TOP + HEIGHT + 18.0);
        svg += &format!("<text x=\"{text_x:.1}\" y=\"{text_y:.1}\" text-anchor=\"middle\">{} s</text>", short(second));
    }
    for (place, (name, points)) in lines.iter().rev().enumerate() {
        let points: Vec<String> = points.iter().map(|(s, v)| format!("{:.1},{:.1}", x(*s), y(*v))).collect();
        svg += &format!("<polyline class=\"line{place}\" points=\"{}\"/>", points.join(" "));
        let key_y = TOP + 16.0 * (place + 1) as f64;
        let key_x = LEFT + WIDTH - 80.0;
        svg += &format!("<text class=\"key{place}\" x=\"{key_x:.1}\" y=\"{key_y:.1}\">{}</text>", escape(name));
    }
    figure(&escape(name), &svg)
}

/// A number with as many places as it needs, three at most.
fn short(value: f64) -> String {
    let text = format!("{value:.3}");
    text.trim_end_matches('0').trim_end_matches('.').to_owned()
}

/// Lines of the grid.
const STEPS: u32 = 4;
