//! `greenroom console`: where a browser finds a node's pages.

use std::time::Duration;

use clap::Args;

use crate::call::reason;
use crate::door::NodeAddress;

/// Whose pages.
#[derive(Args)]
pub(crate) struct ConsoleCommand {
    #[command(flatten)]
    node: NodeAddress,
    /// Put the token at hand into the address, behind the `#`, which browsers send to nobody: whoever sees the terminal sees it
    #[arg(long)]
    with_token: bool,
}

/// Prints the address, once the node says that it has the pages.
pub(crate) fn run(command: &ConsoleCommand) -> Result<(), String> {
    let door = command.node.door(TIMEOUT)?;
    if let Some(answer) = door.refusal(PATH)? {
        // A node whose console is off says so; one without it does not know the path.
        let why = reason(&answer.body).filter(|why| why.contains("console"));
        let unknown = || "its program was built without the feature `console`, or is older than the console".to_owned();
        return Err(format!("{} answers {} to {PATH}: {}", door.url(), answer.status, why.unwrap_or_else(unknown)));
    }
    let token = match command.with_token {
        true => door.token_in_address().ok_or("there is no token at hand: --token-file FILE or GREENROOM_TOKEN")?,
        false => String::new(),
    };
    println!("{}{PATH}{token}", door.url());
    Ok(())
}

/// Where a door has the pages.
pub(crate) const PATH: &str = "/-/console/";
const TIMEOUT: Duration = Duration::from_secs(5);
