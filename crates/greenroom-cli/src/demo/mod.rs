//! `greenroom demo`: three nodes in processes of their own, a chat, and something to try.

mod nodes;
mod traffic;

use std::io::{IsTerminal, Write};
use std::time::{Duration, Instant};

use clap::Args;
use tokio::signal::unix::{SignalKind, signal};

use self::nodes::Nodes;
use self::traffic::Traffic;

/// How to run the demo.
#[derive(Args)]
pub(crate) struct Demo {
    /// The first node's HTTP port; the others take the next free ones. 0 for any
    #[arg(long, default_value_t = PORT_DEFAULT)]
    port: u16,
}

impl Default for Demo {
    fn default() -> Self {
        Self { port: PORT_DEFAULT }
    }
}

/// Runs the demo until Ctrl-C, SIGTERM or SIGHUP, and leaves nothing behind.
pub(crate) fn run(demo: &Demo) -> Result<(), String> {
    // One thread: the nodes' processes end with the thread that starts them.
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()
        .map_err(|error| format!("cannot start a runtime: {error}"))?;
    runtime.block_on(async {
        let mut stop = std::pin::pin!(told_to_stop()?);
        println!("Starting three nodes ...");
        let mut nodes = Nodes::start(demo.port)?;
        let ready = tokio::select! {
            ready = nodes.ready() => ready,
            () = stop.as_mut() => Err("stopped before the nodes were ready".to_owned()),
        };
        if let Err(error) = ready {
            nodes.stop().await;
            return Err(error);
        }
        println!("{}", invitation(&nodes));
        let traffic = Traffic::start(nodes.doors());
        tokio::select! {
            () = show(&mut nodes, &traffic) => {}
            () = stop.as_mut() => {}
        }
        println!("\nStopping ...");
        traffic.stop();
        nodes.stop().await;
        println!("Stopped; nothing is left behind.");
        Ok(())
    })
}

/// Resolves when somebody wants the demo to end.
fn told_to_stop() -> Result<impl Future<Output = ()>, String> {
    let listen = |kind| signal(kind).map_err(|error| format!("cannot listen for signals: {error}"));
    let mut interrupt = listen(SignalKind::interrupt())?;
    let mut terminate = listen(SignalKind::terminate())?;
    let mut hang_up = listen(SignalKind::hangup())?;
    Ok(async move {
        tokio::select! {
            _ = interrupt.recv() => {}
            _ = terminate.recv() => {}
            _ = hang_up.recv() => {}
        }
    })
}

/// What to try. Each line works as it is.
fn invitation(nodes: &Nodes) -> String {
    let doors = nodes.doors();
    let [first, second, third] = [doors[0].url(), doors[1].url(), doors[2].url()];
    let pids: Vec<String> = nodes.processes().map(|(name, pid)| format!("{name} is process {pid}")).collect();
    format!(
        "
Look at it in a browser:  {first}{console}

Three nodes are one cluster: {pids}.
Any of them answers for every actor. Try, in another terminal:

  curl -d '{{\"user\":\"ada\",\"text\":\"hello\"}}' {first}/chat_room/lobby/post
  curl -X POST {second}/chat_room/lobby/read
  curl -X POST {third}/chat_room/lobby/node
  curl -X POST {first}/presence/lobby/online
  curl -d '{{\"amount\":1}}' {second}/counter/visits/add
  curl -X POST {second}/chat_rom/lobby/read
  curl {first}/
  curl {first}/metrics

The same with this program:  greenroom call chat_room/lobby read --node {first}
                             greenroom status --watch --node {first}
Kill a node (kill -9 {victim}): what lived on it answers from the others within seconds.
Ctrl-C stops all.
",
        console = crate::console::PATH,
        pids = pids.join(", "),
        victim = nodes.processes().nth(1).map_or(0, |(_, pid)| pid),
    )
}

/// Shows how it goes, in one line.
async fn show(nodes: &mut Nodes, traffic: &Traffic) {
    let live = std::io::stdout().is_terminal();
    let every = if live { Duration::from_secs(1) } else { Duration::from_secs(10) };
    let mut last = (Instant::now(), traffic.answered());
    loop {
        tokio::time::sleep(every).await;
        for ended in nodes.ended() {
            println!("\nNode {ended} has ended; its actors move to the others.");
        }
        let now = (Instant::now(), traffic.answered());
        let rate = (now.1 - last.1) as f64 / now.0.duration_since(last.0).as_secs_f64();
        last = now;
        let line = format!(
            "{} nodes, {rate:.0} calls/s over HTTP, {} answered, {} failed, {:.1} ms the last",
            nodes.running(),
            traffic.answered(),
            traffic.failed(),
            traffic.last_latency().as_secs_f64() * 1e3,
        );
        if live {
            print!("\r\x1b[K{line}");
            // A terminal that is gone says so by a signal.
            let _ = std::io::stdout().flush();
        } else {
            println!("{line}");
        }
    }
}

const PORT_DEFAULT: u16 = 7070;
