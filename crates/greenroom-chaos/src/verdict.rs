//! What a run has shown.

use std::collections::BTreeMap;
use std::fmt;
use std::time::Duration;

use greenroom_sim::history::registers::{Asked, Keeps, Operation, Succession, Told, check};

use crate::callers::{Histories, History, Register};
use crate::events::Event;

/// The figures of a run, and what is wrong.
#[derive(Default)]
pub(crate) struct Verdict {
    faults: BTreeMap<&'static str, usize>,
    stopped_by_themselves: usize,
    swaps: usize,
    answered: usize,
    refused: usize,
    doubts: usize,
    registers: usize,
    epochs: usize,
    /// Ends of volatile activations, all of which have their reason.
    losses: usize,
    longest_call: Duration,
    /// The longest time in which a register answered nobody: which, from when, and for how long.
    silence: Option<(Register, Duration, Duration)>,
    violations: Vec<String>,
    troubles: Vec<String>,
}

impl Verdict {
    pub(crate) fn of(histories: &Histories, events: &[Event]) -> Self {
        let mut verdict = Self { troubles: histories.troubles.clone(), ..Self::default() };
        for event in events {
            match event.kind {
                Some(kind) => *verdict.faults.entry(kind).or_default() += 1,
                None => verdict.stopped_by_themselves += 1,
            }
        }
        for (register, history) in &histories.registers {
            verdict.judge(*register, history, events);
        }
        verdict
    }

    fn judge(&mut self, register: Register, history: &History, events: &[Event]) {
        self.registers += 1;
        self.count(register, history);
        let operations: Vec<Operation> = history.entries.iter().map(|entry| entry.operation.clone()).collect();
        let keeps = if register.is_kept { Keeps::Everything } else { Keeps::Nothing };
        match check(&operations, keeps) {
            Err(offence) => {
                self.violations.push(shown(register, &offence.what, &offence.operations, history, events));
            }
            Ok(successions) => {
                self.epochs += successions.len() + 1;
                for succession in successions.into_iter().filter(|_| !register.is_kept) {
                    self.losses += 1;
                    if !has_reason(&succession, history, events) {
                        let places = [succession.last, succession.first];
                        let what = "an activation ended, and what it held was lost, without a fault or a request";
                        self.violations.push(shown(register, what, &places, history, events));
                    }
                }
            }
        }
    }

    fn count(&mut self, register: Register, history: &History) {
        let mut answers: Vec<Duration> = Vec::new();
        for entry in &history.entries {
            let operation = &entry.operation;
            self.swaps += usize::from(matches!(operation.asked, Asked::Swap(_)));
            self.longest_call = self.longest_call.max(operation.ended - operation.begun);
            match operation.told {
                Told::Answer(_) => {
                    self.answered += 1;
                    answers.push(operation.ended);
                }
                Told::Not => self.refused += 1,
                Told::Doubt => self.doubts += 1,
            }
        }
        answers.sort_unstable();
        for pair in answers.windows(2) {
            let silent = pair[1] - pair[0];
            if self.silence.is_none_or(|(_, _, longest)| longest < silent) {
                self.silence = Some((register, pair[0], silent));
            }
        }
    }

    /// Whether the run shows that the promises were kept, and was a run at all.
    pub(crate) fn is_clean(&self) -> bool {
        self.violations.is_empty() && self.troubles.is_empty() && self.answered > 100
    }
}

/// Whether the end of an activation follows from a fault that struck its node, or from somebody who sent it away.
fn has_reason(succession: &Succession, history: &History, events: &[Event]) -> bool {
    let (last, first) = (&history.entries[succession.last], &history.entries[succession.first]);
    let (from, to) = (last.operation.begun, first.operation.ended);
    let overlaps = |begun: Duration, ended: Duration| begun <= to && ended + AFTERMATH >= from;
    let node = last.node.as_deref().unwrap_or_default();
    history.left.iter().any(|(begun, ended)| *begun <= to && *ended >= from)
        || events.iter().any(|event| {
            let strikes = event.strikes.as_ref().is_none_or(|nodes| nodes.contains(node));
            strikes && overlaps(event.from, event.to.unwrap_or(Duration::MAX - AFTERMATH))
        })
}

/// A violation, with the operations that show it, their neighbours and the events around them.
fn shown(register: Register, what: &str, places: &[usize], history: &History, events: &[Event]) -> String {
    let mut text = format!("{register}: {what}\n");
    let operations = || places.iter().map(|place| &history.entries[*place].operation);
    let from = operations().map(|operation| operation.begun).min().unwrap_or_default();
    let to = operations().map(|operation| operation.ended).max().unwrap_or_default();
    for place in places {
        text.push_str(&line(history, *place));
    }
    text.push_str("  around it, of this register:\n");
    let first = places.iter().min().copied().unwrap_or_default();
    let last = places.iter().max().copied().unwrap_or_default();
    let around = first.saturating_sub(NEIGHBOURS)..(last + NEIGHBOURS + 1).min(history.entries.len());
    if around.len() <= AROUND_MAX {
        around.for_each(|place| text.push_str(&line(history, place)));
    } else {
        text.push_str(&format!("    {} operations; see the history\n", around.len()));
    }
    text.push_str("  what happened meanwhile:\n");
    for event in events {
        let end = event.to.unwrap_or(Duration::MAX);
        if event.from <= to && end.saturating_add(AFTERMATH) >= from {
            let (begun, ended) = (event.from.as_secs_f64(), end.as_secs_f64());
            text.push_str(&format!("    {begun:10.4} .. {ended:10.4} {}\n", event.what));
        }
    }
    text
}

fn line(history: &History, place: usize) -> String {
    let entry = &history.entries[place];
    format!("    {} {}\n", entry.operation, entry.node.as_deref().unwrap_or(""))
}

impl fmt::Display for Verdict {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let asked = self.answered + self.refused + self.doubts;
        writeln!(f, "operations    {asked}, {} of them swaps, on {} registers", self.swaps, self.registers)?;
        writeln!(
            f,
            "outcomes      {} answered, {} did not run, {} in doubt",
            self.answered, self.refused, self.doubts
        )?;
        let faults: Vec<String> = self.faults.iter().map(|(kind, count)| format!("{count} {kind}")).collect();
        writeln!(f, "faults        {}: {}", self.faults.values().sum::<usize>(), faults.join(", "))?;
        writeln!(f, "              {} times a node stopped by itself", self.stopped_by_themselves)?;
        let Self { epochs, losses, .. } = self;
        writeln!(
            f,
            "activations   {epochs} that answered; {losses} ends of volatile ones, each after a fault or a request"
        )?;
        if let Some((register, from, silent)) = self.silence {
            let (from, silent) = (from.as_secs_f64(), silent.as_secs_f64());
            writeln!(f, "unavailable   {silent:.2} s at most: {register} from {from:.2}")?;
        }
        writeln!(f, "longest call  {:.2} s", self.longest_call.as_secs_f64())?;
        for trouble in &self.troubles {
            writeln!(f, "TROUBLE       {trouble}")?;
        }
        write!(f, "violations    {}", self.violations.len())?;
        self.violations.iter().try_for_each(|violation| write!(f, "\n\n{violation}"))
    }
}

/// How long after a fault its consequences may show: a lease, a vote, and what a slow machine adds.
const AFTERMATH: Duration = Duration::from_secs(15);
/// Operations that are shown before and after those that offend.
const NEIGHBOURS: usize = 6;
const AROUND_MAX: usize = 60;
