//! `cargo xtask dist`: what is handed out, in `target/handed-out`: the same bytes whenever it is made of the same program and commit.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use crate::step::{cargo, root, run as step, target};
use crate::{engines, image, materials};

/// Builds the static program (or takes that which is there, with `--built`), and packs it and the chart, twice.
pub(crate) fn run(options: &[&str]) -> Result<(), String> {
    match options {
        [] => image::build_program()?,
        ["--built"] => {}
        _ => return Err("usage: cargo xtask dist [--built]".to_owned()),
    }
    let program = image::program()?;
    let speaker = speaker(&program)?;
    // `target/dist` is the build's own: cargo keeps what runs while it builds there.
    let folder = target()?.join("handed-out");
    let mut sums = Vec::new();
    for round in ["first", "again"] {
        drop(fs::remove_dir_all(&folder));
        fs::create_dir_all(&folder).map_err(|error| format!("cannot make {}: {error}", folder.display()))?;
        archive(&folder, &program, &speaker)?;
        chart(&folder)?;
        let bill = materials::bill(image::TARGET, image::FEATURES, &image::epoch()?)?;
        write(&folder.join(format!("{}.cdx.json", name())), bill.as_bytes())?;
        sums.push(sum(&folder)?);
        println!("==> dist: made {round}");
    }
    if sums[0] != sums[1] {
        return Err(format!("twice made, and not the same:\n{}\n{}", sums[0], sums[1]));
    }
    println!("==> dist: {} has, twice the same:\n{}", folder.display(), sums[0]);
    Ok(())
}

/// Who knows the pages and completions: the program, or where it is for other machines one that is built for this one.
fn speaker(program: &Path) -> Result<PathBuf, String> {
    if engines::starts(&program.display().to_string()) {
        return Ok(program.to_owned());
    }
    let mut build = cargo();
    build.args(["build", "--quiet", "--locked", "--package", "greenroom-cli", "--features", image::FEATURES]);
    step("the program that knows its pages", &mut build)?;
    Ok(target()?.join("debug/greenroom"))
}

/// What belongs below a prefix, as /usr/local.
fn archive(dist: &Path, program: &Path, speaker: &Path) -> Result<(), String> {
    let name = name();
    let prefix = dist.join(&name);
    put(program, &prefix.join("bin/greenroom"))?;
    step("man pages", Command::new(speaker).arg("manual").arg(prefix.join("share/man/man1")))?;
    for (shell, path) in COMPLETIONS {
        let output = Command::new(speaker).args(["completions", shell]).output();
        let output = output.map_err(|error| format!("{} does not start: {error}", speaker.display()))?;
        write(&prefix.join(path), &output.stdout)?;
    }
    for (from, to) in FILES {
        put(&root().join(from), &prefix.join(to))?;
    }
    pack(dist, &name, &format!("{name}.tar.gz"))?;
    fs::remove_dir_all(&prefix).map_err(|error| format!("cannot remove {}: {error}", prefix.display()))
}

/// Of the archive, and of what goes with it.
fn name() -> String {
    format!("greenroom-{}-{}", env!("CARGO_PKG_VERSION"), image::TARGET)
}

/// The chart, as `helm package` would pack it, but for the time of day.
fn chart(dist: &Path) -> Result<(), String> {
    let staged = dist.join("greenroom");
    let mut copy = Command::new("cp");
    step("the chart", copy.args(["--recursive", "deploy/chart"]).arg(&staged))?;
    let renders = staged.join("renders");
    fs::remove_dir_all(&renders).map_err(|error| format!("cannot remove {}: {error}", renders.display()))?;
    pack(dist, "greenroom", &format!("greenroom-chart-{}.tgz", env!("CARGO_PKG_VERSION")))?;
    fs::remove_dir_all(&staged).map_err(|error| format!("cannot remove {}: {error}", staged.display()))
}

/// An archive of the folder `name` that knows no user, no order of a disk, and one time.
fn pack(dist: &Path, name: &str, archive: &str) -> Result<(), String> {
    let mut tar = Command::new("tar");
    tar.arg("--directory").arg(dist).args(["--create", "--format=gnu", "--sort=name", "--owner=0", "--group=0"]);
    tar.args(["--numeric-owner", "--mode=u=rwX,go=rX", &format!("--mtime=@{}", image::epoch()?)]);
    tar.args(["--use-compress-program=gzip --no-name --best", "--file"]).arg(dist.join(archive)).arg(name);
    step(archive, &mut tar)
}

/// Writes SHA256SUMS, and gives what is in it.
fn sum(dist: &Path) -> Result<String, String> {
    let names = fs::read_dir(dist).map_err(|error| format!("cannot read {}: {error}", dist.display()))?;
    let mut names: Vec<_> = names.flatten().map(|entry| entry.file_name()).collect();
    names.sort();
    let output = Command::new("sha256sum").args(&names).current_dir(dist).output();
    let output = output.map_err(|error| format!("sha256sum does not start: {error}"))?;
    write(&dist.join("SHA256SUMS"), &output.stdout)?;
    Ok(String::from_utf8_lossy(&output.stdout).into_owned())
}

fn put(from: &Path, to: &Path) -> Result<(), String> {
    let bytes = fs::read(from).map_err(|error| format!("cannot read {}: {error}", from.display()))?;
    write(to, &bytes)?;
    let mode = fs::metadata(from).and_then(|found| fs::set_permissions(to, found.permissions()));
    mode.map_err(|error| format!("cannot set the mode of {}: {error}", to.display()))
}

fn write(to: &Path, bytes: &[u8]) -> Result<(), String> {
    let written = to.parent().map_or(Ok(()), fs::create_dir_all).and_then(|()| fs::write(to, bytes));
    written.map_err(|error| format!("cannot write {}: {error}", to.display()))
}

const COMPLETIONS: &[(&str, &str)] = &[
    ("bash", "share/bash-completion/completions/greenroom"),
    ("fish", "share/fish/vendor_completions.d/greenroom.fish"),
    ("zsh", "share/zsh/site-functions/_greenroom"),
];

const FILES: &[(&str, &str)] = &[
    ("LICENSE-APACHE", "share/doc/greenroom/LICENSE-APACHE"),
    ("LICENSE-MIT", "share/doc/greenroom/LICENSE-MIT"),
    ("README.md", "share/doc/greenroom/README.md"),
    ("deploy/Containerfile", "share/greenroom/Containerfile"),
    ("deploy/compose.yaml", "share/greenroom/compose.yaml"),
    ("deploy/greenroom@.service", "lib/systemd/system/greenroom@.service"),
    ("deploy/monitoring/alerts.yaml", "share/greenroom/monitoring/alerts.yaml"),
    ("deploy/monitoring/board.json", "share/greenroom/monitoring/board.json"),
    ("deploy/monitoring/records.yaml", "share/greenroom/monitoring/records.yaml"),
];
