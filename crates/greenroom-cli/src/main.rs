//! The `greenroom` program: a demo, a node, and a client for both.

#[macro_use]
mod output;

mod actors;
mod arena;
mod call;
mod certs;
mod clusters;
mod config;
mod console;
mod demo;
mod door;
mod drain;
mod events;
mod findings;
mod generate;
mod inspect;
mod interfaces;
mod kinds;
mod log;
mod manual;
mod methods;
mod migrate;
mod new;
mod node;
mod nodes;
mod optimiser;
mod overview;
mod pids;
mod plaza;
mod ready;
mod relay;
mod reliable;
mod reminders;
mod replay;
mod run;
mod score_board;
mod stage;
mod state;
mod status;
mod stored;
mod support;
mod tail;
mod token;
mod topic;
mod turns;
mod waits;
mod wallet;

use std::process::ExitCode;

use clap::{CommandFactory, FromArgMatches, Parser, Subcommand};
use greenroom::flags::ignore_empty_variables;

use crate::output::CommandKind;

// Static programs copy by it.
use greenroom_copy as _;

#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;

/// Virtual actors, placed on a cluster, found, and kept single
#[derive(Parser)]
#[command(name = "greenroom", version, about)]
struct Program {
    /// How to log, to standard error; RUST_LOG says what, or else warnings, and of a node its life in its cluster
    #[arg(long, global = true, value_enum, default_value_t, env = "GREENROOM_LOG_FORMAT")]
    log_format: log::LogFormat,
    /// What to do; without a command, `demo`
    #[command(subcommand)]
    command: Option<Command>,
}

#[derive(Subcommand)]
enum Command {
    /// Start three nodes with a chat, games and steady traffic, and say what to try
    Demo(demo::Demo),
    /// Make a project to begin with: an actor, its test in a simulated cluster, and what it takes to run it
    New(new::NewCommand),
    /// Run a node with the example and workload kinds
    Node(Box<node::NodeCommand>),
    /// Run a program in any language as the host of a node in memory
    Run(Box<run::RunCommand>),
    /// Call an actor's method through a node's HTTP door
    Call(call::CallCommand),
    /// Show what can be called: the kinds of a cluster, or the methods of one
    Kinds(interfaces::KindsCommand),
    /// Show how often actors' methods are called, how long they take, and how they fail
    Methods(methods::MethodsCommand),
    /// Show turns that failed, or the slowest of the last minute
    Turns(turns::TurnsCommand),
    /// List actors that are active
    Actors(actors::ActorsCommand),
    /// Show turns as they end
    Tail(tail::TailCommand),
    /// Write all that a cluster says of itself into one file, without keys and values, for a bug report
    Support(support::SupportCommand),
    /// Show what is wrong in a cluster, and what to do
    Findings(findings::FindingsCommand),
    /// Show what happened at the nodes of a cluster, and go on with what happens
    Events(events::EventsCommand),
    /// Write OpenAPI, or typed clients of kinds
    Generate(generate::GenerateCommand),
    /// Show a cluster at a glance, with what it did in the last minutes
    Overview(overview::OverviewCommand),
    /// Show where a cluster's actors are, which of them are hot, who talks with whom, and who has moved
    Stage(stage::StageCommand),
    /// Show a cluster's nodes, kinds, activations and rates
    Status(status::StatusCommand),
    /// Print the address of a node's pages for a browser
    Console(console::ConsoleCommand),
    /// Say whether a node takes requests: exit code 0 if it does, and else 1 and why
    Ready(ready::ReadyCommand),
    /// Check a configuration file, or print the configuration that a node would have
    Config(config::ConfigCommand),
    /// Let a node hand over what it has, and leave its cluster
    Drain(drain::DrainCommand),
    /// Show and change the clusters of one actor system
    Clusters(clusters::ClustersCommand),
    /// Show turns that have run for long, who waits for them, and deadlocks
    Waits(waits::WaitsCommand),
    /// List a node's spawned actors
    Pids(pids::PidsCommand),
    /// Show which actors talk with each other, and who would do better elsewhere
    Optimiser(optimiser::OptimiserCommand),
    /// Publish to a topic, or watch one
    Topic(topic::TopicCommand),
    /// Look after reliable actors: their partitions, and messages that wait or are parked
    Reliable(reliable::ReliableCommand),
    /// Show and cancel actors' reminders
    Reminders(reminders::RemindersCommand),
    /// Look into an actor: what it does, what waits for it, what it did last
    Inspect(inspect::InspectCommand),
    /// Let an actor go to another node, with what it holds in memory
    Migrate(migrate::MigrateCommand),
    /// Show and change what actors have stored, by way of a node
    Stored(stored::StoredCommand),
    /// Read and change what is in a store
    State(state::StateCommand),
    /// Make and check certificates for trying TLS out
    Certs(certs::CertsCommand),
    /// Make a bearer token for the HTTP door
    Token(token::TokenCommand),
    /// Relay connections as a far network does, and cut them on command: to try out several clusters on one machine
    Relay(relay::RelayCommand),
    /// Run a schedule again that broke a test of greenroom-explore, and show it
    Replay(replay::ReplayCommand),
    /// Print what completes this program's commands in a shell
    Completions(manual::CompletionsCommand),
    /// Write this program's man pages into a folder
    Manual(manual::ManualCommand),
    /// Run one of the papers' workloads
    Bench(Box<greenroom_workloads::cli::Bench>),
}

impl Command {
    /// Whether there is nothing left to do for it once nobody reads what it says.
    fn only_tells(&self) -> bool {
        let works_on = matches!(
            self,
            Self::Demo(_)
                | Self::Node(_)
                | Self::Run(_)
                | Self::Relay(_)
                | Self::Bench(_)
                | Self::State(_)
                | Self::Replay(_)
        );
        !works_on
    }
}

/// Lets this process end when whoever reads its output has gone, as `head` does.
fn end_with_the_reader() {
    // SAFETY: no thread runs yet that could set another one, and what the system does by itself runs none of our code.
    unsafe {
        libc::signal(libc::SIGPIPE, libc::SIG_DFL);
    }
}

fn main() -> ExitCode {
    let mut matches = ignore_empty_variables(Program::command()).get_matches();
    let Program { command, log_format } =
        Program::from_arg_matches_mut(&mut matches).unwrap_or_else(|error| error.exit());
    log::begin(log_format, matches!(command, Some(Command::Node(_) | Command::Run(_))));
    let command = command.unwrap_or(Command::Demo(demo::Demo::default()));
    let tells = command.only_tells();
    if tells {
        end_with_the_reader();
    }
    output::begin(if tells { CommandKind::Tells } else { CommandKind::Works });
    let result = match command {
        Command::Demo(command) => demo::run(&command),
        Command::New(command) => new::run(&command),
        Command::Completions(command) => manual::complete(&command, Program::command()),
        Command::Manual(command) => manual::write(&command, Program::command()),
        Command::Node(command) => node::run(&command),
        Command::Run(command) => run::run(&command),
        Command::Call(command) => call::run(&command),
        Command::Kinds(command) => interfaces::run(&command),
        Command::Methods(command) => methods::run(&command),
        Command::Turns(command) => turns::run(&command),
        Command::Actors(command) => actors::run(&command),
        Command::Stored(command) => stored::run(&command),
        Command::Tail(command) => tail::run(&command),
        Command::Support(command) => support::run(&command),
        Command::Findings(command) => findings::run(&command),
        Command::Events(command) => events::run(&command),
        Command::Generate(command) => generate::run(&command),
        Command::Overview(command) => overview::run(&command),
        Command::Stage(command) => stage::run(&command),
        Command::Status(command) => status::run(&command),
        Command::Clusters(command) => clusters::run(&command),
        Command::Waits(command) => waits::run(&command),
        Command::Optimiser(command) => optimiser::run(&command),
        Command::Pids(command) => pids::run(&command),
        Command::Certs(command) => certs::run(&command),
        Command::Console(command) => console::run(&command),
        Command::Ready(command) => ready::run(&command),
        Command::Config(command) => config::run(&command),
        Command::Drain(command) => drain::run(&command),
        Command::Token(command) => token::run(&command),
        Command::Topic(command) => topic::run(&command),
        Command::Relay(command) => relay::run(&command),
        Command::Replay(command) => replay::run(&command),
        Command::Reliable(command) => reliable::run(&command),
        Command::Reminders(command) => reminders::run(&command),
        Command::Inspect(command) => inspect::run(&command),
        Command::Migrate(command) => migrate::run(&command),
        Command::State(command) => return state::run(&command),
        Command::Bench(command) => return greenroom_workloads::cli::run(*command),
    };
    output::finish();
    match result {
        Ok(()) => ExitCode::SUCCESS,
        Err(message) => {
            eprintln!("greenroom: {message}");
            ExitCode::FAILURE
        }
    }
}
