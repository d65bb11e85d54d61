//! The actors of the workloads, and those that a cluster is checked with.

pub mod big;
pub mod geo;
pub mod heartbeat;
pub mod idle;
pub mod order;
pub mod ping_pong;
pub mod presence;
pub mod register;
pub mod sort;
pub mod tally;
pub mod tell;

use greenroom::Builder;
use serde::{Deserialize, Serialize};

/// Registers the kinds of all workloads.
pub fn register(builder: Builder) -> Builder {
    presence::register(order::register(geo::register(builder)))
        .register::<tally::Tally>()
        .register::<ping_pong::Ping>()
        .register::<ping_pong::Pong>()
        .register::<sort::SortA>()
        .register::<sort::SortB>()
        .register::<sort::SortC>()
        .register::<big::BigA>()
        .register::<big::BigB>()
        .register::<big::BigC>()
        .register::<tell::Teller>()
        .register::<tell::Listener>()
        .register::<idle::Rouser>()
        .register::<idle::Sleeper>()
        .register::<heartbeat::Monitor>()
        .register::<register::Register>()
        .register::<register::KeptRegister>()
}

/// What a message carries besides its meaning.
pub type Payload = serde_bytes::ByteBuf;

/// A payload of `len` bytes.
pub(crate) fn payload(len: usize) -> Payload {
    if len == 0 { Payload::new() } else { Payload::from(vec![0x5A; len]) }
}

/// How actors talk.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default, Serialize, Deserialize, clap::ValueEnum)]
#[serde(rename_all = "snake_case")]
pub enum Style {
    /// Request and reply.
    #[default]
    Call,
    /// One-way messages, answered by one-way messages.
    Send,
}

/// When a talk between two actors is over, and how much of it is timed.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct Extent {
    /// Messages that are sent and answered, unless `until_ns` is given.
    pub rounds: u64,
    /// The end, in nanoseconds since 1970: it wins over the number of rounds.
    pub until_ns: Option<u64>,
    /// One round in so many is timed, so that reading the clock stays cheap beside what is measured.
    pub sample: u32,
}

impl Extent {
    /// Whether round `round` is one of those that are timed.
    pub(crate) fn times(&self, round: u64) -> bool {
        round.is_multiple_of(u64::from(self.sample.max(1)))
    }

    /// Whether the talk is over before round `round`. The clock is read in timed rounds only.
    pub(crate) fn is_over(&self, round: u64) -> bool {
        match self.until_ns {
            Some(until) => self.times(round) && crate::report::unix_ns() >= until,
            None => round >= self.rounds,
        }
    }
}
