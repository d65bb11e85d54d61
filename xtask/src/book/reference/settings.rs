//! The page of settings: what a node's configuration file may say.

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};

use super::rust::{Item, Member, item};
use super::said;
use super::table::{code, table};
use crate::step::{root, target};

/// The page, from the configuration's types, with the defaults that `program` prints.
pub(super) fn page(program: &Path) -> Result<String, String> {
    let file = target()?.join("book-node.toml");
    super::write(&file, SEVERAL_CLUSTERS)?;
    let mut defaults = defaults(&said(program, &["config", "print", "--config", &file.display().to_string()])?);
    defaults.retain(|setting, _| !setting.starts_with("geo.clusters."));
    let mut page = Page { sources: sources()?, defaults, text: HEAD.to_owned() };
    let config = page.find("Config").ok_or("there is no struct Config any more")?;
    page.section("The node", "", &config);
    for setting in page.defaults.keys() {
        if !page.text.contains(&format!("\n| `{setting}` | ")) {
            return Err(format!("the configuration has `{setting}`, and the page of settings does not"));
        }
    }
    Ok(page.text)
}

struct Page {
    /// The sources of the types.
    sources: Vec<String>,
    /// What each setting is if nobody says it.
    defaults: BTreeMap<String, String>,
    text: String,
}

impl Page {
    /// A row for each field of a type, and after them a section for each field that has fields.
    fn section(&mut self, title: &str, path: &str, item: &Item) {
        let mut inner = Vec::new();
        let mut rows = Vec::new();
        for field in item.members.iter().filter(|field| !field.attributes.contains("doc(hidden)")) {
            let setting = format!("{path}{}", field.name);
            let (of, many) = held(&field.of);
            let found = self.find(of);
            let mut doc = SECONDS.iter().fold(field.doc.clone(), |doc, said| doc.replace(said, ""));
            let takes = match &found {
                Some(item) if is_choice(item) => {
                    doc += &choices(item);
                    "a word".to_owned()
                }
                Some(item) if has_fields(item) => {
                    inner.push((format!("{setting}{}", many.path()), doc.clone(), of.to_owned()));
                    many.of("a table")
                }
                _ => many.of(word(of, field)),
            };
            let default = self.defaults.get(&setting).cloned().unwrap_or_default();
            rows.push(vec![code(&setting), takes, code(&default), doc]);
        }
        let head = ["setting", "takes", "default", "what it is"];
        self.text += &format!("\n## {title}\n\n{}\n\n{}", item.doc, table(&head, rows));
        for (setting, _, of) in inner {
            if let Some(item) = self.find(&of) {
                self.section(&format!("`{setting}`"), &format!("{setting}."), &item);
            }
        }
    }

    fn find(&self, name: &str) -> Option<Item> {
        let found = self.sources.iter().filter_map(|text| item(text, name));
        found.into_iter().find(|item| item.attributes.contains("Deserialize"))
    }
}

/// How many of its type a field holds.
#[derive(Clone, Copy)]
enum Many {
    One,
    List,
    ByName,
}

impl Many {
    fn of(self, what: &str) -> String {
        match self {
            Self::One => what.to_owned(),
            Self::List => format!("a list; each: {what}"),
            Self::ByName => format!("a table of names; each: {what}"),
        }
    }

    fn path(self) -> &'static str {
        if matches!(self, Self::ByName) { ".NAME" } else { "" }
    }
}

/// The type that a field holds one or several of.
fn held(of: &str) -> (&str, Many) {
    let inside = |start: &str| of.strip_prefix(start).and_then(|of| of.strip_suffix('>'));
    match (inside("Option<"), inside("Vec<"), inside("BTreeMap<String, ")) {
        (Some(of), _, _) => held(of),
        (_, Some(of), _) => (of, Many::List),
        (_, _, Some(of)) => (of, Many::ByName),
        _ => (of, Many::One),
    }
}

fn has_fields(item: &Item) -> bool {
    item.members.iter().all(|member| !member.of.is_empty())
}

fn is_choice(item: &Item) -> bool {
    item.attributes.contains("rename_all") && item.members.iter().all(|member| member.of.is_empty())
}

fn choices(item: &Item) -> String {
    let name = |variant: &Member| {
        let mut name = String::new();
        for letter in variant.name.chars() {
            if letter.is_uppercase() && !name.is_empty() && item.attributes.contains("snake_case") {
                name.push('_');
            }
            name.extend(letter.to_lowercase());
        }
        name
    };
    let choices = item.members.iter().map(|variant| format!(" `{}`: {}", name(variant), variant.doc));
    choices.collect()
}

/// What stands in the file for a value of a type.
fn word(of: &str, field: &Member) -> &'static str {
    match of {
        "bool" => "true or false",
        "Duration" if field.attributes.contains("seconds") => "seconds",
        "PathBuf" => "a path",
        "u32" | "u64" | "usize" => "a number",
        "Vec<String>" => "a list of texts",
        "f64" => "a number",
        _ => "a text",
    }
}

/// What `config print` says, by setting.
fn defaults(printed: &str) -> BTreeMap<String, String> {
    let mut section = String::new();
    let mut defaults = BTreeMap::new();
    for line in printed.lines() {
        if let Some(name) = line.strip_prefix('[').and_then(|line| line.strip_suffix(']')) {
            section = format!("{name}.");
        } else if let Some((name, value)) = line.split_once(" = ") {
            defaults.insert(format!("{section}{name}"), value.trim_end_matches(".0").to_owned());
        }
    }
    defaults
}

/// The sources in which types of the configuration are.
fn sources() -> Result<Vec<String>, String> {
    let mut texts = Vec::new();
    let mut folders: Vec<PathBuf> = FOLDERS.iter().map(|folder| root().join(folder)).collect();
    while let Some(folder) = folders.pop() {
        let read = |error| format!("cannot read {}: {error}", folder.display());
        for path in fs::read_dir(&folder).map_err(read)?.flatten().map(|entry| entry.path()) {
            if path.is_dir() {
                folders.push(path);
            } else {
                texts.extend(fs::read_to_string(&path).ok().filter(|text| text.contains("Deserialize")));
            }
        }
    }
    Ok(texts)
}

/// What the column of what a setting takes says already.
const SECONDS: &[&str] = &[", in seconds in files", "; in seconds in files"];

/// A node of one cluster among several, so that what it says of them has its defaults.
const SEVERAL_CLUSTERS: &str = "[geo.clusters.greenroom]\ngateways = [\"127.0.0.1:1\"]\n";

const FOLDERS: &[&str] = &["crates/greenroom/src", "crates/greenroom-security/src"];

const HEAD: &str = "\
# Settings

For who writes a node's configuration file. It is TOML: `greenroom node --config FILE`. This page is made from the configuration's types, and the defaults are what `greenroom config
print` says. `greenroom config check FILE` says whether a node would take a file. Some settings are [flags and variables](commands.md#how-a-node-runs), too. A setting with a dot stands in a table:
`reliable.journal` is `journal` below `[reliable]`, and `geo.clusters.NAME.gateways` is `gateways` below `[geo.clusters.eu]`. A list of tables is written with two brackets: `[[allow]]`.
";

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_setting_is_said_with_its_table_its_default_and_what_it_may_be() {
        let defaults = defaults("lease = 4.0\nname = \"\"\n\n[optimiser]\nmode = \"on\"\n");
        let mut page = Page { sources: sources().expect("there are some"), defaults, text: String::new() };
        let config = page.find("Config").expect("it is there");
        page.section("The node", "", &config);
        for said in [
            "| `lease` | seconds | `4` | How long the node may start turns",
            "| `name` | a text | `\"\"` | The node's name",
            "| `optimiser.mode` | a word | `\"on\"` | What it does: it is on by default. `off`: Nothing",
            "| `geo.clusters.NAME.gateways` | a list; each: a text |  | Its gateways",
            "| `geo.kinds.NAME.instances` | a word |  | One instance in all, or one in each cluster. `single`",
            "| `allow.methods` | a list; each: a text |  | The methods. |",
        ] {
            assert!(page.text.contains(said), "{said} is not in\n{}", page.text);
        }
        assert!(!page.text.contains("`checks`"));
    }
}
