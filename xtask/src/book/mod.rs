//! `cargo xtask book`: the documentation as a site, as Markdown and as a list for language models.

mod contents;
mod llms;
mod page;
mod reference;

use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use crate::step::{cargo, root, run as step, say, target};
use contents::Contents;

/// Builds the site into `target/book`; a dead link or a page that the table of contents lacks is an error.
pub(crate) fn run(options: &[&str]) -> Result<(), String> {
    match options {
        [] => step("the program", cargo().args(["build", "--locked", "--quiet", "-p", "greenroom-cli"]))?,
        ["--built"] => {}
        _ => return Err("usage: cargo xtask book [--built]".to_owned()),
    }
    let contents = Contents::read(&root().join("mkdocs.yml"))?;
    let source = root().join(SOURCE);
    let mut pages = prepare(&source)?;
    pages.extend(reference::make(&source, &target()?.join("debug/greenroom"))?);
    contents.check(&pages)?;
    if !program().exists() {
        install()?;
    }
    let mut build = Command::new(program());
    step("book", build.args(["build", "--strict", "--clean"]))?;
    let site = root().join(SITE);
    for page in &pages {
        write(&site.join(page), &read(&source.join(page))?)?;
    }
    write(&site.join("llms.txt"), &llms::list(&contents, &source)?)?;
    say(&format!("==> the site is {SITE}/index.html; to look at it: python3 -m http.server --directory {SITE}"));
    Ok(())
}

/// What is missing, if the site cannot be built here.
pub(crate) fn missing() -> Option<&'static str> {
    let mut python = Command::new("python3");
    python.args(["-m", "venv", "--help"]).stdout(Stdio::null()).stderr(Stdio::null());
    let found = python.status().is_ok_and(|status| status.success());
    (!found).then_some("python3 with its module venv, for the documentation's site (`apt-get install python3-venv`)")
}

/// Writes what the site is made of into `source`: pages as their readers see them, and pictures. Names the pages.
fn prepare(source: &Path) -> Result<BTreeSet<String>, String> {
    if source.exists() {
        fs::remove_dir_all(source).map_err(|error| format!("cannot empty {SOURCE}: {error}"))?;
    }
    let docs = root().join("docs");
    let mut pages = BTreeSet::new();
    let mut folders = vec![docs.clone()];
    while let Some(folder) = folders.pop() {
        let entries = fs::read_dir(&folder).map_err(|error| format!("cannot read {}: {error}", folder.display()))?;
        for path in entries.flatten().map(|entry| entry.path()) {
            let name = path.strip_prefix(&docs).unwrap_or(&path).to_owned();
            if path.is_dir() {
                folders.push(path);
            } else if name.extension().is_some_and(|extension| extension == "md") {
                let prepared = page::prepared(&name, &read(&path)?, &root())?;
                write(&source.join(&name), &prepared.text)?;
                for (file, to) in &prepared.files {
                    copy(&root().join(file), &source.join(page::FILES).join(to))?;
                }
                pages.insert(name.display().to_string());
            } else {
                copy(&path, &source.join(&name))?;
            }
        }
    }
    Ok(pages)
}

/// Puts the site's builder into an environment of its own.
fn install() -> Result<(), String> {
    if let Some(missing) = missing() {
        return Err(format!("the documentation's site needs {missing}"));
    }
    step("an environment for the book", Command::new("python3").args(["-m", "venv", "--clear"]).arg(environment()))?;
    let pip = environment().join("bin/pip");
    step("the book's builder", Command::new(pip).args(["install", "--quiet", "--disable-pip-version-check", ZENSICAL]))
}

fn read(path: &Path) -> Result<String, String> {
    fs::read_to_string(path).map_err(|error| format!("cannot read {}: {error}", path.display()))
}

fn write(path: &Path, text: &str) -> Result<(), String> {
    place(path, |path| fs::write(path, text))
}

fn copy(from: &Path, to: &Path) -> Result<(), String> {
    place(to, |to| fs::copy(from, to).map(drop))
}

fn place(path: &Path, put: impl FnOnce(&Path) -> std::io::Result<()>) -> Result<(), String> {
    let folder = path.parent().unwrap_or(path);
    let done = fs::create_dir_all(folder).and_then(|()| put(path));
    done.map_err(|error| format!("cannot write {}: {error}", path.display()))
}

fn program() -> PathBuf {
    environment().join("bin/zensical")
}

fn environment() -> PathBuf {
    root().join("target/book-builder")
}

/// What the site is built from, as `mkdocs.yml` says too.
const SOURCE: &str = "target/book-source";

/// Where the site is, as `mkdocs.yml` says too.
const SITE: &str = "target/book";

/// The site's builder and its version.
const ZENSICAL: &str = "zensical==0.0.73";
