//! `cargo xtask tutorial`: types the commands of the tutorial's pages, and compares what comes with what the pages say.

mod page;
mod said;
mod terminal;

use std::fs;
use std::path::PathBuf;
use std::process::Command;

use crate::step::{self, cargo, root, say};
use crate::test::EVERYTHING;
use page::{Page, Typed};
use terminal::Terminals;

/// Runs the pages whose names contain `options`, or all; with `--built` those that type no other cargo than `cargo run`, which then
/// runs the program that is built with all of the workspace.
pub(crate) fn run(options: &[&str]) -> Result<(), String> {
    let is_built = options.contains(&BUILT);
    if std::env::var_os(INSIDE).is_none() && is_built {
        step::run("the tutorial's programs", cargo().args(["build", "--quiet", "--bins"]).args(EVERYTHING))?;
        terminal::share_programs()?;
    } else if std::env::var_os(INSIDE).is_none() {
        step::run("the program", cargo().args(["build", "--locked", "--quiet", "-p", "greenroom-cli"]))?;
    }
    if std::env::var_os(INSIDE).is_none() && own_network() {
        // The build may have put another one in its place.
        let this = format!("/proc/{}/exe", std::process::id());
        let mut inside = Command::new("unshare");
        inside.args(["--net", "sh", "-c", INSIDE_SCRIPT]).arg(this).args(options);
        return step::run("the tutorial, in a network of its own", inside.env(INSIDE, "1"));
    }
    let mut pages = pages()?;
    if is_built {
        let (typed, left): (Vec<Page>, _) =
            pages.into_iter().partition(|page| !page.types("cargo test") && !page.types("cargo build"));
        let left: Vec<&str> = left.iter().map(|page: &Page| page.name.as_str()).collect();
        say(&format!("==> the tutorial: without {}, which build otherwise than all the rest", left.join(" and ")));
        pages = typed;
    }
    let names: Vec<&&str> = options.iter().filter(|option| **option != BUILT).collect();
    let wanted = |page: &&Page| names.is_empty() || names.iter().any(|name| page.name.contains(**name));
    let chosen: Vec<&Page> = pages.iter().filter(wanted).collect();
    if chosen.is_empty() {
        let names: Vec<&str> = pages.iter().map(|page| page.name.as_str()).collect();
        return Err(format!("no page of the tutorial is called so; there are {}", names.join(", ")));
    }
    for page in chosen {
        say(&format!("==> {}", page.name));
        go_through(page, is_built).map_err(|why| format!("{FOLDER}/{}.md{why}", page.name))?;
    }
    Ok(())
}

fn go_through(page: &Page, is_built: bool) -> Result<(), String> {
    let mut terminals = Terminals::open(root().join(&page.folder), is_built)?;
    for block in &page.blocks {
        for (index, line) in block.lines.iter().enumerate() {
            let stays = block.terminal.is_some() && index + 1 == block.lines.len();
            let terminal = block.terminal.as_deref().unwrap_or("");
            let done = match &line.typed {
                Typed::Command(command) if stays => terminals.begin(terminal, command, &line.said),
                Typed::Command(command) => terminals.run(command, &line.said),
                Typed::Signal(signal) => terminals.signal(terminal, signal, &line.said),
            };
            done.map_err(|why| format!(":{}: {why}", line.number))?;
        }
    }
    Ok(())
}

/// The pages of the tutorial that have something to type, in their order.
fn pages() -> Result<Vec<Page>, String> {
    let folder = root().join(FOLDER);
    let read = |error| format!("cannot read {FOLDER}: {error}");
    let mut paths: Vec<PathBuf> = fs::read_dir(folder).map_err(read)?.flatten().map(|entry| entry.path()).collect();
    paths.retain(|path| path.extension().is_some_and(|extension| extension == "md"));
    // Installing comes before the steps, which are numbered.
    paths.sort_by_key(|path| {
        let name = path.file_name().unwrap_or_default().to_owned();
        (name.as_encoded_bytes().first().is_some_and(u8::is_ascii_digit), name)
    });
    let mut pages = Vec::new();
    for path in paths {
        let name = path.file_stem().unwrap_or_default().to_string_lossy().into_owned();
        let text = fs::read_to_string(&path).map_err(read)?;
        let folder = if root().join("tutorial").join(&name).is_dir() { format!("tutorial/{name}") } else { ".".into() };
        let page =
            Page { blocks: page::blocks(&text).map_err(|why| format!("{FOLDER}/{name}.md{why}"))?, name, folder };
        pages.extend((!page.blocks.is_empty()).then_some(page));
    }
    Ok(pages)
}

/// Whether processes may be given a network where no port is taken.
fn own_network() -> bool {
    let probe = Command::new("unshare").args(["--net", "ip", "link", "set", "lo", "up"]).output();
    probe.is_ok_and(|output| output.status.success())
}

/// Where the tutorial's pages are.
const FOLDER: &str = "docs/start";

/// The option of who has built all of the workspace.
const BUILT: &str = "--built";

/// Begins the tutorial in a network of its own. Who was started in the background ignores the keys that end a page's programs, and so would they.
const INSIDE_SCRIPT: &str = "ip link set lo up && exec env --default-signal=INT,QUIT \"$0\" tutorial \"$@\"";

/// Set for the run inside of that network.
const INSIDE: &str = "GREENROOM_TUTORIAL_INSIDE";
