//! The simulation as a scenario sees it: its nodes and the faults that it orders.

use std::fmt::Display;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;

use crate::builder::Builder;
use crate::executor;
use crate::incarnation::Incarnation;
use crate::node::SimNode;
use crate::random::Random;
use crate::shared::{Core, Event, Shared, lock};
use crate::trace::Happening;

/// A running simulation. Clones are the same simulation.
#[derive(Clone)]
pub struct Sim {
    pub(crate) shared: Arc<Shared>,
}

impl Sim {
    /// Settings for a simulation to come.
    pub fn builder() -> Builder {
        Builder::default()
    }

    /// The seed that decides this run.
    pub fn seed(&self) -> u64 {
        self.shared.seed
    }

    /// Virtual time since the run began, on no node's clock.
    pub fn now(&self) -> Duration {
        self.shared.now()
    }

    /// What calendars show that are not [ahead](Sim::set_wall_ahead), since 1970.
    pub fn wall(&self) -> Duration {
        self.shared.wall()
    }

    /// Lets all calendars begin again, at Thursday, 1 January 2026, 00:00 UTC; other clocks go on as they are.
    pub fn begin_calendars(&self) {
        self.shared.with(|core, now| core.calendars_began = now);
    }

    /// A generator for the scenario's own choices, decided by the seed.
    pub fn random(&self) -> Random {
        lock(&self.shared.core).random.fork()
    }

    /// The living node called `name`; started if there is none, which after a crash is its restart.
    pub fn node(&self, name: &str) -> Arc<SimNode> {
        let (incarnation, clock) = self.shared.with(|core, now| core.start(now, name));
        Arc::new(SimNode { shared: self.shared.clone(), incarnation, clock, name: name.to_owned() })
    }

    /// Runs `task` as part of the scenario: no node's crash ends it. It is dropped when the scenario ends.
    pub fn spawn(&self, task: impl Future<Output = ()> + 'static) {
        executor::spawn(&self.shared, None, "a task of the scenario", Box::pin(task));
    }

    /// True if a node called `name` lives.
    pub fn is_alive(&self, name: &str) -> bool {
        self.alive(name).is_some()
    }

    /// True if the node called `name` is paused.
    pub fn is_paused(&self, name: &str) -> bool {
        self.alive(name).is_some_and(|node| node.is_paused())
    }

    /// Kills the node called `name`, if it lives: its tasks are dropped at once, its connections are reset, or fall silent
    /// with the probability that the faults give.
    pub fn crash(&self, name: &str) {
        let killed = self.shared.with(|core, now| core.crash(now, name));
        if let Some(node) = killed {
            executor::kill(&node);
        }
    }

    /// Stops polling the tasks of the node called `name`; its clock and its connections go on.
    pub fn pause(&self, name: &str) {
        if let Some(node) = self.alive(name)
            && node.pause(true)
        {
            self.shared.with(|core, now| core.record(now, Happening::Paused { machine: node.machine }));
        }
    }

    /// Lets a paused node go on: all its tasks are woken.
    pub fn resume(&self, name: &str) {
        if let Some(node) = self.alive(name)
            && node.pause(false)
        {
            self.shared.with(|core, now| core.record(now, Happening::Resumed { machine: node.machine }));
            executor::wake_all(&node);
        }
    }

    /// Cuts every link between a machine of `one` and a machine of `other`, both ways, until [`Sim::heal`].
    ///
    /// What is under way is held back. Connections across the cut are reset after a seeded time.
    pub fn partition(&self, one: &[&str], other: &[&str]) {
        for (from, to) in one.iter().flat_map(|from| other.iter().map(move |to| (from, to))) {
            self.cut(from, to);
            self.cut(to, from);
        }
    }

    /// Puts the machines of `one` and those of `other` apart: what goes between them takes so much longer, each way.
    pub fn apart(&self, one: &[&str], other: &[&str], longer: Duration) {
        self.shared.with(|core, _| {
            for (from, to) in one.iter().flat_map(|from| other.iter().map(move |to| (from, to))) {
                let (from, to) = (core.machine(from), core.machine(to));
                core.far.insert((from, to), longer);
                core.far.insert((to, from), longer);
            }
        });
    }

    /// Sets the calendars of these machines ahead by so much; their other clocks go on as they are.
    pub fn set_wall_ahead(&self, machines: &[&str], by: Duration) {
        self.shared.with(|core, _| {
            for name in machines {
                let machine = core.machine(name);
                core.machines[machine].wall_ahead = by;
            }
        });
    }

    /// Cuts the link from one machine to another, this way only, until [`Sim::heal`]; that of a machine to itself, too.
    pub fn cut(&self, from: &str, to: &str) {
        self.shared.with(|core, now| {
            let (from, to) = (core.machine(from), core.machine(to));
            core.cut(now, from, to);
        });
    }

    /// Undoes all cuts: what they held back is delivered on the connections that still live.
    pub fn heal(&self) {
        self.shared.with(Core::heal);
    }

    /// Lets no frame be lost, held up, doubled or overtaken from now on, and no store fail: what is left is what the scenario
    /// orders.
    pub fn calm(&self) {
        self.shared.with(|core, _| core.faults.calm());
    }

    /// True if nothing passes from one machine to another.
    pub fn is_cut(&self, from: &str, to: &str) -> bool {
        self.shared.with(|core, _| {
            let (from, to) = (core.machine(from), core.machine(to));
            core.cuts.contains(&(from, to))
        })
    }

    /// Resets all connections between two machines.
    pub fn reset(&self, one: &str, other: &str) {
        self.shared.with(|core, now| {
            let ends = [core.machine(one), core.machine(other)];
            for (connection, side) in core.connections_between(ends) {
                core.reset_connection(now, connection, side);
            }
        });
    }

    /// Writes `text` into the trace.
    pub fn note(&self, text: impl Display) {
        self.record_note(text.to_string(), false);
    }

    /// Writes `text` into the trace; `aside`, it is none of the last lines of a failure's report.
    pub(crate) fn record_note(&self, text: String, aside: bool) {
        let what = if aside { Happening::Aside(text) } else { Happening::Note(text) };
        self.shared.with(|core, now| core.record(now, what));
    }

    /// Fails the run: it panics with `what` as soon as the running task yields, whatever catches panics in there.
    pub fn violated(&self, what: impl Display) {
        let what = what.to_string();
        self.note(format_args!("violated: {what}"));
        lock(&self.shared.violation).get_or_insert(what);
        self.shared.is_violated.store(true, Ordering::Relaxed);
    }

    /// A hash of all that has happened so far, the order of polls included: equal for two runs of one seed.
    pub fn trace_hash(&self) -> u64 {
        self.shared.trace_hash()
    }

    /// What has happened so far, as lines: as many as the [`Log`](crate::Log) keeps.
    pub fn trace_lines(&self) -> Vec<String> {
        lock(&self.shared.core).trace.lines()
    }

    /// How much has happened so far: deliveries, faults, notes and polls of tasks.
    pub fn events(&self) -> u64 {
        self.shared.events()
    }

    fn alive(&self, name: &str) -> Option<Arc<Incarnation>> {
        let core = lock(&self.shared.core);
        core.machines[*core.numbers.get(name)?].incarnation.clone()
    }
}

impl Core {
    fn start(&mut self, now: Duration, name: &str) -> (Arc<Incarnation>, crate::clock::Clock) {
        let number = self.machine(name);
        let machine = &mut self.machines[number];
        if let Some(living) = &machine.incarnation {
            return (living.clone(), machine.clock);
        }
        machine.incarnations += 1;
        // The process alone was restarted, or the whole machine with its clock.
        if machine.incarnations > 1 && self.random.chance(0.5) {
            machine.clock = machine.clock.rebooted(&self.faults, &mut self.random);
        }
        let incarnation = Arc::new(Incarnation::new(number, machine.incarnations));
        machine.incarnation = Some(incarnation.clone());
        let started = (incarnation, machine.clock);
        self.record(now, Happening::Started { machine: number, incarnation: started.0.number });
        for (connection, side) in self.connections_of(number) {
            self.revive(now, connection, side);
        }
        started
    }

    /// Takes the node off the network; its tasks are still to be dropped.
    pub(crate) fn crash(&mut self, now: Duration, name: &str) -> Option<Arc<Incarnation>> {
        let number = *self.numbers.get(name)?;
        let node = self.machines[number].incarnation.take()?;
        let silently = self.random.chance(self.faults.silent_crash);
        node.die();
        self.machines[number].silent = silently;
        self.record(now, Happening::Crashed { machine: number, silently });
        self.doors.retain(|(machine, _), _| *machine != number);
        for (connection, side) in self.connections_of(number) {
            self.abandon(now, connection, side, silently);
        }
        Some(node)
    }

    fn cut(&mut self, now: Duration, from: usize, to: usize) {
        if !self.cuts.insert((from, to)) {
            return;
        }
        self.record(now, Happening::Cut { from, to });
        for (connection, _) in self.connections_between([from, to]) {
            for side in [0, 1] {
                let at = now + self.random.within(&self.faults.cut_reset.clone());
                self.schedule(at, Event::GiveUp { connection, side, heals: self.heals });
            }
        }
    }

    fn heal(&mut self, now: Duration) {
        if self.cuts.is_empty() {
            return;
        }
        self.cuts.clear();
        self.heals += 1;
        self.record(now, Happening::Healed);
        let all: Vec<u64> = self.connections.keys().copied().collect();
        for (connection, side) in all.into_iter().flat_map(|connection| [(connection, 0), (connection, 1)]) {
            if self.holds_back(connection, side) {
                let at = now + self.random.within(&self.faults.delay.clone());
                self.schedule(at, Event::Release { connection, side });
            }
        }
    }

    /// The ends at `machine`, as connection and side.
    fn connections_of(&self, machine: usize) -> Vec<(u64, usize)> {
        let ends = self.connections.iter().flat_map(|(connection, found)| {
            [0, 1].into_iter().filter(|side| found.ends[*side].machine == machine).map(|side| (*connection, side))
        });
        ends.collect()
    }

    /// The connections whose ends are two machines, and the side that is at the first.
    fn connections_between(&self, [one, other]: [usize; 2]) -> Vec<(u64, usize)> {
        let ends = self.connections.iter().filter_map(|(connection, found)| {
            let machines = [found.ends[0].machine, found.ends[1].machine];
            let side = [[one, other], [other, one]].iter().position(|pair| *pair == machines)?;
            Some((*connection, side))
        });
        ends.collect()
    }
}
