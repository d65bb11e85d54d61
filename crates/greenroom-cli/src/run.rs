//! `greenroom run`: a node, and a program as its host.

mod program;

use std::convert::Infallible;
use std::time::Duration;

use clap::Args;
use greenroom::flags::NodeFlags;
use greenroom::{Node, StopSignals};

use self::program::{Program, newest, sources};
use crate::node;

/// How to run a program as a host.
#[derive(Args)]
pub(crate) struct RunCommand {
    #[command(flatten)]
    flags: NodeFlags,
    /// Start the program again when its code changes: files that it names, and code beside them
    #[arg(long)]
    watch: bool,
    /// The program and its arguments, as `python chat.py`
    #[arg(required = true, trailing_var_arg = true, allow_hyphen_values = true, value_name = "PROGRAM")]
    program: Vec<String>,
}

/// Runs both until Ctrl-C, SIGTERM, SIGHUP or the program's end, and leaves nothing behind.
pub(crate) fn run(command: &RunCommand) -> Result<(), String> {
    let mut flags = command.flags.clone();
    let home = tempfile::Builder::new().prefix("greenroom-").tempdir();
    let home = home.map_err(|error| format!("cannot make a directory for the socket: {error}"))?;
    let way = flags.hosts.get_or_insert_with(|| format!("unix:{}", home.path().join("node.sock").display())).clone();
    if !way.starts_with("unix:") {
        return Err(format!("the program needs a socket: leave `--hosts {way}` out, or name one, as unix:PATH"));
    }
    let door = flags.http.get_or_insert_with(|| DOOR_DEFAULT.to_owned()).clone();
    // One thread: the program ends with the thread that starts it.
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()
        .map_err(|error| format!("cannot start a runtime: {error}"))?;
    runtime.block_on(async {
        let mut signals = StopSignals::listen().map_err(|error| error.to_string())?;
        // None of the example kinds: their names are the program's to use.
        let node = flags.start(node::builder()).await.map_err(|error| error.to_string())?;
        eprintln!("greenroom: a node with its door at http://{door}; {} is its host", command.program.join(" "));
        let mut host = Program::start(&command.program, &way)?;
        let ended = tokio::select! {
            ended = tend(&mut host, command, &way) => ended,
            never = announce(&node) => match never {},
            () = signals.told() => Ok(()),
        };
        let stopped = host.stop(PATIENCE).await;
        node.stop().await;
        ended.and(stopped.map(|_| ()))
    })
}

/// Says when the program has come in, and with what: from then on its actors can be called.
async fn announce(node: &Node) -> Infallible {
    let mut seen = 0;
    loop {
        tokio::time::sleep(LOOK_AGAIN).await;
        let new = node.events(EVENTS_LEN).into_iter().filter(|event| event.number > seen);
        for event in new.collect::<Vec<_>>() {
            seen = seen.max(event.number);
            if event.event == "host-came" {
                eprintln!("greenroom: {}", event.text);
            }
        }
    }
}

/// Looks after the program: until it ends, or for ever if it is started again.
async fn tend(host: &mut Program, command: &RunCommand, way: &str) -> Result<(), String> {
    let mut seen = newest(&sources(&command.program));
    loop {
        tokio::time::sleep(LOOK_AGAIN).await;
        if !command.watch {
            if !host.has_ended() {
                continue;
            }
            return match host.stop(PATIENCE).await? {
                status if status.success() => Ok(()),
                status => Err(format!("{} ended: {status}", command.program.join(" "))),
            };
        }
        let now = newest(&sources(&command.program));
        if now != seen {
            seen = now;
            eprintln!("greenroom: a file has changed; {} starts again", command.program.join(" "));
            host.stop(PATIENCE).await?;
            *host = Program::start(&command.program, way)?;
        }
    }
}

const DOOR_DEFAULT: &str = "127.0.0.1:7070";
/// Events of a node that are looked through at a time.
const EVENTS_LEN: usize = 256;
const LOOK_AGAIN: Duration = Duration::from_millis(200);
/// Time for a host to give its actors back.
const PATIENCE: Duration = Duration::from_secs(35);
