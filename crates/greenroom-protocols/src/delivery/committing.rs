//! Forming commits, and what follows from their outcomes.

use std::collections::{BTreeMap, BTreeSet};

use super::mailbox::{Effect, Item, Ready};
use super::timers::{Place, name_of};
use super::{
    Action, Answer, Commit, CommitId, Deferred, Delivery, Destination, Envelope, Lane, Leaves, Life, Parked, Partition,
    PartitionId, Presence, Recorded, Slot, Source, Timer, Wire, Write,
};
use crate::time::Timestamp;

/// Numbers by the sending partition and its life.
type Numbers = BTreeMap<(PartitionId, Life), BTreeSet<u64>>;

/// The commit that is under way.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub(super) struct Flight<A, M> {
    pub(super) id: CommitId,
    batch: Vec<Ready<A, M>>,
    drafts: Draft<A, M>,
}

/// What a commit writes, nothing twice.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
struct Draft<A, M> {
    appends: Vec<(Lane, u64, Envelope<A, M>)>,
    /// The last number of each lane in `appends`.
    lasts: BTreeMap<Lane, u64>,
    counted: Numbers,
    loose: Numbers,
    presences: BTreeMap<A, Option<Presence>>,
    /// What is put into, or with `None` removed from, actors' own queues.
    queues: BTreeMap<(Slot, A), Option<Envelope<A, M>>>,
    parked: BTreeMap<Slot, Option<Parked<A, M>>>,
    /// What is put among the timers, or with `None` removed there.
    timers: BTreeMap<Place, Option<Timer<A, M>>>,
    /// Where timers lie that have names, as far as this commit changes that.
    named: BTreeMap<(A, String), Option<Place>>,
    records: BTreeMap<String, Option<Recorded<M>>>,
    /// What leaves without a number.
    singles: Vec<(PartitionId, Envelope<A, M>)>,
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
            records: BTreeMap::new(),
            singles: Vec::new(),
        }
    }
}

impl<A: Clone + Ord, M: Clone> Partition<A, M> {
    /// Commits what is ready, unless a commit is under way: what becomes ready meanwhile shares the next one.
    pub(super) fn advance(&mut self, now: Timestamp, out: &mut Vec<Action<A, M>>) {
        if self.stopped || self.flight.is_some() || (self.ready.is_empty() && !self.timers.is_due()) {
            return;
        }
        if !self.config.checks.commit_closes && self.sender.backlog().any(|(_, backlog, _)| backlog > 0) {
            return;
        }
        // Of what was refused, turns may have been undone since.
        self.suspects = self.suspects.min(self.ready.len());
        let most = if self.suspects > 0 { self.split.min(self.suspects) } else { self.config.turns_max };
        let (mut batch, mut draft, mut operations, mut bytes) = (Vec::new(), Draft::new(), 0, 0);
        while let Some(next) = self.ready.front().filter(|_| batch.len() < most) {
            let (more_operations, more_bytes) = size(next);
            let fits = operations + more_operations <= self.config.operations_max
                && bytes + more_bytes <= self.config.bytes_max;
            if !fits && !batch.is_empty() {
                break;
            }
            (operations, bytes) = (operations + more_operations, bytes + more_bytes);
            self.draft(next, &mut draft);
            batch.extend(self.ready.pop_front());
        }
        // What was refused is looked for alone.
        while self.suspects == 0
            && batch.len() < most
            && (batch.is_empty() || operations + OPERATIONS_OF_A_TIMER <= self.config.operations_max)
            && let Some(due) = self.timers.take(|place| matches!(draft.timers.get(place), Some(None)))
        {
            operations += OPERATIONS_OF_A_TIMER;
            self.draft(&due, &mut draft);
            batch.push(due);
        }
        if batch.is_empty() {
            return;
        }
        self.draft_tombstones(&mut draft);
        let answers = draft.records.values().flatten().filter(|recorded| recorded.answer.is_some()).count();
        draft.records.extend(self.answers.surplus(answers).into_iter().map(|key| (key, None)));
        self.commit_serial += 1;
        let id = CommitId(self.commit_serial);
        let turns = batch.iter().filter_map(|ready| ready.turn).collect();
        out.push(Action::Commit(Commit { id, epoch: self.owner.epoch, turns, writes: self.writes(&draft) }));
        if !self.config.checks.send_after_commit {
            self.sender.committed(now, std::mem::take(&mut draft.appends), out);
        }
        self.flight = Some(Flight { id, batch, drafts: draft });
    }

    /// Takes in that a commit is applied: now its messages leave, its receipts are acknowledged, its calls answered.
    pub(super) fn committed(&mut self, now: Timestamp, id: CommitId, out: &mut Vec<Action<A, M>>) {
        let Some(Flight { batch, drafts: draft, .. }) = self.flight.take_if(|flight| flight.id == id) else { return };
        self.suspects -= self.suspects.min(batch.len());
        for (actor, presence) in &draft.presences {
            match presence.filter(|presence| presence.halted) {
                Some(tombstone) => _ = self.tombstones.insert(actor.clone(), tombstone),
                None => _ = self.tombstones.remove(actor),
            }
        }
        for (key, recorded) in draft.records {
            match recorded {
                Some(recorded) => self.answers.record(recorded),
                None => self.answers.forget(&key),
            }
        }
        self.timers.committed(draft.timers);
        self.lot.committed(draft.parked);
        self.sender.committed(now, draft.appends, out);
        out.extend(draft.singles.into_iter().map(|(to, envelope)| Action::Send { to, wire: Wire::Single(envelope) }));
        let mut actors = BTreeSet::new();
        for ready in batch {
            let Some(actor) = ready.actor().cloned() else {
                self.left(now, ready.item, &ready.effect, out);
                continue;
            };
            if !matches!(ready.item.source, Source::Queue(_)) {
                self.queued -= 1;
            }
            self.wake(&actor).uncommitted -= 1;
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

    /// Takes in that a commit was refused for a reason in itself: it is tried in halves, down to the one message that is to
    /// blame (R6).
    pub(super) fn aborted(&mut self, now: Timestamp, id: CommitId, error: String, out: &mut Vec<Action<A, M>>) {
        let Some(Flight { mut batch, .. }) = self.flight.take_if(|flight| flight.id == id) else { return };
        let count = batch.len();
        match batch.pop() {
            Some(only) if count == 1 => {
                self.suspects = self.suspects.saturating_sub(1);
                self.refused(now, only, error, out);
            }
            last => {
                for ready in batch.into_iter().chain(last).rev() {
                    self.ready.push_front(ready);
                }
                (self.suspects, self.split) = (count, count / 2);
            }
        }
    }

    fn draft(&self, ready: &Ready<A, M>, draft: &mut Draft<A, M>) {
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
        let record = |answer, slot| {
            call.map(|call| {
                (call.key.clone(), Some(Recorded { key: call.key.clone(), request: call.request, slot, answer }))
            })
        };
        let waited = call.filter(|call| self.answers.waits(&call.key) || draft.records.contains_key(&call.key));
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
                // Calls that waited there are answered now, and did not run: their keys are free again.
                let keys =
                    dropped.iter().filter_map(|(_, envelope)| envelope.call.as_ref().filter(|call| call.recorded));
                draft.records.extend(keys.map(|call| (call.key.clone(), None)));
                // The turn's number orders the answers.
                let serial = ready.turn.map_or(0, |turn| turn.0);
                draft.records.extend(record(Some(effects.answer.clone()), Slot { epoch: self.owner.epoch, serial }));
            }
            Effect::Deferred(slot) => {
                draft.queues.insert((*slot, actor.clone()), Some(ready.item.envelope.clone()));
                draft.records.extend(record(None, *slot));
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
            Effect::Discarded => {}
            Effect::Failed(_) | Effect::Dropped(_) => {
                let forgotten = waited.map(|call| (call.key.clone(), None));
                draft.records.extend(forgotten);
            }
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

    fn draft_send(&self, to: Destination, delivery: Delivery, envelope: &Envelope<A, M>, draft: &mut Draft<A, M>) {
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
        writes.extend(draft.records.iter().map(|(key, recorded)| match recorded {
            Some(recorded) => Write::Record(recorded.clone()),
            None => Write::Forget(key.clone()),
        }));
        writes
    }

    /// Says what became of a message whose commit is applied.
    fn tell(&mut self, ready: Ready<A, M>, out: &mut Vec<Action<A, M>>) {
        let envelope = ready.item.envelope;
        let answer = match ready.effect {
            Effect::Done { effects, dropped, .. } => {
                let why = super::DeadLetter::Halted;
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
                Answer::NoActor
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
            // A timer may take another one's place, and a call that is dropped frees its key.
            let timers = effects.cancels.len() + effects.timers.len() * 2;
            let others = timers + dropped.len() * 2 + OPERATIONS_BESIDE;
            (effects.sends.len() + effects.operations + others, effects.bytes)
        }
        _ => (OPERATIONS_BESIDE, 0),
    }
}

/// Receipt, presence, own queue, recorded answer and a forgotten one.
const OPERATIONS_BESIDE: usize = 5;
/// The timer itself, the message, and the mark of its lane.
const OPERATIONS_OF_A_TIMER: usize = 3;
