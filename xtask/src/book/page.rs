//! A page as its readers see it.
//!
//! - A line `--8<-- "FILE"` is that file of the repository, and `--8<-- "FILE:NAME"` what stands there between `anchor: NAME` and
//!   `end: NAME`. So what a page shows is what is compiled.
//! - Lines of Rust code that begin with `# ` are there for the compiler alone, as in rustdoc.
//! - Links to files outside of the documentation lead to copies of them.

use std::fs;
use std::path::{Component, Path, PathBuf};

/// A page, and the files of the repository that it links to.
pub(crate) struct Prepared {
    /// Its Markdown.
    pub(crate) text: String,
    /// Paths from the repository's root, and from the folder of copies.
    pub(crate) files: Vec<(PathBuf, PathBuf)>,
}

/// The folder of the site with copies of the repository's files.
pub(crate) const FILES: &str = "files";

/// The page `name`, a path from the documentation's folder, whose source is `text`.
pub(crate) fn prepared(name: &Path, text: &str, root: &Path) -> Result<Prepared, String> {
    let mut page = Prepared { text: String::new(), files: Vec::new() };
    let mut block: Option<&str> = None;
    for (index, line) in text.lines().enumerate() {
        let place = || format!("docs/{}:{}", name.display(), index + 1);
        if let Some(info) = line.trim_start().strip_prefix("```") {
            block = if block.is_some() { None } else { Some(info) };
            let opening = line.split(',').next().unwrap_or(line);
            page.push(if info.starts_with("rust") { opening } else { line });
        } else if let Some(included) = line.trim().strip_prefix("--8<-- ") {
            page.push(&included_text(included.trim_matches('"'), root).map_err(|why| format!("{}: {why}", place()))?);
        } else if block.is_some() {
            let hidden = block.is_some_and(|info| info.starts_with("rust")) && hidden(line);
            if !hidden {
                page.push(line);
            }
        } else {
            let linked = page.linked(name, line, root).map_err(|gone| format!("{}: there is no {gone}", place()))?;
            page.push(&linked);
        }
    }
    Ok(page)
}

impl Prepared {
    fn push(&mut self, text: &str) {
        self.text.push_str(text.trim_end());
        self.text.push('\n');
    }

    /// `line` with its links to files that are no documentation leading to copies; or the path of a picture or file that is not there.
    /// Links to pages are the builder's to check.
    fn linked(&mut self, name: &Path, line: &str, root: &Path) -> Result<String, String> {
        let mut linked = String::new();
        let mut rest = line;
        while let Some((before, target)) = rest.split_once("](") {
            let (target, after) = target.split_once(')').unwrap_or((target, ""));
            linked.push_str(before);
            let (path, anchor) = target.split_once('#').map_or((target, ""), |(path, anchor)| (path, anchor));
            let here = !path.is_empty() && !path.contains(':');
            let file = here.then(|| led_to(name, path)).flatten();
            match file.filter(|file| !file.starts_with("docs") || file.extension().is_none_or(|end| end != "md")) {
                Some(file) if !root.join(&file).exists() => return Err(file.display().to_string()),
                Some(file) if !file.starts_with("docs") && root.join(&file).is_file() => {
                    let up = "../".repeat(name.components().count() - 1);
                    // Markdown of the repository is no page of the site.
                    let plain = file.extension().is_some_and(|extension| extension == "md");
                    let copy = file.with_added_extension(if plain { "txt" } else { "" });
                    linked.push_str(&format!("]({up}{FILES}/{}", copy.display()));
                    self.files.push((file, copy));
                }
                _ => linked.push_str(&format!("]({path}")),
            }
            if !anchor.is_empty() {
                linked.push('#');
                linked.push_str(anchor);
            }
            linked.push(')');
            rest = after;
        }
        Ok(linked + rest)
    }
}

/// Where a link of the page `name` leads in the repository, if it does not leave it.
fn led_to(name: &Path, target: &str) -> Option<PathBuf> {
    let mut at: Vec<Component<'_>> = vec![Component::Normal("docs".as_ref())];
    at.extend(name.parent()?.components());
    for step in Path::new(target).components() {
        match step {
            Component::ParentDir => drop(at.pop()?),
            Component::CurDir => {}
            step => at.push(step),
        }
    }
    Some(at.into_iter().collect())
}

fn hidden(line: &str) -> bool {
    let line = line.trim();
    line == "#" || line.starts_with("# ")
}

/// What a page includes: a file, or the part of it that has a name.
fn included_text(wanted: &str, root: &Path) -> Result<String, String> {
    let (path, part) = wanted.split_once(':').map_or((wanted, None), |(path, part)| (path, Some(part)));
    let text = fs::read_to_string(root.join(path)).map_err(|error| format!("cannot include {path}: {error}"))?;
    let of = |line: &str, mark: &str| anchor(line, mark).map(str::to_owned);
    let lines: Vec<&str> = match part {
        None => text.lines().collect(),
        Some(part) => {
            let inside = text.lines().skip_while(|line| of(line, "anchor: ").as_deref() != Some(part)).skip(1);
            let mut ended = false;
            let inside: Vec<&str> = inside
                .take_while(|line| {
                    ended = of(line, "end: ").as_deref() == Some(part);
                    !ended
                })
                .collect();
            if !ended {
                return Err(format!("{path} has nothing between `anchor: {part}` and `end: {part}`"));
            }
            inside
        }
    };
    let shown = lines.into_iter().filter(|line| of(line, "anchor: ").or_else(|| of(line, "end: ")).is_none());
    Ok(unindented(shown.collect()))
}

/// The name in a comment line that begins or ends a part.
fn anchor<'a>(line: &'a str, mark: &str) -> Option<&'a str> {
    let comment = line.trim().trim_start_matches(['/', '#']).trim_start();
    comment.strip_prefix(mark).filter(|_| line.trim().starts_with(['/', '#']))
}

fn unindented(lines: Vec<&str>) -> String {
    let indent = |line: &&str| line.len() - line.trim_start().len();
    let least = lines.iter().filter(|line| !line.trim().is_empty()).map(indent).min().unwrap_or(0);
    lines.iter().map(|line| line.get(least..).unwrap_or("")).collect::<Vec<_>>().join("\n")
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::step::root;

    fn shown(text: &str) -> Prepared {
        prepared(Path::new("guide/a.md"), text, &root()).expect("it can be shown")
    }

    #[test]
    fn what_only_the_compiler_needs_is_not_shown() {
        let page = shown("# Title\n```rust,no_run\n# use a;\n    #\nlet b = 1; // # c\n```\n```sh\n# a comment\n```\n");
        assert_eq!(page.text, "# Title\n```rust\nlet b = 1; // # c\n```\n```sh\n# a comment\n```\n");
    }

    #[test]
    fn a_part_of_a_file_is_shown_without_its_marks() {
        let page = shown("```rust\n--8<-- \"tutorial/6-race/src/main.rs:mended\"\n```\n");
        assert!(page.text.contains("impl Desk") && !page.text.contains("anchor"), "{}", page.text);
        assert!(!page.text.contains("impl Hall"), "{}", page.text);
    }

    #[test]
    fn a_part_that_is_not_there_is_an_error_with_its_place() {
        let gone = prepared(Path::new("a.md"), "\n--8<-- \"xtask/src/main.rs:nothing\"\n", &root());
        assert!(gone.is_err_and(|why| why.starts_with("docs/a.md:2: ")));
    }

    #[test]
    fn links_to_the_repository_lead_to_copies() {
        let page = shown(
            "see [one](../../mkdocs.yml), [read](../../README.md#a), [two](b.md#c), [three](https://a.b/c) and [four](#d)\n",
        );
        assert_eq!(
            page.text,
            "see [one](../files/mkdocs.yml), [read](../files/README.md.txt#a), [two](b.md#c), [three](https://a.b/c) and [four](#d)\n"
        );
        let copies = [("mkdocs.yml", "mkdocs.yml"), ("README.md", "README.md.txt")];
        assert_eq!(page.files, copies.map(|(file, copy)| (PathBuf::from(file), PathBuf::from(copy))));
    }

    #[test]
    fn a_picture_that_is_not_there_is_an_error_with_its_place() {
        let gone = prepared(Path::new("guide/a.md"), "\n![none](none.png)\n", &root());
        assert_eq!(gone.err().as_deref(), Some("docs/guide/a.md:2: there is no docs/guide/none.png"));
    }
}
