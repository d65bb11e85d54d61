//! Partitions with journals, owners and a network, for the tests of delivery.
#![allow(dead_code, unreachable_pub)]

use std::collections::{BTreeMap, BTreeSet};

use greenroom_protocols::delivery::*;
use greenroom_protocols::reminders::Wall;
use greenroom_protocols::time::Timestamp;

pub type Actor = u8;
pub type Payload = u8;
pub type Message = Sealed<Actor, Payload>;
/// What a turn does: the message, the payloads that its actor has processed, incarnations for what it creates.
pub type Program = fn(&Message, &[Payload], &mut dyn FnMut() -> Birth) -> Outcome<Actor, Payload>;

/// A partition's journal.
#[derive(Clone, PartialEq, Eq, Hash, Debug, Default)]
pub struct Disk {
    pub epoch: Epoch,
    /// True if its last owner has said that it leaves.
    pub is_left: bool,
    pub life: Life,
    pub logs: BTreeMap<Lane, Log>,
    pub receipts: BTreeMap<PartitionId, Receipts>,
    pub presences: BTreeMap<Actor, Presence>,
    pub queues: BTreeMap<(Actor, Slot), Message>,
    pub parked: BTreeMap<Slot, Parked<Actor, Payload>>,
    pub answers: Answers,
    pub timers: BTreeMap<Slot, Timer<Actor, Payload>>,
    pub attempts: BTreeMap<WaitingPlace, TurnAttempt>,
    /// What each actor has processed, in order: its state.
    pub fields: BTreeMap<Actor, Vec<Payload>>,
    /// The same, never removed.
    pub history: Vec<(Actor, Payload)>,
    /// What was parked and is not any more, and was neither processed nor sent nor deferred: dropped, or an output that left.
    pub dropped: Vec<Payload>,
}

#[derive(Clone, PartialEq, Eq, Hash, Debug, Default)]
pub struct Log {
    pub before: u64,
    pub last: u64,
    pub entries: BTreeMap<u64, Message>,
}

/// What is recorded of calls from outside.
#[derive(Clone, PartialEq, Eq, Hash, Debug, Default)]
pub struct Answers {
    pub log: BTreeMap<u64, Recorded<Payload>>,
    pub last: u64,
    pub bundles: BTreeMap<u64, Bundle>,
    pub bundle_last: u64,
    /// By an earlier program, which has kept what waits in actors' queues too.
    pub earlier: BTreeMap<String, Recorded<Payload>>,
    pub earlier_since: Wall,
    /// All keys that were ever recorded, and when.
    pub history: Vec<(String, Wall)>,
}

impl Answers {
    fn kept(&self) -> Kept<Payload> {
        let tied = self.bundles.values().next_back().map_or(0, Bundle::last);
        let loose = self.log.range(tied + 1..).map(|(number, recorded)| Loose {
            number: *number,
            key: recorded.key.clone(),
            at: recorded.at,
            bytes: recorded.key.len() as u64 + 128,
        });
        Kept {
            bundles: self.bundles.iter().map(|(number, bundle)| (*number, bundle.clone())).collect(),
            bundle_last: self.bundle_last,
            loose: loose.collect(),
            last: self.last,
            earlier: self.earlier.values().cloned().collect(),
            earlier_since: self.earlier_since,
        }
    }

    fn recall(&self, key: &str, numbers: &[u64]) -> Option<Recorded<Payload>> {
        numbers.iter().filter_map(|number| self.log.get(number)).find(|recorded| recorded.key == key).cloned()
    }
}

/// What a turn changed: its actor, what it processed, whether it halts.
pub type Change = (Actor, Payload, bool);

/// A commit on its way to the journal.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub struct Pending {
    pub owner: Ownership,
    pub commit: CommitOf,
    pub changes: Vec<Change>,
}

/// [`Commit`] with an order.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub struct CommitOf(pub CommitId, pub Vec<TurnId>, pub Vec<Write<Actor, Payload>>);

/// A node that owns, or believes that it owns, a partition.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub struct Owner {
    pub at: Ownership,
    pub machine: Partition<Actor, Payload>,
    pub changes: BTreeMap<TurnId, Change>,
    /// Turns that have not ended.
    pub running: BTreeMap<TurnId, Message>,
    /// Answers that it looks for.
    pub recalls: Vec<(String, Vec<u64>)>,
    /// Outcomes of commits that it has not heard of.
    pub outcomes: Vec<Event<Actor, Payload>>,
    /// What operators want, who have seen what was parked.
    pub wishes: Vec<Event<Actor, Payload>>,
    /// Outputs that are handed over and of which nobody has heard.
    pub handed: Vec<(Lane, u64, Message)>,
    /// The suspect that runs alone, until its commit is applied, and those that wait for it.
    pub alone: Option<(TurnId, Actor)>,
    pub admissions: Vec<(TurnId, Actor)>,
    /// Turns in the commit that is under way.
    pub flight: Vec<TurnId>,
}

#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub struct World {
    pub config: Config,
    pub now: u64,
    pub disks: Vec<Disk>,
    pub owners: Vec<Owner>,
    pub pending: Vec<Pending>,
    pub network: Vec<(PartitionId, Wire<Actor, Payload>)>,
    pub answers: BTreeSet<(String, Answer<Payload>)>,
    pub dead: Vec<(Actor, Payload)>,
    pub outputs: Vec<(Lane, u64, Payload)>,
    /// Whether turns end at once.
    pub quick: bool,
    /// Whether answers are looked for one by one although turns end at once.
    pub slow_recalls: bool,
    /// Payloads that the journal refuses to commit for actors from 20 on.
    pub refused: BTreeSet<Payload>,
    /// Payloads that it refuses to park, to put into a lane, or into an actor's own queue.
    pub unparkable: BTreeSet<Payload>,
    pub unsendable: BTreeSet<Payload>,
    pub undeferrable: BTreeSet<Payload>,
    /// Most writes that the journal takes in one commit.
    pub writes_max: usize,
    /// Payloads that outlets will not have.
    pub unwanted: BTreeSet<Payload>,
    /// Whether outlets are asked at once.
    pub outlets: bool,
    /// True if new owners know that the owner before them may have died.
    pub deaths: bool,
}

impl World {
    pub fn new(config: Config, partitions: u32, program: Program) -> Self {
        let mut world = Self {
            config,
            now: 0,
            disks: vec![Disk { life: Life(1), ..Disk::default() }; partitions as usize],
            owners: Vec::new(),
            pending: Vec::new(),
            network: Vec::new(),
            answers: BTreeSet::new(),
            dead: Vec::new(),
            outputs: Vec::new(),
            quick: true,
            slow_recalls: false,
            refused: BTreeSet::new(),
            unparkable: BTreeSet::new(),
            unsendable: BTreeSet::new(),
            undeferrable: BTreeSet::new(),
            writes_max: usize::MAX,
            unwanted: BTreeSet::new(),
            outlets: true,
            deaths: false,
        };
        (0..partitions).for_each(|partition| world.take_over(partition, true, program));
        world
    }

    pub fn time(&self) -> Timestamp {
        Timestamp::from_nanos(self.now * 1_000_000)
    }

    /// A new owner replaces the fence and recovers; with `crash` the one before is gone, else it goes on.
    pub fn take_over(&mut self, partition: u32, crash: bool, program: Program) {
        if crash {
            self.owners.retain(|owner| owner.at.partition.0 != partition);
        }
        let disk = &mut self.disks[partition as usize];
        disk.epoch.0 += 1;
        let at = Ownership { partition: PartitionId(partition), epoch: disk.epoch };
        let recovered = Recovered {
            life: disk.life,
            lanes: disk.logs.iter().map(|(lane, log)| (*lane, log.before, log.last)).collect(),
            receipts: disk.receipts.iter().map(|(from, receipts)| (*from, receipts.clone())).collect(),
            queued: disk.queues.keys().map(|(actor, _)| *actor).collect::<BTreeSet<_>>().into_iter().collect(),
            tombstones: disk.presences.iter().filter(|(_, p)| p.halted).map(|(a, p)| (*a, *p)).collect(),
            answers: disk.answers.kept(),
            waiting: disk.queues.values().filter_map(|m| m.call.clone()).filter(|call| call.recorded).collect(),
            timers: disk.timers.values().cloned().collect(),
            parked: disk.parked.values().map(|parked| (parked.slot, parked.leaves)).collect(),
            attempts: disk.attempts.values().cloned().collect(),
            // Each ownership is another process.
            process: disk.epoch.0,
            after_death: self.deaths && disk.epoch.0 > 1 && !disk.is_left,
        };
        disk.is_left = false;
        let mut out = Vec::new();
        let machine = Partition::recover(self.config, at, recovered, (self.time(), Wall(self.now)), &mut out);
        let (changes, running, recalls) = (BTreeMap::new(), BTreeMap::new(), Vec::new());
        self.owners.push(Owner {
            at,
            machine,
            changes,
            running,
            recalls,
            alone: None,
            admissions: Vec::new(),
            flight: Vec::new(),
            outcomes: Vec::new(),
            wishes: Vec::new(),
            handed: Vec::new(),
        });
        let index = self.owners.len() - 1;
        self.carry_out(index, out, program);
    }

    /// The newest owner of a partition.
    pub fn owner(&self, partition: u32) -> usize {
        self.owners.iter().rposition(|owner| owner.at.partition.0 == partition).expect("each partition has an owner")
    }

    pub fn handle(&mut self, index: usize, event: Event<Actor, Payload>, program: Program) {
        let mut out = Vec::new();
        let now = self.time();
        self.owners[index].machine.handle(now, event, &mut out);
        self.carry_out(index, out, program);
    }

    fn carry_out(&mut self, index: usize, actions: Vec<Action<Actor, Payload>>, program: Program) {
        for action in actions {
            let at = self.owners[index].at;
            let disk = &mut self.disks[at.partition.0 as usize];
            match action {
                Action::Send { to, wire } => self.network.push((to, wire)),
                Action::Output { lane, number, envelope, .. } => {
                    self.owners[index].handed.push((lane, number, envelope));
                    if self.outlets {
                        self.hand_over(index, program);
                    }
                }
                Action::Load(actor) => {
                    let queue = disk.queues.iter().filter(|((owner, _), _)| *owner == actor);
                    let queue = queue.map(|((_, slot), m)| Deferred { slot: *slot, envelope: m.clone() }).collect();
                    let presence = disk.presences.get(&actor).copied();
                    if at.epoch == disk.epoch && self.config.checks == Checks::default() {
                        let born = self.owners[index].machine.born(&actor);
                        assert!(born.is_none() || presence.map(|known| known.birth) != born, "a creation is committed");
                    }
                    self.handle(index, Event::Loaded { actor, presence, queue }, program);
                }
                Action::Admit { turn, alone: false, .. } => self.handle(index, Event::Admitted(turn), program),
                Action::Admit { turn, envelope, alone: true } => {
                    self.owners[index].admissions.push((turn, envelope.to));
                    self.admit(index, program);
                }
                Action::Reset(actor) => {
                    self.owners[index].admissions.retain(|(_, of)| *of != actor);
                    if self.owners[index].alone.take_if(|(_, of)| *of == actor).is_some() {
                        self.admit(index, program);
                    }
                    self.owners[index].running.retain(|_, message| message.to != actor);
                }
                Action::Run { turn, envelope } => {
                    self.owners[index].running.insert(turn, envelope);
                    if self.quick {
                        self.end(index, turn, program);
                    }
                }
                Action::Commit(commit) => {
                    let turns = commit.turns.iter();
                    let changes = turns.map(|turn| self.owners[index].changes[turn]).collect();
                    self.owners[index].flight = commit.turns.clone();
                    let commit = CommitOf(commit.id, commit.turns, commit.writes);
                    self.pending.push(Pending { owner: at, commit, changes });
                }
                Action::Page { lane, from, limit } => {
                    let entries = disk.logs.get(&lane).into_iter().flat_map(|log| log.entries.range(from..));
                    let entries = entries.take(limit).map(|(number, message)| (*number, message.clone())).collect();
                    self.handle(index, Event::Paged { lane, entries }, program);
                }
                Action::Trim { lane, through } => {
                    let log = disk.logs.entry(lane).or_default();
                    log.before = log.before.max(through.min(log.last));
                    log.entries = log.entries.split_off(&(through + 1));
                }
                Action::Recall { key, numbers } => {
                    self.owners[index].recalls.push((key, numbers));
                    if self.quick && !self.slow_recalls {
                        self.recall(index, program);
                    }
                }
                Action::Prune { answers, bundles } => {
                    disk.answers.log = disk.answers.log.split_off(&(answers + 1));
                    disk.answers.bundles = disk.answers.bundles.split_off(&(bundles + 1));
                }
                Action::Answer { call, answer } => _ = self.answers.insert((call.key, answer)),
                Action::DeadLetter { envelope, .. } => self.dead.push((envelope.to, envelope.body)),
                Action::Refuse(reason) => panic!("an owner has written what is out of bounds: {reason}"),
                Action::Stop(_) => {
                    self.owners.remove(index);
                    return;
                }
            }
        }
    }

    /// Lets the next suspect run that is to run alone, if none does.
    fn admit(&mut self, index: usize, program: Program) {
        let owner = &mut self.owners[index];
        if owner.alone.is_none() && !owner.admissions.is_empty() {
            let (turn, actor) = owner.admissions.remove(0);
            owner.alone = Some((turn, actor));
            self.handle(index, Event::Admitted(turn), program);
        }
    }

    /// An outlet takes the last output that it was handed, or will not have it.
    pub fn hand_over(&mut self, index: usize, program: Program) {
        let Some((lane, number, message)) = self.owners[index].handed.pop() else { return };
        let body = message.body;
        let event = if self.unwanted.contains(&body) {
            Event::Refused { lane, number, error: "unwanted".to_owned() }
        } else {
            self.outputs.push((lane, number, body));
            Event::Delivered { lane, number }
        };
        self.handle(index, event, program);
    }

    /// An operator who sees what is parked wants all of it to be retried or dropped; the owner hears of it later.
    pub fn wish(&mut self, partition: u32, drops: bool) {
        let parked = self.disks[partition as usize].parked.values().cloned();
        let wishes: Vec<_> =
            parked.map(|parked| if drops { Event::Drop(parked) } else { Event::Retry(parked) }).collect();
        let owner = self.owner(partition);
        self.owners[owner].wishes.extend(wishes);
    }

    /// An owner hears what an operator wants.
    pub fn grant(&mut self, index: usize, program: Program) {
        let event = self.owners[index].wishes.remove(0);
        self.handle(index, event, program);
    }

    /// The journal says whether an answer is there that an owner looks for.
    pub fn recall(&mut self, index: usize, program: Program) {
        let owner = &mut self.owners[index];
        let (key, numbers) = owner.recalls.remove(0);
        let found = Ok(self.disks[owner.at.partition.0 as usize].answers.recall(&key, &numbers));
        self.handle(index, Event::Recalled { key, numbers, found }, program);
    }

    /// Ends a turn.
    pub fn end(&mut self, index: usize, turn: TurnId, program: Program) {
        let Some(message) = self.owners[index].running.remove(&turn) else { return };
        let seen = self.seen(index, message.to);
        let Owner { machine, changes, .. } = &mut self.owners[index];
        let outcome = program(&message, &seen, &mut || machine.birth());
        let halts = matches!(&outcome, Outcome::Done(effects) if effects.halts);
        changes.insert(turn, (message.to, message.body, halts));
        self.handle(index, Event::Ended { turn, outcome }, program);
    }

    /// The payloads that an actor has processed, those of uncommitted turns included.
    pub fn seen(&self, index: usize, actor: Actor) -> Vec<Payload> {
        let owner = &self.owners[index];
        let disk = &self.disks[owner.at.partition.0 as usize];
        disk.fields.get(&actor).cloned().unwrap_or_default()
    }

    /// The journal applies a commit, or refuses it.
    pub fn apply(&mut self, index: usize) {
        let Pending { owner, commit: CommitOf(id, _, writes), changes } = self.pending.remove(index);
        let too_large = writes.iter().any(|write| match write {
            Write::Park(parked) => self.unparkable.contains(&parked.envelope.body),
            Write::Append { envelope, .. } => self.unsendable.contains(&envelope.body),
            Write::Defer(deferred) => self.undeferrable.contains(&deferred.envelope.body),
            _ => false,
        });
        let disk = &mut self.disks[owner.partition.0 as usize];
        let event = if disk.epoch != owner.epoch && self.config.checks.fence {
            Event::Deposed
        } else if changes.iter().any(|(actor, payload, _)| *actor >= 20 && self.refused.contains(payload)) {
            Event::Aborted { id, error: "refused".to_owned() }
        } else if writes.len() > self.writes_max {
            Event::Aborted { id, error: "too many writes".to_owned() }
        } else if too_large {
            Event::Aborted { id, error: "too large".to_owned() }
        } else {
            disk.apply(writes, changes);
            Event::Committed(id)
        };
        if let Some(owner) = self.owners.iter_mut().find(|candidate| candidate.at == owner) {
            owner.outcomes.push(event);
        }
    }

    /// The journal refuses a commit, whatever is in it.
    pub fn refuse(&mut self, index: usize) {
        let Pending { owner, commit: CommitOf(id, ..), .. } = self.pending.remove(index);
        if let Some(owner) = self.owners.iter_mut().find(|candidate| candidate.at == owner) {
            owner.outcomes.push(Event::Aborted { id, error: "refused".to_owned() });
        }
    }

    /// An owner hears what became of its commit.
    pub fn hear(&mut self, index: usize, program: Program) {
        let owner = &mut self.owners[index];
        let event = owner.outcomes.remove(0);
        let flight = std::mem::take(&mut owner.flight);
        let at = owner.at;
        if matches!(event, Event::Committed(_)) && owner.alone.is_some_and(|(turn, _)| flight.contains(&turn)) {
            owner.alone = None;
        }
        self.handle(index, event, program);
        if self.owners.get(index).is_some_and(|owner| owner.at == at) {
            self.admit(index, program);
        }
    }

    pub fn deliver(&mut self, index: usize, program: Program) {
        let (to, wire) = self.network.remove(index);
        let owner = self.owner(to.0);
        self.handle(owner, Event::Arrived(wire), program);
    }

    /// Applies every commit and tells its owner, until there are none.
    pub fn settle(&mut self, program: Program) {
        loop {
            if !self.pending.is_empty() {
                self.apply(0);
            } else if let Some(index) = self.owners.iter().position(|owner| !owner.outcomes.is_empty()) {
                self.hear(index, program);
            } else if let Some(index) = self.owners.iter().position(|owner| !owner.recalls.is_empty()) {
                self.recall(index, program);
            } else {
                return;
            }
        }
    }

    /// Nothing fails until nothing happens any more, or for `rounds` ticks.
    pub fn run(&mut self, rounds: usize, program: Program) {
        for _ in 0..rounds {
            for _ in 0..100_000 {
                self.settle(program);
                if self.network.is_empty() {
                    break;
                }
                self.deliver(0, program);
            }
            self.now += 10_000;
            for partition in 0..self.disks.len() as u32 {
                self.handle(self.owner(partition), Event::Tick, program);
            }
        }
        self.settle(program);
    }

    /// A call from outside with an idempotency key.
    pub fn call(&mut self, partition: u32, to: Actor, body: Payload, program: Program) {
        self.call_under(&format!("{body}"), partition, to, body, program);
    }

    /// The same, under this key.
    pub fn call_under(&mut self, key: &str, partition: u32, to: Actor, body: Payload, program: Program) {
        let call = Call { key: key.to_owned(), request: u64::from(body), as_written: None, recorded: true };
        let envelope = Envelope { from: None, to, birth: None, creates: false, call: Some(call), body }.into();
        self.handle(self.owner(partition), Event::Called(envelope), program);
    }

    pub fn fields(&self, partition: u32, actor: Actor) -> &[Payload] {
        self.disks[partition as usize].fields.get(&actor).map_or(&[], Vec::as_slice)
    }

    /// All that an actor has ever processed.
    pub fn processed(&self, partition: u32, actor: Actor) -> Vec<Payload> {
        let history = &self.disks[partition as usize].history;
        history.iter().filter(|(other, _)| *other == actor).map(|(_, body)| *body).collect()
    }

    pub fn log(&self, partition: u32, to: u32) -> Log {
        self.disks[partition as usize].logs.get(&Lane::Counted(PartitionId(to))).cloned().unwrap_or_default()
    }

    pub fn has_answer(&self, body: Payload) -> bool {
        self.answers.iter().any(|(key, answer)| *key == format!("{body}") && matches!(answer, Answer::Done(_)))
    }
}

impl Disk {
    fn apply(&mut self, writes: Vec<Write<Actor, Payload>>, changes: Vec<Change>) {
        let moves = |write: &Write<Actor, Payload>| match write {
            Write::Append { envelope, .. } => Some(envelope.body),
            Write::Defer(deferred) => Some(deferred.envelope.body),
            _ => None,
        };
        let moved: BTreeSet<Payload> =
            writes.iter().filter_map(moves).chain(changes.iter().map(|(_, payload, _)| *payload)).collect();
        for (actor, payload, halts) in changes {
            self.history.push((actor, payload));
            let field = self.fields.entry(actor).or_default();
            field.push(payload);
            if halts {
                self.fields.remove(&actor);
            }
        }
        for write in writes {
            match write {
                Write::Append { lane, envelope, .. } => {
                    let log = self.logs.entry(lane).or_default();
                    log.last += 1;
                    log.entries.insert(log.last, envelope);
                }
                Write::Receipts { from, life, low, above } => {
                    self.receipts.insert(from, Receipts::from_ranges(life, low, &above));
                }
                Write::Presence { actor, presence: Some(presence) } => _ = self.presences.insert(actor, presence),
                Write::Presence { actor, presence: None } => _ = self.presences.remove(&actor),
                Write::Defer(deferred) => {
                    self.queues.insert((deferred.envelope.to, deferred.slot), deferred.envelope);
                }
                Write::Undefer { actor, slot } => _ = self.queues.remove(&(actor, slot)),
                Write::Park(parked) => _ = self.parked.insert(parked.slot, parked),
                Write::Unpark(slot) => {
                    let body = self.parked.remove(&slot).map(|parked| parked.envelope.body);
                    self.dropped.extend(body.filter(|body| !moved.contains(body)));
                }
                Write::Arm(timer) => _ = self.timers.insert(timer.slot, timer),
                Write::Disarm { slot, .. } => _ = self.timers.remove(&slot),
                Write::Record { recorded, .. } => {
                    let answers = &mut self.answers;
                    answers.last += 1;
                    answers.history.push((recorded.key.clone(), recorded.at));
                    answers.log.insert(answers.last, recorded);
                }
                Write::Tie { bundle, .. } => {
                    self.answers.bundle_last += 1;
                    self.answers.bundles.insert(self.answers.bundle_last, bundle);
                }
                Write::Forget(key) => _ = self.answers.earlier.remove(&key),
                Write::Attempt(attempt) => _ = self.attempts.insert(attempt.place.clone(), attempt),
                Write::EndAttempt(place) => _ = self.attempts.remove(&place),
            }
        }
    }
}

/// A message that a turn sends to an actor of a partition, exactly once.
pub fn send(partition: u32, from: Actor, to: Actor, body: Payload) -> Outgoing<Actor, Payload> {
    let envelope = Envelope { from: Some(from), to, birth: None, creates: false, call: None, body }.into();
    Outgoing { to: Destination::Partition(PartitionId(partition)), delivery: Delivery::ExactlyOnce, envelope }
}

pub fn done(sends: Vec<Outgoing<Actor, Payload>>) -> Outcome<Actor, Payload> {
    Outcome::Done(Effects { sends, ..Effects::default() }.into())
}
