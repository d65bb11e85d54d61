//! The faults of a run, decided by its seed before it begins.

use std::fmt;
use std::time::Duration;

use greenroom_sim::Random;

use crate::options::Engine;

/// A fault, and when.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) struct Step {
    /// Since the beginning of the run.
    pub(crate) at: Duration,
    pub(crate) fault: Fault,
    /// Time until it is undone.
    pub(crate) lasting: Duration,
}

/// A kind of fault, and whom it strikes. Nodes are numbers from 0.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub(crate) enum Fault {
    /// `kill -9`; started again at the end.
    Kill(usize),
    /// SIGSTOP, and SIGCONT at the end.
    Freeze(usize),
    /// Nothing passes between two nodes.
    Cut(usize, usize),
    /// Nothing passes from the first to the second.
    OneWay(usize, usize),
    /// Nothing passes between a node and all others.
    Isolate(usize),
    /// Nothing passes from a node to the table.
    NoTable(usize),
    /// The table's engine is killed, and started again at the end.
    TableKill,
    /// The table's engine is frozen.
    TableFreeze,
    /// The table's disk is full.
    DiskFull,
}

/// The plan of `seed` for a run that takes so long, the calm at its end included.
pub(crate) fn make(seed: u64, lasting: Duration, nodes: usize, engine: Engine) -> Vec<Step> {
    let mut random = Random::new(seed);
    let until = lasting.saturating_sub(crate::CALM_AT_END + Duration::from_secs(5));
    let mut steps: Vec<Step> = Vec::new();
    let mut bag = Vec::new();
    let mut at = FIRST;
    while at < until {
        if at.as_secs() % CYCLE_SECONDS >= CYCLE_SECONDS - CALM_SECONDS {
            at += Duration::from_secs(1);
            continue;
        }
        if bag.is_empty() {
            bag = menu(engine);
            random.shuffle(&mut bag);
        }
        let down = |node: &usize| steps.iter().any(|step| step.fault.downs() == Some(*node) && step.ends() > at);
        let upright: Vec<usize> = (0..nodes).filter(|node| !down(node)).collect();
        let kind = bag.pop().expect("it was filled");
        let few = upright.len() <= nodes - (nodes - 1) / 2;
        if !(few && kind.downs_one()) {
            let fault = kind.aim(&mut random, &upright);
            let lasting = random.within(&fault.lasting()).min(until - at);
            steps.push(Step { at, fault, lasting });
        }
        at += random.within(&GAP);
    }
    steps
}

/// A fault that is not aimed yet.
#[derive(Clone, Copy)]
enum Kind {
    Kill,
    Freeze,
    Cut,
    OneWay,
    Isolate,
    NoTable,
    TableKill,
    TableFreeze,
    DiskFull,
}

/// A bag of faults: all of it is used before the next one.
fn menu(engine: Engine) -> Vec<Kind> {
    use Kind::{Cut, DiskFull, Freeze, Isolate, Kill, NoTable, OneWay, TableFreeze, TableKill};
    let mut bag = vec![Kill, Kill, Kill, Kill, Cut, Cut, OneWay, OneWay, OneWay, Isolate, Isolate, DiskFull];
    if engine != Engine::Sqlite {
        // A frozen process may hold a file's lock, which no engine's client does.
        bag.extend([Freeze, Freeze, Freeze, NoTable, NoTable, TableKill, TableFreeze]);
    }
    bag
}

impl Kind {
    fn downs_one(self) -> bool {
        matches!(self, Self::Kill | Self::Freeze | Self::Isolate | Self::NoTable)
    }

    fn aim(self, random: &mut Random, upright: &[usize]) -> Fault {
        let mut nodes = upright.to_vec();
        random.shuffle(&mut nodes);
        match self {
            Self::Kill => Fault::Kill(nodes[0]),
            Self::Freeze => Fault::Freeze(nodes[0]),
            Self::Cut => Fault::Cut(nodes[0], nodes[1]),
            Self::OneWay => Fault::OneWay(nodes[0], nodes[1]),
            Self::Isolate => Fault::Isolate(nodes[0]),
            Self::NoTable => Fault::NoTable(nodes[0]),
            Self::TableKill => Fault::TableKill,
            Self::TableFreeze => Fault::TableFreeze,
            Self::DiskFull => Fault::DiskFull,
        }
    }
}

impl Step {
    pub(crate) fn ends(&self) -> Duration {
        self.at + self.lasting
    }
}

impl Fault {
    /// The node that does not serve meanwhile.
    fn downs(&self) -> Option<usize> {
        match self {
            Self::Kill(node) | Self::Freeze(node) | Self::Isolate(node) | Self::NoTable(node) => Some(*node),
            _ => None,
        }
    }

    /// The nodes whose activations may be lost by it; `None` for all.
    pub(crate) fn strikes(&self) -> Option<Vec<usize>> {
        match self {
            Self::Cut(one, other) | Self::OneWay(one, other) => Some(vec![*one, *other]),
            _ => self.downs().map(|node| vec![node]),
        }
    }

    /// Its kind's name.
    pub(crate) fn name(&self) -> &'static str {
        match self {
            Self::Kill(_) => "kill -9",
            Self::Freeze(_) => "freeze",
            Self::Cut(..) => "cut",
            Self::OneWay(..) => "one-way cut",
            Self::Isolate(_) => "isolation",
            Self::NoTable(_) => "cut from the table",
            Self::TableKill => "table killed",
            Self::TableFreeze => "table frozen",
            Self::DiskFull => "disk full",
        }
    }

    fn lasting(&self) -> std::ops::Range<Duration> {
        let (from, to) = match self {
            Self::Kill(_) => (0, 6_000),
            // Less and more than a lease.
            Self::Freeze(_) => (1_000, 15_000),
            Self::Cut(..) | Self::OneWay(..) | Self::Isolate(_) | Self::NoTable(_) => (500, 12_000),
            Self::TableKill | Self::TableFreeze => (300, 6_000),
            Self::DiskFull => (2_000, 8_000),
        };
        Duration::from_millis(from)..Duration::from_millis(to)
    }
}

impl fmt::Display for Fault {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let name = self.name();
        match self {
            Self::Cut(one, other) => write!(f, "{name} between node-{one} and node-{other}"),
            Self::OneWay(from, to) => write!(f, "{name} from node-{from} to node-{to}"),
            other => match other.downs() {
                Some(node) => write!(f, "{name} of node-{node}"),
                None => f.write_str(name),
            },
        }
    }
}

impl fmt::Display for Step {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:8.3} {} for {:.3} s", self.at.as_secs_f64(), self.fault, self.lasting.as_secs_f64())
    }
}

/// Time for callers to warm up.
const FIRST: Duration = Duration::from_secs(3);
/// Between two faults, which overlap where they last longer.
const GAP: std::ops::Range<Duration> = Duration::from_millis(500)..Duration::from_secs(5);
/// Of each cycle the last part is without new faults: what broke has time to mend.
const CYCLE_SECONDS: u64 = 60;
const CALM_SECONDS: u64 = 12;

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;

    #[test]
    fn one_seed_gives_one_plan_and_two_give_two() {
        let plan = |seed| make(seed, Duration::from_secs(600), 5, Engine::Etcd);
        assert_eq!(plan(1), plan(1));
        assert_ne!(plan(1), plan(2));
    }

    #[test]
    fn a_plan_of_ten_minutes_has_every_fault_many_times_and_leaves_most_nodes_upright() {
        for seed in 0..50 {
            let plan = make(seed, Duration::from_secs(600), 5, Engine::Postgres);
            let kinds: BTreeSet<_> = plan.iter().map(|step| step.fault.name()).collect();
            assert_eq!(kinds.len(), 9, "{kinds:?}");
            for step in &plan {
                let down = plan.iter().filter(|other| other.at <= step.at && step.at < other.ends());
                let down: BTreeSet<_> = down.filter_map(|other| other.fault.downs()).collect();
                assert!(down.len() <= 2, "{down:?} are down at {:?}", step.at);
            }
        }
    }
}
