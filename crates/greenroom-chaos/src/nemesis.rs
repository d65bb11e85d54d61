//! Who carries out the plan.

use std::collections::BTreeSet;
use std::sync::Arc;
use std::time::Duration;

use crate::events::Events;
use crate::network::{End, Network};
use crate::nodes::{self, Nodes};
use crate::plan::{Fault, Step};
use crate::table::Table;

/// Commits faults and undoes them, and keeps the nodes alive meanwhile.
pub(crate) struct Nemesis {
    network: Arc<Network>,
    // Before the table: they end first.
    nodes: Nodes,
    table: Table,
    events: Arc<Events>,
    /// What went wrong that is no fault of the plan.
    troubles: Vec<String>,
}

impl Nemesis {
    pub(crate) fn new(network: Arc<Network>, nodes: Nodes, table: Table, events: Arc<Events>) -> Self {
        Self { network, nodes, table, events, troubles: Vec::new() }
    }

    /// Carries out `plan`, for so long, and undoes what is left.
    pub(crate) fn carry_out(&mut self, plan: Vec<Step>, lasting: Duration) {
        let began = self.events.now();
        let mut plan = plan.into_iter().peekable();
        let mut active: Vec<(Duration, Fault, usize)> = Vec::new();
        loop {
            let now = self.events.now() - began;
            let is_over = now >= lasting;
            while let Some(step) = plan.next_if(|step| step.at <= now && !is_over) {
                let strikes = step.fault.strikes().map(|all| all.into_iter().map(nodes::name).collect::<BTreeSet<_>>());
                let event = self.events.begin(Some(step.fault.name()), step.fault.to_string(), strikes);
                self.commit(&step.fault);
                active.push((step.ends(), step.fault, event));
            }
            let (due, later) = active.into_iter().partition(|(end, ..)| is_over || *end <= now);
            active = later;
            for (_, fault, event) in due {
                self.undo(&fault);
                self.events.end(event);
            }
            if is_over {
                return;
            }
            self.tick();
        }
    }

    /// Keeps the nodes alive for so long.
    pub(crate) fn keep_alive(&mut self, lasting: Duration) {
        let until = self.events.now() + lasting;
        while self.events.now() < until {
            self.tick();
        }
    }

    fn tick(&mut self) {
        let revived = self.nodes.revive();
        self.note(revived);
        std::thread::sleep(TICK);
    }

    fn commit(&mut self, fault: &Fault) {
        match fault {
            Fault::Kill(node) => self.nodes.kill(*node),
            Fault::Freeze(node) => self.nodes.signal(*node, libc::SIGSTOP),
            Fault::TableKill => self.table.kill(),
            Fault::TableFreeze => self.table.signal(libc::SIGSTOP),
            Fault::DiskFull => {
                if !self.table.fill_disk() {
                    self.events.note("the disk is not the table's own: it is not filled");
                }
            }
            _ => self.on_ways(fault, Network::cut),
        }
    }

    fn undo(&mut self, fault: &Fault) {
        let done = match fault {
            Fault::Kill(node) => self.nodes.start_again(*node),
            Fault::Freeze(node) => {
                self.nodes.signal(*node, libc::SIGCONT);
                Ok(())
            }
            Fault::TableKill => self.table.restart(),
            Fault::TableFreeze => {
                self.table.signal(libc::SIGCONT);
                Ok(())
            }
            Fault::DiskFull => self.table.free_disk(),
            _ => {
                self.on_ways(fault, Network::mend);
                Ok(())
            }
        };
        self.note(done);
    }

    /// Does something to all ways that a fault cuts.
    fn on_ways(&mut self, fault: &Fault, act: impl Fn(&Network, End, End) -> Result<(), String>) {
        let both = |one: usize, other: usize| [(End::Node(one), End::Node(other)), (End::Node(other), End::Node(one))];
        let ways: Vec<(End, End)> = match fault {
            Fault::Cut(one, other) => both(*one, *other).to_vec(),
            Fault::OneWay(from, to) => vec![(End::Node(*from), End::Node(*to))],
            Fault::Isolate(node) => {
                (0..self.nodes.count()).filter(|other| other != node).flat_map(|other| both(*node, other)).collect()
            }
            Fault::NoTable(node) => vec![(End::Node(*node), End::Table)],
            _ => Vec::new(),
        };
        for (from, to) in ways {
            let done = act(&self.network, from, to);
            self.note(done);
        }
    }

    /// A run in which the tools failed shows little: it is said.
    fn note(&mut self, done: Result<(), String>) {
        if let Err(why) = done {
            self.events.note(&format!("trouble: {why}"));
            eprintln!("chaos: {why}");
            self.troubles.push(why);
        }
    }

    /// What went wrong that is no fault of the plan.
    pub(crate) fn troubles(&self) -> &[String] {
        &self.troubles
    }
}

const TICK: Duration = Duration::from_millis(25);
