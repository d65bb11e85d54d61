//! A cluster of real node processes under faults, and a check of what its callers were told.
//!
//! `cargo xtask chaos` builds the nodes and runs this program. It starts them in network namespaces, or behind relays on
//! loopback where those are not permitted, with their table in a real engine on a small disk; commits the faults of a seeded
//! [plan]; records every call of many [callers]; and checks each register's history ([verdict]).

mod callers;
mod events;
mod nemesis;
mod network;
mod nodes;
mod options;
mod plan;
mod table;
mod verdict;

use std::fs;
use std::process::ExitCode;
use std::sync::Arc;
use std::time::Duration;

use crate::callers::Callers;
use crate::events::Events;
use crate::nemesis::Nemesis;
use crate::network::Network;
use crate::nodes::Nodes;
use crate::options::Options;
use crate::table::Table;
use crate::verdict::Verdict;

fn main() -> ExitCode {
    match Options::from_args().and_then(|options| run(&options)) {
        Ok(true) => ExitCode::SUCCESS,
        Ok(false) => ExitCode::FAILURE,
        Err(why) => {
            eprintln!("chaos: {why}");
            ExitCode::from(2)
        }
    }
}

/// Runs to the end; false if the cluster broke a promise.
fn run(options: &Options) -> Result<bool, String> {
    fs::create_dir_all(&options.logs).map_err(|error| format!("{}: {error}", options.logs.display()))?;
    let plan = plan::make(options.seed, options.lasting, options.nodes, options.table);
    let mut lines: Vec<String> = plan.iter().map(ToString::to_string).collect();
    lines.push(String::new());
    fs::write(options.logs.join("plan"), lines.join("\n"))
        .map_err(|error| format!("cannot write the plan: {error}"))?;
    let network = Arc::new(Network::make(options.nodes, options.relays)?);
    println!("chaos: seed {}, {} nodes, table on {}, {network}", options.seed, options.nodes, options.table);
    println!("chaos: the plan has {} faults; logs are in {}", plan.len(), options.logs.display());
    let table = Table::start(options.table, &network)?;
    let events = Arc::new(Events::new(&options.logs)?);
    let nodes = Nodes::start(options, &network, table.url(), events.clone())?;
    let callers = Callers::start(nodes.doors(), events.clone());
    let mut nemesis = Nemesis::new(network.clone(), nodes, table, events.clone());
    nemesis.carry_out(plan, options.lasting.saturating_sub(CALM_AT_END));
    // All is mended: everything has to answer again.
    nemesis.keep_alive(CALM_AT_END);
    let histories = callers.stop(&mut nemesis);
    drop(nemesis);
    let verdict = Verdict::of(&histories, &events.all());
    let text = format!("{}\n{verdict}", options.command());
    println!("{text}");
    fs::write(options.logs.join("verdict"), text).map_err(|error| format!("cannot write the verdict: {error}"))?;
    histories.write(&options.logs.join("history"))?;
    Ok(verdict.is_clean())
}

/// At the end of a run, without faults: more than it takes until everything answers again.
const CALM_AT_END: Duration = Duration::from_secs(20);
