//! `greenroom bench` without the rest of the program, for profilers.

use std::process::ExitCode;

use clap::Parser;
use greenroom_workloads::cli::{self, Bench};

#[derive(Parser)]
struct Program {
    #[command(flatten)]
    bench: Bench,
}

fn main() -> ExitCode {
    cli::run(Program::parse().bench)
}
