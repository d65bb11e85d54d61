//! How many functions the compiler makes in a user's crate, beside committed figures: what nobody notices a commit at a time.
//!
//! Functions are counted and not seconds, so that a busy machine says the same; and with the library that the tests were built
//! with, so that it takes seconds.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use super::sources::{HELLO, KIND, kinds};
use crate::step::{cargo, root, target, took};
use crate::test::EVERYTHING;

/// Counts, and compares with the committed figures, or writes these anew.
pub(crate) fn run(renews: bool) -> Result<(), String> {
    let started = std::time::Instant::now();
    let (library, runtime) = (built("greenroom")?, built("tokio")?);
    let count = |name: &str, text: String| functions(name, &text, &library, &runtime);
    let (hello, one, two) =
        (count("hello", kinds(1, HELLO))?, count("one", kinds(1, KIND))?, count("two", kinds(2, KIND))?);
    let counted = [("hello world", hello), ("a further kind of 5 methods", two.saturating_sub(one))];
    let figures = root().join(FIGURES);
    if renews {
        let text: String = counted.iter().map(|(name, count)| format!("{count:6}  {name}\n")).collect();
        fs::write(&figures, text).map_err(|error| format!("cannot write {FIGURES}: {error}"))?;
    }
    let committed = fs::read_to_string(&figures).map_err(|error| format!("cannot read {FIGURES}: {error}"))?;
    println!("==> functions that the compiler makes in a user's crate:");
    let mut apart = Vec::new();
    for (name, count) in counted {
        let figure = figure(&committed, name).ok_or_else(|| format!("{FIGURES} has no figure of \"{name}\""))?;
        println!("{count:9}  {name} ({figure} in {FIGURES})");
        if is_apart(count, figure) {
            apart.push(format!("{name} has {count} functions, not {figure}"));
        }
    }
    took("functions in users' crates", started.elapsed().as_secs_f64());
    match apart[..] {
        [] => Ok(()),
        _ => Err(format!(
            "{}\n  if they must be more, or are happily fewer: cargo xtask pace --functions --renew, and say why in the commit",
            apart.join("; ")
        )),
    }
}

/// Whether a count has left what is tolerated, above or below: a figure that is not renewed would hide what comes next.
fn is_apart(count: usize, figure: usize) -> bool {
    count.abs_diff(figure) * 100 > figure * TOLERATED_PERCENT
}

fn figure(committed: &str, name: &str) -> Option<usize> {
    let lines = committed.lines().filter_map(|line| line.trim().split_once("  "));
    lines.filter(|(_, other)| *other == name).find_map(|(figure, _)| figure.parse().ok())
}

/// Where the library `name` is that tests were built with.
fn built(name: &str) -> Result<PathBuf, String> {
    let mut build = cargo();
    // Of all targets that the tests were built of, else the examples are, too.
    build.args(["test", "--no-run", "--quiet", "--message-format", "json", "--tests"]);
    build.args(EVERYTHING).stderr(Stdio::inherit());
    let told = build.current_dir(root()).output().map_err(|error| format!("cargo could not start: {error}"))?;
    let told = String::from_utf8_lossy(&told.stdout).into_owned();
    let wanted = format!("/lib{}-", name.replace('-', "_"));
    let files = told.lines().filter(|line| line.contains("\"compiler-artifact\"")).flat_map(|line| line.split('"'));
    let library = files.filter(|file| file.ends_with(".rlib")).find(|file| file.contains(&wanted));
    library.map(PathBuf::from).ok_or_else(|| format!("cargo did not say where it has built {name}"))
}

fn functions(name: &str, text: &str, library: &Path, runtime: &Path) -> Result<usize, String> {
    let folder = target()?.join("pace");
    let (source, object) = (folder.join(format!("{name}.rs")), folder.join(format!("{name}.o")));
    let written = fs::create_dir_all(&folder).and_then(|()| fs::write(&source, text));
    written.map_err(|error| format!("cannot write {}: {error}", source.display()))?;
    let mut compiler = Command::new(std::env::var_os("RUSTC").unwrap_or_else(|| "rustc".into()));
    compiler.args([
        "--edition",
        "2024",
        "--crate-name",
        "paced",
        "--emit",
        "obj",
        "-C",
        "codegen-units=1",
        "--cap-lints",
        "allow",
    ]);
    compiler.arg("-L").arg(format!("dependency={}", library.parent().unwrap_or(&folder).display()));
    compiler.arg("--extern").arg(format!("greenroom={}", library.display()));
    compiler.arg("--extern").arg(format!("tokio={}", runtime.display()));
    compiler.arg("-o").arg(&object).arg(&source);
    let status = compiler.status().map_err(|error| format!("rustc could not start: {error}"))?;
    if !status.success() {
        return Err(format!("{} was not compiled ({status})", source.display()));
    }
    let symbols = Command::new("nm").arg("--defined-only").arg(&object).output();
    let symbols = symbols.map_err(|error| format!("`nm` could not start (it comes with the C compiler): {error}"))?;
    let symbols = String::from_utf8_lossy(&symbols.stdout).into_owned();
    let kinds = symbols.lines().filter_map(|line| line.split_whitespace().nth(1));
    Ok(kinds.filter(|kind| ["t", "T", "w", "W"].contains(kind)).count())
}

/// The committed figures.
const FIGURES: &str = "xtask/functions.txt";

const TOLERATED_PERCENT: usize = 5;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_figure_is_found_by_its_name() {
        let committed = "   812  hello world\n    64  a further kind\n";
        assert_eq!((figure(committed, "a further kind"), figure(committed, "kind")), (Some(64), None));
    }

    #[test]
    fn a_count_may_leave_its_figure_by_one_part_in_twenty() {
        assert!(!is_apart(105, 100) && !is_apart(95, 100));
        assert!(is_apart(106, 100) && is_apart(94, 100));
    }
}
