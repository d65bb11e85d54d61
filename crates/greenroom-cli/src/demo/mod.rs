//! `greenroom demo`: three nodes in processes of their own, a chat, an arena, and something to try.

mod games;
mod keys;
mod link;
mod nodes;
mod tally;
mod traffic;

use std::io::{IsTerminal, Write};
use std::sync::Arc;
use std::time::{Duration, Instant};

use clap::Args;
use greenroom::StopSignals;
use tokio::time::MissedTickBehavior;

use self::games::Games;
use self::keys::Keys;
use self::nodes::{Nodes, Stage, Toggled};
use self::tally::Tally;

/// How to run the demo.
#[derive(Args)]
pub(crate) struct Demo {
    /// The first node's HTTP port; the others take the next free ones. 0 for any
    #[arg(long, default_value_t = PORT_DEFAULT)]
    port: u16,
    /// Only the chat: no arena, which makes 5,000 calls a second
    #[arg(long)]
    quiet: bool,
    /// 2 for a second cluster of one node, 80 ms away, and a plaza that both share
    #[arg(long, value_name = "N", default_value_t = 1, value_parser = clap::value_parser!(u8).range(1..=2))]
    clusters: u8,
}

impl Default for Demo {
    fn default() -> Self {
        Self { port: PORT_DEFAULT, quiet: false, clusters: 1 }
    }
}

/// Runs the demo until Ctrl-C, SIGTERM or SIGHUP, and leaves nothing behind.
pub(crate) fn run(demo: &Demo) -> Result<(), String> {
    // One thread: the nodes' processes end with the thread that starts them.
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()
        .map_err(|error| format!("cannot start a runtime: {error}"))?;
    let ended = runtime.block_on(play(demo));
    // Nobody waits for a thread that still reads keys.
    runtime.shutdown_background();
    ended
}

async fn play(demo: &Demo) -> Result<(), String> {
    let mut stop = std::pin::pin!(told_to_stop()?);
    eprintln!("Starting three nodes ...");
    let stage = Stage { port: demo.port, has_second: demo.clusters > 1, has_arena: !demo.quiet };
    let mut nodes = Nodes::start(stage)?;
    let ready = tokio::select! {
        ready = nodes.ready() => ready,
        () = stop.as_mut() => Err("stopped before the nodes were ready".to_owned()),
    };
    if let Err(error) = ready {
        nodes.stop().await;
        return Err(error);
    }
    println!("{}", invitation(&nodes, stage));
    let tally = Arc::new(Tally::default());
    traffic::chat(&tally, &nodes.doors());
    if let Some(far) = nodes.far_door() {
        traffic::plaza(&tally, [nodes.doors()[0].clone(), far]);
    }
    let games = stage.has_arena.then(|| Games::start(&tally, nodes.doors(), nodes.names()));
    tokio::select! {
        () = show(&mut nodes, &tally, games.as_ref()) => {}
        () = stop.as_mut() => {}
    }
    println!("\nStopping ...");
    tally.stop();
    nodes.stop().await;
    println!("Stopped; nothing is left behind.");
    Ok(())
}

/// Resolves when somebody wants the demo to end.
fn told_to_stop() -> Result<impl Future<Output = ()>, String> {
    let mut signals = StopSignals::listen().map_err(|error| error.to_string())?;
    Ok(async move { signals.told().await })
}

/// What to try. Each line works as it is.
fn invitation(nodes: &Nodes, stage: Stage) -> String {
    let doors = nodes.doors();
    let [first, second, third] = [doors[0].url(), doors[1].url(), doors[2].url()];
    let pids: Vec<String> = nodes.processes().map(|(name, pid)| format!("{name} is process {pid}")).collect();
    let (mut more, mut keys) =
        (String::new(), format!("1 to {} kill a node as kill -9 does, or start it again", pids.len()));
    if stage.has_arena {
        more += &format!("  curl -X POST {second}/match/7/points\n  curl -X POST {third}/wallet/hall-0/look\n");
        keys += " · m sends players to nodes by chance";
    }
    if stage.has_second {
        more += &format!("  curl -X POST {first}/plaza_room/lobby/node\n");
        keys += " · c cuts the link between the clusters, or heals it";
    }
    format!(
        "Look at it in a browser:  {first}{console}

Three nodes are one cluster{far}: {pids}.
Any of them answers for every actor. Try, in another terminal:

  curl -d '{{\"user\":\"ada\",\"text\":\"hello\"}}' {first}/chat_room/lobby/post
  curl -X POST {second}/chat_room/lobby/read
  curl -X POST {third}/chat_room/lobby/node
  curl -X POST {first}/presence/lobby/online
  curl -d '{{\"amount\":1}}' {second}/counter/visits/add
  curl -X POST {second}/chat_rom/lobby/read
{more}  curl {first}/
  curl {first}/metrics

The same with this program:  greenroom call chat_room/lobby read --node {first}
                             greenroom status --watch --node {first}
Kill a node: what lived on it answers from the others within seconds.
Keys: {keys} · Ctrl-C stops all.
",
        console = crate::console::PATH,
        far = if stage.has_second { ", and demo-4 another one" } else { "" },
        pids = pids.join(", "),
    )
}

/// Shows how it goes, in one line, and does what keys say.
async fn show(nodes: &mut Nodes, tally: &Tally, games: Option<&Games>) {
    let live = std::io::stdout().is_terminal();
    let period = if live { Duration::from_secs(1) } else { Duration::from_secs(10) };
    let mut every = tokio::time::interval_at(tokio::time::Instant::now() + period, period);
    // A rate is of a whole period.
    every.set_missed_tick_behavior(MissedTickBehavior::Delay);
    let begin = if live { "\r\x1b[K" } else { "" };
    let mut last = (Instant::now(), tally.answered());
    let mut keys = Keys::listen();
    loop {
        let said = tokio::select! {
            _ = every.tick() => None,
            key = keys.next() => pressed(key, nodes, games),
        };
        if let Some(said) = said {
            println!("{begin}{said}");
            continue;
        }
        for ended in nodes.ended() {
            println!("{begin}Node {ended} has ended; its actors move to the others.");
        }
        let now = (Instant::now(), tally.answered());
        let rate = (now.1 - last.1) as f64 / now.0.duration_since(last.0).as_secs_f64();
        last = now;
        let line = format!(
            "{} nodes, {rate:.0} calls/s, {} answered, {} failed, {:.1} ms the last",
            nodes.running(),
            tally.answered(),
            tally.failed(),
            tally.last_latency().as_secs_f64() * 1e3,
        );
        if live {
            print!("{begin}{line}");
            // A terminal that is gone says so by a signal.
            let _ = std::io::stdout().flush();
        } else {
            println!("{line}");
        }
    }
}

/// Does what a key says, and tells what that was. Keys that say nothing do nothing.
fn pressed(key: u8, nodes: &mut Nodes, games: Option<&Games>) -> Option<String> {
    match (key, games) {
        (b'1'..=b'9', _) => match nodes.toggle(usize::from(key - b'0')) {
            Ok(None) => None,
            Ok(Some(Toggled::Killed(name))) => Some(format!(
                "Node {name} is killed, as by kill -9; its actors move to the others. {} starts it again.",
                char::from(key)
            )),
            Ok(Some(Toggled::Started(name, pid))) => Some(format!("Node {name} starts again, as process {pid}.")),
            Err(why) => Some(why),
        },
        (b'm', Some(games)) => {
            games.scatter();
            Some("Players go to nodes by chance; the optimiser brings them together again.".to_owned())
        }
        (b'c', _) => nodes.link().map(|link| match link.toggle() {
            true => "The link is cut: both clusters go on, each with a plaza of its own. c heals it.".to_owned(),
            false => "The link is healed: there is one plaza again.".to_owned(),
        }),
        _ => None,
    }
}

const PORT_DEFAULT: u16 = 7070;
