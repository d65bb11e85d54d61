//! `greenroom node`: a node with the built-in kinds.

use std::io::Read;
#[cfg(feature = "grpc")]
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use clap::Args;
use greenroom::flags::NodeFlags;
use greenroom::{Builder, Error, Node};
use greenroom_workloads::FarStore;

#[cfg(feature = "otel")]
use greenroom_otel::Telemetry;

use crate::{arena, kinds, plaza, score_board, wallet};

/// How to run a node.
#[derive(Args)]
pub(crate) struct NodeCommand {
    #[command(flatten)]
    flags: NodeFlags,
    /// Host none of the example and workload kinds: for a node whose kinds come from hosts
    #[arg(long)]
    without_examples: bool,
    /// Send OpenTelemetry traces and metrics to the collector at this address, by OTLP over HTTP
    #[cfg(feature = "otel")]
    #[arg(long, value_name = "URL", env = "GREENROOM_OTLP")]
    otlp: Option<String>,
    /// Serve kinds at the gRPC door by services of their own, too: descriptors of what `generate --lang proto` has written
    #[cfg(feature = "grpc")]
    #[arg(long, value_name = "FILE", env = "GREENROOM_GRPC_SERVICES", value_delimiter = ',')]
    grpc_services: Vec<PathBuf>,
    /// Stop when standard input ends: for who starts nodes and must not leave them behind
    #[arg(long, hide = true)]
    until_stdin_ends: bool,
    /// Hold every access of the default store for so long, as if it were that far away: for measuring
    #[arg(long, hide = true, value_name = "TIME", value_parser = greenroom_workloads::cli::duration)]
    store_rtt: Option<Duration>,
}

impl NodeCommand {
    /// Where telemetry goes, if anywhere.
    fn telemetry(&self) -> Result<Option<Telemetry>, String> {
        #[cfg(feature = "otel")]
        if let Some(endpoint) = &self.otlp {
            let started = Telemetry::start(greenroom_otel::Settings::new(endpoint));
            return started.map(Some).map_err(|error| error.to_string());
        }
        Ok(None)
    }
}

/// A node with the doors that this program has.
pub(crate) fn builder() -> Builder {
    let builder = Node::builder();
    #[cfg(feature = "grpc")]
    let builder = builder.grpc_door(greenroom_grpc::Grpc::default());
    builder
}

/// The gRPC door, with the services that kinds have in descriptors.
#[cfg(feature = "grpc")]
fn grpc(sets: &[PathBuf]) -> Result<greenroom_grpc::Grpc, String> {
    sets.iter().try_fold(greenroom_grpc::Grpc::default(), |door, path| {
        let set = std::fs::read(path).map_err(|error| format!("cannot read {}: {error}", path.display()))?;
        door.services(&set).map_err(|error| format!("{}: {error}", path.display()))
    })
}

/// A node with the example and workload kinds.
pub(crate) fn with_examples(builder: Builder) -> Builder {
    let examples = [kinds::register, arena::register, wallet::register, plaza::register, score_board::register];
    greenroom_workloads::register(examples.iter().fold(builder, |builder, register| register(builder)))
}

/// Runs the node until it is told to stop.
pub(crate) fn run(command: &NodeCommand) -> Result<(), String> {
    let mut builder = builder();
    #[cfg(feature = "grpc")]
    {
        builder = builder.grpc_door(grpc(&command.grpc_services)?);
    }
    if !command.without_examples {
        builder = with_examples(builder);
    }
    let telemetry = command.telemetry()?;
    if let Some(telemetry) = &telemetry {
        builder = builder.intercept(telemetry.interceptor());
    }
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()
        .map_err(|error| format!("cannot start a runtime: {error}"))?;
    let ended = runtime.block_on(async {
        let builder = far(command, builder).await?;
        if !command.until_stdin_ends {
            return command.flags.run(hosted(&command.flags, builder)?).await;
        }
        let node = command.flags.start(hosted(&command.flags, builder)?).await?;
        let running = node.clone();
        tokio::select! {
            ended = running.run_until_ctrl_c() => ended,
            () = stdin_ended() => {
                node.stop().await;
                Ok(())
            }
        }
    });
    if let Some(telemetry) = telemetry {
        telemetry.stop();
    }
    // Nobody waits for a thread that still reads standard input.
    runtime.shutdown_background();
    ended.map_err(|error| error.to_string())
}

/// The same node, its default store as far away as the command says.
async fn far(command: &NodeCommand, builder: Builder) -> greenroom::Result<Builder> {
    let Some(round_trip) = command.store_rtt else { return Ok(builder) };
    let mut url = String::new();
    let builder = command.flags.apply(builder)?.configure(|config| url.clone_from(&config.store));
    let opened = greenroom_stores::open(&url).await;
    let opened = opened.map_err(|error| Error::Config { path: "--store-rtt".to_owned(), reason: error.to_string() })?;
    Ok(builder.state_store("", Arc::new(FarStore::new(opened.store, round_trip))))
}

/// The kinds that a node can host: the demo's arena only if it is asked for, and without a journal no wallets either.
pub(crate) fn hosted(flags: &NodeFlags, builder: Builder) -> greenroom::Result<Builder> {
    let builder = flags.apply(builder)?;
    if !flags.kinds.is_empty() {
        return Ok(builder);
    }
    let has_journal = builder.has_journal();
    Ok(builder.retain_kinds(|kind| !arena::NAMES.contains(&kind) && (has_journal || kind != wallet::WALLET)))
}

/// What a program that is built without the feature `otel` never has.
#[cfg(not(feature = "otel"))]
enum Telemetry {}

#[cfg(not(feature = "otel"))]
impl Telemetry {
    fn interceptor(&self) -> Nothing {
        match *self {}
    }

    fn stop(&self) {
        match *self {}
    }
}

/// In place of an interceptor that there is not.
#[cfg(not(feature = "otel"))]
struct Nothing;

#[cfg(not(feature = "otel"))]
impl greenroom::Interceptor for Nothing {}

async fn stdin_ended() {
    let (ended, end) = tokio::sync::oneshot::channel();
    std::thread::spawn(move || {
        let mut input = std::io::stdin().lock();
        let mut ignored = [0; 64];
        while matches!(input.read(&mut ignored), Ok(1..)) {}
        // An error means that the node has stopped before.
        let _ = ended.send(());
    });
    // An error can mean only that the thread is gone, and with it standard input.
    let _ = end.await;
}
