//! Whether what came is what the page says: `…` stands for any text in a line, and alone in a line for any lines.

/// Whether `came` is what was `said`, from the first line to the last.
pub(crate) fn all(said: &[String], came: &[&str]) -> bool {
    prefixes(said, came).contains(&came.len())
}

/// How many lines of `came` what was `said` takes up, if `came` begins with it; as few as it can.
pub(crate) fn begins(said: &[String], came: &[&str]) -> Option<usize> {
    prefixes(said, came).into_iter().min()
}

/// Numbers of lines at the beginning of `came` that are what was `said`.
fn prefixes(said: &[String], came: &[&str]) -> Vec<usize> {
    let Some((first, rest)) = said.split_first() else { return vec![0] };
    let after = |skipped: usize| prefixes(rest, &came[skipped..]).into_iter().map(move |more| skipped + more);
    if first.trim() == ANY {
        return (0..=came.len()).flat_map(after).collect();
    }
    match came.first() {
        Some(line) if fits(first, line) => after(1).collect(),
        _ => Vec::new(),
    }
}

/// Whether `line` is `pattern`, apart from trailing spaces.
fn fits(pattern: &str, line: &str) -> bool {
    let (pattern, line) = (pattern.trim_end(), line.trim_end());
    let Some((head, tail)) = pattern.split_once(ANY) else { return pattern == line };
    let Some(rest) = line.strip_prefix(head) else { return false };
    rest.char_indices().map(|(at, _)| at).chain([rest.len()]).any(|at| fits(tail, &rest[at..]))
}

const ANY: &str = "…";

#[cfg(test)]
mod tests {
    use super::*;

    fn said(text: &str) -> Vec<String> {
        text.lines().map(str::to_owned).collect()
    }

    #[test]
    fn what_is_left_open_is_any_text_and_the_rest_is_not() {
        assert!(all(&said("node … is ready\n…\nend"), &["node a is ready", "x", "y", "end"]));
        assert!(all(&said("a\n…"), &["a"]));
        assert!(!all(&said("node … is ready"), &["node a is gone"]));
        assert!(!all(&said("a"), &["a", "b"]), "a line that the page does not have");
        assert!(!all(&said("a\nb"), &["a"]), "a line that did not come");
    }

    #[test]
    fn of_what_goes_on_only_the_beginning_is_asked_for() {
        assert_eq!(begins(&said("a\n…\nc"), &["a", "b", "c", "d"]), Some(3));
        assert_eq!(begins(&said("a\nc"), &["a", "b"]), None);
    }
}
