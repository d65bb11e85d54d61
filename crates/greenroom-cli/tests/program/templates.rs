//! The actors that `greenroom new` makes pass their own tests, and what is made is whole. `cargo xtask templates` builds and tests each
//! project by itself.

use std::collections::BTreeSet;
use std::fs;
use std::path::Path;
use std::process::{Command, Output};

use tempfile::TempDir;

// Laid out by rustfmt's defaults, which are what a project has, and not as this checkout is.
#[path = "../../templates/rust/account.rs"]
#[rustfmt::skip]
pub mod account;
#[path = "../../templates/rust/auction.rs"]
#[rustfmt::skip]
pub mod auction;
#[path = "../../templates/rust/room.rs"]
#[rustfmt::skip]
pub mod room;
#[path = "../../templates/rust/wallet.rs"]
#[rustfmt::skip]
pub mod wallet;

const PROGRAM: &str = env!("CARGO_BIN_EXE_greenroom");

const VARIANTS: [&[&str]; 7] = [
    &[],
    &["--with", "persistent"],
    &["--with", "reliable"],
    &["--with", "geo"],
    &["--lang", "python"],
    &["--lang", "typescript"],
    &["--lang", "go"],
];

fn new(folder: &Path, words: &[&str]) -> Output {
    Command::new(PROGRAM).arg("new").args(words).current_dir(folder).output().expect("the program starts")
}

fn text(bytes: &[u8]) -> String {
    String::from_utf8_lossy(bytes).into_owned()
}

/// All files below a folder.
fn files(folder: &Path) -> BTreeSet<String> {
    let entries = fs::read_dir(folder).expect("a folder").map(|entry| entry.expect("an entry").path());
    let below = entries
        .flat_map(|path| if path.is_dir() { files(&path) } else { BTreeSet::from([path.display().to_string()]) });
    below.collect()
}

#[test]
fn each_project_has_all_it_takes_and_no_place_is_left_unfilled() {
    let folder = TempDir::new().expect("a folder");
    for (number, variant) in VARIANTS.iter().enumerate() {
        let name = format!("shop-{number}");
        let made = new(folder.path(), &[&[name.as_str()], *variant].concat());
        assert!(made.status.success(), "{variant:?}: {}", text(&made.stderr));
        assert!(text(&made.stdout).contains("--checkout DIR"), "{variant:?}: {}", text(&made.stdout));
        let project = folder.path().join(&name);
        for file in ["README.md", "Containerfile", "greenroom.toml", ".gitignore", ".github/workflows/ci.yml"] {
            assert!(project.join(file).exists(), "{variant:?} has no {file}");
        }
        for file in files(&project) {
            let text = fs::read_to_string(&file).expect("text");
            assert!(!text.contains("{{"), "{file}: {text}");
        }
        let checked = Command::new(PROGRAM).args(["config", "check"]).arg(project.join("greenroom.toml")).output();
        let checked = checked.expect("the program starts");
        assert!(checked.status.success(), "{variant:?}: {}", text(&checked.stderr));
    }
}

#[test]
fn each_project_in_rust_is_laid_out_by_rustfmts_defaults() {
    if Command::new("rustfmt").arg("--version").output().is_err() {
        eprintln!("NOT TESTED: rustfmt is not installed, so that nobody has looked at the layout");
        return;
    }
    let folder = TempDir::new().expect("a folder");
    let defaults = folder.path().join("rustfmt.toml");
    fs::write(&defaults, "").expect("a file");
    for (number, variant) in VARIANTS.iter().filter(|variant| !variant.contains(&"--lang")).enumerate() {
        let name = format!("shop-{number}");
        let made = new(folder.path(), &[&[name.as_str()], *variant].concat());
        assert!(made.status.success(), "{variant:?}: {}", text(&made.stderr));
        let mut rustfmt = Command::new("rustfmt");
        rustfmt.args(["--check", "--edition", "2024", "--config-path"]).arg(&defaults);
        let output = rustfmt.arg(folder.path().join(&name).join("src/main.rs")).output().expect("rustfmt starts");
        assert!(output.status.success(), "{variant:?}: {} {}", text(&output.stdout), text(&output.stderr));
    }
}

#[test]
fn what_is_there_is_refused_by_its_name_and_left_alone() {
    let folder = TempDir::new().expect("a folder");
    fs::create_dir(folder.path().join("shop")).expect("a folder");
    let refused = new(folder.path(), &["shop"]);
    assert!(!refused.status.success());
    assert!(text(&refused.stderr).contains("shop is there already; choose another name"), "{}", text(&refused.stderr));
    assert!(files(folder.path()).is_empty());
}

#[test]
fn a_checkout_that_is_none_is_refused_before_anything_is_made() {
    let folder = TempDir::new().expect("a folder");
    let refused = new(folder.path(), &["shop", "--checkout", "."]);
    assert!(text(&refused.stderr).contains("--checkout names Greenroom's sources"), "{}", text(&refused.stderr));
    assert!(!folder.path().join("shop").exists());
}
