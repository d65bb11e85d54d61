//! The options of the host workload.

use std::path::PathBuf;

/// The host, and where its SDK is.
#[derive(Clone, Debug, clap::Args)]
#[command(next_help_heading = "Host")]
pub struct HostOptions {
    /// The SDK that the host is written with.
    #[arg(long, value_name = "SDK", default_value = "python")]
    pub sdk: Sdk,
    /// What the host's actors keep: nothing, a count that is saved with each turn, or one that a journal has.
    #[arg(long, value_name = "FORM", default_value = "volatile")]
    pub form: Form,
    /// Where the SDKs are: `sdk` of a checkout, each built as its README says.
    #[arg(long, value_name = "DIR", default_value = "sdk")]
    pub sdks: PathBuf,
    /// The interpreter or compiler; `python3`, `node` or `go` unless given.
    #[arg(long, value_name = "PROGRAM")]
    pub interpreter: Option<PathBuf>,
    /// Serves as the host in Rust.
    #[arg(long, hide = true)]
    pub echo: Option<Echo>,
}

/// An SDK.
#[derive(Clone, Copy, PartialEq, Eq, Debug, clap::ValueEnum)]
pub enum Sdk {
    /// On asyncio.
    Python,
    /// TypeScript on Node.
    Node,
    /// Go.
    Go,
    /// The reference, in Rust.
    Rust,
}

/// What the actors of a host keep.
#[derive(Clone, Copy, PartialEq, Eq, Debug, clap::ValueEnum)]
pub enum Form {
    /// Nothing.
    Volatile,
    /// A count of their turns, which is saved with each of them.
    Persistent,
    /// A count of their turns, which each of them commits to a journal.
    Reliable,
}

/// What the host in Rust is.
#[derive(Clone, Copy, PartialEq, Eq, Debug, clap::ValueEnum)]
pub enum Echo {
    /// An echo with no Greenroom in between.
    Floor,
    /// A host of volatile actors.
    Volatile,
    /// A host of persistent actors.
    Persistent,
    /// A host of reliable actors.
    Reliable,
}
