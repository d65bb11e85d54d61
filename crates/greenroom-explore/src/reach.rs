//! How far an exploration looks: the steps of a schedule, and what may go wrong in it.

use greenroom::rehearsal::Fault;

/// What a schedule may have.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) struct Reach {
    /// Steps, at most.
    pub(crate) steps: usize,
    /// For how many steps in which all get their turns something may be waited for.
    pub(crate) patience: usize,
    /// Nodes that actors sit on.
    pub(crate) nodes: u64,
    pub(crate) faults: Budget,
    /// Whether time passes only when nothing else is left to do.
    pub(crate) in_time: bool,
    /// Whether clients that wait for ever, and turns and clients that panic, break the test.
    pub(crate) deadlocks: bool,
    pub(crate) panics: bool,
}

impl Default for Reach {
    fn default() -> Self {
        let faults = Budget::default();
        Self { steps: STEPS, patience: PATIENCE, nodes: 1, faults, in_time: false, deadlocks: true, panics: true }
    }
}

/// How often what may go wrong in one schedule.
#[derive(Clone, PartialEq, Eq, Default, Debug)]
pub(crate) struct Budget {
    each: Vec<(Fault, u32)>,
    /// All together.
    all: u32,
    /// What may still go wrong.
    left: Vec<Fault>,
}

impl Budget {
    /// Reads `crash, lose:2`, or `all`.
    pub(crate) fn parse(text: &str) -> Result<Self, String> {
        let mut each: Vec<(Fault, u32)> = Vec::new();
        for part in text.split(',').map(str::trim).filter(|part| !part.is_empty()) {
            let (name, count) = match part.split_once(':') {
                Some((name, count)) => {
                    let count = count.trim();
                    let known = count.parse().ok().filter(|count| *count > 0);
                    (name.trim(), known.ok_or_else(|| format!("{count:?} is no count: write `{name}:2`"))?)
                }
                None => (part, 1),
            };
            let known = |(known, _): &&(&str, Fault)| *known == name;
            match FAULTS.iter().find(known) {
                _ if name == "all" => each.extend(FAULTS.iter().map(|(_, fault)| (*fault, count))),
                Some((_, fault)) => each.push((*fault, count)),
                None => return Err(unknown(name)),
            }
        }
        let most = each.iter().map(|(_, count)| *count).max().unwrap_or(0);
        let mut budget = Self { all: if each.is_empty() { 0 } else { most.max(TOGETHER) }, each, left: Vec::new() };
        budget.see_what_is_left();
        Ok(budget)
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.all == 0
    }

    /// What may still go wrong.
    pub(crate) fn left(&self) -> &[Fault] {
        &self.left
    }

    fn see_what_is_left(&mut self) {
        let some = self.each.iter().filter(|(_, count)| *count > 0 && self.all > 0);
        self.left = some.map(|(fault, _)| *fault).collect();
    }

    /// Takes in that something has gone wrong.
    pub(crate) fn spend(&mut self, fault: Fault) {
        self.all = self.all.saturating_sub(1);
        let of_kind = self.each.iter_mut().filter(|(known, _)| *known == fault);
        of_kind.for_each(|(_, count)| *count = count.saturating_sub(1));
        self.see_what_is_left();
    }
}

/// Whether a step of this name is something that goes wrong.
pub(crate) fn is_fault(step: &str) -> bool {
    let name = step.split(' ').next().unwrap_or_default();
    FAULTS.iter().any(|(known, _)| *known == name)
}

fn unknown(name: &str) -> String {
    let known: Vec<&str> = FAULTS.iter().map(|(name, _)| *name).collect();
    let known = known.join(", ");
    format!("{name:?} is no fault: write some of {known}, as in \"crash, lose:2\", or \"all\"")
}

const FAULTS: [(&str, Fault); 9] = [
    ("crash", Fault::Crash),
    ("lose", Fault::Lose),
    ("late", Fault::Late),
    ("idle", Fault::Idle),
    ("store", Fault::Store),
    ("pause", Fault::Pause),
    ("move", Fault::Move),
    ("repeat", Fault::Repeat),
    ("skew", Fault::Skew),
];
/// Faults of one schedule, unless there are more of one kind.
const TOGETHER: u32 = 2;
const STEPS: usize = 10_000;
const PATIENCE: usize = 5_000;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn faults_have_budgets_of_their_own_and_one_together() {
        let mut budget = Budget::parse("crash, lose:3").expect("it is well formed");
        assert_eq!(budget.left(), [Fault::Crash, Fault::Lose]);
        budget.spend(Fault::Crash);
        assert_eq!(budget.left(), [Fault::Lose]);
        budget.spend(Fault::Lose);
        budget.spend(Fault::Lose);
        assert!(budget.left().is_empty(), "three together");
        let mut all = Budget::parse("all").expect("it is well formed");
        assert_eq!(all.left().len(), FAULTS.len());
        all.spend(Fault::Late);
        all.spend(Fault::Idle);
        assert!(all.left().is_empty(), "two together");
        assert!(Budget::parse("").is_ok_and(|none| none.is_empty()));
    }

    #[test]
    fn what_is_no_fault_is_refused_by_name() {
        assert!(Budget::parse("crush").is_err_and(|error| error.contains("some of crash, lose")));
        assert!(Budget::parse("lose:much").is_err_and(|error| error.contains("no count")));
    }
}
