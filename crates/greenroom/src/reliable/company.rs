//! Reliable actors on a stage. Each is a partition of its own, whose commits go to memory, one by one, each when it is chosen; what it sends is then
//! under way to the others. That partitions deliver what is committed exactly once is assumed here.

use std::cell::{Cell, RefCell};
use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::rc::Rc;
use std::time::Duration;

use greenroom_protocols::delivery::{
    Birth, Delivery, Destination, Effects, Epoch, Life, Outcome, Ownership, PartitionId, TurnId,
};
use greenroom_protocols::reminders::Wall;
use greenroom_reliable::ledger::TurnChanges;
use greenroom_world::Timestamp;
use tokio::sync::oneshot;

use super::again::Fields;
use super::answers::Answered;
use super::births::Births;
use super::cast::{Begun, Cast, End};
use super::name::{Body, Letter, Named, Sealed};
use super::takings::Ended;
use crate::actor::key::{ActorId, Kind};
use crate::actor::reply::{AnyReply, RuntimeEnd};
use crate::shard::Shard;
use crate::shard::calls::Completion;
use crate::shard::rehearsal::{Deed, Kind as StepKind, Party, Player, mix};

/// All of them.
#[derive(Default)]
pub(super) struct Company {
    /// In the order of the hashes of their names.
    members: RefCell<Vec<Member>>,
    /// Who runs their turns, and how many there were.
    cast: RefCell<Option<Cast>>,
    turns: Cell<u64>,
    timers: RefCell<Vec<Due>>,
    /// Actors that others have created, and that have not halted.
    born: RefCell<BTreeSet<Birth>>,
}

/// One of them, by all that it is called.
struct Who {
    named: Named,
    id: ActorId,
    hash: u64,
}

struct Member {
    who: Rc<Who>,
    births: Births,
    /// What is committed, and what of it has yet to be put together: few ask.
    fields: Fields,
    changes: Vec<TurnChanges<Named>>,
    /// Messages that the state does not want yet, and those of them that are to be looked at again.
    deferred: VecDeque<Entry>,
    again: VecDeque<Entry>,
    running: Option<Running>,
    /// What was answered to calls with idempotency keys.
    answers: BTreeMap<String, (u64, Body)>,
}

/// A message with its turn, or before it.
struct Entry {
    to: Rc<Who>,
    letter: Sealed,
    reply: Option<Box<dyn AnyReply>>,
    number: u64,
}

struct Running {
    entry: Entry,
    turn: TurnId,
    /// Where the end of the turn comes to, and what it has come to.
    end: Option<oneshot::Receiver<Completion>>,
    ended: Option<Ended>,
}

/// A timer.
struct Due {
    at: Wall,
    number: u64,
    name: Option<String>,
    letter: Sealed,
}

impl Shard {
    /// Takes a message to an actor on the stage.
    pub(super) fn enter_company(&self, letter: Letter, reply: Option<Box<dyn AnyReply>>) {
        let company = self.hall().company().clone();
        self.join_in(&company);
        if let Some(to) = company.who(&letter.to) {
            company.begin(self, Entry { to, letter: letter.into(), reply, number: self.step_number() });
        }
    }
}

impl Company {
    /// Whom a name is of; nobody, if its kind is none.
    fn who(&self, named: &Named) -> Option<Rc<Who>> {
        let id = ActorId::unchecked(Kind::known(&named.kind)?, &named.key);
        let hash = id.stable_hash();
        let members = self.members.borrow();
        let known = place_of(&members, hash).ok().map(|place| members[place].who.clone());
        Some(known.unwrap_or_else(|| Rc::new(Who { named: named.clone(), id, hash })))
    }

    /// Begins the turn of a message.
    fn begin(&self, shard: &Shard, entry: Entry) {
        let who = entry.to.clone();
        if entry.letter.birth.is_some_and(|birth| !self.born.borrow().contains(&birth)) {
            return answer(entry.reply, Answered::NoActor);
        }
        if let Some(known) = self.known_answer(&entry) {
            return answer(entry.reply, known);
        }
        shard.occupy(who.hash, true);
        self.turns.set(self.turns.get() + 1);
        let turn = TurnId(self.turns.get());
        let begun = self.with(shard, &who, |member, cast| {
            let letter = entry.letter.clone();
            // One turn of eight runs twice, with its volatile fields reset.
            let always = shard.port().node.config().reliable.rerun;
            let rerun = always || entry.number.is_multiple_of(RERUN_EACH);
            (cast.rerun, cast.may_rerun) = (rerun, rerun);
            cast.give_births(member.births.clone());
            member.running = Some(Running { entry, turn, end: None, ended: None });
            if !cast.knows(&who.named) {
                cast.loaded(&who.named, member.fields().stored());
            }
            // What is committed is what there is before each turn: who runs none twice keeps no other account of it.
            cast.know_before(&who.named, rerun.then(|| member.fields()));
            cast.begin(turn, &letter, shard.now())
        });
        self.begun(shard, &who, begun);
    }

    fn known_answer(&self, entry: &Entry) -> Option<Answered> {
        let call = entry.letter.call.as_ref().filter(|call| call.recorded)?;
        let members = self.members.borrow();
        let member = &members[place_of(&members, entry.to.hash).ok()?];
        let (request, body) = member.answers.get(&call.key)?;
        Some(match body {
            Body::Reply { status, payload } if call.is_repeat_of(*request) => {
                Answered::Reply { status: *status, payload: payload.clone() }
            }
            _ => Answered::OtherRequest,
        })
    }

    /// Takes in what has become of a turn at its beginning.
    fn begun(&self, shard: &Shard, who: &Rc<Who>, begun: Begun) {
        match begun {
            Begun::Runs(_, end) => self.with(shard, who, |member, _| {
                if let Some(running) = &mut member.running {
                    running.end = Some(end);
                }
            }),
            Begun::Ended(_, completion) => self.over(shard, who, Some(completion)),
            Begun::Reads(actor) => {
                let begun = self.with(shard, who, |member, cast| {
                    let stored = member.fields().stored();
                    cast.read(&actor, Ok(stored), shard.now())
                });
                self.begun(shard, who, begun);
            }
            Begun::Fails(turn, Outcome::Done(effects)) => self.ended(shard, who, Ended::of(&who.named, turn, effects)),
            Begun::Fails(_, Outcome::Failed(why)) => self.failed(shard, who, why),
            Begun::Fails(_, Outcome::Died) => self.failed(shard, who, HOST_DIED.to_owned()),
            Begun::Fails(_, Outcome::Deferred) => self.deferred(shard, who),
            Begun::Strands(..) => {
                let why = "it is hosted in another language, and hosts are not explored: test it with a whole cluster";
                self.failed(shard, who, format!("kind {:?}: {why}", who.named.kind));
            }
            Begun::Waits => {}
        }
    }

    /// Takes in the end of a turn.
    fn over(&self, shard: &Shard, who: &Rc<Who>, completion: Option<Completion>) {
        let end = self.with(shard, who, |member, cast| {
            let turn = member.running.as_ref()?.turn;
            cast.end(turn, completion)
        });
        match end {
            Some(End::Done(ended)) => self.ended(shard, who, ended),
            Some(End::Deferred) => self.deferred(shard, who),
            Some(End::Failed(why)) => self.failed(shard, who, why),
            Some(End::Died) => self.failed(shard, who, HOST_DIED.to_owned()),
            Some(End::Again) => self.failed(shard, who, "its turn could not begin".to_owned()),
            Some(End::Twice(begun)) => self.begun(shard, who, begun),
            None => {}
        }
    }

    /// A turn has effects: they come with its commit, which is a step if anybody could tell.
    fn ended(&self, shard: &Shard, who: &Rc<Who>, ended: Ended) {
        let is_seen = ended.is_seen();
        let number = self.with(shard, who, |member, _| {
            let running = member.running.as_mut()?;
            (running.end, running.ended) = (None, Some(ended));
            Some(mix(running.entry.number, COMMIT))
        });
        let Some(number) = number else { return };
        if !is_seen {
            return self.commit(shard, who, number);
        }
        let (of, id) = (who.clone(), who.id.clone());
        let perform = move |shard: &Shard| shard.hall().company().clone().commit(shard, &of, number);
        let by = Party::Actor(id.clone());
        let (kind, delivery) = (StepKind::Commit, Delivery::ExactlyOnce);
        let deed = Deed { kind, at: id, by, method: None, delivery, perform: Rc::new(perform) };
        shard.hold_deed(number, (who.hash, who.hash), deed);
    }

    /// Makes true what a turn has done: all of it.
    fn commit(&self, shard: &Shard, who: &Rc<Who>, number: u64) {
        let taken = self.with(shard, who, |member, cast| {
            let mut running = member.running.take()?;
            let Ended { effects, changes, later, .. } = running.ended.take()?;
            let effects = *effects;
            let Effects { halts, reconsider, .. } = effects;
            member.changes.push(changes.1);
            let _ = cast.committed(&who.named);
            if let (Some(call), Some(answer)) = (&running.entry.letter.call, &effects.answer)
                && call.recorded
            {
                member.answers.insert(call.key.clone(), (call.request, answer.clone()));
            }
            if reconsider {
                member.again.append(&mut member.deferred);
            }
            let dropped = if halts { std::mem::take(&mut member.deferred) } else { VecDeque::new() };
            Some((running.entry, effects, later, dropped))
        });
        let Some((entry, effects, later, dropped)) = taken else { return };
        if effects.halts {
            self.born.borrow_mut().retain(|birth| Some(*birth) != who.named.birth());
            dropped.into_iter().for_each(|entry| answer(entry.reply, Answered::NoActor));
        }
        shard.act_as(&who.id, number, || {
            let sends = effects.sends.into_iter().filter(|sent| matches!(sent.to, Destination::Partition(_)));
            for (place, sent) in (0..).zip(sends) {
                match sent.envelope.birth.filter(|_| sent.envelope.creates) {
                    Some(birth) => _ = self.born.borrow_mut().insert(birth),
                    None => self.send(shard, who, sent.envelope, mix(number, SENT | place), sent.delivery),
                }
            }
            later.into_iter().for_each(|later| later(shard));
        });
        let mut timers = self.timers.borrow_mut();
        let is_own =
            |due: &Due, name: &Option<String>| due.letter.from.as_ref() == Some(&who.named) && due.name == *name;
        for name in effects.cancels.into_iter().map(Some) {
            timers.retain(|due| !is_own(due, &name));
        }
        for (place, timer) in (0..).zip(effects.timers) {
            if timer.name.is_some() {
                timers.retain(|due| !is_own(due, &timer.name));
            }
            let (name, letter) = (timer.name, timer.outgoing.envelope);
            timers.push(Due { at: timer.due, number: mix(number, TIMER | place), name, letter });
        }
        drop(timers);
        if let Some(Body::Reply { status, payload }) = effects.answer {
            answer(entry.reply, Answered::Reply { status, payload });
        }
        self.free(shard, who);
    }

    fn deferred(&self, shard: &Shard, who: &Rc<Who>) {
        self.with(shard, who, |member, _| {
            if let Some(running) = member.running.take() {
                member.deferred.push_back(running.entry);
            }
        });
        self.free(shard, who);
    }

    /// A turn has no effects, and never will.
    fn failed(&self, shard: &Shard, who: &Rc<Who>, why: String) {
        let running = self.with(shard, who, |member, cast| {
            cast.cut(&who.named);
            member.running.take()
        });
        let Some(Running { entry, .. }) = running else { return };
        let is_faulty = self.with(shard, who, |_, cast| !std::mem::take(&mut cast.faulty).is_empty());
        if entry.reply.is_none() || is_faulty {
            shard.violate(why.clone());
        }
        answer(entry.reply, Answered::Failed(why));
        self.free(shard, who);
    }

    /// Lets the actor's next message come: first those that it has deferred in another state.
    fn free(&self, shard: &Shard, who: &Rc<Who>) {
        match self.with(shard, who, |member, _| member.again.pop_front()) {
            Some(entry) => self.begin(shard, entry),
            None => shard.occupy(who.hash, false),
        }
    }

    fn with<T>(&self, shard: &Shard, who: &Rc<Who>, act: impl FnOnce(&mut Member, &mut Cast) -> T) -> T {
        let (mut members, mut cast) = (self.members.borrow_mut(), self.cast.borrow_mut());
        let place = place_of(&members, who.hash).unwrap_or_else(|place| {
            members.insert(place, Member::of(shard, who));
            place
        });
        let member = &mut members[place];
        let cast = cast.get_or_insert_with(|| Cast::new(shard.port().clone(), OWNER, Life(0)));
        act(member, cast)
    }

    /// Lets a message be under way again, or when it is due.
    fn send_again(&self, shard: &Shard, letter: Sealed, number: u64) {
        if let Some(from) = letter.from.as_ref().and_then(|from| self.who(from)) {
            self.send(shard, &from, letter, number, Delivery::ExactlyOnce);
        }
    }

    /// The hash of the actor that has set a timer.
    fn owner(&self, due: &Due) -> Option<u64> {
        due.letter.from.as_ref().and_then(|from| self.who(from)).map(|who| who.hash)
    }

    /// Lets a message be under way that `from` has sent.
    fn send(&self, shard: &Shard, from: &Who, letter: Sealed, number: u64, delivery: Delivery) {
        let Body::Call { method, arguments, .. } = &letter.body else { return };
        let Some(to) = self.who(&letter.to) else { return };
        let by = Party::Actor(from.id.clone());
        shard.note_letter(number, &by, &to.id, method, &arguments.0);
        let (method, at, touches) = (Some(method.clone()), to.id.clone(), (to.hash, from.hash));
        let perform = move |shard: &Shard| {
            let company = shard.hall().company().clone();
            let (to, letter, number) = (to.clone(), letter.clone(), shard.step_number());
            company.begin(shard, Entry { to, letter, reply: None, number });
        };
        let deed = Deed { kind: StepKind::Start, at, by, method, delivery, perform: Rc::new(perform) };
        shard.hold_deed(number, touches, deed);
    }
}

impl Member {
    fn of(shard: &Shard, who: &Rc<Who>) -> Self {
        let partition = who.named.partition(shard.port().node.config().reliable.partitions);
        let owner = Ownership { partition, ..OWNER };
        // Whom it creates is called the same in all schedules, and otherwise than whom others create.
        let life = Life(who.hash >> LIFE_SHIFT);
        let births = Births::new(owner, life);
        let (fields, changes, answers) = (Fields::default(), Vec::new(), BTreeMap::new());
        let (deferred, again) = (VecDeque::new(), VecDeque::new());
        Self { who: who.clone(), births, fields, changes, deferred, again, running: None, answers }
    }

    /// What is committed.
    fn fields(&mut self) -> &Fields {
        for changes in self.changes.drain(..) {
            self.fields.change(&changes);
        }
        &self.fields
    }
}

/// Where the member with this hash is, or where it would be.
fn place_of(members: &[Member], hash: u64) -> Result<usize, usize> {
    members.binary_search_by_key(&hash, |member| member.who.hash)
}

impl Player for Company {
    fn settle(&self, shard: &Shard) {
        let mut over = Vec::new();
        for member in self.members.borrow_mut().iter_mut() {
            let Some(running) = &mut member.running else { continue };
            let Some(end) = &mut running.end else { continue };
            match end.try_recv() {
                Ok(completion) => over.push((member.who.clone(), Some(completion))),
                Err(oneshot::error::TryRecvError::Closed) => over.push((member.who.clone(), None)),
                Err(oneshot::error::TryRecvError::Empty) => {}
            }
        }
        over.into_iter().for_each(|(who, completion)| self.over(shard, &who, completion));
    }

    fn crashed(&self, shard: &Shard, is_there: &dyn Fn(&ActorId) -> bool) {
        let mut left = Vec::new();
        let (mut members, mut cast) = (self.members.borrow_mut(), self.cast.borrow_mut());
        for member in members.iter_mut().filter(|member| is_there(&member.who.id)) {
            let Who { named, hash, .. } = &*member.who;
            cast.iter_mut().for_each(|cast| cast.cut(named));
            shard.drop_deeds(StepKind::Commit, *hash);
            shard.occupy(*hash, false);
            let running = member.running.take().map(|running| running.entry);
            left.extend(running.into_iter().chain(member.again.drain(..)));
            // Who waits for the answer to a message that stays hears nothing more.
            member.deferred.iter_mut().for_each(|entry| drop(entry.reply.take()));
        }
        drop((members, cast));
        for Entry { letter, reply, number, .. } in left.into_iter().rev() {
            drop(reply);
            // What others have committed comes again, before what they have sent since.
            if letter.from.is_some() {
                let number = mix(number, shard.step_number());
                self.send_again(shard, letter, number);
                shard.put_first(number);
            }
        }
    }

    fn next_due(&self, shard: &Shard) -> Option<Timestamp> {
        let next = self.timers.borrow().iter().map(|due| due.at).min()?;
        let node = &shard.port().node;
        Some(node.world().now() + next.since(node.wall()))
    }

    fn pass_time(&self, shard: &Shard) {
        let now = shard.port().node.wall();
        let mut due: Vec<Due> = self.timers.borrow_mut().extract_if(.., |due| due.at <= now).collect();
        due.sort_by_key(|due| due.at);
        for Due { number, letter, .. } in due {
            self.send_again(shard, letter, number);
        }
    }

    fn timed(&self) -> Vec<u64> {
        self.timers.borrow().iter().filter_map(|due| self.owner(due)).collect()
    }

    fn went_ahead(&self, shard: &Shard, is_meant: &dyn Fn(u64) -> bool, ahead: Duration) {
        for due in self.timers.borrow_mut().iter_mut() {
            if self.owner(due).is_some_and(is_meant) {
                due.at = Wall(due.at.0.saturating_sub(ahead.as_millis() as u64));
            }
        }
        self.pass_time(shard);
    }

    fn forget(&self) {
        let mut members = self.members.take();
        members.clear();
        drop((self.members.replace(members), self.cast.take(), self.timers.take(), self.born.take()));
        self.turns.set(0);
    }
}

fn answer(reply: Option<Box<dyn AnyReply>>, answered: Answered) {
    if let Some(reply) = reply {
        reply.finish(RuntimeEnd(answered.completion()));
    }
}

/// Who they are to who runs their turns.
const OWNER: Ownership = Ownership { partition: PartitionId(0), epoch: Epoch(1) };
/// One of so many turns runs twice.
const RERUN_EACH: u64 = 8;
/// Tell what comes of one commit apart, and commits from messages.
const COMMIT: u64 = 11 << 59;
const SENT: u64 = 13 << 59;
const TIMER: u64 = 15 << 59;
/// Leaves short names.
const LIFE_SHIFT: u32 = 40;
/// Failure of a turn whose host died: no actor is in a host where actors are explored.
const HOST_DIED: &str = "its host died";
