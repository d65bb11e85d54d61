//! Inside the library a file calls no method that a floor above gives to a type of a lower one: an import check does not see
//! such calls. Those that there are stand in a list, which may only shrink.

use std::collections::{BTreeMap, BTreeSet};

use crate::floors::{SOURCES, level, without_tests};
use crate::tree::Tree;
use crate::{assert_caught, assert_clean};

/// The calls that still run up.
const KNOWN: &str = include_str!("upward_calls.txt");

/// Names that the standard library's types have as well.
const OF_THE_LANGUAGE: &[&str] = &["last"];

/// Where a function is defined, and of which type if it is one's method.
struct Defined<'a> {
    module: &'a str,
    of: Option<&'a str>,
}

/// Each method that a higher floor gives to a type of a lower one, beside the files below it that call it. A name that is
/// defined more than once may be any of them, and is left out.
fn upward_calls(tree: &Tree) -> BTreeSet<String> {
    let sources: Vec<(&str, &str)> = tree
        .sources()
        .filter_map(|(path, text)| Some((path.strip_prefix(SOURCES)?.strip_suffix(".rs")?, without_tests(text))))
        .map(|(path, text)| (path.trim_end_matches("/mod"), text))
        .filter(|(module, _)| level(module).is_some())
        .collect();
    let mut types: BTreeMap<&str, usize> = BTreeMap::new();
    let mut functions: BTreeMap<&str, Vec<Defined<'_>>> = BTreeMap::new();
    for (module, text) in &sources {
        let mut of = None;
        for line in text.lines() {
            if let Some(head) = line.strip_prefix("impl").filter(|head| !head.contains(" for ")) {
                of = head.trim_start().split_once('<').map_or(Some(head), |_| Some(behind_generics(head)));
                of = of.map(|head| first_word(head.trim_start()));
            } else if line.starts_with('}') {
                of = None;
            }
            let word = line.trim_start();
            for keyword in ["struct ", "enum ", "trait "] {
                if let Some(name) = behind(word, keyword) {
                    let at = level(module).map_or(usize::MAX, |(level, _)| level);
                    types.entry(name).and_modify(|known| *known = at.min(*known)).or_insert(at);
                }
            }
            if let Some(name) = behind(word, "fn ") {
                functions.entry(name).or_default().push(Defined { module, of });
            }
        }
    }
    let mut found = BTreeSet::new();
    for (name, defined) in &functions {
        let [Defined { module, of: Some(of) }] = &defined[..] else { continue };
        let (Some((above, _)), Some(home)) = (level(module), types.get(of)) else { continue };
        if *home >= above || OF_THE_LANGUAGE.contains(name) {
            continue;
        }
        for (caller, text) in &sources {
            let below = level(caller).is_some_and(|(level, _)| level < above);
            let text = || text.lines().filter(|line| !line.trim_start().starts_with("//"));
            if below
                && [format!(".{name}("), format!("::{name}(")].iter().any(|call| text().any(|line| line.contains(call)))
            {
                found.insert(format!("{caller} -> {of}::{name} of {module}"));
            }
        }
    }
    found
}

/// The word behind a keyword, wherever that begins a word of the line's head.
fn behind<'a>(line: &'a str, keyword: &str) -> Option<&'a str> {
    let at = line.find(keyword)?;
    let head = &line[..at];
    let plain = head.chars().all(|c| c.is_ascii_lowercase() || " ():".contains(c));
    (plain && !head.starts_with("//")).then(|| first_word(&line[at + keyword.len()..])).filter(|name| !name.is_empty())
}

/// What stands behind `<…>`, if the text begins with it.
fn behind_generics(text: &str) -> &str {
    if !text.starts_with('<') {
        return text;
    }
    let mut depth = 0;
    let end = text.find(|c| {
        depth += i32::from(c == '<') - i32::from(c == '>');
        depth == 0
    });
    end.map_or("", |end| &text[end + 1..])
}

fn first_word(text: &str) -> &str {
    &text[..text.find(|c: char| !c.is_alphanumeric() && c != '_').unwrap_or(text.len())]
}

/// What is new, and what is listed and gone.
fn broken(found: &BTreeSet<String>, known: &str) -> Vec<String> {
    let known: BTreeSet<String> = known.lines().map(str::to_owned).collect();
    let new = found
        .difference(&known)
        .map(|call| format!("{call}: a call runs up; let a part, a way or another trait of the lower floor say it"));
    let gone = known
        .difference(found)
        .map(|call| format!("{call}: there is no such call any more; strike it out of the list"));
    new.chain(gone).collect()
}

#[test]
fn no_further_call_runs_up() {
    assert_clean(&broken(&upward_calls(&Tree::of_repository()), KNOWN));
}

#[test]
fn a_call_that_runs_up_is_caught() {
    let file = |name: &str| format!("{SOURCES}{name}.rs");
    let (here, port, part, geo) = (file("here/mod"), file("here/port"), file("cluster/part"), file("geo/mod"));
    let above =
        "impl Here {\n    pub(crate) fn order(&self) {}\n}\nimpl<A: B<C>> Port<A> {\n    fn dial(&self) {}\n}\n";
    let calls = |text: &str| {
        let tree = Tree::of(&[
            (&here, "pub(crate) struct Here {}\nstruct Port<A> {}"),
            (&part, above),
            (&port, text),
            (&geo, ""),
        ]);
        broken(&upward_calls(&tree), "")
    };
    assert_clean(&calls("fn at(&self) { self.reorder(); }"));
    assert_clean(&calls("fn order(&self) {}\nfn at(&self) { self.order(); }"));
    assert_caught(&calls("fn at(&self) { here.order(1); }"), "here/port -> Here::order of cluster/part");
    assert_caught(&calls("fn at(&self) { Port::dial(1); }"), "here/port -> Port::dial of cluster/part");
    assert_caught(&broken(&BTreeSet::new(), "here/port -> Here::order of cluster/part"), "strike it out");
}
