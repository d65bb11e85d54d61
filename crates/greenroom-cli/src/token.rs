//! `greenroom token`: a new bearer token, and what a node's file keeps of it.

use std::fs::OpenOptions;
use std::io::{IsTerminal, Write};
use std::os::unix::fs::OpenOptionsExt;
use std::path::PathBuf;

use clap::Args;
use greenroom_security::{issue, tokens};

/// For whom, and where it goes.
#[derive(Args)]
pub(crate) struct TokenCommand {
    /// Whose token it is, as logs and rules call them
    name: String,
    /// A role; may be repeated
    #[arg(long = "role", value_name = "ROLE", required = true)]
    roles: Vec<String>,
    /// Add it to this file of a node's (--tokens), which is made if it is not there
    #[arg(long, value_name = "FILE")]
    file: Option<PathBuf>,
}

/// Makes a token, prints it this once, and keeps its digest.
pub(crate) fn run(command: &TokenCommand) -> Result<(), String> {
    let TokenCommand { name, roles, file } = command;
    let token = issue::token()?;
    let digest: String = tokens::digest_of(&token).iter().map(|byte| format!("{byte:02x}")).collect();
    let quoted = |text: &str| serde_json::Value::from(text).to_string();
    let roles: Vec<String> = roles.iter().map(|role| quoted(role)).collect();
    let entry = format!("[[token]]\nname = {}\nroles = [{}]\nsha256 = \"{digest}\"\n", quoted(name), roles.join(", "));
    match file {
        Some(path) => {
            let failed = |error: std::io::Error| format!("cannot write {}: {error}", path.display());
            let mut opened = OpenOptions::new().create(true).append(true).mode(0o600).open(path).map_err(failed)?;
            opened.write_all(format!("\n{entry}").as_bytes()).map_err(failed)?;
            eprintln!("added to {}; running nodes take it up by themselves", path.display());
        }
        None => eprint!("for the node's file of tokens (--tokens FILE):\n\n{entry}\n"),
    }
    if std::io::stdout().is_terminal() {
        eprintln!("the token, shown this once:");
    }
    println!("{}", token.expose());
    Ok(())
}
