//! `greenroom support`: all that a cluster says of itself, in one file for a bug report.

use std::path::PathBuf;
use std::time::Duration;

use clap::Args;

use crate::door::NodeAddress;

/// Where to put it.
#[derive(Args)]
pub(crate) struct SupportCommand {
    /// Write into this file; standard output without it
    #[arg(long, value_name = "FILE")]
    output: Option<PathBuf>,
    #[command(flatten)]
    node: NodeAddress,
}

/// Asks a node, and writes down what it says.
pub(crate) fn run(command: &SupportCommand) -> Result<(), String> {
    let said = command.node.door(TIMEOUT)?.get_json("/-/support")?;
    let text = format!("{said:#}\n");
    let Some(output) = &command.output else {
        print!("{text}");
        return Ok(());
    };
    std::fs::write(output, &text).map_err(|error| format!("cannot write {}: {error}", output.display()))?;
    eprintln!(
        "{} bytes in {}, without keys of actors, values and what errors say: look through it before you hand it on",
        text.len(),
        output.display()
    );
    Ok(())
}

/// Each page asks all nodes.
const TIMEOUT: Duration = Duration::from_secs(30);
