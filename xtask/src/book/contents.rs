//! The table of contents, as `mkdocs.yml` has it.

use std::collections::BTreeSet;
use std::path::Path;

use super::read;

/// Parts of the site in their order, each with its title and its pages.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Contents(pub(crate) Vec<(String, Vec<String>)>);

impl Contents {
    /// That of the file at `path`.
    pub(crate) fn read(path: &Path) -> Result<Self, String> {
        let contents = Self::of(&read(path)?);
        match contents.0.is_empty() {
            true => Err(format!("{} has no `nav:` with pages", path.display())),
            false => Ok(contents),
        }
    }

    fn of(text: &str) -> Self {
        let mut parts: Vec<(String, Vec<String>)> = Vec::new();
        let lines = text.lines().skip_while(|line| *line != "nav:").skip(1);
        for line in lines.take_while(|line| line.is_empty() || line.starts_with([' ', '#'])) {
            let Some(entry) = line.trim().strip_prefix("- ") else { continue };
            let (title, page) = match entry.rsplit_once(": ") {
                Some((title, page)) => (title, page),
                None => ("", entry),
            };
            match (page.strip_suffix(':'), parts.last_mut()) {
                (Some(title), _) => parts.push((title.to_owned(), Vec::new())),
                (None, Some((_, pages))) if line.starts_with("    ") => pages.push(page.to_owned()),
                (None, _) => parts.push((title.to_owned(), vec![page.to_owned()])),
            }
        }
        Self(parts)
    }

    /// That each of `pages` is in it, and each of its pages there.
    pub(crate) fn check(&self, pages: &BTreeSet<String>) -> Result<(), String> {
        let listed: Vec<&String> = self.0.iter().flat_map(|(_, pages)| pages).collect();
        let (folders, listed): (Vec<&String>, Vec<&String>) = listed.into_iter().partition(|page| page.ends_with('/'));
        let gone = listed.iter().filter(|page| !pages.contains(**page));
        let in_folder = |page: &&String| folders.iter().any(|folder| page.starts_with(folder.as_str()));
        let missing = pages.iter().filter(|page| !listed.contains(page) && !in_folder(page));
        let wrong: Vec<String> = gone
            .map(|page| format!("mkdocs.yml lists {page}, which is not in docs"))
            .chain(
                missing
                    .map(|page| format!("docs/{page} is not in the table of contents: add it to `nav:` of mkdocs.yml")),
            )
            .collect();
        if wrong.is_empty() { Ok(()) } else { Err(wrong.join("\n")) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const CONFIG: &str = "site_name: X\nnav:\n  - index.md\n  - Start:\n      - start/a.md\n      - Short: start/b.md\n  - Why: decisions/\nextra: 1\n";

    #[test]
    fn parts_have_their_pages_in_order() {
        let part =
            |title: &str, pages: &[&str]| (title.to_owned(), pages.iter().map(|page| page.to_string()).collect());
        let expected =
            [part("", &["index.md"]), part("Start", &["start/a.md", "start/b.md"]), part("Why", &["decisions/"])];
        assert_eq!(Contents::of(CONFIG).0, expected);
    }

    #[test]
    fn a_page_that_nobody_finds_is_an_error_and_so_is_one_that_is_gone() {
        let pages = |names: &[&str]| names.iter().map(|name| name.to_string()).collect::<BTreeSet<_>>();
        let contents = Contents::of(CONFIG);
        let all = ["index.md", "start/a.md", "start/b.md", "decisions/1.md"];
        assert_eq!(contents.check(&pages(&all)), Ok(()));
        let more = contents.check(&pages(&[&all[..], &["guide/c.md"]].concat()));
        assert!(more.is_err_and(|why| why.contains("docs/guide/c.md is not in the table of contents")));
        assert!(contents.check(&pages(&all[1..])).is_err_and(|why| why.contains("lists index.md")));
    }
}
