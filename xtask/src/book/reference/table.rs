//! Tables of Markdown.

/// A table with a head and rows, each cell as Markdown; a row without cells has no place in it.
pub(super) fn table(head: &[&str], rows: impl IntoIterator<Item = Vec<String>>) -> String {
    let line = |cells: &[String]| format!("| {} |\n", cells.join(" | "));
    let head: Vec<String> = head.iter().map(|cell| (*cell).to_owned()).collect();
    let rule = format!("|{}\n", "---|".repeat(head.len()));
    let rows = rows.into_iter().map(|cells| line(&cells.iter().map(|cell| escaped(cell)).collect::<Vec<_>>()));
    format!("{}{rule}{}", line(&head), rows.collect::<String>())
}

/// As code, if there is any.
pub(super) fn code(text: &str) -> String {
    if text.is_empty() { String::new() } else { format!("`{text}`") }
}

fn escaped(cell: &str) -> String {
    cell.replace('|', "\\|").replace('\n', " ")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn cells_keep_to_their_row() {
        let rows = [vec![code("a|b"), "two\nlines".to_owned()]];
        assert_eq!(table(&["x", "y"], rows), "| x | y |\n|---|---|\n| `a\\|b` | two lines |\n");
    }
}
