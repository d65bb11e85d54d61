//! `greenroom ready`: a probe, for images without any other client.

use std::time::Duration;

use clap::Args;

use crate::call::described;
use crate::door::NodeAddress;

/// Which node.
#[derive(Args)]
pub(crate) struct ReadyCommand {
    #[command(flatten)]
    node: NodeAddress,
}

/// Asks the node whether it takes requests.
pub(crate) fn run(command: &ReadyCommand) -> Result<(), String> {
    let answer = command.node.door(TIMEOUT)?.get("/readyz")?;
    match answer.status {
        200 => {
            println!("ready");
            Ok(())
        }
        status => Err(described(status, &answer.body)),
    }
}

/// A node that takes longer to say so is not ready.
const TIMEOUT: Duration = Duration::from_secs(2);
