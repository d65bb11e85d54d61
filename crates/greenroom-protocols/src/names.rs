//! Names that a person may have meant.

/// The candidates closest to `wanted`, best first, at most three: those within a third of its length in edits. `wanted` itself is
/// none: whoever asks for it means it.
///
/// ```
/// use greenroom_protocols::names::near_names;
/// assert_eq!(near_names("chat_rom", ["chat_room", "account"]), ["chat_room"]);
/// ```
pub fn near_names<'a>(wanted: &str, candidates: impl IntoIterator<Item = &'a str>) -> Vec<String> {
    let edits_max = (wanted.chars().count() / 3).max(1);
    let mut near: Vec<(usize, &str)> = candidates
        .into_iter()
        .map(|name| (edit_distance(wanted, name), name))
        .filter(|(edits, _)| (1..=edits_max).contains(edits))
        .collect();
    near.sort_unstable();
    near.dedup();
    near.into_iter().take(NAMES_MAX).map(|(_, name)| name.to_owned()).collect()
}

/// Insertions, deletions, substitutions and swaps of neighbours that turn `a` into `b`.
fn edit_distance(a: &str, b: &str) -> usize {
    let a: Vec<char> = a.chars().collect();
    let b: Vec<char> = b.chars().collect();
    let mut before_last: Vec<usize> = Vec::new();
    let mut last: Vec<usize> = (0..=b.len()).collect();
    for i in 1..=a.len() {
        let mut row = vec![i];
        for j in 1..=b.len() {
            let substitution = last[j - 1] + usize::from(a[i - 1] != b[j - 1]);
            let mut best = substitution.min(last[j] + 1).min(row[j - 1] + 1);
            if i > 1 && j > 1 && a[i - 1] == b[j - 2] && a[i - 2] == b[j - 1] {
                best = best.min(before_last[j - 2] + 1);
            }
            row.push(best);
        }
        before_last = std::mem::replace(&mut last, row);
    }
    last[b.len()]
}

/// More suggestions than this help nobody.
const NAMES_MAX: usize = 3;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_missing_letter_is_near() {
        assert_eq!(near_names("chat_rom", ["chat_room", "account", "chat_roof"]), ["chat_room", "chat_roof"]);
    }

    #[test]
    fn what_is_wanted_is_not_near_to_itself() {
        assert_eq!(near_names("take", ["take", "make"]), ["make"]);
    }

    #[test]
    fn swapped_neighbours_are_one_edit() {
        assert_eq!(edit_distance("acocunt", "account"), 1);
    }

    #[test]
    fn nothing_near_gives_nothing() {
        assert!(near_names("x", ["account"]).is_empty());
    }
}
