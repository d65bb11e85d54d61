//! Mutants of the room `gsi`.

use super::{Mutant, mutant};

pub(super) const MUTANTS: &[Mutant] = &[
    mutant(
        "a loser wins",
        "entry.rs",
        "inquiry.conclusion(self.state == State::Loser, self.config.checks.fail)",
        "inquiry.conclusion(self.state == State::Loser && !mutated!(), self.config.checks.fail)",
    ),
    mutant(
        "a new configuration leaves a round of the old one going",
        "entry.rs",
        "self.configuration = configuration;\n        if let Some(inquiry) = self.inquiry.take() {",
        "self.configuration = configuration;\n        if let Some(inquiry) = self.inquiry.take_if(|_| !mutated!()) {",
    ),
    mutant(
        "answers of an earlier configuration count",
        "question.rs",
        "let agreed = listed && epoch == self.configuration.epoch",
        "let agreed = listed && (epoch == self.configuration.epoch || mutated!() && epoch < self.configuration.epoch)",
    ),
    mutant(
        "a doubtful instance owns",
        "entry.rs",
        "self.state = if owned { State::Owned(instance) } else { State::Doubtful(instance) };",
        "self.state = if owned || mutated!() { State::Owned(instance) } else { State::Doubtful(instance) };",
    ),
    mutant(
        "a lost refusal is not told again",
        "healing.rs",
        "Some((last, true)) if *last == number => self.send",
        "Some((last, true)) if *last == number && !mutated!() => self.send",
    ),
    mutant(
        "an instance that does not own takes calls of another cluster",
        "healing.rs",
        "_ if self.state != State::Owned(to.round) =>",
        "_ if self.state != State::Owned(to.round) && !mutated!() =>",
    ),
    mutant(
        "a call for another round's instance is carried out",
        "carry.rs",
        "let here = self.state == State::Owned(to.round) && to.cluster == self.me;",
        "let here = (self.state == State::Owned(to.round) || mutated!() && matches!(self.state, State::Owned(_))) && to.cluster == self.me;",
    ),
    mutant(
        "a new round has the old one's number",
        "entry.rs",
        "self.last.0 += 1;\n        self.again_at = None;",
        "self.last.0 += u64::from(!mutated!());\n        self.again_at = None;",
    ),
    mutant(
        "a round is won while a home's lease is held",
        "entry.rs",
        "inquiry.is_remembered() && !self.has_lease()",
        "inquiry.is_remembered() && (!self.has_lease() || mutated!())",
    ),
    mutant(
        "a round that is won is not checked to be remembered",
        "entry.rs",
        "conclusion == Conclusion::Won && inquiry.is_remembered()",
        "conclusion == Conclusion::Won && (inquiry.is_remembered() || mutated!())",
    ),
    mutant(
        "a configuration is succeeded before all have seen it",
        "configuration.rs",
        "counts(cluster) && said(cluster).epoch < self.epoch)",
        "counts(cluster) && said(cluster).epoch < self.epoch && !mutated!())",
    ),
    mutant(
        "a draining cluster goes before it is empty",
        "configuration.rs",
        "Some(Standing::Draining | Standing::Lost) if said(&cluster).empty => {}",
        "Some(Standing::Draining | Standing::Lost) if said(&cluster).empty || mutated!() => {}",
    ),
    mutant(
        "an asker's earlier rounds are not fenced",
        "question.rs",
        "self.memory.passed(from, *last);",
        "if !mutated!() { self.memory.passed(from, *last); }",
    ),
    mutant(
        "clocks of clusters are taken to run alike",
        "memory.rs",
        ">= time + time / DRIFT_PART",
        ">= if mutated!() { time } else { time + time / DRIFT_PART }",
    ),
    mutant(
        "a call that a question carried is carried out again with the question's copy",
        "question.rs",
        "Seen::Before => false,",
        "Seen::Before => mutated!() && agreed && self.memory.is_whole(),",
    ),
    mutant(
        "a call that may have run is told as refused",
        "carry.rs",
        "out.push(Action::End(id, End::Unknown));\n            unanswered",
        "out.push(Action::End(id, if mutated!() { End::Refused(Refusal::Unreachable) } else { End::Unknown }));\n            unanswered",
    ),
    mutant(
        "a home's lease is granted by who does not hold it",
        "question.rs",
        "let leases = leased && self.has_lease();",
        "let leases = leased && (self.has_lease() || mutated!());",
    ),
    mutant(
        "a leaving cluster keeps what it owns",
        "entry.rs",
        "} else if self.is_away() && matches!(self.state, State::Owned(_)) {",
        "} else if !mutated!() && self.is_away() && matches!(self.state, State::Owned(_)) {",
    ),
    mutant(
        "an instance that hands over goes on",
        "healing.rs",
        "self.suspended = true;\n                self.last.0 += 1;",
        "self.suspended = !mutated!();\n                self.last.0 += 1;",
    ),
    mutant(
        "a cluster in recovery says that an actor is not there",
        "carry.rs",
        "} else {\n            self.send(from, Body::NotHere",
        "} else if !mutated!() || !self.is_recovering() {\n            self.send(from, Body::NotHere",
    ),
    mutant(
        "who did not answer a round is not known to be silent",
        "entry.rs",
        "if !inquiry.is_settled() {\n            self.silent.extend",
        "if !inquiry.is_settled() && !mutated!() {\n            self.silent.extend",
    ),
    mutant(
        "a round is won by a cluster that leaves",
        "entry.rs",
        "Conclusion::Won if self.is_away() || self.is_barred() => self.start_over(now, out),",
        "Conclusion::Won if (self.is_away() || self.is_barred()) && !mutated!() => self.start_over(now, out),",
    ),
    mutant(
        "a lease of an earlier configuration counts",
        "home.rs",
        "self.leased == Some(self.configuration.epoch) && self.home()",
        "(self.leased == Some(self.configuration.epoch) || mutated!() && self.leased.is_some()) && self.home()",
    ),
    mutant(
        "a call that may have run is told as refused when its round ends",
        "entry.rs",
        "let end = if declined { End::Refused(Refusal::Unreachable) } else { End::Unknown };",
        "let end = if declined || mutated!() { End::Refused(Refusal::Unreachable) } else { End::Unknown };",
    ),
    mutant(
        "a call that may have run at a lost owner is made again",
        "carry.rs",
        "for (id, (call, _)) in self.away.extract_if(.., |_, at| there(at)) {\n            if call.repeatable {",
        "for (id, (call, _)) in self.away.extract_if(.., |_, at| there(at)) {\n            if call.repeatable || mutated!() {",
    ),
    mutant(
        "an instance that stays does not reload",
        "healing.rs",
        "out.push(Action::Reload(instance));",
        "if !mutated!() { out.push(Action::Reload(instance)); }",
    ),
    mutant(
        "no owner hears of an instance that ended in doubt",
        "healing.rs",
        "if in_doubt && self.config.checks.reload {",
        "if in_doubt && self.config.checks.reload && !mutated!() {",
    ),
    mutant(
        "calls overtake a hand-over",
        "healing.rs",
        "self.handing.is_some() && self.config.checks.reload\n",
        "self.handing.is_some() && self.config.checks.reload && !mutated!()\n",
    ),
];
