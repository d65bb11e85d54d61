//! Hosts and reminders together, checked exhaustively on a small instance: the tick of a one-shot reminder begins a turn of an actor in a
//! host, while faults strike the host, the actor's node and the owner of the reminder's range.
//!
//! The machines are the real ones: [`Range`] of two owners, [`TickLog`] of the activation, [`Lanes`] of its shard. The store answers at
//! once, as the model `reminders` has its faults. A host dies, or freezes until its lease is over and later goes on as if nothing had
//! happened; another one comes. In an instance of its own the turn always takes down its process. The actor's node starts again and forgets its activation, the range goes to another owner while the first one
//! does not know yet, answers get lost, turns raise exceptions, and states are not saved.

use std::collections::BTreeMap;
use std::time::{Duration, Instant};

use greenroom_protocols::checks::Checks;
use greenroom_protocols::host::{
    Activation, Bounds, Cookie, Fate, LaneAction, LaneEvent, Lanes, Named, Offer, SessionId, Settings, TurnNumber, Word,
};
use greenroom_protocols::reminders::{
    Action, Delivered, Etag, Event, Fold, Found, Hint, HintName, Now, Plan, Position, Range, Record, TickLog,
    TickRefusal, Tombstone, Wall, WorkId,
};
use greenroom_protocols::time::Timestamp;
use greenroom_protocols::versions::{self, ANY};
use stateright::{Checker, HasDiscoveries, Model, Property};

const ACTOR: Activation = Activation(1);
/// The first owner has come before the tick is due.
const EARLIER: Wall = Wall(9_000);
const DUE: Wall = Wall(10_000);
const ATTEMPTS_MAX: u32 = 2;
const DEATHS_MAX: u32 = 3;
/// The model looks no further than this: three seconds after the tick was due. Pauses that end later are taken for ended, unless only
/// the next look at the whole range would end them.
const END: Wall = Wall(13_000);
/// No owner reads its range again before this, if nothing makes it do so.
const RESCAN_FIRST: Wall = Wall(69_000);

#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
struct Once;

impl Plan for Once {
    fn fold(&self, _: Wall, _: Wall) -> Fold {
        Fold { missed: 0, next: None }
    }
}

/// The faults and rules of an instance.
#[derive(Clone)]
struct Instance {
    /// The rules in force; the control run takes `tick_outcome` out.
    checks: Checks,
    faults: u8,
    /// The tick's method is a read, which runs beside others.
    is_read: bool,
    takes_over: bool,
    /// Each turn of the tick takes down its host or its node.
    is_poison: bool,
}

/// A tick's call between an owner and the actor. `owner` is `None` once no owner waits for it.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
struct TickCall {
    owner: Option<(usize, WorkId)>,
    due: Wall,
}

#[derive(Clone, PartialEq, Eq, Hash, Debug)]
struct RunningTurn {
    call: TickCall,
    cookie: Cookie,
    /// The place of the turn at its host, once it was sent.
    sent: Option<(SessionId, TurnNumber)>,
}

/// A host with the turns that it was sent.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
struct HostProcess {
    session: SessionId,
    is_frozen: bool,
    turns: Vec<TurnNumber>,
}

#[derive(Clone, PartialEq, Eq, Hash, Debug)]
struct State {
    wall: Wall,
    owners: Vec<Range<u8, Once>>,
    record: Option<Found<Once>>,
    hints: BTreeMap<Position, (Etag, Hint<u8>)>,
    tags: u64,
    calls: Vec<TickCall>,
    log: TickLog<Wall>,
    lanes: Lanes,
    running: Vec<RunningTurn>,
    /// The host that the node has a session with, and a frozen one of before.
    host: Option<HostProcess>,
    frozen: Option<HostProcess>,
    last_session: u64,
    last_cookie: u64,
    /// The shard knows the activation.
    is_wanted: bool,
    faults: u8,
    is_read: bool,
    /// A tick is taken for done by its turn's outcome.
    by_outcome: bool,
    // For the properties.
    /// Turns that have ended and saved, on this activation and before it.
    done_here: u8,
    done: u8,
    is_reported: bool,
    was_lost: bool,
    /// Turns whose host or node was lost while they ran.
    deaths: u32,
    wrong: Option<&'static str>,
}

#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
enum Outcome {
    Saved,
    Unsaved,
    Exception,
}

#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
enum Step {
    /// The first call reaches the actor.
    Arrive,
    /// The answer to the first call is lost: its owner hears so, and the call arrives later.
    LoseAnswer,
    TurnEnds(TurnNumber, Outcome),
    /// A frozen host of before goes on, and says that its turn has ended.
    LateEnd,
    HostDies,
    HostFreezes,
    /// The host that is frozen goes on before its lease is over.
    HostThaws,
    LeaseEnds,
    HostComes,
    NodeStartsAgain,
    /// The owner of the range dies together with the actor's node.
    OwnerDies,
    TakeOver,
    OwnerHears,
    Time,
}

impl State {
    fn now(&self) -> Now {
        Now { clock: Timestamp::from_nanos(self.wall.0 * 1_000_000), wall: self.wall }
    }

    /// Gives an event to an owner; the store carries out at once what follows.
    fn owner(&mut self, owner: usize, event: Event<u8, Once>) {
        let mut events = vec![event];
        while let Some(event) = events.pop() {
            let mut out = Vec::new();
            let now = self.now();
            self.owners[owner].handle(now, event, &mut out);
            events.extend(out.into_iter().filter_map(|action| self.perform(owner, action)));
        }
    }

    fn perform(&mut self, owner: usize, action: Action<u8, Once>) -> Option<Event<u8, Once>> {
        Some(match action {
            Action::Scan { token, after } => {
                let follows = |at: &&Position| after.is_none_or(|after| **at > after);
                let items = self.hints.iter().filter(|(at, _)| follows(at));
                let items = items.map(|(at, (tag, hint))| (*at, tag.clone(), hint.clone())).collect();
                Event::Scanned { token, items: Some(items), more: false }
            }
            Action::Read { work, .. } => Event::Read { work, found: Ok(self.record.clone()) },
            Action::Deliver { work, record, .. } => {
                self.calls.push(TickCall { owner: Some((owner, work)), due: record.due });
                return None;
            }
            Action::CreateHint { work, wake, hint } => {
                Event::HintCreated { work, hint: Some(self.create_hint(wake, hint)) }
            }
            Action::Write { work, record, expected, .. } => {
                let applied = self.record.as_ref().is_some_and(|found| found.tag == expected);
                if applied {
                    self.write(record);
                }
                Event::Written { work, applied }
            }
            Action::Remove { work, .. } => Event::Written { work, applied: false },
            Action::ReportFailed { attempts, .. } => {
                self.is_reported = true;
                if attempts < ATTEMPTS_MAX {
                    self.wrong = Some("a tick is given up before its last attempt");
                }
                return None;
            }
            Action::ReportParked { deaths, .. } => {
                self.is_reported = true;
                if deaths < DEATHS_MAX || self.deaths < DEATHS_MAX {
                    self.wrong =
                        Some("a tick is parked before its turns have taken down as many processes as they may");
                }
                return None;
            }
            Action::DropHint { work, hint } => {
                self.hints.remove(&hint.at);
                Event::Dropped { work, gone: true }
            }
        })
    }

    fn tag(&mut self) -> Etag {
        self.tags += 1;
        Etag(self.tags.to_string())
    }

    fn create_hint(&mut self, wake: Wall, hint: Hint<u8>) -> HintName {
        let tag = self.tag();
        let at = Position { wake, nonce: self.tags };
        self.hints.insert(at, (tag.clone(), hint));
        HintName { at, tag }
    }

    fn write(&mut self, record: Record<Once>) {
        if record.plan == Err(Tombstone) && self.done == 0 && !self.is_reported {
            self.wrong = Some("the reminder is over, and its tick is neither done nor reported");
        }
        let tag = self.tag();
        self.record = Some(Found { record, tag });
    }

    fn is_over(&self) -> bool {
        self.record.as_ref().is_none_or(|found| found.record.plan.is_err() || found.record.is_parked())
    }

    /// Answers a call, if its owner still waits for it.
    fn answer(&mut self, call: TickCall, how: Delivered) {
        if let Some((owner, work)) = call.owner {
            self.owner(owner, Event::Delivered { work, how });
        }
    }

    fn lane(&mut self, event: LaneEvent) {
        let mut events = vec![event];
        while let Some(event) = events.pop() {
            let mut out = Vec::new();
            let now = self.now();
            self.lanes.handle(now.clock, event, &mut out);
            for action in out {
                match action {
                    LaneAction::Activate { session, seat, .. } => {
                        events.push(LaneEvent::Activated { session, seat, is_ready: true });
                    }
                    LaneAction::Send { session, turn, cookie, .. } => {
                        if let Some(running) = self.running.iter_mut().find(|running| running.cookie == cookie) {
                            running.sent = Some((session, turn));
                        }
                        if let Some(host) = self.host.as_mut().filter(|host| host.session == session) {
                            host.turns.push(turn);
                        }
                    }
                    LaneAction::Fail { cookie, fate } => self.turn_lost(cookie, fate),
                    _ => {}
                }
            }
        }
    }

    /// Begins the turn of a tick, if its activation lets it.
    fn begin(&mut self, call: TickCall) {
        // The turn reads the record before it runs.
        let is_due =
            self.record.as_ref().is_some_and(|found| found.record.due == call.due && found.record.plan.is_ok());
        let how = match self.log.begin(call.due) {
            Err(TickRefusal::Done) => Delivered::Ran,
            Err(TickRefusal::Running) => {
                if self.running.iter().all(|running| running.call.due != call.due) {
                    self.wrong = Some("a tick is refused for a turn of it that does not run");
                }
                Delivered::Gone
            }
            Ok(()) if !is_due => {
                self.log.end(call.due, false, |_| false);
                Delivered::Gone
            }
            Ok(()) => return self.send(call),
        };
        self.answer(call, how);
    }

    fn send(&mut self, call: TickCall) {
        if self.running.iter().any(|running| running.call.due == call.due) {
            self.wrong = Some("a tick runs beside itself");
        }
        self.last_cookie += 1;
        let cookie = Cookie(self.last_cookie);
        self.running.push(RunningTurn { call, cookie, sent: None });
        if !std::mem::replace(&mut self.is_wanted, true) {
            let (kind, wanted) = ("mid".into(), ANY);
            self.lane(LaneEvent::Want { activation: ACTOR, kind, wanted, is_patient: true });
        }
        self.lane(LaneEvent::Begin { activation: ACTOR, cookie, runs_again: self.is_read, len: 1 });
    }

    /// The turn of a tick is over at its node.
    fn turn_over(&mut self, cookie: Cookie, is_done: bool, how: Delivered) {
        let Some(place) = self.running.iter().position(|running| running.cookie == cookie) else { return };
        let RunningTurn { call, .. } = self.running.remove(place);
        self.log.end(call.due, is_done || !self.by_outcome, |_| true);
        self.answer(call, how);
    }

    fn turn_lost(&mut self, cookie: Cookie, fate: Fate) {
        self.was_lost = true;
        let again = self.running.iter().position(|running| running.cookie == cookie).filter(|_| fate == Fate::Again);
        match again {
            Some(place) => {
                let RunningTurn { call, .. } = self.running.remove(place);
                self.send(call);
            }
            None => {
                self.deaths += 1;
                self.turn_over(cookie, false, Delivered::Died);
            }
        }
    }

    /// A host says that a turn of its has ended.
    fn turn_ends(&mut self, session: SessionId, turn: TurnNumber, outcome: Outcome) {
        let Named::Live(cookie) = self.lanes.turn(session, turn) else { return };
        self.lane(LaneEvent::Ended { session, turn, stream: None });
        match outcome {
            Outcome::Saved => {
                self.done += 1;
                self.done_here += 1;
                if self.done_here > 1 {
                    self.wrong = Some("a tick that is done runs again on its activation");
                }
                self.turn_over(cookie, true, Delivered::Ran);
            }
            Outcome::Unsaved => self.turn_over(cookie, false, Delivered::Again),
            Outcome::Exception => self.turn_over(cookie, false, Delivered::Failed { attempts_max: ATTEMPTS_MAX }),
        }
    }

    /// The node takes its session with a host for over: the host is gone, or its lease is.
    fn session_over(&mut self, session: SessionId) {
        self.lane(LaneEvent::Word(Word::Lost { session }));
        self.lane(LaneEvent::Word(Word::Over { session }));
    }

    fn host_comes(&mut self) {
        self.last_session += 1;
        let session = SessionId(self.last_session);
        self.host = Some(HostProcess { session, is_frozen: false, turns: Vec::new() });
        let offer = Offer { kind: "mid".into(), versions: versions::Offer::FIRST, digest: "d".into() };
        self.lane(LaneEvent::Word(Word::Open { session, bounds: Bounds::default() }));
        self.lane(LaneEvent::Word(Word::Offers { session, index: 0, offer }));
        self.lane(LaneEvent::Joined { session });
    }

    /// The actor's node starts again, and with it this owner, if it is there. The activation and its lanes are gone; its host dials the node
    /// again.
    fn lose_node(&mut self, owner: Option<usize>) {
        if let Some(owner) = owner {
            self.owner(owner, Event::Lose);
        }
        (self.log, self.lanes) = (TickLog::default(), Lanes::new(Settings::default(), 0));
        (self.host, self.frozen, self.done_here, self.is_wanted) = (None, None, 0, false);
        for RunningTurn { call, .. } in std::mem::take(&mut self.running) {
            self.deaths += 1;
            self.answer(call, Delivered::Died);
        }
        for call in std::mem::take(&mut self.calls) {
            self.answer(call, Delivered::Lost);
        }
    }

    /// True if each turn that runs is at the host, or waits for one to come.
    fn turns_have_a_host(&self) -> bool {
        let is_at = |host: &HostProcess, running: &RunningTurn| {
            running.sent.is_some_and(|(session, turn)| session == host.session && host.turns.contains(&turn))
        };
        self.running.iter().all(|running| match &self.host {
            Some(host) => is_at(host, running),
            None => running.sent.is_none(),
        })
    }

    /// The next time at which an owner with a tick has something to do.
    fn next_deadline(&self) -> Option<Wall> {
        let works = self.owners.iter().filter(|owner| owner.loaded() > 0);
        let deadlines = works.filter_map(|owner| owner.deadline(self.now()));
        deadlines.map(|at| Wall(at.as_nanos().div_ceil(1_000_000))).min()
    }

    /// That time, if the model looks so far.
    fn wakes(&self) -> Option<Wall> {
        self.next_deadline().filter(|at| *at > self.wall && *at <= END)
    }
}

impl Model for Instance {
    type State = State;
    type Action = Step;

    fn init_states(&self) -> Vec<State> {
        let mut state = State {
            wall: EARLIER,
            owners: vec![Range::new(self.checks, DEATHS_MAX); 2],
            record: None,
            hints: BTreeMap::new(),
            tags: 0,
            calls: Vec::new(),
            log: TickLog::default(),
            lanes: Lanes::new(Settings::default(), 0),
            running: Vec::new(),
            host: None,
            frozen: None,
            last_session: 0,
            last_cookie: 0,
            is_wanted: false,
            faults: self.faults,
            is_read: self.is_read,
            by_outcome: self.checks.tick_outcome,
            done_here: 0,
            done: 0,
            is_reported: false,
            was_lost: false,
            deaths: 0,
            wrong: None,
        };
        let hint = state.create_hint(DUE, Hint { of: 0, expected: None });
        state.write(Record { registration: 7, due: DUE, hint, plan: Ok(Once), attempt: None });
        state.host_comes();
        state.owner(0, Event::Own { after_death: false });
        state.wall = DUE;
        state.owner(0, Event::Tick);
        vec![state]
    }

    fn actions(&self, state: &State, out: &mut Vec<Step>) {
        let has_faults = state.faults > 0;
        // An exclusive turn waits for the one before.
        if !state.calls.is_empty() && (self.is_read || state.running.is_empty()) {
            out.push(Step::Arrive);
        }
        if has_faults && state.calls.first().is_some_and(|call| call.owner.is_some()) {
            out.push(Step::LoseAnswer);
        }
        match &state.host {
            Some(host) if host.is_frozen => out.extend([Step::HostThaws, Step::LeaseEnds]),
            Some(host) if self.is_poison => {
                if !host.turns.is_empty() {
                    out.extend([Step::HostDies, Step::NodeStartsAgain, Step::OwnerDies]);
                }
            }
            Some(host) => {
                for turn in &host.turns {
                    out.push(Step::TurnEnds(*turn, Outcome::Saved));
                    if has_faults {
                        let failures = [Outcome::Unsaved, Outcome::Exception];
                        out.extend(failures.map(|outcome| Step::TurnEnds(*turn, outcome)));
                    }
                }
                if has_faults {
                    out.extend([Step::HostDies, Step::HostFreezes]);
                }
            }
            None => out.push(Step::HostComes),
        }
        if state.frozen.is_some() {
            out.push(Step::LateEnd);
        }
        if has_faults {
            out.push(Step::NodeStartsAgain);
        }
        if self.takes_over {
            match [state.owners[0].is_owned(), state.owners[1].is_owned()] {
                [true, false] => out.push(Step::TakeOver),
                [true, true] => out.push(Step::OwnerHears),
                _ => {}
            }
        }
        if state.wakes().is_some() {
            out.push(Step::Time);
        }
    }

    fn next_state(&self, state: &State, step: Step) -> Option<State> {
        let mut state = state.clone();
        let is_fault = match step {
            Step::TurnEnds(_, outcome) => outcome != Outcome::Saved,
            Step::HostDies | Step::NodeStartsAgain => !self.is_poison,
            Step::LoseAnswer | Step::HostFreezes => true,
            _ => false,
        };
        state.faults -= u8::from(is_fault);
        match step {
            Step::Arrive => {
                let call = state.calls.remove(0);
                state.begin(call);
            }
            Step::LoseAnswer => {
                let call = state.calls[0];
                state.calls[0].owner = None;
                state.answer(call, Delivered::Lost);
            }
            Step::TurnEnds(turn, outcome) => {
                let host = state.host.as_mut()?;
                host.turns.retain(|running| *running != turn);
                let session = host.session;
                state.turn_ends(session, turn, outcome);
            }
            Step::LateEnd => {
                let HostProcess { session, turns, .. } = state.frozen.take()?;
                for turn in turns {
                    state.turn_ends(session, turn, Outcome::Saved);
                }
            }
            Step::HostDies => {
                let session = state.host.take()?.session;
                state.session_over(session);
            }
            Step::HostFreezes => state.host.as_mut()?.is_frozen = true,
            Step::HostThaws => state.host.as_mut()?.is_frozen = false,
            Step::LeaseEnds => {
                let host = state.host.take()?;
                let session = host.session;
                state.frozen = Some(host);
                state.session_over(session);
            }
            Step::HostComes => state.host_comes(),
            Step::NodeStartsAgain => state.lose_node(None),
            Step::TakeOver => state.owner(1, Event::Own { after_death: false }),
            Step::OwnerDies => {
                let owner = state.owners.iter().position(Range::is_owned)?;
                state.lose_node(Some(owner));
                state.owner(1 - owner, Event::Own { after_death: true });
            }
            Step::OwnerHears => {
                state.owner(0, Event::Lose);
                for call in &mut state.calls {
                    call.owner = call.owner.filter(|(owner, _)| *owner != 0);
                }
            }
            Step::Time => {
                state.wall = state.wakes()?;
                for owner in 0..state.owners.len() {
                    state.owner(owner, Event::Tick);
                }
            }
        }
        Some(state)
    }

    fn properties(&self) -> Vec<Property<Self>> {
        vec![
            Property::always("few processes die during turns of the tick", |instance: &Self, state: &State| {
                !instance.is_poison || state.deaths <= DEATHS_MAX
            }),
            Property::always("nothing goes wrong", |_, state: &State| state.wrong.is_none()),
            Property::always("the tick never gets stuck", |instance: &Self, state: &State| {
                let mut steps = Vec::new();
                instance.actions(state, &mut steps);
                let goes_on = |step: &Step| {
                    !matches!(step, Step::NodeStartsAgain | Step::TakeOver | Step::OwnerHears | Step::LateEnd)
                };
                let waits = state.next_deadline().is_some_and(|at| at > END && at < RESCAN_FIRST);
                state.turns_have_a_host() && (state.is_over() || waits || steps.iter().any(goes_on))
            }),
            Property::sometimes(END_AFTER_DEATH, |instance: &Self, state: &State| {
                state.was_lost && (state.done > 0 || instance.is_poison) && state.is_over()
            }),
        ]
    }
}

/// Explores everything: the violations, by their properties and steps.
fn explore(instance: Instance) -> Vec<String> {
    let began = Instant::now();
    let checker =
        instance.checker().threads(2).finish_when(HasDiscoveries::AnyFailures).timeout(PATIENCE).spawn_bfs().join();
    println!("{} states in {:?}", checker.unique_state_count(), began.elapsed());
    assert!(began.elapsed() < PATIENCE, "too much for a test: make the instance smaller");
    let wrong: Vec<String> = checker
        .discoveries()
        .iter()
        .filter(|(name, _)| **name != END_AFTER_DEATH)
        .map(|(name, path)| format!("{name}: {:?}\n{:?}", path.last_state().wrong, path.clone().into_actions()))
        .collect();
    if wrong.is_empty() {
        checker.assert_any_discovery(END_AFTER_DEATH);
    }
    wrong
}

/// The name of the property that shows that the instance reaches the end of a tick whose host was lost.
const END_AFTER_DEATH: &str = "a tick is over after its host was lost in its turn";
/// Time after which an exploration is given up.
const PATIENCE: Duration = Duration::from_secs(100);

fn small(is_read: bool, takes_over: bool) -> Instance {
    Instance { checks: Checks::default(), faults: 2, is_read, takes_over, is_poison: false }
}

#[test]
fn each_one_shot_reminder_is_done_or_reported_whatever_becomes_of_hosts_and_owners() {
    for is_read in [false, true] {
        for takes_over in [false, true] {
            assert_eq!(explore(small(is_read, takes_over)), [""; 0]);
        }
    }
}

#[test]
fn a_tick_that_counts_as_done_whatever_its_outcome_is_lost_with_its_host() {
    let checks = Checks { tick_outcome: false, ..Checks::default() };
    let wrong = explore(Instance { checks, ..small(false, false) });
    assert!(wrong.iter().any(|wrong| wrong.starts_with("nothing goes wrong")), "{wrong:?}");
}

fn poison(checks: Checks) -> Instance {
    Instance { checks, faults: 0, is_read: false, takes_over: false, is_poison: true }
}

#[test]
fn a_tick_whose_turn_kills_is_parked_after_three_deaths_whoever_owns_its_range() {
    assert_eq!(explore(poison(Checks::default())), [""; 0]);
}

#[test]
fn a_tick_whose_deaths_are_not_counted_kills_on() {
    let wrong = explore(poison(Checks { tick_deaths: false, ..Checks::default() }));
    assert!(wrong.iter().any(|wrong| wrong.starts_with("few processes die")), "{wrong:?}");
}
