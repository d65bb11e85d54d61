//! Fig. 8 for people.

use serde_json::Value;

/// The cells as a table: a line for each row's reads, and one for its writes.
pub(crate) fn table(cells: &[Value]) -> String {
    let mut table = format!("\n  {:<44}", "median, round trips (paper → goal)");
    COLUMNS.iter().for_each(|column| table.push_str(&format!("{column:>24}")));
    table.push('\n');
    let mut lines: Vec<(&Value, &Value)> = Vec::new();
    for cell in cells {
        if !lines.contains(&(&cell["row"], &cell["access"])) {
            lines.push((&cell["row"], &cell["access"]));
        }
    }
    for (row, access) in lines {
        let name = format!("{}, {}", text(row), text(access));
        table.push_str(&format!("  {name:<44}"));
        for column in COLUMNS {
            let of = |cell: &&Value| &cell["row"] == row && &cell["access"] == access && cell["column"] == column;
            table.push_str(&format!("{:>24}", cells.iter().find(of).map_or_else(String::new, shown)));
        }
        table.push('\n');
    }
    for (row, why) in missing(cells) {
        table.push_str(&format!("  not measured: {row}: {why}\n"));
    }
    table
}

fn shown(cell: &Value) -> String {
    let expected = format!("({} → {})", cell["paper_irt"], cell["goal_irt"]);
    let Some(median_us) = cell["median_us"].as_f64() else { return format!("- {expected}") };
    let mark = if cell["over_goal"] == true { "!" } else { "" };
    format!("{mark}{:.2} ms {} {expected}", median_us / 1e3, cell["irt"])
}

/// Rows with cells that could not be measured, and why.
fn missing(cells: &[Value]) -> Vec<(&str, &str)> {
    let mut rows: Vec<(&str, &str)> = Vec::new();
    for cell in cells {
        if let Some(why) = cell["missing"].as_str()
            && rows.iter().all(|(row, _)| cell["row"] != *row)
        {
            rows.push((text(&cell["row"]), why));
        }
    }
    rows
}

fn text(value: &Value) -> &str {
    value.as_str().unwrap_or_default()
}

const COLUMNS: [&str; 4] = ["C first", "C repeat", "N first", "N repeat"];

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn a_cell_shows_its_median_its_round_trips_and_what_was_expected() {
        let cell = |column: &str, more: Value| {
            let mut cell =
                json!({"row": "volatile", "access": "read", "column": column, "paper_irt": 2, "goal_irt": 1});
            cell.as_object_mut()
                .into_iter()
                .for_each(|cell| cell.extend(more.as_object().cloned().unwrap_or_default()));
            cell
        };
        let shown = table(&[
            cell("C first", json!({"median_us": 146_250.0, "irt": 1.0, "over_goal": false})),
            cell("N first", json!({"median_us": 290_000.0, "irt": 2.0, "over_goal": true})),
            cell("N repeat", json!({"missing": "no such kind"})),
        ]);
        assert!(shown.contains(" 146.25 ms 1.0 (2 → 1)"), "{shown}");
        assert!(shown.contains("!290.00 ms 2.0 (2 → 1)"), "{shown}");
        assert!(shown.contains("not measured: volatile: no such kind"), "{shown}");
    }
}
