//! The tracked text files of the repository, or of an invented one.

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

/// Files by their path from the root, with `/` between its parts.
pub(crate) struct Tree(BTreeMap<String, String>);

impl Tree {
    /// This repository: what git tracks, or, in an unpacked archive, every file outside hidden and target folders.
    pub(crate) fn of_repository() -> Self {
        let root = &root();
        let paths = tracked(root).unwrap_or_else(|| walked(root));
        let read = |path: PathBuf| {
            // A binary file has no text to judge; a file that is tracked but gone is about to be untracked.
            let text = fs::read_to_string(root.join(&path)).ok()?;
            Some((path.to_string_lossy().replace('\\', "/"), text))
        };
        let tree: BTreeMap<_, _> = paths.into_iter().filter_map(read).collect();
        assert!(tree.contains_key("xtask/src/main.rs"), "the repository's files were not found under {root:?}");
        Self(tree)
    }

    /// A tree that holds just `files`, each a path and its text.
    pub(crate) fn of(files: &[(&str, &str)]) -> Self {
        Self(files.iter().map(|&(path, text)| (path.to_owned(), text.to_owned())).collect())
    }

    /// Every file: its path and its text.
    pub(crate) fn files(&self) -> impl Iterator<Item = (&str, &str)> {
        self.0.iter().map(|(path, text)| (path.as_str(), text.as_str()))
    }

    /// Every Rust source file.
    pub(crate) fn sources(&self) -> impl Iterator<Item = (&str, &str)> {
        self.files().filter(|(path, _)| path.ends_with(".rs"))
    }

    /// The text of the file at `path`.
    pub(crate) fn text(&self, path: &str) -> Option<&str> {
        self.0.get(path).map(String::as_str)
    }

    /// Every package's manifest: the package's folder and the parsed `Cargo.toml` in it.
    pub(crate) fn manifests(&self) -> impl Iterator<Item = (&str, toml::Table)> {
        self.files().filter_map(|(path, text)| {
            let folder = path.strip_suffix("Cargo.toml")?;
            let manifest: toml::Table = text.parse().unwrap_or_else(|error| panic!("{path}: {error}"));
            manifest.contains_key("package").then_some((folder, manifest))
        })
    }
}

/// Asked when the test runs, because checkouts that share a target folder share this program too.
pub(crate) fn root() -> PathBuf {
    let manifest = std::env::var_os("CARGO_MANIFEST_DIR").expect("cargo runs this test");
    Path::new(&manifest).parent().expect("xtask lies in the repository's root").to_owned()
}

fn tracked(root: &Path) -> Option<Vec<PathBuf>> {
    let listed = Command::new("git").args(["ls-files", "-z"]).current_dir(root).output().ok()?;
    let paths = String::from_utf8(listed.stdout).ok()?;
    listed.status.success().then(|| paths.split_terminator('\0').map(PathBuf::from).collect())
}

fn walked(root: &Path) -> Vec<PathBuf> {
    let mut found = Vec::new();
    let mut folders = vec![PathBuf::new()];
    while let Some(folder) = folders.pop() {
        let entries = fs::read_dir(root.join(&folder)).expect("a folder that was just listed can be read");
        for entry in entries.map(|entry| entry.expect("a folder's entry can be read")) {
            let name = entry.file_name();
            let path = folder.join(&name);
            let skipped = name == "target" || (name.to_string_lossy().starts_with('.') && name != ".ci");
            match entry.file_type().expect("an entry's type can be read") {
                kind if kind.is_dir() && !skipped => folders.push(path),
                // In a worktree `.git` is a file.
                kind if kind.is_file() && name != ".git" => found.push(path),
                _ => {}
            }
        }
    }
    found
}

#[test]
fn the_walk_of_an_archive_finds_what_git_tracks() {
    let walked = walked(&root());
    assert!(walked.contains(&PathBuf::from("xtask/src/main.rs")) && walked.contains(&PathBuf::from(".ci/run")));
    assert!(!walked.iter().any(|path| path.starts_with("target") || path.starts_with(".git")));
}
