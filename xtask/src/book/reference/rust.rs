//! What our own sources say of their types: rustfmt writes them all alike, so that lines are enough to read them.

/// A struct or an enum.
#[derive(Debug, Default, PartialEq, Eq)]
pub(super) struct Item {
    /// Its documentation.
    pub(super) doc: String,
    /// What stands in `#[..]` before it.
    pub(super) attributes: String,
    /// Its fields or variants.
    pub(super) members: Vec<Member>,
}

/// A field or a variant.
#[derive(Debug, Default, PartialEq, Eq)]
pub(super) struct Member {
    /// Its name.
    pub(super) name: String,
    /// Its documentation, as Markdown that leads nowhere.
    pub(super) doc: String,
    /// What stands in `#[..]` before it.
    pub(super) attributes: String,
    /// A field's type.
    pub(super) of: String,
}

/// The type `name` in the source `text`, if it is there and has members with names.
pub(super) fn item(text: &str, name: &str) -> Option<Item> {
    let mut item = Item::default();
    let mut lines = text.lines();
    for line in lines.by_ref() {
        if begins(line, name) {
            break;
        }
        if !note(line, &mut item.doc, &mut item.attributes) {
            (item.doc, item.attributes) = Default::default();
        }
    }
    let mut member = Member::default();
    let mut inside = false;
    for line in lines {
        if line == "}" {
            item.doc = plain(&item.doc);
            return Some(item);
        }
        let Some(line) = line.strip_prefix("    ").filter(|_| !inside || line == "    },") else { continue };
        if inside {
            inside = false;
        } else if !note(line, &mut member.doc, &mut member.attributes) {
            let line = line.trim_start_matches("pub(crate) ").trim_start_matches("pub ");
            let end = line.find(|letter: char| !letter.is_alphanumeric() && letter != '_').unwrap_or(line.len());
            member.name = line[..end].to_owned();
            member.of = line[end..].trim_start_matches(": ").trim_end_matches(',').to_owned();
            member.doc = plain(&member.doc);
            inside = line.ends_with('{');
            item.members.push(std::mem::take(&mut member));
        }
    }
    None
}

/// Takes a line of documentation or of an attribute; whether it is one.
fn note(line: &str, doc: &mut String, attributes: &mut String) -> bool {
    let open = attributes.matches('[').count() > attributes.matches(']').count();
    if open || line.starts_with("#[") {
        attributes.push_str(line);
        attributes.push('\n');
    } else if let Some(said) = line.strip_prefix("///") {
        doc.push_str(if said.is_empty() { "\n\n" } else { said });
    } else {
        return false;
    }
    true
}

fn begins(line: &str, name: &str) -> bool {
    let line = ["pub(crate) ", "pub(super) ", "pub "].iter().fold(line, |line, seen| line.trim_start_matches(seen));
    let rest =
        line.strip_prefix("struct ").or_else(|| line.strip_prefix("enum ")).and_then(|rest| rest.strip_prefix(name));
    rest.is_some_and(|rest| rest.ends_with('{') && rest.starts_with([' ', '<']))
}

/// The strings in a piece of source, in their order, as the compiler reads them.
pub(super) fn strings(source: &str) -> Vec<String> {
    let mut strings = Vec::new();
    let mut letters = source.chars();
    while letters.by_ref().any(|letter| letter == '"') {
        let mut text = String::new();
        while let Some(letter) = letters.next().filter(|letter| *letter != '"') {
            match letter {
                '\\' => match letters.next() {
                    Some('\n') => {
                        let rest = letters.as_str().trim_start();
                        letters = rest.chars();
                    }
                    Some('n') => text.push('\n'),
                    escaped => text.extend(escaped),
                },
                letter => text.push(letter),
            }
        }
        strings.push(text);
    }
    strings
}

/// A format string as people see it: `{name}` for what differs, and `…` for what has no name.
pub(super) fn message(format: &str) -> String {
    let mut shown = String::new();
    let mut rest = format;
    while let Some((before, after)) = rest.split_once('{') {
        let (hole, after) = after.split_once('}').unwrap_or((after, ""));
        let name = hole.split(':').next().unwrap_or_default();
        shown.push_str(before);
        match name.starts_with(|first: char| first.is_ascii_lowercase()) {
            true => shown.push_str(&format!("{{{name}}}")),
            false => shown.push('…'),
        }
        rest = after;
    }
    shown + rest
}

/// Documentation without links to other items, which a page does not have.
fn plain(doc: &str) -> String {
    let mut text = String::new();
    let doc = doc.trim().replace("\n\n ", "\n\n");
    let mut rest = doc.as_str();
    while let Some((before, after)) = rest.split_once('[') {
        let Some((name, after)) = after.split_once(']') else { break };
        let target = after.strip_prefix('(').and_then(|after| after.split_once(')'));
        text.push_str(before);
        match target {
            Some((_, after)) => {
                text.push_str(name);
                rest = after;
            }
            None if name.starts_with('`') => {
                text.push_str(name);
                rest = after;
            }
            None => {
                text.push_str(&format!("[{name}]"));
                rest = after;
            }
        }
    }
    text + rest
}

#[cfg(test)]
mod tests {
    use super::*;

    const SOURCE: &str = "/// Not this.\nstruct Other;\n\n/// Why [not](crate::X), as\n/// [`Some`] say `[here]`.\n#[derive(\n    A\n)]\npub enum Why<E> {\n    /// One.\n    #[error(\n        \"it is {what:?} \\\n         and {}\"\n    )]\n    One {\n        /// Inner.\n        what: u8,\n    },\n    Two(E),\n}\n\npub(super) struct Fields {\n    pub(crate) a: Option<u8>,\n    /// B.\n    pub b: bool,\n}\n";

    #[test]
    fn types_are_read_with_what_is_said_of_them() {
        let why = item(SOURCE, "Why").expect("it is there");
        assert_eq!(why.doc, "Why not, as `Some` say `[here]`.");
        let names: Vec<_> = why.members.iter().map(|member| member.name.as_str()).collect();
        assert_eq!(names, ["One", "Two"]);
        assert_eq!(why.members[0].doc, "One.");
        assert_eq!(strings(&why.members[0].attributes), ["it is {what:?} and {}"]);
        let fields = item(SOURCE, "Fields").expect("it is there").members;
        assert_eq!(fields.iter().map(|field| field.of.as_str()).collect::<Vec<_>>(), ["Option<u8>", "bool"]);
        assert_eq!(item(SOURCE, "Oth"), None);
    }

    #[test]
    fn what_differs_in_a_message_has_a_name_or_a_dot() {
        assert_eq!(message("it is {what:?}, {0} and {}"), "it is {what}, … and …");
    }
}
