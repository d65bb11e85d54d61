//! The table of what was seen, beside what is wanted.

use std::fmt::Write;

use super::rows::{Goal, Row};

/// What the rounds have shown of one row.
pub(super) struct Seen {
    pub(super) row: &'static Row,
    here: Vec<f64>,
    beside: Vec<f64>,
}

impl Seen {
    pub(super) fn of(row: &'static Row) -> Self {
        Self { row, here: Vec::new(), beside: Vec::new() }
    }

    pub(super) fn add(&mut self, is_beside: bool, figure: f64) {
        if is_beside { self.beside.push(figure) } else { self.here.push(figure) }
    }
}

/// A line a row: what counts, the least and the most that was seen, the goal, and how many times off it is.
pub(super) fn of(seen: &[Seen], has_beside: bool) -> String {
    let mut table = format!("{:66}{:>10}{:>20}{:>10}{:>8}", "", "seen", "least to most", "goal", "off");
    if has_beside {
        let _ = write!(table, "{:>10}{:>8}", "beside", "ratio");
    }
    table.push('\n');
    for Seen { row, here, beside } in seen {
        let counts = counting(here, row.goal);
        let (least, most) = (least(here), most(here));
        let _ = write!(table, "{:22} {:43}", row.name, row.what);
        let _ = write!(table, "{:>10}{:>20}", shown(counts), format!("{} to {}", shown(least), shown(most)));
        let (goal, off) = match row.goal {
            Goal::AtLeast(goal) | Goal::AlwaysAtLeast(goal) => (format!(">= {goal}"), goal / counts),
            Goal::AtMost(goal) => (format!("<= {goal}"), counts / goal),
        };
        let off = if off <= 1.0 { "met".to_owned() } else { format!("{off:.2}x") };
        let _ = write!(table, "{goal:>10}{off:>8}");
        if has_beside {
            let other = counting(beside, row.goal);
            let _ = write!(table, "{:>10}{:>8}", shown(other), shown(counts / other));
        }
        table.push('\n');
    }
    table
}

/// The figure that counts: the median, or the worst.
fn counting(figures: &[f64], goal: Goal) -> f64 {
    if matches!(goal, Goal::AlwaysAtLeast(_)) {
        return least(figures);
    }
    let mut sorted = figures.to_vec();
    sorted.sort_by(f64::total_cmp);
    sorted.get(sorted.len() / 2).copied().unwrap_or(f64::NAN)
}

fn least(figures: &[f64]) -> f64 {
    figures.iter().copied().fold(f64::NAN, f64::min)
}

fn most(figures: &[f64]) -> f64 {
    figures.iter().copied().fold(f64::NAN, f64::max)
}

/// Three digits are what can be believed.
fn shown(figure: f64) -> String {
    match figure {
        _ if figure.is_nan() => "-".to_owned(),
        _ if figure.abs() >= 100.0 => format!("{figure:.0}"),
        _ if figure.abs() >= 10.0 => format!("{figure:.1}"),
        _ => format!("{figure:.2}"),
    }
}

#[cfg(test)]
mod tests {
    use super::super::rows::ROWS;
    use super::*;

    fn line(name: &str, figures: &[f64]) -> String {
        let mut seen = Seen::of(ROWS.iter().find(|row| row.name == name).expect("there is such a row"));
        figures.iter().for_each(|figure| seen.add(false, *figure));
        of(&[seen], false)
    }

    #[test]
    fn the_median_counts_and_says_how_far_off_it_is() {
        let table = line("idle", &[400.0, 640.0, 480.0]);
        assert!(table.contains(" 480 ") && table.contains("400 to 640") && table.contains("1.50x"), "{table}");
        assert!(line("idle", &[300.0]).contains("met"));
    }

    #[test]
    fn of_what_must_always_hold_the_worst_counts() {
        assert!(line("sort", &[400.0, 200.0, 500.0]).contains("1.50x"));
    }

    #[test]
    fn what_failed_in_all_rounds_has_no_figure() {
        assert!(line("idle", &[]).contains(" - "));
    }
}
