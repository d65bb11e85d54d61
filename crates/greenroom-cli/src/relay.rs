//! `greenroom relay`: a network between processes of one machine that is far, and cut on command.

use std::io::BufRead;
use std::net::TcpListener;
use std::sync::Arc;
use std::time::Duration;

use clap::Args;
use greenroom_relay::{Gates, Relay};

/// What is relayed.
#[derive(Args)]
pub(crate) struct RelayCommand {
    /// Where to listen, and where to hand connections on to
    #[arg(value_name = "HOST:PORT=HOST:PORT", required = true, value_parser = way)]
    ways: Vec<Way>,
    /// How far apart the ends are: every byte is held for half of it, each way
    #[arg(long, value_name = "TIME", default_value = "145ms", value_parser = greenroom_workloads::cli::duration)]
    rtt: Duration,
}

#[derive(Clone)]
struct Way {
    listen: String,
    target: String,
}

fn way(text: &str) -> Result<Way, String> {
    match text.split_once('=') {
        Some((listen, target)) if !listen.is_empty() && !target.is_empty() => {
            Ok(Way { listen: listen.to_owned(), target: target.to_owned() })
        }
        _ => Err("write where to listen and where to hand on to, as 127.0.0.1:7310=127.0.0.1:7300".to_owned()),
    }
}

/// Relays until standard input ends, and does what is written there.
pub(crate) fn run(command: &RelayCommand) -> Result<(), String> {
    let gates = Arc::new(Gates::default());
    for Way { listen, target } in &command.ways {
        let bound = TcpListener::bind(listen).map_err(|error| format!("cannot listen at {listen}: {error}"))?;
        let relay = Relay::new(target, gates.clone()).between("caller", "target").round_trip(command.rtt);
        let at = relay.start(bound).map_err(|error| format!("cannot listen at {listen}: {error}"))?;
        println!("{at} leads to {target}, {:?} there and back", command.rtt);
    }
    println!("write `cut` and `heal` here");
    for line in std::io::stdin().lock().lines() {
        match line.map_err(|error| error.to_string())?.trim() {
            "" => {}
            "cut" => {
                gates.cut(&"caller", &"target");
                println!("cut: nothing passes");
            }
            "heal" => {
                gates.heal(&"caller", &"target");
                println!("healed: what was held back passes now");
            }
            other => println!("{other:?} is no command; write `cut` or `heal`"),
        }
    }
    Ok(())
}
