//! The options of the heartbeat workload.

use std::fmt;
use std::str::FromStr;
use std::time::Duration;

use greenroom::{POOL_THREADS_MAX, PoolSize};

use super::duration;

/// What beats do, and the threads that they do it on.
#[derive(Clone, Debug, clap::Args)]
#[command(next_help_heading = "Heartbeat")]
pub struct HeartbeatOptions {
    /// The part of beats that block their thread, and for how long each; `0` for none.
    #[arg(long, value_name = "PART:TIME", default_value = "0.2:2ms")]
    pub block: Block,
    /// Time for which each beat computes; `0` for none.
    #[arg(long, value_name = "TIME", default_value = "20us", value_parser = time)]
    pub work: Duration,
    /// Threads for beats that block: `fused` for those of the shards, `auto` for a pool that sizes itself, or the number of the pool's.
    #[arg(long, value_name = "fused|auto|N", default_value = "auto")]
    pub threads: BeatThreads,
    /// Time under load before anything counts; 1s, and 17s where a pool sizes itself.
    #[arg(long, value_name = "TIME", value_parser = duration)]
    pub settle: Option<Duration>,
    /// Measures numbers of shards by numbers of the pool's threads, and `fused` and `auto` beside them, each on a fresh node.
    #[arg(long)]
    pub heat_map: bool,
    /// Numbers of shards in the heat map; 1, one a core, and two a core unless given.
    #[arg(long, value_name = "N,..", value_delimiter = ',', requires = "heat_map", value_parser = clap::value_parser!(u32).range(1..=256))]
    pub sweep_shards: Vec<u32>,
    /// Numbers of the pool's threads in the heat map.
    #[arg(long, value_name = "N,..", value_delimiter = ',', requires = "heat_map", default_value = "1,2,3,4,6,8", value_parser = pool_threads)]
    pub sweep_threads: Vec<usize>,
}

/// The part of beats that block a thread, and for how long.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct Block {
    /// From 0 to 1.
    pub part: f64,
    /// How long each of them does.
    pub time: Duration,
}

/// The threads that beats block.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum BeatThreads {
    /// Those of the shards.
    Fused,
    /// Those of the node's pool for what blocks.
    Pool(PoolSize),
}

impl FromStr for Block {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let (part, time) = match text.split_once(':') {
            Some((part, time)) => (part.parse().ok(), self::time(time).ok()),
            None => (text.parse().ok().filter(|part| *part == 0.0), Some(Duration::ZERO)),
        };
        let part = part.filter(|part| (0.0..=1.0).contains(part));
        let both = part.zip(time).map(|(part, time)| Self { part, time });
        both.ok_or_else(|| format!("{text:?} is no part of beats with a time; write 0.2:2ms, or 0 for none"))
    }
}

impl FromStr for BeatThreads {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        match text {
            "fused" => Ok(Self::Fused),
            _ => text.parse().map(Self::Pool).map_err(|error| format!("write `fused`, or {error}")),
        }
    }
}

impl fmt::Display for BeatThreads {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Fused => f.write_str("fused"),
            Self::Pool(PoolSize::Fixed(threads)) => write!(f, "{threads}"),
            Self::Pool(_) => f.write_str("auto"),
        }
    }
}

fn time(text: &str) -> Result<Duration, String> {
    if text == "0" { Ok(Duration::ZERO) } else { duration(text) }
}

fn pool_threads(text: &str) -> Result<usize, String> {
    let threads = text.parse().ok().filter(|threads| (1..=POOL_THREADS_MAX).contains(threads));
    threads.ok_or_else(|| format!("write numbers of threads from 1 to {POOL_THREADS_MAX}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_blocks_is_a_part_of_beats_and_a_time() {
        assert_eq!("0.2:2ms".parse(), Ok(Block { part: 0.2, time: Duration::from_millis(2) }));
        assert_eq!("1:0".parse(), Ok(Block { part: 1.0, time: Duration::ZERO }));
        assert_eq!("0".parse(), Ok(Block { part: 0.0, time: Duration::ZERO }));
        for wrong in ["", "0.2", "2ms", "1.1:2ms", "-0.1:2ms", "NaN:2ms", "0.2:2", "0.2:"] {
            assert!(wrong.parse::<Block>().is_err_and(|error| error.contains(wrong)), "{wrong:?}");
        }
    }

    #[test]
    fn threads_are_fused_or_those_of_a_pool() {
        for text in ["fused", "auto", "4"] {
            let threads: BeatThreads = text.parse().expect(text);
            assert_eq!(threads.to_string(), text);
        }
        assert_eq!("4".parse(), Ok(BeatThreads::Pool(PoolSize::Fixed(4))));
        for wrong in ["0", "257", "staged"] {
            let said = wrong.parse::<BeatThreads>().expect_err(wrong);
            assert!(said.contains("`fused`") && said.contains("`auto`"), "{said}");
        }
    }
}
