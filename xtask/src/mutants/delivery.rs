//! Mutants of the room `delivery`.

use super::{Mutant, mutant};

pub(super) const MUTANTS: &[Mutant] = &[
    mutant(
        "receipts do not rise with the sender's floor",
        "receiver.rs",
        "channel.receipts.raise(batch.floor);",
        "if !mutated!() { channel.receipts.raise(batch.floor); }",
    ),
    mutant(
        "messages beyond the window are taken",
        "receiver.rs",
        "if left == 0 || number > channel.receipts.low + self.config.window {",
        "if left == 0 || number > channel.receipts.low + self.config.window && !mutated!() {",
    ),
    mutant(
        "receipts above a gap outlive their sender",
        "outgoing.rs",
        "self.above.clear();\n            self.next",
        "if !mutated!() { self.above.clear(); }\n            self.next",
    ),
    mutant(
        "a refusal of an earlier round sends all again",
        "outgoing.rs",
        "if reply.refused && reply.round == self.round",
        "if reply.refused && (reply.round == self.round || mutated!())",
    ),
    mutant(
        "a parked message that fails again is let go",
        "attempts.rs",
        "(None, Source::Parked(slot)) => Effect::Parked(slot, error),",
        "(None, Source::Parked(slot)) if !mutated!() => Effect::Parked(slot, error),",
    ),
    mutant(
        "a turn's messages are lost when it is undone",
        "turns.rs",
        "for item in undone.into_iter().rev() {\n            mailbox.put_back(item);",
        "for item in undone.into_iter().rev() {\n            if mutated!() { continue; }\n            mailbox.put_back(item);",
    ),
    mutant(
        "a refused commit is tried again whole",
        "committing.rs",
        "(self.suspects, self.split) = (count, (count / 2).max(1));",
        "(self.suspects, self.split) = if mutated!() { (0, 0) } else { (count, (count / 2).max(1)) };",
    ),
    mutant(
        "a halted actor takes messages of its old life",
        "partition.rs",
        "Some(known) if known.birth == birth && known.halted => Verdict::Drop(DeadLetter::Halted),",
        "Some(known) if known.birth == birth && known.halted && !mutated!() => Verdict::Drop(DeadLetter::Halted),",
    ),
    mutant(
        "a receipt does not need its number",
        "committing.rs",
        "receipts.is_none_or(|receipts| receipts.low >= number) ||",
        "receipts.is_none_or(|receipts| receipts.low >= number || mutated!()) ||",
    ),
    mutant(
        "an actor's message has no number in its turn",
        "turns.rs",
        "let number = if let Source::Counted { number, .. } = item.source { number } else { 0 };",
        "let number = if let Source::Counted { number, .. } = item.source && !mutated!() { number } else { 0 };",
    ),
    mutant(
        "timers are not committed",
        "committing.rs",
        "draft.timers.insert(place, Some(timer.clone()));",
        "if !mutated!() { draft.timers.insert(place, Some(timer.clone())); }",
    ),
    mutant(
        "a call that runs is made again",
        "partition.rs",
        "KnownCall::Running => return,",
        "KnownCall::Running if mutated!() => return self.accept(now, Source::Uncounted, envelope, out),\n            KnownCall::Running => return,",
    ),
    mutant(
        "what was queued is lost in recovery",
        "partition.rs",
        "for actor in recovered.queued {",
        "for actor in recovered.queued.into_iter().filter(|_| !mutated!()) {",
    ),
    mutant(
        "what a halt drops stays queued",
        "committing.rs",
        "draft.queues.extend(dropped.iter()",
        "draft.queues.extend(dropped.iter().filter(|_| !mutated!())",
    ),
    mutant(
        "a message that waits again forgets its attempts",
        "mailbox.rs",
        "Source::Queue(slot) => _ = self.failures.insert(slot, (item.attempts, item.deaths)),",
        "Source::Queue(slot) => _ = self.failures.insert(slot, if mutated!() { (0, 0) } else { (item.attempts, item.deaths) }),",
    ),
    mutant(
        "who was refused for want of room hears nothing when there is room",
        "receiver.rs",
        "self.channels.get_mut(&from).expect(\"the key was just listed\").starved = false;\n                self.reply",
        "self.channels.get_mut(&from).expect(\"the key was just listed\").starved = false;\n                if mutated!() { continue; }\n                self.reply",
    ),
    mutant(
        "a new round begins after what was acknowledged alone",
        "outgoing.rs",
        "self.next = self.next.min(self.taken.max(self.acked + 1));",
        "self.next = if mutated!() { self.acked + 1 } else { self.next.min(self.taken.max(self.acked + 1)) };",
    ),
    mutant(
        "who exists is created again",
        "partition.rs",
        "Some(known) if envelope.creates && !known.halted => Verdict::Drop(DeadLetter::Exists),",
        "Some(known) if envelope.creates && !known.halted && !mutated!() => Verdict::Drop(DeadLetter::Exists),",
    ),
    mutant(
        "an ask is answered before what was sent before it",
        "partition.rs",
        "number == 0 || (receipts.life == life && receipts.low >= number)",
        "number == 0 || mutated!() || (receipts.life == life && receipts.low >= number)",
    ),
    mutant(
        "a single message is taken without room",
        "partition.rs",
        "Wire::Single(envelope) if self.room() == 0 ||",
        "Wire::Single(envelope) if self.room() == 0 && !mutated!() ||",
    ),
    mutant(
        "a refused commit forgets its timers",
        "committing.rs",
        "self.ready.push_front(ready);\n                }\n                (self",
        "if !(mutated!() && matches!(ready.item.source, Source::Timer { .. })) { self.ready.push_front(ready); }\n                }\n                (self",
    ),
    mutant(
        "receipts of a new life begin at none",
        "receiver.rs",
        "let receipts = Receipts { life: batch.life, low: batch.floor, above: BTreeSet::new() };",
        "let receipts = Receipts { life: batch.life, low: if mutated!() { 0 } else { batch.floor }, above: BTreeSet::new() };",
    )
    .survives("what the sender knows to be acknowledged is taken in right after, and nothing between looks"),
    mutant(
        "a new round keeps what the old one had taken",
        "outgoing.rs",
        "(self.taken, self.limit) = (0, 0);",
        "if !mutated!() { (self.taken, self.limit) = (0, 0); }",
    ),
    mutant(
        "one who calls fills all the room for answers",
        "answers.rs",
        "(held >= left).then_some",
        "(held >= left && !mutated!()).then_some",
    ),
    mutant(
        "who has called holds what is long gone",
        "answers.rs",
        "self.holders.let_go(*holder, *bytes);",
        "if !mutated!() { self.holders.let_go(*holder, *bytes); }",
    ),
    mutant(
        "a new owner does not know whose the answers are that are in bundles",
        "answers.rs",
        "bundle.holders.iter().copied()",
        "bundle.holders.iter().copied().filter(|_| !mutated!())",
    ),
    mutant(
        "a bundle does not say whose its answers are",
        "answers.rs",
        "let holders = self.open_holders.all().collect();",
        "let holders = self.open_holders.all().filter(|_| !mutated!()).collect();",
    ),
    mutant(
        "an attempt of a process that is gone counts no death",
        "attempts.rs",
        "let died = attempt.process.is_some_and(|other| other != *process);",
        "let died = attempt.process.is_some_and(|other| other != *process && !mutated!());",
    ),
    mutant(
        "suspects never run alone",
        "attempts.rs",
        "let alone = item.deaths >= TOGETHER_MAX ||",
        "let alone = !mutated!() && item.deaths >= TOGETHER_MAX || !mutated!() &&",
    ),
    mutant(
        "a message that was sent to an earlier owner is no suspect",
        "partition.rs",
        "number <= sent_before)",
        "number <= sent_before && !mutated!())",
    ),
    mutant(
        "the turn of a suspect begins before its attempt is recorded",
        "attempts.rs",
        "if is_written {",
        "if is_written || mutated!() {",
    ),
];
