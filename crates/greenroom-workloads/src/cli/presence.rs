//! The options of presence.

use std::time::Duration;

use serde::{Deserialize, Serialize};

use super::duration;

/// Who plays, how fast time goes, and with or without the optimiser.
#[derive(Clone, Debug, clap::Args)]
#[command(next_help_heading = "Presence")]
pub struct PresenceOptions {
    /// Players, in games of eight.
    #[arg(long, default_value_t = 10_000, value_parser = clap::value_parser!(u32).range(8..=1_000_000))]
    pub players: u32,
    /// Who talks with whom.
    #[arg(long, default_value = "games")]
    pub graph: Graph,
    /// Whether nodes move actors to those that they talk with; `both` runs without and with it, on new nodes each, and
    /// compares.
    #[arg(long, default_value = "both")]
    pub locality: Locality,
    /// Games live for 20 to 30 minutes of a time that goes so many times as fast as the world's; 10, and 1 in presence-sim.
    #[arg(long, value_parser = time_scale)]
    pub time_scale: Option<f64>,
    /// Requests at once, a node, each after the answer of another one, instead of a rate: what a cluster can do. In host, calls at once; 64.
    #[arg(long, value_name = "REQUESTS")]
    pub in_flight: Option<u32>,
    /// A further node joins so long after the first request, and it is told how soon as many actors live there as on the others.
    #[arg(long, value_name = "TIME", value_parser = duration)]
    pub join_after: Option<Duration>,
}

/// Who talks with whom.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize, clap::ValueEnum)]
#[serde(rename_all = "snake_case")]
pub enum Graph {
    /// A player with his game, and the game with its eight players.
    Games,
    /// A player with eight others who are drawn each time: nothing can be gained.
    Random,
    /// A player with two homes on two nodes, that stay there, as much with the one as with the other: nothing can be gained.
    Torn,
    /// A player with a home on another node, until he is on that node, and from then on with a home on the next one: who moves
    /// him has moved him in vain.
    Adversary,
}

/// Whether nodes move actors to those that they talk with.
#[derive(Clone, Copy, PartialEq, Eq, Debug, clap::ValueEnum)]
pub enum Locality {
    /// They do not.
    Off,
    /// They do.
    On,
    /// One after the other.
    Both,
}

fn time_scale(text: &str) -> Result<f64, String> {
    let scale: f64 = text.parse().map_err(|_| format!("{text:?} is no number; write 1 or 10"))?;
    if (0.001..=10_000.0).contains(&scale) { Ok(scale) } else { Err("write a number from 0.001 to 10000".to_owned()) }
}
