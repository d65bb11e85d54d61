//! Forming commits, and what follows from their outcomes.

use std::collections::{BTreeMap, BTreeSet};

use super::answers;
use super::attempts::AttemptChanges;
use super::mailbox::{Effect, Item, Ready};
use super::timers::{Place, name_of};
use super::{
    Action, Answer, Birth, Bundle, Commit, CommitId, DeadLetter, Deferred, Delivery, Destination, Envelope, Lane,
    Leaves, Life, Parked, Partition, PartitionId, Presence, Sealed, Slot, Source, Timer, TurnId, Wire, Write,
};
use crate::time::Timestamp;

/// Numbers by the sending partition and its life.
type Numbers = BTreeMap<(PartitionId, Life), BTreeSet<u64>>;

/// The commit that is under way.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub(super) struct Flight<A, M> {
    pub(super) id: CommitId,
    batch: Vec<Ready<A, M>>,
    /// Turns of suspects that begin when it is applied.
    begins: Vec<TurnId>,
    /// Questions that came before it began.
    questions: BTreeSet<(PartitionId, Birth)>,
    /// True if recorded answers were to go when it began.
    is_pruning: bool,
    drafts: Draft<A, M>,
}

/// What a commit writes, nothing twice.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
struct Draft<A, M> {
    appends: Vec<(Lane, u64, Sealed<A, M>)>,
    /// The last number of each lane in `appends`.
    lasts: BTreeMap<Lane, u64>,
    counted: Numbers,
    loose: Numbers,
    presences: BTreeMap<A, Option<Presence>>,
    /// What is put into, or with `None` removed from, actors' own queues.
    queues: BTreeMap<(Slot, A), Option<Sealed<A, M>>>,
    parked: BTreeMap<Slot, Option<Parked<A, M>>>,
    /// What is put among the timers, or with `None` removed there.
    timers: BTreeMap<Place, Option<Timer<A, M>>>,
    /// Where timers lie that have names, as far as this commit changes that.
    named: BTreeMap<(A, String), Option<Place>>,
    answers: Vec<answers::Draft<M>>,
    bundle: Option<(u64, Bundle)>,
    /// Answers of an earlier program that go.
    outdated: Vec<String>,
    attempts: AttemptChanges,
    /// What leaves without a number.
    singles: Vec<(PartitionId, Sealed<A, M>)>,
}

impl<A, M> Draft<A, M> {
    fn new() -> Self {
        Self {
            appends: Vec::new(),
            lasts: BTreeMap::new(),
            counted: BTreeMap::new(),
            loose: BTreeMap::new(),
            presences: BTreeMap::new(),
            queues: BTreeMap::new(),
            parked: BTreeMap::new(),
            timers: BTreeMap::new(),
            named: BTreeMap::new(),
            answers: Vec::new(),
            bundle: None,
            outdated: Vec::new(),
            attempts: AttemptChanges::new(),
            singles: Vec::new(),
        }
    }
}

impl<A: Clone + Ord, M: Clone> Partition<A, M> {
    /// Commits what is ready, unless a commit is under way: what becomes ready meanwhile shares the next one.
    pub(super) fn advance(&mut self, now: Timestamp, out: &mut Vec<Action<A, M>>) {
        if self.stopped || self.flight.is_some() {
            return;
        }
        let is_idle = self.ready.is_empty() && !self.timers.is_due();
        let has_work = self.answers.has_work(now) || self.attempts.has_work() || !self.questions.is_empty();
        if is_idle && !has_work {
            return;
        }
        if !self.config.checks.commit_closes && self.sender.backlog().any(|(_, backlog, _)| backlog > 0) {
            return;
        }
        #[cfg(debug_assertions)]
        self.check_invariants();
        // Of what was refused, turns may have been undone since.
        self.suspects = self.suspects.min(self.ready.len());
        let most = if self.suspects > 0 { self.split.min(self.suspects) } else { self.config.turns_max };
        let mut draft = Draft::new();
        // What was refused is looked for alone.
        draft.bundle = self.answers.bundle(now).filter(|_| self.suspects == 0);
        let (mut batch, mut operations, mut bytes) = (Vec::new(), usize::from(draft.bundle.is_some()), 0);
        while let Some(next) = self.ready.front().filter(|_| batch.len() < most) {
            let (more_operations, more_bytes) = size(next);
            let fits = operations + more_operations <= self.config.operations_max
                && bytes + more_bytes <= self.config.bytes_max;
            if !fits && !batch.is_empty() {
                break;
            }
            (operations, bytes) = (operations + more_operations, bytes + more_bytes);
            self.draft(now, next, &mut draft);
            batch.extend(self.ready.pop_front());
        }
        while self.suspects == 0
            && batch.len() < most
            && (batch.is_empty() || operations + OPERATIONS_OF_A_TIMER <= self.config.operations_max)
            && let Some(due) = self.timers.take(|place| matches!(draft.timers.get(place), Some(None)))
        {
            operations += OPERATIONS_OF_A_TIMER;
            self.draft(now, &due, &mut draft);
            batch.push(due);
        }
        let mut begins = Vec::new();
        if self.suspects == 0 {
            let room = self.config.operations_max.saturating_sub(operations);
            begins = self.draft_attempts(room, &mut draft.attempts);
            let room = room.saturating_sub(draft.attempts.len());
            draft.outdated = self.answers.outdated(now, room.min(OUTDATED_MAX));
        }
        let is_empty = draft.bundle.is_none() && draft.outdated.is_empty() && draft.attempts.is_empty();
        let is_pruning = self.answers.is_prunable(now);
        if batch.is_empty() && is_empty && self.questions.is_empty() && !is_pruning {
            return;
        }
        self.draft_tombstones(&mut draft);
        self.commit_serial += 1;
        let id = CommitId(self.commit_serial);
        let turns = batch.iter().filter_map(|ready| ready.turn).collect();
        out.push(Action::Commit(Commit { id, epoch: self.owner.epoch, turns, writes: self.writes(&draft) }));
        if !self.config.checks.send_after_commit {
            self.sender.committed(now, std::mem::take(&mut draft.appends), out);
        }
        // A commit holds the fence. Only once one is applied that began after a question came, or after an answer's time was over, does
        // an owner know that no later one has committed more, or set the time otherwise.
        let questions = std::mem::take(&mut self.questions);
        self.flight = Some(Flight { id, batch, begins, questions, is_pruning, drafts: draft });
    }

    /// What holds when no commit is under way; looked at before each commit, as it looks at every message.
    #[cfg(debug_assertions)]
    fn check_invariants(&self) {
        let counts = |source: &Source| usize::from(!matches!(source, Source::Queue(_)));
        let mut queued = self.recalls.len();
        queued += self.turns.values().map(|item| counts(&item.source)).sum::<usize>();
        queued += self.mailboxes.values().map(|mailbox| mailbox.queue.len()).sum::<usize>();
        let mut uncommitted: BTreeMap<&A, usize> = BTreeMap::new();
        for ready in &self.ready {
            if let Some(actor) = ready.actor() {
                queued += counts(&ready.item.source);
                *uncommitted.entry(actor).or_default() += 1;
            }
        }
        assert_eq!(queued, self.queued, "the messages in memory are not as many as were counted");
        for (actor, mailbox) in &self.mailboxes {
            let ended = uncommitted.remove(actor).unwrap_or_default();
            assert_eq!(mailbox.uncommitted, ended, "turns have ended that will not be committed, or not as many");
            let runs = mailbox.running.and_then(|turn| self.turns.get(&turn));
            assert_eq!(
                mailbox.running.is_some(),
                runs.is_some_and(|item| item.envelope.to == *actor),
                "a turn is lost"
            );
            let reads = mailbox.records == super::mailbox::Known::Reading;
            assert!(mailbox.running.is_none() || !reads, "a turn runs before its actor's records are read");
        }
        assert!(uncommitted.is_empty(), "a turn has ended of an actor that is forgotten");
    }

    /// Takes in that a commit is applied: now its messages leave, its receipts are acknowledged, its calls answered.
    pub(super) fn committed(&mut self, now: Timestamp, id: CommitId, out: &mut Vec<Action<A, M>>) {
        let Some(flight) = self.flight.take_if(|flight| flight.id == id) else { return };
        let Flight { batch, begins, questions, is_pruning, drafts: draft, .. } = flight;
        self.suspects -= self.suspects.min(batch.len());
        for (actor, presence) in &draft.presences {
            match presence.filter(|presence| presence.halted) {
                Some(tombstone) => _ = self.tombstones.insert(actor.clone(), tombstone),
                None => _ = self.tombstones.remove(actor),
            }
        }
        self.answers.committed(draft.bundle, draft.answers, &draft.outdated);
        self.timers.committed(draft.timers);
        self.lot.committed(draft.parked);
        self.attempts_committed(begins, draft.attempts, out);
        self.sender.committed(now, draft.appends, out);
        for (from, birth) in questions {
            self.tell_standing(from, birth, out);
        }
        if is_pruning {
            self.prune(now, out);
        }
        out.extend(draft.singles.into_iter().map(|(to, envelope)| Action::Send { to, wire: Wire::Single(envelope) }));
        let mut actors = BTreeSet::new();
        for ready in batch {
            let Some(actor) = ready.actor().cloned() else {
                self.left(now, ready.item, &ready.effect, out);
                continue;
            };
            if !matches!(ready.item.source, Source::Queue(_)) {
                self.unqueue();
            }
            let mailbox = self.wake(&actor);
            assert!(mailbox.uncommitted > 0, "a turn is committed that has not ended");
            mailbox.uncommitted -= 1;
            actors.insert(actor);
            self.tell(ready, out);
        }
        let room = self.room();
        self.receiver.committed(&draft.counted, &draft.loose, room, out);
        for actor in &actors {
            self.dispatch(now, actor, out);
        }
        self.ask_passed(now, out);
    }

    /// Lets a bundle of answers go whose time is over.
    pub(super) fn prune(&mut self, now: Timestamp, out: &mut Vec<Action<A, M>>) {
        let pruned = self.answers.prune(now);
        out.extend(pruned.map(|(answers, bundles)| Action::Prune { answers, bundles }));
    }

    /// Takes in that a commit was refused for a reason in itself: it is tried in halves, down to the one message that is to
    /// blame (R6).
    pub(super) fn aborted(&mut self, now: Timestamp, id: CommitId, error: String, out: &mut Vec<Action<A, M>>) {
        let Some(flight) = self.flight.take_if(|flight| flight.id == id) else { return };
        let Flight { mut batch, begins, is_pruning, drafts: draft, .. } = flight;
        // What the answers want for themselves may be to blame: the messages are tried without it.
        let is_for_answers = is_pruning && batch.is_empty();
        let is_plain = draft.bundle.is_none() && draft.outdated.is_empty() && !is_for_answers;
        if !is_plain {
            self.answers.refused(now);
        }
        let alone = is_plain && begins.is_empty();
        self.attempts_refused(now, begins, is_plain && batch.is_empty());
        let count = batch.len();
        match batch.pop() {
            Some(only) if count == 1 && alone => {
                self.suspects = self.suspects.saturating_sub(1);
                self.refused(now, only, error, out);
            }
            last => {
                for ready in batch.into_iter().chain(last).rev() {
                    self.ready.push_front(ready);
                }
                (self.suspects, self.split) = (count, (count / 2).max(1));
            }
        }
    }

    fn draft(&self, now: Timestamp, ready: &Ready<A, M>, draft: &mut Draft<A, M>) {
        let actor = &ready.item.envelope.to;
        match ready.item.source {
            Source::Counted { from, life, number } => {
                draft.counted.entry((from, life)).or_default().insert(number);
            }
            Source::Loose { from, life, number } => {
                draft.loose.entry((from, life)).or_default().insert(number);
            }
            Source::Queue(slot) => _ = draft.queues.insert((slot, actor.clone()), None),
            Source::Parked(slot) => _ = draft.parked.insert(slot, None),
            Source::Timer { due, slot } => _ = draft.timers.insert((due, slot), None),
            Source::Uncounted | Source::Output { .. } => {}
        }
        let call = ready.item.envelope.call.as_ref().filter(|call| call.recorded);
        self.draft_outcome(&ready.item.source, &mut draft.attempts);
        match &ready.effect {
            Effect::Done { effects, presence, dropped } => {
                for outgoing in &effects.sends {
                    self.draft_send(outgoing.to, outgoing.delivery, &outgoing.envelope, draft);
                }
                for name in &effects.cancels {
                    self.draft_name((actor.clone(), name.clone()), None, draft);
                }
                for timer in &effects.timers {
                    let place = (timer.due, timer.slot);
                    name_of(timer).into_iter().for_each(|name| self.draft_name(name, Some(place), draft));
                    draft.timers.insert(place, Some(timer.clone()));
                }
                if let Some(presence) = presence {
                    draft.presences.insert(actor.clone(), Some(*presence));
                }
                draft.queues.extend(dropped.iter().map(|(slot, _)| ((*slot, actor.clone()), None)));
                for (slot, _) in dropped {
                    self.draft_outcome(&Source::Queue(*slot), &mut draft.attempts);
                }
                let recorded =
                    call.map(|call| self.answers.draft(now, call, effects.answer.clone(), effects.answer_bytes));
                draft.answers.extend(recorded);
            }
            Effect::Deferred(slot) => {
                draft.queues.insert((*slot, actor.clone()), Some(ready.item.envelope.clone()));
            }
            Effect::Parked(slot, error) => {
                let Item { envelope, leaves, .. } = ready.item.clone();
                draft.parked.insert(*slot, Some(Parked { slot: *slot, envelope, error: error.clone(), leaves }));
            }
            Effect::Sent => {
                if let Some(Leaves::Message { to, delivery }) = ready.item.leaves {
                    self.draft_send(to, delivery, &ready.item.envelope, draft);
                }
            }
            // A call that came to nothing may be made again.
            Effect::Discarded | Effect::Failed(_) | Effect::Dropped(_) => {}
        }
    }

    /// Lets a name be that of the timer at `place`, or of none: the one that has it is cancelled.
    fn draft_name(&self, name: (A, String), place: Option<Place>, draft: &mut Draft<A, M>) {
        let before = draft.named.get(&name).copied().unwrap_or_else(|| self.timers.named(&name));
        if let Some(before) = before {
            draft.timers.insert(before, None);
        }
        draft.named.insert(name, place);
    }

    fn draft_send(&self, to: Destination, delivery: Delivery, envelope: &Sealed<A, M>, draft: &mut Draft<A, M>) {
        let lane = match (to, delivery) {
            (Destination::Outside(plug), _) => Lane::Outside(plug),
            (Destination::Partition(to), Delivery::ExactlyOnce) => Lane::Counted(to),
            (Destination::Partition(to), Delivery::AtLeastOnce) => Lane::Loose(to),
            (Destination::Partition(to), Delivery::BestEffort) => return draft.singles.push((to, envelope.clone())),
        };
        let last = draft.lasts.entry(lane).or_insert_with(|| self.sender.committed_in(lane));
        *last += 1;
        let number = *last;
        draft.appends.push((lane, number, envelope.clone()));
    }

    /// Decides which tombstones are needed: none once the creator's lane has passed the creation (R4).
    fn draft_tombstones(&self, draft: &mut Draft<A, M>) {
        let passed = |presence: &Presence, draft: &Draft<A, M>| {
            let Presence { birth, number, .. } = *presence;
            let numbers = draft.counted.get(&(birth.by, birth.life)).cloned().unwrap_or_default();
            let receipts = self.receiver.with(birth.by, birth.life, &numbers);
            receipts.is_none_or(|receipts| receipts.low >= number) || !self.config.checks.counted_creation
        };
        let halted = |presence: &Presence| presence.halted;
        let old: Vec<A> = self
            .tombstones
            .iter()
            .filter(|(actor, presence)| !draft.presences.contains_key(actor) && passed(presence, draft))
            .map(|(actor, _)| actor.clone())
            .collect();
        let new: Vec<A> = draft
            .presences
            .iter()
            .filter(|(_, presence)| presence.as_ref().is_some_and(|p| halted(p) && passed(p, draft)))
            .map(|(actor, _)| actor.clone())
            .collect();
        draft.presences.extend(old.into_iter().chain(new).map(|actor| (actor, None)));
    }

    fn writes(&self, draft: &Draft<A, M>) -> Vec<Write<A, M>> {
        let mut writes = Vec::new();
        writes.extend(draft.appends.iter().map(|(lane, number, envelope)| Write::Append {
            lane: *lane,
            number: *number,
            envelope: envelope.clone(),
        }));
        for ((from, life), numbers) in &draft.counted {
            if let Some(receipts) =
                self.receiver.with(*from, *life, numbers).filter(|_| self.config.checks.receipt_in_commit)
            {
                let above = receipts.ranges();
                writes.push(Write::Receipts { from: *from, life: receipts.life, low: receipts.low, above });
            }
        }
        writes.extend(
            draft
                .presences
                .iter()
                .map(|(actor, presence)| Write::Presence { actor: actor.clone(), presence: *presence }),
        );
        writes.extend(draft.queues.iter().map(|((slot, actor), envelope)| match envelope {
            Some(envelope) => Write::Defer(Deferred { slot: *slot, envelope: envelope.clone() }),
            None => Write::Undefer { actor: actor.clone(), slot: *slot },
        }));
        writes.extend(draft.parked.iter().map(|(slot, parked)| match parked {
            Some(parked) => Write::Park(parked.clone()),
            None => Write::Unpark(*slot),
        }));
        writes.extend(draft.timers.iter().map(|((due, slot), timer)| match timer {
            Some(timer) => Write::Arm(timer.clone()),
            None => Write::Disarm { due: *due, slot: *slot },
        }));
        writes
            .extend(draft.bundle.iter().map(|(number, bundle)| Write::Tie { number: *number, bundle: bundle.clone() }));
        let numbers = self.answers.last() + 1..;
        writes.extend(
            numbers
                .zip(&draft.answers)
                .map(|(number, draft)| Write::Record { number, recorded: draft.recorded.clone() }),
        );
        writes.extend(draft.outdated.iter().cloned().map(Write::Forget));
        writes.extend(draft.attempts.iter().map(|(place, attempt)| match attempt {
            Some(attempt) => Write::Attempt(attempt.clone()),
            None => Write::EndAttempt(place.clone()),
        }));
        writes
    }

    /// Says what became of a message whose commit is applied.
    fn tell(&mut self, ready: Ready<A, M>, out: &mut Vec<Action<A, M>>) {
        let envelope = ready.item.envelope;
        let answer = match ready.effect {
            Effect::Done { effects, dropped, .. } => {
                let why = DeadLetter::Halted;
                for (_, envelope) in dropped {
                    self.answer(&envelope, Answer::NoActor, out);
                    out.push(Action::DeadLetter { envelope, why });
                }
                Answer::Done(effects.answer)
            }
            Effect::Deferred(_) | Effect::Parked(..) | Effect::Sent | Effect::Discarded => return,
            Effect::Failed(error) => Answer::Failed(error),
            Effect::Dropped(why) => {
                out.push(Action::DeadLetter { envelope: envelope.clone(), why });
                match why {
                    DeadLetter::Dropped => Answer::Failed("an operator has dropped the call".to_owned()),
                    DeadLetter::Halted | DeadLetter::Exists | DeadLetter::NoRoom => Answer::NoActor,
                }
            }
        };
        self.answer(&envelope, answer, out);
    }

    fn answer(&mut self, envelope: &Envelope<A, M>, answer: Answer<M>, out: &mut Vec<Action<A, M>>) {
        if let Some(call) = envelope.call.clone() {
            self.answers.end(&call.key);
            out.push(Action::Answer { call, answer });
        }
    }
}

/// Operations and bytes that a message adds to a commit, about.
fn size<A, M>(ready: &Ready<A, M>) -> (usize, usize) {
    match &ready.effect {
        Effect::Done { effects, dropped, .. } => {
            // A timer may take another one's place.
            let timers = effects.cancels.len() + effects.timers.len() * 2;
            let others = timers + dropped.len() + OPERATIONS_BESIDE;
            (effects.sends.len() + effects.operations + others, effects.bytes)
        }
        _ => (OPERATIONS_BESIDE, 0),
    }
}

/// Receipt, presence (a record and its removal elsewhere), own queue, recorded answer, attempt.
const OPERATIONS_BESIDE: usize = 6;
/// The timer itself, the message, and the mark of its lane.
const OPERATIONS_OF_A_TIMER: usize = 3;
/// Answers of an earlier program that one commit removes at most: in small steps.
const OUTDATED_MAX: usize = 64;
