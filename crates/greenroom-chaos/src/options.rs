//! What a run is told.

use std::fmt;
use std::path::PathBuf;
use std::time::Duration;

/// How to run.
pub(crate) struct Options {
    pub(crate) lasting: Duration,
    pub(crate) seed: u64,
    pub(crate) nodes: usize,
    pub(crate) table: Engine,
    /// The program `greenroom`.
    pub(crate) program: PathBuf,
    /// A folder for what is logged.
    pub(crate) logs: PathBuf,
    /// Relays on loopback even where namespaces are permitted.
    pub(crate) relays: bool,
}

/// Where the cluster has its table and its states.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Engine {
    Sqlite,
    Postgres,
    Etcd,
}

impl Options {
    /// Those of the command line.
    pub(crate) fn from_args() -> Result<Self, String> {
        Self::parse(std::env::args().skip(1))
    }

    fn parse(mut args: impl Iterator<Item = String>) -> Result<Self, String> {
        let (mut minutes, mut seed, mut nodes, mut relays) = (1.0, 1, 5, false);
        let (mut table, mut program, mut logs) = (Engine::Etcd, None, None);
        while let Some(name) = args.next() {
            if name == "--relays" {
                relays = true;
                continue;
            }
            let value = args.next().ok_or_else(|| format!("{name} wants a value\n{USAGE}"))?;
            let wrong = |_| format!("{name} wants a number, not `{value}`");
            match name.as_str() {
                "--minutes" => minutes = value.parse().map_err(|_| format!("{name} wants a number, not `{value}`"))?,
                "--seed" => seed = value.parse().map_err(wrong)?,
                "--nodes" => nodes = value.parse::<usize>().map_err(wrong)?,
                "--table" => table = Engine::parse(&value)?,
                "--program" => program = Some(PathBuf::from(value)),
                "--logs" => logs = Some(PathBuf::from(value)),
                _ => return Err(format!("there is no option {name}\n{USAGE}")),
            }
        }
        if !(0.5..=1000.0).contains(&minutes) || !(3..=20).contains(&nodes) {
            return Err(format!("a run takes 0.5 to 1000 minutes and 3 to 20 nodes\n{USAGE}"));
        }
        let program = program.ok_or_else(|| format!("--program is missing\n{USAGE}"))?;
        let logs = logs.unwrap_or_else(|| std::env::temp_dir().join(format!("greenroom-chaos-{seed}-{table}")));
        Ok(Self { lasting: Duration::from_secs_f64(minutes * 60.0), seed, nodes, table, program, logs, relays })
    }

    /// The command that repeats the plan.
    pub(crate) fn command(&self) -> String {
        let Self { lasting, seed, nodes, table, .. } = self;
        let minutes = lasting.as_secs_f64() / 60.0;
        let relays = if self.relays { " --relays" } else { "" };
        format!("cargo xtask chaos --minutes {minutes} --seed {seed} --nodes {nodes} --table {table}{relays}")
    }
}

impl Engine {
    fn parse(text: &str) -> Result<Self, String> {
        [Self::Sqlite, Self::Postgres, Self::Etcd]
            .into_iter()
            .find(|engine| engine.to_string() == text)
            .ok_or_else(|| format!("--table is sqlite, postgres or etcd, not `{text}`"))
    }
}

impl fmt::Display for Engine {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Sqlite => "sqlite",
            Self::Postgres => "postgres",
            Self::Etcd => "etcd",
        })
    }
}

const USAGE: &str = "usage: greenroom-chaos --program FILE [--minutes N] [--seed N] [--nodes N] \
                     [--table sqlite|postgres|etcd] [--logs FOLDER] [--relays]";

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_command_of_a_run_repeats_it() {
        let words = "--program p --minutes 2.5 --seed 7 --nodes 4 --table postgres --relays";
        let options = Options::parse(words.split(' ').map(str::to_owned)).expect("they are good");
        assert_eq!(options.command(), "cargo xtask chaos --minutes 2.5 --seed 7 --nodes 4 --table postgres --relays");
        assert!(Options::parse(["--nodes", "two"].map(str::to_owned).into_iter()).is_err());
    }
}
