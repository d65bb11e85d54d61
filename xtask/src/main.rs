//! `cargo xtask`: the chores of this repository, one subcommand each, with nothing to install.

mod book;
mod chaos;
mod chart;
mod checks;
mod console;
mod dist;
mod engines;
mod floors;
mod fuzz;
mod image;
mod kills;
mod languages;
mod materials;
mod monitoring;
mod mutants;
mod pace;
mod programs;
mod quick;
mod repeatable;
mod seeds;
mod stamps;
mod step;
mod templates;
mod test;
mod times;
mod tutorial;
mod workspace;

use std::process::ExitCode;

fn main() -> ExitCode {
    let mut words = std::env::args_os().skip(1);
    if words.next().is_some_and(|first| first == programs::NOTE) {
        return programs::note(words.collect());
    }
    let args: Vec<String> = std::env::args().skip(1).collect();
    let args: Vec<&str> = args.iter().map(String::as_str).collect();
    let done = match args.split_first() {
        None | Some((&("help" | "-h" | "--help"), _)) => {
            print!("{HELP}");
            Ok(())
        }
        Some((&"test", options)) => test::run(options),
        Some((&"seeds", options)) => seeds::run(options),
        Some((&"chaos", options)) => chaos::run(options),
        Some((&"kills", options)) => kills::run(options),
        Some((&"fuzz", options)) => fuzz::run(options),
        Some((&"mutants", options)) => mutants::run(options),
        Some((&"book", options)) => book::run(options),
        Some((&"chart", options)) => chart::run(options),
        Some((&"monitoring", options)) => monitoring::run(options),
        Some((&"image", options)) => image::run(options),
        Some((&"templates", options)) => templates::run(options),
        Some((&"dist", options)) => dist::run(options),
        Some((&"tutorial", options)) => tutorial::run(options),
        Some((&"console", options)) => console::run(options),
        Some((&"vendor", options)) => console::vendor(options),
        Some((&"floors", options)) => floors::run(options),
        Some((&"pace", options)) => pace::run(options),
        Some((other, _)) => Err(format!("there is no `cargo xtask {other}`; `cargo xtask` lists what there is")),
    };
    match done {
        Ok(()) => ExitCode::SUCCESS,
        Err(why) => {
            eprintln!("xtask: {why}");
            ExitCode::FAILURE
        }
    }
}

const HELP: &str = "\
cargo xtask test [[--all] [--every] | --weekly | --quick [REVISION]]
    What a change must pass: format, lints, every test (model checks, doc tests and tidy among them), docs.
    Tests against real engines run where these are installed; what is skipped is said. --all installs what is
    missing first (apt-get, and builds from Go modules into a cache outside the checkout) and skips nothing for want of it.
    Says at the end how long each step and each of the ten slowest tests took, and keeps that table in the cache.
    Models, simulations under given seeds and the compiler's messages are skipped while nothing that they are built from
    differs from a run that passed: --every runs them too.
    --weekly: --all, --every, and the steps that are too long for what they find.
    --quick: format, lints, tidy, claims, and the tests of the packages that differ from REVISION (HEAD by default), and of
    those that stand on them, under few seeds and without the programs that take minutes; it says which.

cargo xtask seeds --count N [--test NAME]
    Runs the simulated scenarios (those whose name contains NAME) under N seeds each, in the release profile.

cargo xtask chaos [--minutes N] [--seed N] [--nodes N] [--table sqlite|postgres|etcd] [--release] [--relays]
    A cluster of real node processes (5 by default) for N minutes (1 by default) under the faults of a seeded plan, with
    its table in a real engine (etcd by default), and callers whose histories are checked. Network namespaces and the full
    disk want root; without it nodes run behind relays on loopback, or anyway with --relays.

cargo xtask kills [--minutes N] [--journal sqlite|postgres|kafka].. [--moving] [--hosts]
    Money moves between reliable actors on three node processes, of which a random one is killed every three seconds for N
    minutes (1 by default), and the journal's server now and then: over each journal, or those that are named. Says how many
    payments there were, and what was lost, doubled and answered otherwise: 0. --moving: counters that optimisers move to and fro
    between three nodes, one of which is killed or restarted each time some have moved: no save is lost or made twice, and
    a restart leaves no call in doubt. --hosts: reliable actors in Python and in Go, with two nodes, and persistent ones in TypeScript;
    hosts are killed, frozen past their lease, and cut off from lanes. Beside the payments clients set reminders, each of which rings,
    and each minute a message kills every host that runs it, until it is parked.

cargo xtask console
    The types of the console's modules, by TypeScript's compiler if npm has it. Then its pages in Chromium, before three real
    nodes: each page, dark and light, in three widths, with no error, nothing that axe-core finds and no sideways scroll; from the
    first page to a call by keys alone; what strangers write stays text; a killed node is the verdict. Needs Chromium, Node and npm.

cargo xtask vendor
    Gets the console's libraries again, as published. Needs npm.

cargo xtask chart [--renew]
    The Helm chart of deploy/chart: lints it, renders each file of values and compares with deploy/chart/renders (--renew writes
    them), and holds it to what it must refuse; and deploy/compose.yaml, as compose reads it. Needs Go once, which builds helm and compose's
    reader into the cache of engines. The renders meet a real API server in the tests of greenroom-cli.

cargo xtask monitoring
    The rules and alerts of deploy/monitoring by promtool: each alert fires where it must and is silent beside it. Needs promtool.

cargo xtask image [--built]
    A static program, in an image from scratch: it answers, and drains on SIGTERM. Needs buildah, musl-tools and Rust's target
    x86_64-unknown-linux-musl; the program takes ten minutes to build (--built: it is there already).

cargo xtask templates [--built] [NAME]..
    Each project that `greenroom new` makes, or those that are named, built against this checkout, linted and tested; needs Python, Node
    with npm, and Go. --built: the program is there already.

cargo xtask dist [--built]
    What is handed out, into target/handed-out: an archive with the static program, man pages, completions and the unit, its bill of materials
    (CycloneDX), the chart, and their sums; made twice, and compared. What it takes is what `image` takes, without buildah.

cargo xtask fuzz [--seconds N]
    Runs each fuzz target of fuzz/ for N seconds (60 by default). Needs a nightly toolchain and cargo-fuzz.

cargo xtask mutants [ROOM[:WORDS]]..
    Breaks the pure protocols and the explorer (those of ROOM, or of its mutants those whose description contains WORDS) in one place at
    a time, about two hundred in all, and runs their tests and models: each mutant must die, or be listed with the reason why no test
    can notice it. Takes hours for all protocols, and a quarter of an hour for `stage` and `explorer`, whose mutants name their tests;
    needs `timeout`.

cargo xtask floors [--rounds N] [--beside PROGRAM] [ROW]..
    The figures that have goals, of all rows or of those whose names begin with ROW, beside the machine's own floor: medians of N
    rounds (5 by default), and how far off each is. Builds the program in release if it is not. --beside: measures
    another program in turn with it, such as one from before a change, and shows the ratios.

cargo xtask pace [--debug | --release | --functions [--renew]]
    User CPU seconds to compile small programs: everything, their own crate, and one edit in it; beside ractor and kameo.
    --functions: how many functions the compiler makes in a user's crate, compared with xtask/functions.txt (--renew writes it).

cargo xtask tutorial [--built] [PAGE]..
    Types the commands of the tutorial's pages (docs/start), or of those whose names contain PAGE, in the folders of tutorial/, and
    compares what comes with what the pages say: in a network of its own where the machine allows one (as root). --built: `cargo run`
    runs the programs that are built with the workspace, and pages that build otherwise are left out.

cargo xtask book [--built]
    Builds the documentation as a site into target/book, with each page as Markdown and a list of them (llms.txt). Commands, settings,
    metrics, paths, errors, events and findings are pages made from the sources and from the program (--built: it is there already). A
    dead link and a page that the table of contents lacks are errors. Needs Python with venv; fetches zensical into target.
";
