//! One partition under one ownership: events in, actions out.

use std::collections::{BTreeMap, BTreeSet, VecDeque};

use super::answers::{Answers, Known as KnownCall};
use super::attempts::Attempts;
use super::committing::Flight;
use super::mailbox::{Effect, Item, Known, Mailbox, Ready};
use super::parking::Lot;
use super::recalls::Recalls;
use super::timers::Timers;
use super::{
    Action, Answer, Birth, Config, DeadLetter, Deferred, Envelope, Event, Lane, Leaves, Life, Ownership, PartitionId,
    Presence, Receiver, Recorded, Recovered, Sealed, Sender, Slot, Source, Stop, TurnId, Wire,
};
use crate::reminders::Wall;
use crate::time::Timestamp;

/// A partition that this node owns; see the [module](super).
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub struct Partition<A, M> {
    pub(super) config: Config,
    pub(super) owner: Ownership,
    pub(super) life: Life,
    pub(super) sender: Sender<A, M>,
    pub(super) receiver: Receiver,
    pub(super) answers: Answers<M>,
    /// Calls whose answers are looked for in the journal, by their keys, and where they are looked for.
    pub(super) recalls: Recalls<A, M>,
    pub(super) mailboxes: BTreeMap<A, Mailbox<A, M>>,
    pub(super) turns: BTreeMap<TurnId, Item<A, M>>,
    pub(super) ready: VecDeque<Ready<A, M>>,
    pub(super) flight: Option<Flight<A, M>>,
    /// How many of the first of `ready` were in a commit that aborted, and how many of them are tried at once.
    pub(super) suspects: usize,
    pub(super) split: usize,
    pub(super) asks: BTreeMap<Birth, Question<A>>,
    /// Questions of other partitions, and the creations that they ask about: the next commit answers them.
    pub(super) questions: BTreeSet<(PartitionId, Birth)>,
    pub(super) tombstones: BTreeMap<A, Presence>,
    pub(super) timers: Timers<A, M>,
    pub(super) lot: Lot<A, M>,
    pub(super) attempts: Attempts,
    /// Actors that wait, as the journal has refused even to park what they failed at.
    pub(super) held: BTreeMap<A, Timestamp>,
    /// Messages in memory that are not committed.
    pub(super) queued: usize,
    pub(super) turn_serial: u64,
    pub(super) commit_serial: u64,
    slot_serial: u64,
    birth_serial: u64,
    pub(super) stopped: bool,
}

/// Whether the creation of an incarnation may still come (R4).
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub(super) struct Question<A> {
    actors: BTreeSet<A>,
    /// The creator's life, and the number at or below which the creation is.
    through: Option<(Life, u64)>,
    ask_at: Timestamp,
}

/// What becomes of a message.
enum Verdict {
    Run,
    Drop(DeadLetter),
    Hold(Birth),
}

impl<A: Clone + Ord, M: Clone> Partition<A, M> {
    /// Begins an ownership, from what the journal held after the fence was replaced. `wall` is the time of day at `now`.
    pub fn recover(
        config: Config,
        owner: Ownership,
        recovered: Recovered<A, M>,
        (now, wall): (Timestamp, Wall),
        out: &mut Vec<Action<A, M>>,
    ) -> Self {
        let life = recovered.life;
        let outputs = recovered.parked.iter().filter_map(|(_, leaves)| match leaves {
            Some(Leaves::Output { lane, number }) => Some((*lane, *number)),
            Some(Leaves::Message { .. }) | None => None,
        });
        let mut partition = Self {
            attempts: Attempts::new(&recovered),
            sender: Sender::new(config, owner, life, (&recovered.lanes, outputs), now, out),
            receiver: Receiver::new(config, owner, life, &recovered.receipts),
            answers: Answers::new(config, recovered.answers, recovered.waiting, (now, wall)),
            recalls: Recalls::default(),
            tombstones: recovered.tombstones.into_iter().collect(),
            timers: Timers::new(now, wall, recovered.timers),
            lot: Lot::new(recovered.parked.into_iter().map(|(slot, _)| slot)),
            held: BTreeMap::new(),
            config,
            owner,
            life,
            mailboxes: BTreeMap::new(),
            turns: BTreeMap::new(),
            ready: VecDeque::new(),
            flight: None,
            suspects: 0,
            split: 0,
            asks: BTreeMap::new(),
            questions: BTreeSet::new(),
            queued: 0,
            turn_serial: 0,
            commit_serial: 0,
            slot_serial: 0,
            birth_serial: 0,
            stopped: false,
        };
        for actor in recovered.queued {
            partition.wake(&actor).owed = true;
            partition.dispatch(now, &actor, out);
        }
        partition
    }

    /// An incarnation for an actor that a turn creates; it need not be used.
    pub fn birth(&mut self) -> Birth {
        self.birth_serial += 1;
        self.owner.birth(self.life, self.birth_serial)
    }

    /// Applies `event` at `now`, appending what must be done to `out`, in order.
    pub fn handle(&mut self, now: Timestamp, event: Event<A, M>, out: &mut Vec<Action<A, M>>) {
        if self.stopped {
            return;
        }
        match event {
            Event::Arrived(wire) => self.arrived(now, wire, out),
            Event::Called(envelope) => self.called(now, envelope, out),
            Event::Loaded { actor, presence, queue } => {
                let Some(mailbox) = self.mailboxes.get_mut(&actor).filter(|m| m.records == Known::Reading) else {
                    return;
                };
                mailbox.records = Known::Yes(presence);
                mailbox.cursor = Some(Slot::default());
                for Deferred { slot, envelope } in queue {
                    let source = Source::Queue(slot);
                    let first = || (0, self.attempts.deaths(&source, slot.epoch < self.owner.epoch));
                    let (attempts, deaths) = mailbox.failures.get(&slot).copied().unwrap_or_else(first);
                    mailbox.deferred.insert(slot, Item { source, envelope, leaves: None, attempts, deaths });
                }
                self.dispatch(now, &actor, out);
            }
            Event::Withdrawn { actor, call } => self.withdrawn(&actor, &call),
            Event::Unloadable { actor, error } => self.unloadable(&actor, &error, out),
            Event::Recalled { key, numbers, found } => self.recalled(now, &key, &numbers, found, out),
            Event::Admitted(turn) => self.admitted(turn, out),
            Event::Ended { turn, outcome } => self.ended(now, turn, outcome, out),
            Event::Committed(id) => self.committed(now, id, out),
            Event::Aborted { id, error } => self.aborted(now, id, error, out),
            Event::Unsettled(id) if self.flight.as_ref().is_some_and(|flight| flight.id == id) => {
                self.stop(Stop::Unsettled, out);
            }
            Event::Unsettled(_) => {}
            Event::Deposed => self.stop(Stop::Deposed, out),
            Event::Paged { lane, entries } => self.sender.paged(now, lane, entries, out),
            Event::Delivered { lane, number } => self.delivered(now, lane, number, out),
            Event::Refused { lane, number, error } => self.unwanted(lane, number, error),
            Event::Retry(parked) => self.retry(now, parked, out),
            Event::Drop(parked) => self.discard(parked),
            Event::DropWaiting { actor, place, stored } => self.drop_waiting(now, &actor, (&place, stored), out),
            Event::Tick => {
                self.sender.tick(now, out);
                self.ask_again(now, out);
                self.timers.tick(now);
                self.let_go_on(now, out);
                if !self.config.checks.confirmed_by_commit {
                    self.prune(now, out);
                }
            }
        }
        self.advance(now, out);
    }

    /// When [`handle`](Self::handle) next wants an [`Event::Tick`].
    pub fn deadline(&self) -> Option<Timestamp> {
        let asks = self.asks.values().filter(|ask| ask.through.is_none()).map(|ask| ask.ask_at);
        let held = self.held.values().copied();
        // What the answers want committed waits for the commit that is under way.
        let answers = self.answers.work_at().filter(|_| self.flight.is_none());
        let deadlines = self.sender.deadline().into_iter().chain(asks).chain(held);
        deadlines.chain(self.timers.deadline()).chain(answers).min()
    }

    /// Lets go of an actor for which nothing waits; its records are read again when a message comes. Whether it did.
    pub fn forget(&mut self, actor: &A) -> bool {
        let idle = self.mailboxes.get(actor).is_some_and(Mailbox::is_idle);
        if idle {
            self.mailboxes.remove(actor);
        }
        idle
    }

    /// Whether the ownership is over.
    pub fn is_stopped(&self) -> bool {
        self.stopped
    }

    /// The outbox.
    pub fn sender(&self) -> &Sender<A, M> {
        &self.sender
    }

    /// The receive records.
    pub fn receiver(&self) -> &Receiver {
        &self.receiver
    }

    /// Actors that wait before they go on, as the journal has refused even to park what they failed at.
    pub fn held(&self) -> usize {
        self.held.len()
    }

    /// Messages in memory that are not committed; at most [`Config::queued_max`] and those that operators retry.
    pub fn queued(&self) -> usize {
        self.queued
    }

    /// How many recorded answers are kept, and how many bytes they are, about; at most [`Config::answers_bytes_max`] and those
    /// of the calls that ran when it was reached.
    pub fn kept(&self) -> (usize, u64) {
        self.answers.kept()
    }

    fn arrived(&mut self, now: Timestamp, wire: Wire<A, M>, out: &mut Vec<Action<A, M>>) {
        match wire.check(self.config.partitions) {
            Ok(()) => self.take_in(now, wire, out),
            Err(reason) => out.push(Action::Refuse(reason)),
        }
    }

    fn take_in(&mut self, now: Timestamp, wire: Wire<A, M>, out: &mut Vec<Action<A, M>>) {
        match wire {
            Wire::Batch(batch) => {
                let mut taken = Vec::new();
                let room = self.room();
                // An earlier program does not say which of them were sent before: all may have been.
                let sent_before = batch.sent_before.unwrap_or(u64::MAX);
                self.receiver.batch(batch, room, &mut taken, out);
                assert!(taken.len() <= room, "more messages are taken than there is room for");
                for (source, envelope) in taken {
                    let began = source.number().is_some_and(|number| number <= sent_before);
                    let deaths = self.attempts.deaths(&source, began);
                    self.enter(now, Item { deaths, ..Item::new(source, envelope, None) }, out);
                }
            }
            Wire::Reply(reply) => self.sender.replied(now, &reply, out),
            Wire::Single(envelope) if self.room() == 0 || self.is_crowded(&envelope.to) => {
                out.push(Action::DeadLetter { envelope, why: DeadLetter::NoRoom });
            }
            Wire::Single(envelope) => self.accept(now, Source::Uncounted, envelope, out),
            Wire::Ask { from, birth } if !self.config.checks.confirmed_by_commit => {
                self.tell_standing(from, birth, out)
            }
            // The asker repeats the question.
            Wire::Ask { .. } if self.questions.len() >= QUESTIONS_MAX => {}
            Wire::Ask { from, birth } => _ = self.questions.insert((from, birth)),
            Wire::Standing { from, life, birth, committed } => {
                if let Some(ask) = self.asks.get_mut(&birth).filter(|ask| ask.through.is_none() && birth.by == from) {
                    ask.through = Some((life, committed));
                    self.ask_passed(now, out);
                }
            }
        }
    }

    fn called(&mut self, now: Timestamp, envelope: Sealed<A, M>, out: &mut Vec<Action<A, M>>) {
        let Some(call) = envelope.call.clone() else {
            return self.take_in(now, Wire::Single(envelope), out);
        };
        let answer = match self.answers.look(now, &call) {
            KnownCall::New | KnownCall::Perhaps(_) if self.room() == 0 => Answer::Busy,
            KnownCall::New | KnownCall::Perhaps(_) if self.is_crowded(&envelope.to) => Answer::Crowded,
            KnownCall::Perhaps(numbers) if self.config.checks.recorded_answer => {
                self.answers.begin(&call);
                self.queued += 1;
                out.push(Action::Recall { key: call.key.clone(), numbers: numbers.clone() });
                self.recalls.insert(call.key, envelope, numbers);
                return;
            }
            KnownCall::New | KnownCall::Perhaps(_) => {
                self.answers.begin(&call);
                return self.accept(now, Source::Uncounted, envelope, out);
            }
            KnownCall::Running => return,
            KnownCall::OtherRequest => Answer::OtherRequest,
            KnownCall::Answered(answer) => Answer::Done(answer),
            KnownCall::Refused(answer) => answer,
        };
        out.push(Action::Answer { call, answer });
    }

    /// Takes in what the journal says of a call's key: its answer, or that the call is new. A call that was withdrawn, and
    /// made again since, waits for the answers that were looked for last.
    fn recalled(
        &mut self,
        now: Timestamp,
        key: &str,
        numbers: &[u64],
        found: Result<Option<Recorded<M>>, String>,
        out: &mut Vec<Action<A, M>>,
    ) {
        let Some(envelope) = self.recalls.take(key, numbers) else { return };
        self.unqueue();
        let Some(call) = envelope.call.clone() else { return };
        let answer = match found {
            Ok(Some(recorded)) if call.is_repeat_of(recorded.request) => Answer::Done(recorded.answer),
            Ok(Some(_)) => Answer::OtherRequest,
            Ok(None) => match self.answers.refusal(&call) {
                Some(refusal) => refusal,
                None if self.is_crowded(&envelope.to) => Answer::Crowded,
                None => return self.accept(now, Source::Uncounted, envelope, out),
            },
            Err(why) => Answer::Unread(why),
        };
        self.answers.end(key);
        out.push(Action::Answer { call, answer });
    }

    pub(super) fn accept(
        &mut self,
        now: Timestamp,
        source: Source,
        envelope: Sealed<A, M>,
        out: &mut Vec<Action<A, M>>,
    ) {
        self.enter(now, Item::new(source, envelope, None), out);
    }

    fn enter(&mut self, now: Timestamp, item: Item<A, M>, out: &mut Vec<Action<A, M>>) {
        self.queued += 1;
        let actor = item.envelope.to.clone();
        self.wake(&actor).queue.push_back(item);
        self.dispatch(now, &actor, out);
    }

    pub(super) fn wake(&mut self, actor: &A) -> &mut Mailbox<A, M> {
        self.mailboxes.entry(actor.clone()).or_insert_with(Mailbox::new)
    }

    /// The incarnation that begins with what waits first for an actor, if that has come by a counted lane: its creation was
    /// never committed here, so nothing is stored of it.
    pub fn born(&self, actor: &A) -> Option<Birth> {
        let first = self.mailboxes.get(actor)?.queue.front()?;
        let is_counted = matches!(first.source, Source::Counted { .. });
        first.envelope.birth.filter(|_| first.envelope.creates && is_counted)
    }

    pub(super) fn room(&self) -> usize {
        self.config.queued_max.saturating_sub(self.queued)
    }

    /// A message is no longer in memory, or is committed.
    pub(super) fn unqueue(&mut self) {
        assert!(self.queued > 0, "a message goes that was not counted");
        self.queued -= 1;
    }

    pub(super) fn slot(&mut self) -> Slot {
        self.slot_serial += 1;
        Slot { epoch: self.owner.epoch, serial: self.slot_serial }
    }

    /// Runs the next turn of `actor`, if there is one and it may run.
    pub(super) fn dispatch(&mut self, now: Timestamp, actor: &A, out: &mut Vec<Action<A, M>>) {
        if self.held.contains_key(actor) {
            return;
        }
        while let Some(mailbox) = self.mailboxes.get_mut(actor) {
            if mailbox.running.is_some() || (mailbox.resetting && mailbox.uncommitted > 0) {
                return;
            }
            if mailbox.resetting {
                mailbox.reset();
                out.push(Action::Reset(actor.clone()));
            }
            let presence = match mailbox.records {
                Known::Reading => return,
                Known::No => {
                    mailbox.records = Known::Reading;
                    return out.push(Action::Load(actor.clone()));
                }
                Known::Yes(presence) => presence,
            };
            let deferred = mailbox.next_deferred();
            let (item, verdict) = match deferred {
                Some(item) => (item, Verdict::Run),
                None => match self.choose(now, actor, presence, out) {
                    Some(chosen) => chosen,
                    None => return,
                },
            };
            match verdict {
                Verdict::Drop(why) => {
                    self.wake(actor).uncommitted += 1;
                    self.ready.push_back(Ready { turn: None, item, effect: Effect::Dropped(why) });
                }
                Verdict::Run | Verdict::Hold(_) if self.has_killed(&item) => self.set_aside(item),
                Verdict::Run | Verdict::Hold(_) => {
                    self.turn_serial += 1;
                    let turn = TurnId(self.turn_serial);
                    let before = self.wake(actor).running.replace(turn);
                    assert_eq!(before, None, "an actor runs two turns at once");
                    return self.begin(turn, item, out);
                }
            }
        }
    }

    /// Takes the first message that need not be held; asks about those that are.
    fn choose(
        &mut self,
        now: Timestamp,
        actor: &A,
        presence: Option<Presence>,
        out: &mut Vec<Action<A, M>>,
    ) -> Option<(Item<A, M>, Verdict)> {
        let mut index = 0;
        loop {
            let envelope = &self.mailboxes.get(actor)?.queue.get(index)?.envelope;
            let verdict = self.judge(envelope, presence);
            let Verdict::Hold(birth) = verdict else {
                return self.wake(actor).queue.remove(index).map(|item| (item, verdict));
            };
            self.ask(now, birth, actor, out);
            index += 1;
        }
    }

    fn judge(&self, envelope: &Envelope<A, M>, presence: Option<Presence>) -> Verdict {
        let Some(birth) = envelope.birth.filter(|_| self.config.checks.incarnation) else { return Verdict::Run };
        match presence {
            Some(known) if known.birth == birth && !known.halted && !envelope.creates => Verdict::Run,
            Some(known) if known.birth == birth && known.halted => Verdict::Drop(DeadLetter::Halted),
            Some(known) if envelope.creates && !known.halted => Verdict::Drop(DeadLetter::Exists),
            _ if envelope.creates => Verdict::Run,
            _ if self.passed(birth) => Verdict::Drop(DeadLetter::Halted),
            _ => Verdict::Hold(birth),
        }
    }

    /// Whether the creation of this incarnation was committed here, or can no longer come.
    fn passed(&self, birth: Birth) -> bool {
        let receipts = self.receiver.receipts(birth.by);
        let through = self.asks.get(&birth).and_then(|ask| ask.through);
        through.is_some_and(|(life, number)| number == 0 || (receipts.life == life && receipts.low >= number))
    }

    fn ask(&mut self, now: Timestamp, birth: Birth, actor: &A, out: &mut Vec<Action<A, M>>) {
        let ask_at = now + self.config.retransmit_max;
        let from = self.owner.partition;
        let ask = self.asks.entry(birth).or_insert_with(|| {
            out.push(Action::Send { to: birth.by, wire: Wire::Ask { from, birth } });
            Question { actors: BTreeSet::new(), through: None, ask_at }
        });
        ask.actors.insert(actor.clone());
    }

    /// Tells a partition the number of the last message that is committed for it, at or below which a creation is.
    pub(super) fn tell_standing(&self, to: PartitionId, birth: Birth, out: &mut Vec<Action<A, M>>) {
        let committed = self.sender.committed_in(Lane::Counted(to));
        let wire = Wire::Standing { from: self.owner.partition, life: self.life, birth, committed };
        out.push(Action::Send { to, wire });
    }

    fn ask_again(&mut self, now: Timestamp, out: &mut Vec<Action<A, M>>) {
        let (from, again) = (self.owner.partition, now + self.config.retransmit_max);
        for (birth, ask) in self.asks.iter_mut().filter(|(_, ask)| ask.through.is_none() && ask.ask_at <= now) {
            ask.ask_at = again;
            out.push(Action::Send { to: birth.by, wire: Wire::Ask { from, birth: *birth } });
        }
    }

    /// Looks again at the messages that were held for creations which are decided now.
    pub(super) fn ask_passed(&mut self, now: Timestamp, out: &mut Vec<Action<A, M>>) {
        let passed: Vec<Birth> = self.asks.keys().copied().filter(|birth| self.passed(*birth)).collect();
        let mut actors = BTreeSet::new();
        for birth in &passed {
            actors.extend(self.asks[birth].actors.iter().cloned());
        }
        for actor in &actors {
            self.dispatch(now, actor, out);
        }
        for birth in passed {
            self.settle_ask(birth);
        }
    }

    /// Keeps a question only as long as messages wait for it.
    fn settle_ask(&mut self, birth: Birth) {
        let waits = |actor: &A| {
            self.mailboxes.get(actor).is_some_and(|m| m.queue.iter().any(|item| item.envelope.birth == Some(birth)))
        };
        if !self.asks[&birth].actors.iter().any(waits) {
            self.asks.remove(&birth);
        }
    }

    /// Lets actors go on that have waited long enough for the journal to refuse something once more.
    fn let_go_on(&mut self, now: Timestamp, out: &mut Vec<Action<A, M>>) {
        let over: Vec<A> =
            self.held.iter().filter(|(_, until)| **until <= now).map(|(actor, _)| actor.clone()).collect();
        for actor in over {
            self.held.remove(&actor);
            self.wake(&actor);
            self.dispatch(now, &actor, out);
        }
    }

    fn stop(&mut self, why: Stop, out: &mut Vec<Action<A, M>>) {
        self.stopped = true;
        out.push(Action::Stop(why));
    }
}

/// Questions of other partitions that may wait for a commit.
const QUESTIONS_MAX: usize = 1024;
