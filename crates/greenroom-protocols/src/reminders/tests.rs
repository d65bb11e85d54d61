//! Each bad trace that the rules are there for, and what the window keeps in memory.

use std::collections::BTreeMap;

use proptest::prelude::*;

use super::*;
use crate::checks::Checks;
use crate::directory::{RangeId, owner};
use crate::node::{Member, NodeId, Status, View};
use crate::time::Timestamp;

mod deaths;

/// Every so many milliseconds; 0 for once.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
struct Beat(u64);

impl Plan for Beat {
    fn fold(&self, due: Wall, now: Wall) -> Fold {
        if self.0 == 0 {
            return Fold { missed: 0, next: None };
        }
        let missed = now.0.saturating_sub(due.0) / self.0;
        Fold { missed, next: Some(Wall(due.0 + self.0 * (missed + 1))) }
    }
}

/// A store that answers at once, one record a name, and the hints of one range.
#[derive(Default)]
struct Rows {
    records: BTreeMap<u32, Found<Beat>>,
    hints: BTreeMap<Position, (Etag, Hint<u32>)>,
    writes: u64,
}

impl Rows {
    fn tag(&mut self) -> Etag {
        self.writes += 1;
        Etag(self.writes.to_string())
    }

    fn create_hint(&mut self, wake: Wall, hint: Hint<u32>) -> HintName {
        let tag = self.tag();
        let at = Position { wake, nonce: self.writes };
        self.hints.insert(at, (tag.clone(), hint));
        HintName { at, tag }
    }

    fn write(&mut self, of: u32, record: Record<Beat>, expected: Option<&Etag>) -> bool {
        if self.records.get(&of).map(|found| &found.tag) != expected {
            return false;
        }
        let tag = self.tag();
        self.records.insert(of, Found { record, tag });
        true
    }

    fn change(&mut self, of: u32, want: Want<Beat>) -> Ended {
        let mut change = Change::new(want);
        loop {
            let answer = match change.step().clone() {
                Step::Read => Answer::Read(self.records.get(&of).cloned()),
                Step::CreateHint { wake, expected } => Answer::Hint(self.create_hint(wake, Hint { of, expected })),
                Step::Write { record, expected } => match self.write(of, record, expected.as_ref()) {
                    true => Answer::Written,
                    false => Answer::Failed,
                },
                Step::DropHint(hint) => {
                    self.hints.remove(&hint.at);
                    Answer::Dropped
                }
                Step::Done(ended) => return ended,
            };
            change.answer(answer);
        }
    }

    fn register(&mut self, of: u32, due: u64, beat: u64) {
        let registration = self.writes + 1;
        self.change(of, Want::Set { registration, due: Wall(due), plan: Beat(beat) });
    }

    fn cancel(&mut self, of: u32, until: u64) -> bool {
        self.change(of, Want::Cancel { until: Wall(until) }).existed
    }
}

/// A range, its rows, and the ticks that have had their turns: whose, due when, and how many they stand for besides.
struct Scene {
    rows: Rows,
    range: Range<u32, Beat>,
    now: u64,
    ticks: Vec<(u32, u64, u64)>,
    how: Delivered,
    scans: usize,
    loaded_max: usize,
    /// When each tick was sent that is not done, and the reminders that were given up.
    failed_at: Vec<u64>,
    given_up: Vec<u32>,
    /// True if ticks that are sent get no answer, as this node dies with their turns.
    dies: bool,
    /// Reminders that are parked, each with the deaths, and ticks that were sent alone.
    parked: Vec<(u32, u32)>,
    alone: usize,
}

impl Scene {
    fn new() -> Self {
        Self::under(Checks::default())
    }

    fn under(checks: Checks) -> Self {
        let mut scene = Self {
            rows: Rows::default(),
            range: Range::new(checks, 3),
            now: 1_000_000,
            ticks: Vec::new(),
            how: Delivered::Ran,
            scans: 0,
            loaded_max: 0,
            failed_at: Vec::new(),
            given_up: Vec::new(),
            dies: false,
            parked: Vec::new(),
            alone: 0,
        };
        scene.play(Event::Own { after_death: false });
        scene
    }

    fn at(&self) -> Now {
        Now { clock: Timestamp::from_nanos(self.now * 1_000_000), wall: Wall(self.now) }
    }

    /// Gives `event` to the range and does all that follows.
    fn play(&mut self, event: Event<u32, Beat>) {
        let mut events = vec![event];
        while let Some(event) = events.pop() {
            let mut actions = Vec::new();
            self.range.handle(self.at(), event, &mut actions);
            self.loaded_max = self.loaded_max.max(self.range.loaded());
            events.extend(actions.into_iter().map(|action| self.perform(action)));
        }
    }

    fn perform(&mut self, action: Action<u32, Beat>) -> Event<u32, Beat> {
        match action {
            Action::Scan { token, after } => {
                self.scans += 1;
                let follows = |at: &&Position| after.is_none_or(|after| **at > after);
                let items: Vec<_> = self.rows.hints.iter().filter(|(at, _)| follows(at)).take(PAGE + 1).collect();
                let more = items.len() > PAGE;
                let items = items.into_iter().take(PAGE).map(|(at, (tag, hint))| (*at, tag.clone(), hint.clone()));
                Event::Scanned { token, items: Some(items.collect()), more }
            }
            Action::Read { work, of } => Event::Read { work, found: Ok(self.rows.records.get(&of).cloned()) },
            Action::Deliver { work, of, record, fold, is_alone } => {
                self.alone += usize::from(is_alone);
                if self.dies {
                    self.failed_at.push(self.now);
                    return Event::Tick;
                }
                if self.how == Delivered::Ran {
                    self.ticks.push((of, record.due.0, fold.missed));
                } else {
                    self.failed_at.push(self.now);
                }
                Event::Delivered { work, how: self.how }
            }
            Action::CreateHint { work, wake, hint } => {
                Event::HintCreated { work, hint: Some(self.rows.create_hint(wake, hint)) }
            }
            Action::Write { work, of, record, expected } => {
                Event::Written { work, applied: self.rows.write(of, record, Some(&expected)) }
            }
            Action::Remove { work, of, expected } => {
                let applied = self.rows.records.get(&of).is_some_and(|found| found.tag == expected);
                if applied {
                    self.rows.records.remove(&of);
                }
                Event::Written { work, applied }
            }
            Action::ReportFailed { of, attempts } => {
                assert_eq!(attempts as usize, self.failed_at.len());
                self.given_up.push(of);
                Event::Tick
            }
            Action::ReportParked { of, deaths } => {
                self.parked.push((of, deaths));
                Event::Tick
            }
            Action::DropHint { work, hint } => {
                self.rows.hints.remove(&hint.at);
                Event::Dropped { work, gone: true }
            }
        }
    }

    /// Lets time pass, with a tick whenever the range wants one.
    fn pass(&mut self, millis: u64) {
        let end = self.now + millis;
        while let Some(due) = self.range.deadline(self.at()).map(|due| due.as_nanos().div_ceil(1_000_000))
            && due <= end
        {
            self.now = due.max(self.now);
            self.play(Event::Tick);
        }
        self.now = end;
    }

    fn note(&mut self, wake: u64) {
        self.play(Event::Noted { wake: Wall(wake) });
    }
}

const PAGE: usize = 100;

#[test]
fn a_reminder_ticks_at_its_time_and_moves_on() {
    let mut scene = Scene::new();
    scene.rows.register(1, 1_010_000, 10_000);
    scene.rows.register(2, 1_012_000, 0);
    scene.note(1_010_000);
    scene.pass(9_000);
    assert_eq!(scene.ticks, []);
    scene.pass(21_500);
    assert_eq!(scene.ticks, [(1, 1_010_000, 0), (2, 1_012_000, 0), (1, 1_020_000, 0), (1, 1_030_000, 0)]);
    scene.rows.cancel(1, 1_700_000);
    scene.pass(700_000);
    assert_eq!((scene.rows.records.len(), scene.rows.hints.len()), (0, 0), "what is over leaves nothing in the end");
}

#[test]
fn a_range_is_behind_from_when_a_tick_was_due_until_its_turn_has_run() {
    let mut scene = Scene::new();
    scene.rows.register(1, 1_010_000, 10_000);
    scene.note(1_010_000);
    scene.pass(5_000);
    assert_eq!(scene.range.behind(), None, "it is not due");
    scene.how = Delivered::Again;
    scene.pass(20_000);
    assert_eq!(scene.range.behind(), Some(Wall(1_010_000)), "its actor did not take it");
    scene.how = Delivered::Ran;
    scene.pass(30_000);
    assert_eq!(scene.range.behind(), None);
    assert!(!scene.ticks.is_empty());
}

#[test]
fn ticks_missed_while_nobody_owned_the_range_come_as_one() {
    let mut scene = Scene::new();
    scene.rows.register(1, 1_010_000, 1_000);
    scene.play(Event::Lose);
    scene.pass(15_300);
    scene.play(Event::Own { after_death: false });
    assert_eq!(scene.ticks, [(1, 1_010_000, 5)]);
    scene.pass(1_000);
    assert_eq!(scene.ticks[1..], [(1, 1_016_000, 0)]);
}

#[test]
fn a_registration_that_is_replaced_or_cancelled_does_not_tick() {
    let mut scene = Scene::new();
    scene.rows.register(1, 1_001_000, 0);
    scene.rows.register(1, 1_003_000, 0);
    scene.rows.register(2, 1_001_000, 0);
    scene.note(1_001_000);
    assert!(scene.rows.cancel(2, 1_600_000), "it was there");
    assert!(!scene.rows.cancel(2, 1_600_000), "it is not any more");
    scene.pass(10_000);
    assert_eq!(scene.ticks, [(1, 1_003_000, 0)]);
    scene.pass(1_000_000);
    assert_eq!((scene.rows.records.len(), scene.rows.hints.len()), (0, 0), "tombstones go, too");
}

#[test]
fn the_hint_of_a_record_that_is_not_there_yet_is_kept() {
    let mut scene = Scene::new();
    let hint = scene.rows.create_hint(Wall(1_001_000), Hint { of: 1, expected: None });
    scene.note(1_001_000);
    scene.pass(5_000);
    assert!(scene.rows.hints.contains_key(&hint.at), "its record may yet come");
    let record = Record { registration: 1, due: hint.at.wake, hint, plan: Ok(Beat(0)), attempt: None };
    assert!(scene.rows.write(1, record, None));
    scene.pass(60_000);
    assert_eq!(scene.ticks, [(1, 1_001_000, 0)], "found by the next look at the whole range");
}

#[test]
fn the_hint_of_a_record_that_never_came_goes_in_the_end() {
    let mut scene = Scene::new();
    scene.rows.create_hint(Wall(1_001_000), Hint { of: 1, expected: None });
    scene.pass(800_000);
    assert!(scene.rows.hints.is_empty() && scene.ticks.is_empty());
}

#[test]
fn a_hint_whose_write_may_come_true_goes_only_after_that_is_impossible() {
    let mut scene = Scene::new();
    scene.rows.register(1, 1_900_000, 0);
    let expected = scene.rows.records[&1].tag.clone();
    let hint = scene.rows.create_hint(Wall(1_001_000), Hint { of: 1, expected: Some(expected.clone()) });
    scene.note(1_001_000);
    scene.pass(1_500);
    assert!(scene.rows.hints.contains_key(&hint.at), "the write is about to come");
    scene.pass(60_000);
    assert!(!scene.rows.hints.contains_key(&hint.at), "given up");
    let record = Record { registration: 9, due: hint.at.wake, hint, plan: Ok(Beat(0)), attempt: None };
    assert!(!scene.rows.write(1, record, Some(&expected)), "and the late write is refused");
    scene.pass(900_000);
    assert_eq!(scene.ticks, [(1, 1_900_000, 0)], "what was there has not suffered");
}

#[test]
fn a_turn_that_has_run_does_not_run_again_when_the_move_fails() {
    let mut scene = Scene::new();
    scene.rows.register(1, 1_001_000, 0);
    let found = scene.rows.records[&1].clone();
    scene.note(1_001_000);
    scene.now = 1_001_000;
    let mut actions = Vec::new();
    scene.range.handle(scene.at(), Event::Tick, &mut actions);
    let Some(Action::Read { work, .. }) = actions.pop() else { panic!("it reads: {actions:?}") };
    let mut step = |scene: &mut Scene, event| {
        scene.range.handle(scene.at(), event, &mut actions);
        actions.pop()
    };
    step(&mut scene, Event::Read { work, found: Ok(Some(found)) });
    let moving = step(&mut scene, Event::Delivered { work, how: Delivered::Ran });
    assert!(matches!(moving, Some(Action::CreateHint { .. })), "{moving:?}");
    step(&mut scene, Event::HintCreated { work, hint: None });
    scene.pass(1_000);
    assert_eq!(scene.ticks, [], "the turn is not sent again");
    assert_eq!(scene.rows.records[&1].record.plan, Err(Tombstone), "the record moves on in the end");
}

#[test]
fn what_cannot_be_delivered_leaves_memory_and_comes_again() {
    let mut scene = Scene::new();
    scene.how = Delivered::Again;
    for name in 0..2_000 {
        scene.rows.register(name, 1_001_000, 0);
    }
    scene.rows.register(9_999, 1_002_000, 0);
    scene.note(1_001_000);
    scene.pass(1_000_000);
    scene.how = Delivered::Ran;
    scene.pass(400_000);
    assert_eq!(scene.ticks.len(), 2_001, "those behind do not wait for ever");
    assert!(scene.loaded_max <= LOADED_MAX);
}

#[test]
fn what_the_cluster_loses_stays_in_memory_and_comes_soon_once_it_has_recovered() {
    let mut scene = Scene::new();
    scene.how = Delivered::Lost;
    for name in 0..200 {
        scene.rows.register(name, 1_001_000, 0);
    }
    scene.note(1_001_000);
    scene.pass(120_000);
    assert_eq!(scene.range.loaded(), 200);
    scene.how = Delivered::Ran;
    scene.pass(2_500);
    assert_eq!(scene.ticks.len(), 200);
}

#[test]
fn a_tick_that_its_actor_refused_comes_as_soon_as_the_cluster_has_changed() {
    let mut scene = Scene::new();
    scene.how = Delivered::Again;
    scene.rows.register(1, 1_001_000, 0);
    scene.note(1_001_000);
    scene.pass(300_000);
    scene.how = Delivered::Ran;
    scene.play(Event::Retry);
    assert_eq!(scene.ticks, [(1, 1_001_000, 0)]);
}

#[test]
fn a_tick_that_its_actor_refuses_for_the_first_time_comes_again_soon_however_often_the_cluster_lost_it_before() {
    let mut scene = Scene::new();
    scene.how = Delivered::Lost;
    scene.rows.register(1, 1_001_000, 0);
    scene.note(1_001_000);
    scene.pass(60_000);
    scene.how = Delivered::Again;
    scene.pass(2_000);
    scene.how = Delivered::Ran;
    scene.pass(4_000);
    assert_eq!(scene.ticks, [(1, 1_001_000, 0)]);
}

#[test]
fn a_tick_that_fails_is_made_again_ever_later_and_given_up_with_a_report_after_its_last_attempt() {
    let mut scene = Scene::new();
    scene.how = Delivered::Failed { attempts_max: 3 };
    scene.rows.register(1, 1_001_000, 0);
    scene.note(1_001_000);
    scene.pass(60_000);
    assert_eq!((&scene.failed_at[..], &scene.given_up[..]), (&[1_001_000, 1_002_000, 1_006_000][..], &[1][..]));
    assert_eq!(scene.rows.records[&1].record.plan, Err(Tombstone));
}

#[test]
fn a_tick_that_fails_once_stands_for_the_due_times_that_its_attempts_have_taken() {
    let mut scene = Scene::new();
    scene.how = Delivered::Failed { attempts_max: 3 };
    scene.rows.register(1, 1_001_000, 400);
    scene.note(1_001_000);
    scene.pass(1_500);
    scene.how = Delivered::Ran;
    scene.pass(750);
    assert_eq!(scene.ticks, [(1, 1_001_000, 2), (1, 1_002_200, 0)], "the second attempt, then its own beat again");
    assert!(scene.given_up.is_empty());
}

#[test]
fn however_many_are_due_at_once_only_a_bounded_number_is_in_memory() {
    let mut scene = Scene::new();
    for name in 0..5_000 {
        scene.rows.register(name, 1_001_000 + u64::from(name % 3), 0);
    }
    scene.play(Event::Lose);
    scene.now = 1_002_000;
    scene.play(Event::Own { after_death: false });
    scene.pass(1_000);
    assert_eq!(scene.ticks.len(), 5_000);
    assert!(scene.loaded_max <= LOADED_MAX, "{} were loaded", scene.loaded_max);
}

#[test]
fn a_range_with_nothing_to_come_is_read_once_in_a_while() {
    let mut scene = Scene::new();
    scene.rows.register(1, 9_000_000, 0);
    scene.pass(600_000);
    assert!(scene.scans <= 1 + 600 / 60, "{} scans in 600 s", scene.scans);
}

#[test]
fn a_word_is_said_again_to_each_owner_until_it_is_confirmed() {
    let range = RangeId(5);
    let members = |nodes: &[u64]| {
        let member = |id: &u64| (NodeId(*id), Member { status: Status::Active, ..Member::default() });
        View {
            version: nodes.len() as u64,
            next_node: 9,
            members: nodes.iter().map(member).collect(),
            ..View::default()
        }
    };
    let all = members(&[1, 2, 3]);
    let first = owner(range, &all).unwrap();
    let me = if first == NodeId(1) { NodeId(2) } else { NodeId(1) };
    let mut keeper = Keeper::<u32, Beat>::new(me, Checks::default(), 3);
    let now = |millis: u64| Now { clock: Timestamp::from_nanos(millis * 1_000_000), wall: Wall(millis) };
    let mut out = Vec::new();
    keeper.view(now(0), &View::default(), &all, &mut out);
    keeper.made(now(0), range, Wall(50), &mut out);
    let told = keeper.tick(now(0), &mut out);
    assert_eq!(told.iter().map(|tell| (tell.to, tell.wake)).collect::<Vec<_>>(), [(first, Wall(50))]);
    // A second hint before the confirmation of the first: that one confirms nothing of it.
    keeper.made(now(1), range, Wall(80), &mut out);
    keeper.confirmed(range, told[0].word);
    let told = keeper.tick(now(1), &mut out);
    assert_eq!(told.len(), 1);
    assert!(keeper.tick(now(2), &mut out).is_empty(), "not all the time");
    let survivors: Vec<u64> = [1, 2, 3].into_iter().filter(|id| NodeId(*id) != first).collect();
    let view = members(&survivors);
    keeper.view(now(3), &all, &view, &mut out);
    let told = keeper.tick(now(3), &mut out);
    match owner(range, &view) {
        Some(owner) if owner == me => assert!(told.is_empty(), "it is ours now"),
        Some(owner) => {
            assert_eq!(told[0].to, owner);
            keeper.confirmed(range, told[0].word);
        }
        None => unreachable!("two are left"),
    }
    assert!(keeper.tick(now(9_999), &mut out).is_empty(), "confirmed");
}

proptest! {
    /// Whatever is registered, replaced and cancelled at whatever time: each due time of what is there has its turn, no later
    /// than the range was owned by somebody, and nothing that is not there has one.
    #[test]
    fn every_due_time_has_its_turn_once(
        steps in prop::collection::vec((0_u8..6, 0_u32..4, 1_u64..20_000, prop::bool::ANY), 1..40)
    ) {
        let mut scene = Scene::new();
        let mut expected: BTreeMap<u32, (u64, u64)> = BTreeMap::new();
        let mut seen = 0;
        for (what, name, time, periodic) in steps {
            match what {
                0 | 1 => {
                    let due = scene.now + time;
                    let beat = if periodic { 1_000 + time } else { 0 };
                    scene.rows.register(name, due, beat);
                    scene.note(due);
                    expected.insert(name, (due, beat));
                }
                2 => {
                    let existed = scene.rows.cancel(name, scene.now + 600_000);
                    prop_assert_eq!(existed, expected.remove(&name).is_some());
                }
                3 => scene.play(Event::Lose),
                4 => scene.play(Event::Own { after_death: false }),
                _ => {}
            }
            scene.pass(time / 2);
            let owned = scene.range.is_owned();
            for (name, due, missed) in scene.ticks.drain(seen..) {
                let (next, beat) = expected.remove(&name).expect("only what is there ticks");
                prop_assert_eq!(due, next, "in order, none twice");
                if beat > 0 {
                    expected.insert(name, (due + beat * (missed + 1), beat));
                }
            }
            seen = scene.ticks.len();
            if owned {
                prop_assert!(expected.values().all(|(due, _)| *due > scene.now), "none is lost");
            }
        }
    }
}
