//! Mutants of the room `bcas`.

use super::{Mutant, mutant};

pub(super) const MUTANTS: &[Mutant] = &[
    mutant(
        "two attempts of a session have one salt",
        "worker.rs",
        "self.attempts += 1;\n        record.salt",
        "self.attempts += u64::from(!mutated!());\n        record.salt",
    ),
    mutant(
        "a read that is older than what is confirmed is adopted",
        "worker.rs",
        "if record.version >= self.confirmed.version {\n                    self.adopt(record, Some(etag), self.config.checks.trim, out);",
        "if record.version >= self.confirmed.version || mutated!() {\n                    self.adopt(record, Some(etag), self.config.checks.trim, out);",
    ),
    mutant(
        "a record as old as what is confirmed is adopted as another's",
        "worker.rs",
        "if record.version > self.confirmed.version {\n                    let trims",
        "if record.version > self.confirmed.version || mutated!() {\n                    let trims",
    ),
    mutant(
        "a batch of a fenced session is written",
        "worker.rs",
        "self.fenced.contains(&batch.session) {\n            return;",
        "!mutated!() && self.fenced.contains(&batch.session) {\n            return;",
    ),
    mutant(
        "a delegated batch is applied out of its sequence",
        "worker.rs",
        "if self.base.is_some() && self.config.checks.sequence {\n            let confirmed",
        "if self.base.is_some() && self.config.checks.sequence && !mutated!() {\n            let confirmed",
    ),
    mutant(
        "batches that are applied stay to be written",
        "worker.rs",
        "self.foreign.retain(|session, (batch, _)| confirmed.applied(*session) < batch.last());",
        "if !mutated!() { self.foreign.retain(|session, (batch, _)| confirmed.applied(*session) < batch.last()); }",
    )
    .survives("what is applied goes again before anything is written, and nothing else looks at what is to be written"),
    mutant(
        "a refresh is done before what was enqueued is confirmed",
        "worker.rs",
        "if self.settled >= at {\n                out.push(Action::Done(waiter));",
        "if self.settled >= at || mutated!() {\n                out.push(Action::Done(waiter));",
    ),
    mutant(
        "after a conflict nobody reads again for those who refresh",
        "worker.rs",
        "self.refreshing.extend(served);\n                self.reread = true;",
        "self.refreshing.extend(served);\n                self.reread = !(mutated!() && matches!(written, Written::Conflict));",
    ),
    mutant(
        "a conflict's record is adopted though it is older",
        "worker.rs",
        "if record.version >= self.confirmed.version {\n                    self.adopt(record, Some(etag), true, out);",
        "if record.version >= self.confirmed.version || mutated!() {\n                    self.adopt(record, Some(etag), true, out);",
    ),
    mutant(
        "clearing does not begin a new incarnation",
        "record.rs",
        "incarnation: self.version.incarnation + 1, number: 0",
        "incarnation: self.version.incarnation + u64::from(!mutated!()), number: 0",
    ),
    mutant(
        "a rejected update changes the state",
        "record.rs",
        "Err(error) => {\n                        self.state.reject();",
        "Err(error) => {\n                        if mutated!() { self.state = next; }\n                        self.state.reject();",
    ),
    mutant(
        "what a delegated update came to is told from its own attempt",
        "worker.rs",
        "pending.tried.filter(|_| !pending.delegated);",
        "pending.tried.filter(|_| !pending.delegated || mutated!());",
    ),
    mutant(
        "nobody reads after an access whose end is unknown",
        "worker.rs",
        "self.access = None;\n            self.conflicts = 0;\n            self.reread = true;",
        "self.access = None;\n            self.conflicts = 0;\n            self.reread = !mutated!();",
    ),
    mutant(
        "an instance drops its own session from the record",
        "worker.rs",
        "retain(|session, _| *session == self.session || !fenced(session));",
        "retain(|session, _| *session == self.session && !mutated!() || !fenced(session));",
    ),
    mutant(
        "fencing a session forgets what it has applied",
        "worker.rs",
        "Event::Fenced(session) => _ = self.fenced.insert(session),",
        "Event::Fenced(session) => { self.fenced.insert(session); if mutated!() { self.confirmed.sessions.remove(&session); } }",
    ),
];
