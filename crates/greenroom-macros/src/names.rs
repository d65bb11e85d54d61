//! Names: from one case to another, and near ones.

use quote::format_ident;
use syn::Ident;
use syn::ext::IdentExt;

/// `ChatRoom` as `chat_room`; `HTTPDoor` as `http_door`.
pub(crate) fn snake_case(name: &str) -> String {
    let letters: Vec<char> = name.chars().collect();
    let mut snake = String::new();
    for (at, &letter) in letters.iter().enumerate() {
        let begins_word = at > 0
            && letter.is_uppercase()
            && (!letters[at - 1].is_uppercase() || letters.get(at + 1).is_some_and(|next| next.is_lowercase()));
        if begins_word && !snake.ends_with('_') {
            snake.push('_');
        }
        snake.extend(letter.to_lowercase());
    }
    snake
}

/// `may_post` as `MayPost`.
pub(crate) fn camel_case(name: &str) -> String {
    let mut camel = String::new();
    for word in name.split('_') {
        let mut letters = word.chars();
        camel.extend(letters.next().into_iter().flat_map(char::to_uppercase));
        camel.push_str(letters.as_str());
    }
    camel
}

/// `base` and `suffix` as one identifier, placed where `base` is.
pub(crate) fn join(base: &Ident, suffix: &str) -> Ident {
    format_ident!("{}{}", base.unraw(), suffix, span = base.span())
}

/// The known name nearest to `name`, if it is near enough to be meant.
pub(crate) fn nearest<'a>(name: &str, known: &[&'a str]) -> Option<&'a str> {
    let (distance, nearest) = known.iter().map(|&candidate| (distance(name, candidate), candidate)).min()?;
    (distance <= name.len().max(nearest.len()) / 3).then_some(nearest)
}

/// How many letters must be inserted, deleted or replaced (Levenshtein).
fn distance(from: &str, to: &str) -> usize {
    let to: Vec<char> = to.chars().collect();
    let mut row: Vec<usize> = (0..=to.len()).collect();
    for (at, letter) in from.chars().enumerate() {
        let mut diagonal = row[0];
        row[0] = at + 1;
        for (column, other) in to.iter().enumerate() {
            let replaced = diagonal + usize::from(letter != *other);
            diagonal = row[column + 1];
            row[column + 1] = replaced.min(diagonal + 1).min(row[column] + 1);
        }
    }
    row[to.len()]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_change_case_word_by_word() {
        for (camel, snake) in
            [("ChatRoom", "chat_room"), ("User", "user"), ("HTTPDoor", "http_door"), ("Door2", "door2")]
        {
            assert_eq!(snake_case(camel), snake);
        }
        assert_eq!(camel_case("may_post"), "MayPost");
        assert_eq!(camel_case("_odd__name"), "OddName");
    }

    #[test]
    fn a_name_is_near_when_a_third_of_it_or_less_is_wrong() {
        let known = ["placement", "idle", "workers"];
        assert_eq!(nearest("placment", &known), Some("placement"));
        assert_eq!(nearest("worker", &known), Some("workers"));
        assert_eq!(nearest("colour", &known), None);
    }
}
