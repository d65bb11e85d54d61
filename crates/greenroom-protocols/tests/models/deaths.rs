//! Delivery × parking: a message whose turn takes its owner down, checked exhaustively on a small instance.
//!
//! Partition 0 has sent messages to two actors of partition 1. The turn of one of them kills the owner of partition 1 whenever it
//! runs. That owner may also be killed by something else at any time, leave without a death, or lose its fence while it goes
//! on. Everything else arrives and is committed in any order.

use std::time::{Duration, Instant};

use greenroom_protocols::delivery::*;
use stateright::{Checker, HasDiscoveries, Model, Property};

use crate::delivery_world::*;

const CALLED: Actor = 10;
const POISON: Payload = 1;

#[derive(Clone, Debug)]
struct Instance {
    messages: Payload,
    /// Deaths that no message causes, hand-overs without a death, and owners that lose their fence and live.
    crashes: u8,
    hand_overs: u8,
    depositions: u8,
    config: Config,
}

#[derive(Clone, PartialEq, Eq, Hash, Debug)]
struct State {
    world: World,
    /// Owners that the poison has killed.
    killed: u32,
    crashes: u8,
    hand_overs: u8,
    depositions: u8,
    /// Turns that began after their message was parked.
    late: bool,
}

#[derive(Clone, PartialEq, Eq, Hash, Debug)]
enum Step {
    Deliver(usize),
    Apply(usize),
    Hear(usize),
    End(usize, TurnId),
    Rewind,
    Crash,
    HandOver,
    Depose,
}

fn program(message: &Message, _: &[Payload], _: &mut dyn FnMut() -> Birth) -> Outcome<Actor, Payload> {
    done(match message.to {
        // The first call sends everything, each to an actor of its own.
        CALLED => (1..=message.body).map(|body| send(1, CALLED, 20 + body % 2, body)).collect(),
        _ => Vec::new(),
    })
}

impl State {
    /// The newest owner of partition 1.
    fn owner(&self) -> usize {
        self.world.owner(1)
    }

    fn parked(&self) -> Vec<Payload> {
        self.world.disks[1].parked.values().map(|parked| parked.envelope.body).collect()
    }

    fn done(&self) -> Vec<Payload> {
        [20, 21].iter().flat_map(|actor| self.world.processed(1, *actor)).collect()
    }

    fn succeed(&mut self, crash: bool) {
        self.world.take_over(1, crash, program);
        if crash {
            // Commits of an owner that is gone come to nothing behind the new fence.
            let epoch = self.world.disks[1].epoch;
            self.world.pending.retain(|pending| pending.owner.partition.0 != 1 || pending.owner.epoch == epoch);
        }
        // What was on its way to the owner before is sent again, as its silence has the sender do.
        self.rewind();
    }

    fn rewind(&mut self) {
        self.world.now += 10_000;
        self.world.handle(self.world.owner(0), Event::Tick, program);
    }
}

impl Model for Instance {
    type State = State;
    type Action = Step;

    fn init_states(&self) -> Vec<State> {
        let mut world = World::new(self.config, 2, program);
        world.deaths = true;
        world.call(0, CALLED, self.messages, program);
        world.settle(program);
        world.quick = false;
        vec![State { world, killed: 0, crashes: 0, hand_overs: 0, depositions: 0, late: false }]
    }

    fn actions(&self, state: &State, steps: &mut Vec<Step>) {
        let world = &state.world;
        steps.extend((0..world.network.len()).map(Step::Deliver));
        steps.extend((0..world.pending.len()).map(Step::Apply));
        steps.extend((0..world.owners.len()).filter(|i| !world.owners[*i].outcomes.is_empty()).map(Step::Hear));
        for (index, owner) in world.owners.iter().enumerate() {
            steps.extend(owner.running.keys().map(|turn| Step::End(index, *turn)));
        }
        if steps.is_empty() && world.log(0, 1).before < u64::from(self.messages) {
            steps.push(Step::Rewind);
        }
        if state.crashes < self.crashes {
            steps.push(Step::Crash);
        }
        if state.hand_overs < self.hand_overs {
            steps.push(Step::HandOver);
        }
        if state.depositions < self.depositions {
            steps.push(Step::Depose);
        }
    }

    fn next_state(&self, last: &State, step: Step) -> Option<State> {
        let mut state = last.clone();
        match step {
            Step::Deliver(index) => state.world.deliver(index, program),
            Step::Apply(index) => state.world.apply(index),
            Step::Hear(index) => state.world.hear(index, program),
            Step::End(index, turn) => {
                let owner = &state.world.owners[index];
                let body = owner.running[&turn].body;
                let is_owner = owner.at.epoch == state.world.disks[1].epoch;
                state.late |= is_owner && owner.at.partition.0 == 1 && state.parked().contains(&body);
                if body == POISON && owner.at.partition.0 == 1 {
                    if index != state.owner() {
                        // An owner that lives on without its fence.
                        state.world.owners.remove(index);
                    } else {
                        state.killed += 1;
                        state.succeed(true);
                    }
                } else {
                    state.world.end(index, turn, program);
                }
            }
            Step::Rewind => state.rewind(),
            Step::Crash => {
                state.crashes += 1;
                state.succeed(true);
            }
            Step::HandOver => {
                state.hand_overs += 1;
                let owner = &state.world.owners[state.owner()];
                let handed = owner.machine.handed_over();
                let disk = &mut state.world.disks[1];
                disk.attempts = handed.into_iter().map(|attempt| (attempt.place.clone(), attempt)).collect();
                disk.is_left = true;
                state.succeed(true);
            }
            Step::Depose => {
                state.depositions += 1;
                state.succeed(false);
            }
        }
        state.world.network.sort();
        state.world.network.dedup();
        state.world.pending.sort();
        // An instance without the rule has no end.
        (state != *last && state.killed <= KILLED_MAX).then_some(state)
    }

    fn properties(&self) -> Vec<Property<Self>> {
        vec![
            Property::always(ONCE, |_, state: &State| {
                let mut done = [state.done(), state.parked()].concat();
                done.sort_unstable();
                !state.late && done.windows(2).all(|two| two[0] != two[1])
            }),
            Property::always(BOUNDED, |instance: &Self, state: &State| {
                let unfair = instance.hand_overs + instance.depositions;
                state.killed <= instance.config.deaths_max + u32::from(unfair)
            }),
            Property::always(BLAMED, |instance: &Self, state: &State| {
                let others = instance.crashes + instance.depositions;
                others > 0 || state.parked().iter().all(|body| *body == POISON)
            }),
            Property::always(ENDS, |instance: &Self, state: &State| {
                let mut steps = Vec::new();
                instance.actions(state, &mut steps);
                let mut over = [state.done(), state.parked()].concat();
                over.sort_unstable();
                let tidy = state.world.disks[1].attempts.is_empty();
                !steps.is_empty() || (over == (1..=instance.messages).collect::<Vec<_>>() && tidy)
            }),
            Property::sometimes(PARKED, |_, state: &State| state.parked() == [POISON]),
        ]
    }
}

const ONCE: &str = "each message is done or parked once, and runs no more once it is parked";
const BOUNDED: &str = "a message takes down as many owners as it may, and no more";
const BLAMED: &str = "where nothing else kills, no other message is parked";
const ENDS: &str = "in the end every message is done or parked, and no attempt is left";
const PARKED: &str = "the message that kills is parked";

/// Deaths after which an instance without the rule is not followed any more.
const KILLED_MAX: u32 = 5;
/// An instance that takes longer is too large.
const LONGEST: Duration = Duration::from_secs(600);

fn instance() -> Instance {
    let config = Config {
        retransmit: Duration::from_nanos(0),
        retransmit_max: Duration::from_nanos(0),
        trim_after: Duration::from_nanos(0),
        ..Config::default()
    };
    Instance { messages: 2, crashes: 0, hand_overs: 0, depositions: 0, config }
}

fn exhaust(name: &str, instance: Instance) {
    let begun = Instant::now();
    let checker = instance.checker().threads(2).timeout(LONGEST).spawn_bfs().join();
    println!("{name}: {} distinct states in {:?}", checker.unique_state_count(), begun.elapsed());
    assert!(begun.elapsed() < LONGEST, "{name}: the instance is not exhausted");
    for property in [ONCE, BOUNDED, BLAMED, ENDS] {
        checker.assert_no_discovery(property);
    }
    checker.assert_any_discovery(PARKED);
}

#[test]
fn a_message_that_kills_its_owner_is_parked_and_all_others_are_done() {
    exhaust("poison", instance());
    exhaust("poison among three", Instance { messages: 3, ..instance() });
}

#[test]
fn deaths_by_other_causes_and_hand_overs_lose_and_repeat_nothing() {
    exhaust("another death", Instance { crashes: 1, ..instance() });
    let small = || {
        let instance = instance();
        Instance { config: Config { deaths_max: 2, ..instance.config }, ..instance }
    };
    exhaust("a hand-over", Instance { hand_overs: 1, ..small() });
    exhaust("a lost fence", Instance { depositions: 1, ..small() });
}

#[test]
fn without_counted_deaths_a_message_kills_for_ever() {
    let mut instance = instance();
    instance.config.checks.counted_deaths = false;
    let failing = HasDiscoveries::AllOf([BOUNDED].into());
    let checker = instance.checker().threads(2).finish_when(failing).timeout(LONGEST).spawn_bfs().join();
    let path = checker.discovery(BOUNDED).expect("the model needs the check");
    println!("counted_deaths: broken after {} steps", path.into_actions().len());
    assert!(checker.discovery(PARKED).is_none(), "nothing is parked without it");
}
