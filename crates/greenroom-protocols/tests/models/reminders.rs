//! Reminders, checked exhaustively on a small instance, and shown to break without each of the checks.
//!
//! One reminder of one range is registered, ticks and is cancelled, while a second node takes the range over: the first goes
//! on as if it had not heard of it, for as long as it likes, as one that is paused may do. What is asked of the store is
//! carried out at any time after it was asked, or never; answers may get lost, and what nobody waits for any more may still
//! be carried out. Nothing forces anybody to move, so everybody may pause or crash anywhere.

use std::collections::{BTreeMap, BTreeSet};
use std::time::{Duration, Instant};

use greenroom_protocols::checks::Checks;
use greenroom_protocols::reminders::{
    Action, Answer, Change, Delivered, Etag, Event, Fold, Found, Hint, HintName, Now, Plan, Position, Range, Record,
    Step as Ask, Wall, Want,
};
use greenroom_protocols::time::Timestamp;
use stateright::{Checker, HasDiscoveries, Model, Property};

/// Every ten seconds, or once.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
struct Beat(bool);

impl Plan for Beat {
    fn fold(&self, due: Wall, now: Wall) -> Fold {
        match self.0 {
            false => Fold { missed: 0, next: None },
            true => {
                let missed = now.since(due).as_secs() / 10;
                Fold { missed, next: Some(due + Duration::from_secs(10 * (missed + 1))) }
            }
        }
    }
}

/// What may happen, and how often.
#[derive(Clone)]
struct Small {
    periodic: bool,
    /// Seconds to which the clock may jump, in order.
    times: Vec<u64>,
    /// Answers that get lost.
    losses: u8,
    cancels: bool,
    /// Whether the reminder is there when it begins.
    registered: bool,
    takes_over: bool,
    checks: Checks,
}

#[derive(Clone, PartialEq, Eq, Hash, Debug)]
struct State {
    time: usize,
    owners: Vec<Range<u8, Beat>>,
    /// Who asked for what that was not carried out yet; `None` for what nobody waits for any more.
    asked: BTreeMap<u32, (Option<usize>, Action<u8, Beat>)>,
    /// The same of who registers and cancels.
    changing: Vec<Client>,
    late: BTreeMap<u32, (Record<Beat>, Option<Etag>)>,
    next: u32,
    record: Option<Found<Beat>>,
    hints: BTreeMap<Position, (Etag, Hint<u8>)>,
    tags: u32,
    losses: u8,
    // What the checks look at.
    ran: BTreeSet<(u64, Wall)>,
    moved: BTreeSet<(u64, Wall)>,
    registered: bool,
    cancelled: bool,
    wrong: Option<&'static str>,
}

#[derive(Clone, PartialEq, Eq, Hash, Debug)]
struct Client {
    change: Change<Beat>,
    begun: bool,
    over: bool,
}

#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
enum Step {
    /// Carry it out and answer.
    Do(u32),
    /// Carry it out; the answer is lost.
    Lose(u32),
    /// Say that nobody knows; it may be carried out later.
    Late(u32),
    /// Carry out what nobody waits for.
    Land(u32),
    TakeOver,
    Time,
    Client(usize),
    ClientLoses(usize),
    ClientLate(usize),
    ClientLands(u32),
}

impl Small {
    fn now(&self, state: &State) -> Now {
        let seconds = self.times[state.time];
        Now { clock: Timestamp::from_nanos(seconds * 1_000_000_000), wall: Wall(seconds * 1_000) }
    }

    fn handle(&self, state: &mut State, node: usize, event: Event<u8, Beat>) {
        let now = self.now(state);
        let mut out = Vec::new();
        state.owners[node].handle(now, event, &mut out);
        for action in out {
            state.next += 1;
            state.asked.insert(state.next, (Some(node), action));
        }
    }

    /// Carries `action` out: the answer.
    fn perform(&self, state: &mut State, action: Action<u8, Beat>) -> Event<u8, Beat> {
        match action {
            Action::Scan { token, after } => {
                let follows = |(at, _): &(&Position, &(Etag, Hint<u8>))| after.is_none_or(|after| **at > after);
                let items = state.hints.iter().filter(follows);
                let items = items.map(|(at, (tag, hint))| (*at, tag.clone(), hint.clone())).collect();
                Event::Scanned { token, items: Some(items), more: false }
            }
            Action::Read { work, .. } => Event::Read { work, found: Ok(state.record.clone()) },
            Action::Deliver { work, record, .. } => {
                let there = state.record.as_ref().is_some_and(|found| {
                    found.record.plan.is_ok()
                        && (found.record.registration, found.record.due) == (record.registration, record.due)
                });
                if !there && self.checks.tick_check {
                    return Event::Delivered { work, how: Delivered::Gone };
                }
                if state.cancelled {
                    state.wrong = Some("a turn began after the cancellation was acknowledged");
                }
                state.ran.insert((record.registration, record.due));
                Event::Delivered { work, how: Delivered::Ran }
            }
            Action::CreateHint { work, wake, hint } => {
                Event::HintCreated { work, hint: Some(state.create_hint(wake, hint)) }
            }
            Action::Write { work, record, expected, .. } => {
                let applied = state.write(record, Some(&expected), true);
                Event::Written { work, applied }
            }
            Action::Remove { work, expected, .. } => {
                let there = state.record.as_ref().is_some_and(|found| found.tag == expected);
                if there {
                    state.leaves_due();
                    state.record = None;
                }
                Event::Written { work, applied: there }
            }
            Action::ReportFailed { .. } | Action::ReportParked { .. } => Event::Tick,
            Action::DropHint { work, hint } => {
                state.hints.remove(&hint.at);
                Event::Dropped { work, gone: true }
            }
        }
    }

    /// What the asker hears when nobody knows.
    fn unknown(action: &Action<u8, Beat>) -> Option<Event<u8, Beat>> {
        match action {
            Action::Deliver { work, .. } => Some(Event::Delivered { work: *work, how: Delivered::Lost }),
            Action::CreateHint { work, .. } => Some(Event::HintCreated { work: *work, hint: None }),
            Action::Write { work, .. } | Action::Remove { work, .. } => {
                Some(Event::Written { work: *work, applied: false })
            }
            // A read that fails is one that comes later; a hint that does not go is one too many.
            Action::Scan { .. }
            | Action::Read { .. }
            | Action::DropHint { .. }
            | Action::ReportFailed { .. }
            | Action::ReportParked { .. } => None,
        }
    }

    fn client(&self, state: &mut State, which: usize) {
        let ask = state.changing[which].change.step().clone();
        state.changing[which].begun = true;
        let answer = match ask {
            Ask::Read => Answer::Read(state.record.clone()),
            Ask::CreateHint { wake, expected } => Answer::Hint(state.create_hint(wake, Hint { of: 0, expected })),
            Ask::Write { record, expected } => match state.write(record, expected.as_ref(), false) {
                true => Answer::Written,
                false => Answer::Failed,
            },
            Ask::DropHint(hint) => {
                state.hints.remove(&hint.at);
                Answer::Dropped
            }
            Ask::Done(_) => {
                state.changing[which].over = true;
                match which {
                    0 => state.registered = true,
                    _ => state.cancelled = true,
                }
                return;
            }
        };
        state.changing[which].change.answer(answer);
    }
}

impl State {
    fn tag(&mut self) -> Etag {
        self.tags += 1;
        Etag(self.tags.to_string())
    }

    fn create_hint(&mut self, wake: Wall, hint: Hint<u8>) -> HintName {
        let tag = self.tag();
        let at = Position { wake, nonce: u64::from(self.tags) };
        self.hints.insert(at, (tag.clone(), hint));
        HintName { at, tag }
    }

    fn write(&mut self, record: Record<Beat>, expected: Option<&Etag>, by_owner: bool) -> bool {
        if self.record.as_ref().map(|found| &found.tag) != expected {
            return false;
        }
        let same =
            |found: &Found<Beat>| (found.record.registration, found.record.due) == (record.registration, record.due);
        if by_owner && self.record.as_ref().is_some_and(|found| !same(found)) {
            self.leaves_due();
        }
        let tag = self.tag();
        self.record = Some(Found { record, tag });
        true
    }

    /// The record goes on from its due time.
    fn leaves_due(&mut self) {
        let Some(Found { record, .. }) = &self.record else { return };
        if record.plan.is_err() {
            return;
        }
        let tick = (record.registration, record.due);
        if !self.ran.contains(&tick) {
            self.wrong = Some("the record moved on from a due time that had no turn");
        }
        if !self.moved.insert(tick) {
            self.wrong = Some("the record moved on twice from one due time");
        }
    }

    /// Whether what is there can be found when its time comes.
    fn is_hinted(&self) -> bool {
        self.record.as_ref().is_none_or(|found| self.hints.contains_key(&found.record.hint.at))
    }
}

impl Model for Small {
    type State = State;
    type Action = Step;

    fn init_states(&self) -> Vec<State> {
        let set = Want::Set { registration: 7, due: Wall(10_000), plan: Beat(self.periodic) };
        let wants = [Some(set), self.cancels.then_some(Want::Cancel { until: Wall(900_000) })];
        let client = |want| Client { change: Change::new(want), begun: false, over: false };
        let mut state = State {
            time: 0,
            owners: vec![Range::new(self.checks, 3); 2],
            asked: BTreeMap::new(),
            changing: wants.into_iter().flatten().map(client).collect(),
            late: BTreeMap::new(),
            next: 0,
            record: None,
            hints: BTreeMap::new(),
            tags: 0,
            losses: self.losses,
            ran: BTreeSet::new(),
            moved: BTreeSet::new(),
            registered: false,
            cancelled: false,
            wrong: None,
        };
        while self.registered && !state.registered {
            self.client(&mut state, 0);
        }
        self.handle(&mut state, 0, Event::Own { after_death: false });
        vec![state]
    }

    fn actions(&self, state: &State, out: &mut Vec<Step>) {
        for (id, (asker, action)) in &state.asked {
            match asker {
                Some(_) => {
                    out.push(Step::Do(*id));
                    if state.losses > 0 && Self::unknown(action).is_some() {
                        out.extend([Step::Lose(*id), Step::Late(*id)]);
                    }
                }
                None => out.push(Step::Land(*id)),
            }
        }
        for (which, client) in state.changing.iter().enumerate() {
            // Cancellation begins when the registration has ended, or was given up.
            let waits =
                which == 1 && !client.begun && !(state.changing[0].over || state.changing[0].change.is_in_doubt());
            if client.over || waits || (which == 0 && state.changing.get(1).is_some_and(|cancel| cancel.begun)) {
                continue;
            }
            out.push(Step::Client(which));
            if state.losses > 0 && matches!(client.change.step(), Ask::Write { .. }) {
                out.extend([Step::ClientLoses(which), Step::ClientLate(which)]);
            }
        }
        out.extend(state.late.keys().map(|id| Step::ClientLands(*id)));
        if self.takes_over && !state.owners[1].is_owned() {
            out.push(Step::TakeOver);
        }
        if state.time + 1 < self.times.len() {
            out.push(Step::Time);
        }
    }

    fn next_state(&self, state: &State, step: Step) -> Option<State> {
        let mut state = state.clone();
        match step {
            Step::Do(id) => {
                let (asker, action) = state.asked.remove(&id)?;
                let answer = self.perform(&mut state, action);
                self.handle(&mut state, asker?, answer);
            }
            Step::Lose(id) => {
                let (asker, action) = state.asked.remove(&id)?;
                let unknown = Self::unknown(&action)?;
                self.perform(&mut state, action);
                state.losses -= 1;
                self.handle(&mut state, asker?, unknown);
            }
            Step::Late(id) => {
                let (asker, action) = state.asked.remove(&id)?;
                let unknown = Self::unknown(&action)?;
                state.asked.insert(id, (None, action));
                state.losses -= 1;
                self.handle(&mut state, asker?, unknown);
            }
            Step::Land(id) => {
                let (_, action) = state.asked.remove(&id)?;
                self.perform(&mut state, action);
            }
            Step::TakeOver => {
                self.handle(&mut state, 1, Event::Own { after_death: false });
            }
            Step::Time => {
                state.time += 1;
                for node in 0..state.owners.len() {
                    self.handle(&mut state, node, Event::Tick);
                }
            }
            Step::Client(which) => self.client(&mut state, which),
            Step::ClientLoses(which) | Step::ClientLate(which) => {
                let Ask::Write { record, expected } = state.changing[which].change.step().clone() else { return None };
                if step == Step::ClientLoses(which) {
                    state.write(record, expected.as_ref(), false);
                } else {
                    state.next += 1;
                    state.late.insert(state.next, (record, expected));
                }
                state.losses -= 1;
                state.changing[which].change.answer(Answer::Failed);
            }
            Step::ClientLands(id) => {
                let (record, expected) = state.late.remove(&id)?;
                state.write(record, expected.as_ref(), false);
            }
        }
        Some(state)
    }

    fn properties(&self) -> Vec<Property<Self>> {
        vec![
            Property::always("what is there has its hint", |_, state: &State| state.is_hinted()),
            Property::always("nothing goes wrong", |_, state: &State| state.wrong.is_none()),
            Property::always("what was registered is there until it has ticked or is cancelled", |_, state: &State| {
                let cancelling = state.changing.get(1).is_some_and(|cancel| cancel.begun);
                !state.registered
                    || cancelling
                    || state.record.as_ref().is_some_and(|found| found.record.plan.is_ok())
                    || !state.ran.is_empty()
            }),
            Property::sometimes("a tick has its turn and its record moves on", |_, state: &State| {
                !state.moved.is_empty()
            }),
        ]
    }
}

/// Explores everything: the states, or what was found to be wrong.
fn explore(small: Small) -> Result<usize, Vec<String>> {
    let began = Instant::now();
    let periodic = small.periodic;
    let checker =
        small.checker().threads(2).finish_when(HasDiscoveries::AnyFailures).timeout(PATIENCE).spawn_bfs().join();
    println!("{} states in {:?}, periodic: {periodic}", checker.unique_state_count(), began.elapsed());
    let wrong: Vec<String> = checker
        .discoveries()
        .iter()
        .filter(|(name, _)| !name.starts_with("a tick has"))
        .map(|(name, path)| format!("{name}:\n{:?}", path.clone().into_actions()))
        .collect();
    assert!(began.elapsed() < PATIENCE, "too much for a test: make the instance smaller");
    if wrong.is_empty() { Ok(checker.unique_state_count()) } else { Err(wrong) }
}

/// Time after which an exploration is given up.
const PATIENCE: Duration = Duration::from_secs(100);

fn handover(periodic: bool) -> Small {
    let times = vec![10];
    let checks = Checks::default();
    Small { periodic, times, losses: 0, cancels: false, registered: true, takes_over: true, checks }
}

#[test]
fn no_reminder_is_lost_and_each_due_time_has_its_turn_though_the_owner_changes() {
    for periodic in [false, true] {
        explore(handover(periodic)).unwrap();
    }
}

#[test]
fn the_same_holds_when_the_store_loses_answers_and_writes_late() {
    for periodic in [false, true] {
        let losses = if periodic { 1 } else { 2 };
        explore(Small { losses, times: vec![10, 20], takes_over: false, registered: false, ..handover(periodic) })
            .unwrap();
    }
}

#[test]
fn no_turn_begins_after_a_cancellation_was_acknowledged() {
    let small = Small { cancels: true, times: vec![0, 10], takes_over: false, registered: false, ..handover(true) };
    explore(small.clone()).unwrap();
    explore(Small { losses: 1, ..small }).unwrap();
}

#[test]
fn without_the_hints_grace_a_reminder_is_lost() {
    let checks = Checks { hint_grace: false, ..Checks::default() };
    let wrong = explore(Small { checks, takes_over: false, registered: false, times: vec![0, 10], ..handover(false) })
        .unwrap_err();
    assert!(wrong[0].starts_with("what is there has its hint"), "{wrong:?}");
}

#[test]
fn without_the_hints_fence_a_reminder_is_lost() {
    let checks = Checks { hint_fence: false, ..Checks::default() };
    let wrong = explore(Small { checks, times: vec![10, 20], ..handover(true) }).unwrap_err();
    assert!(wrong[0].starts_with("what is there has its hint"), "{wrong:?}");
}

#[test]
fn without_the_hosts_look_a_turn_begins_after_the_cancellation() {
    let checks = Checks { tick_check: false, ..Checks::default() };
    let small = Small { checks, cancels: true, times: vec![0, 10], takes_over: false, ..handover(true) };
    assert!(explore(small).is_err());
}
