//! Idempotency keys, checked exhaustively on small instances: a key that is asked again within its time runs no second turn,
//! whoever owns the partition by then and however slowly the journal answers; after its time it goes.

use std::time::{Duration, Instant};

use greenroom_protocols::delivery::*;
use greenroom_protocols::reminders::Wall;
use stateright::{Checker, Model, Property};

use crate::delivery_world::*;

/// Bounds of an instance.
#[derive(Clone, Debug)]
struct Bounds {
    keys: Payload,
    calls: u8,
    take_overs: u8,
    /// How often half of an answer's time passes.
    ages: u8,
    config: Config,
}

#[derive(Clone, PartialEq, Eq, Hash, Debug)]
struct State {
    world: World,
    calls: u8,
    take_overs: u8,
    ages: u8,
}

#[derive(Clone, PartialEq, Eq, Hash, Debug)]
enum Step {
    Call(Payload),
    Apply(usize),
    Hear(usize),
    Recall(usize),
    Age,
    TakeOver { crash: bool },
}

fn program(_: &Message, _: &[Payload], _: &mut dyn FnMut() -> Birth) -> Outcome<Actor, Payload> {
    done(Vec::new())
}

impl Model for Bounds {
    type State = State;
    type Action = Step;

    fn init_states(&self) -> Vec<State> {
        let mut world = World::new(self.config, 1, program);
        world.slow_recalls = true;
        vec![State { world, calls: 0, take_overs: 0, ages: 0 }]
    }

    fn actions(&self, state: &State, steps: &mut Vec<Step>) {
        let world = &state.world;
        if state.calls < self.calls {
            steps.extend((1..=self.keys).map(Step::Call));
        }
        steps.extend((0..world.pending.len()).map(Step::Apply));
        let owners = || world.owners.iter().enumerate();
        steps.extend(owners().filter(|(_, owner)| !owner.outcomes.is_empty()).map(|(index, _)| Step::Hear(index)));
        steps.extend(owners().filter(|(_, owner)| !owner.recalls.is_empty()).map(|(index, _)| Step::Recall(index)));
        if state.ages < self.ages {
            steps.push(Step::Age);
        }
        if state.take_overs < self.take_overs {
            steps.extend([true, false].map(|crash| Step::TakeOver { crash }));
        }
    }

    fn next_state(&self, last: &State, step: Step) -> Option<State> {
        let mut state = last.clone();
        let world = &mut state.world;
        match step {
            Step::Call(body) => {
                state.calls += 1;
                world.call(0, 10, body, program);
            }
            Step::Apply(index) => world.apply(index),
            Step::Hear(index) => world.hear(index, program),
            Step::Recall(index) => world.recall(index, program),
            Step::Age => {
                state.ages += 1;
                world.now += KEEP.as_millis() as u64 / 2;
                // One that is deposed has a clock too.
                for index in (0..world.owners.len()).rev() {
                    world.handle(index, Event::Tick, program);
                }
            }
            Step::TakeOver { crash } => {
                state.take_overs += 1;
                world.take_over(0, crash, program);
            }
        }
        world.pending.sort();
        (state != *last).then_some(state)
    }

    fn properties(&self) -> Vec<Property<Self>> {
        vec![
            Property::always(ONCE, |_: &Self, state: &State| {
                let history = &state.world.disks[0].answers.history;
                let twice = |at: usize, key: &String, again: Wall| {
                    history[..at].iter().any(|(other, first)| other == key && again < *first + KEEP)
                };
                !history.iter().enumerate().any(|(at, (key, again))| twice(at, key, *again))
            }),
            Property::always(COUNTED, |_: &Self, state: &State| {
                state.world.owners.iter().all(|owner| owner.machine.queued() <= usize::from(state.calls))
            }),
            Property::sometimes(AGAIN, |_: &Self, state: &State| {
                let history = &state.world.disks[0].answers.history;
                history.len() > 1 && history[1..].iter().any(|(key, _)| *key == history[0].0)
            }),
            Property::sometimes(ANSWERED, |bounds: &Self, state: &State| {
                let Answers { history, .. } = &state.world.disks[0].answers;
                let owner = &state.world.owners[state.world.owner(0)];
                state.take_overs == bounds.take_overs && history.len() == 1 && owner.recalls.len() == 1
            }),
        ]
    }
}

const ONCE: &str = "a key that is asked again within its time runs no second turn";
const COUNTED: &str = "what waits is counted";
const AGAIN: &str = "a key whose time is over runs again";
const ANSWERED: &str = "the journal is asked by a later owner";
const KEEP: Duration = Duration::from_millis(1000);
/// An instance that takes longer is too large.
const LONGEST: Duration = Duration::from_secs(1800);

fn bounds() -> Bounds {
    let config = Config { answers_keep: KEEP, bundle_len_max: 1, ..Config::default() };
    Bounds { keys: 1, calls: 3, take_overs: 1, ages: 3, config }
}

fn check(bounds: Bounds) -> impl Checker<Bounds> {
    let begun = Instant::now();
    let checker = bounds.checker().threads(2).timeout(LONGEST).spawn_bfs().join();
    println!("{:?}: {} distinct states in {:?}", checker.model(), checker.unique_state_count(), begun.elapsed());
    assert!(begun.elapsed() < LONGEST, "the instance is not exhausted");
    checker
}

fn holds(bounds: Bounds) {
    let checker = check(bounds);
    checker.assert_no_discovery(ONCE);
    checker.assert_no_discovery(COUNTED);
    checker.assert_any_discovery(AGAIN);
    checker.assert_any_discovery(ANSWERED);
}

#[test]
fn a_key_asked_three_times_runs_once_within_its_time_while_an_owner_changes() {
    holds(bounds());
}

#[test]
fn keys_that_share_bundles_run_once_within_their_times() {
    let config = Config { bundle_len_max: 2, ..bounds().config };
    holds(Bounds { keys: 2, calls: 4, take_overs: 1, config, ..bounds() });
}

#[test]
fn a_key_runs_once_while_owners_change_twice() {
    holds(Bounds { calls: 3, take_overs: 2, ..bounds() });
}

#[test]
fn without_recorded_answers_a_key_runs_twice() {
    let mut config = bounds().config;
    config.checks.recorded_answer = false;
    check(Bounds { config, ..bounds() }).assert_any_discovery(ONCE);
}
