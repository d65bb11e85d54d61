//! Delivery, checked exhaustively on small instances, and shown to break without each of its checks.
//!
//! Calls from outside reach an actor of partition 0, whose turn sends one message to an actor of partition 1. Messages are
//! never removed from the network: each may be delivered at any time, in any order, never, or again and again. A commit is
//! applied whenever it likes, also when its owner is gone, and its owner hears of it later or never. A partition may be
//! taken over at any time; the owner before has crashed, or goes on and does not know. The journal may refuse a commit, and
//! operators who have seen what is parked have it retried or dropped whenever they like, twice too.

use std::sync::Arc;
use std::time::{Duration, Instant};

use greenroom_protocols::delivery::*;
use greenroom_protocols::reminders::Wall;
use stateright::{Checker, HasDiscoveries, Model, Property};

use crate::delivery_world::*;

const CALLED: Actor = 10;

/// Bounds of an instance.
#[derive(Clone, Debug)]
struct Bounds {
    calls: Payload,
    /// Receiving actors in partition 1: messages are dealt to them in turn.
    receivers: u8,
    /// Whether the first message creates its actor, and the second halts it.
    creates: bool,
    take_overs: u8,
    ticks: u8,
    repeats: u8,
    /// Commits that the journal refuses.
    refusals: u8,
    /// Acts of operators.
    wishes: u8,
    quick: bool,
    /// Whether messages go by timers.
    timers: bool,
    /// Whether the actor fails at the first message until it has seen the second one.
    poison: bool,
    /// A partition beside, to which each call sends too, and whether the other one is cut off.
    lanes: u32,
    config: Config,
}

#[derive(Clone, PartialEq, Eq, Hash, Debug)]
struct State {
    world: World,
    called: Payload,
    take_overs: u8,
    ticks: u8,
    repeats: u8,
    refusals: u8,
    wishes: u8,
}

#[derive(Clone, PartialEq, Eq, Hash, Debug)]
enum Step {
    Call,
    Repeat(Payload),
    Apply(usize),
    Hear(usize),
    End(usize, TurnId),
    Deliver(usize),
    Tick(u32),
    TakeOver { partition: u32, crash: bool },
    Refuse(usize),
    Wish { drops: bool },
    Grant(usize),
}

fn program_1(message: &Message, _: &[Payload], _: &mut dyn FnMut() -> Birth) -> Outcome<Actor, Payload> {
    done(if message.to == CALLED { vec![send(1, CALLED, 20, message.body)] } else { Vec::new() })
}

fn program_2(message: &Message, _: &[Payload], _: &mut dyn FnMut() -> Birth) -> Outcome<Actor, Payload> {
    done(if message.to == CALLED { vec![send(1, CALLED, 20 + message.body % 2, message.body)] } else { Vec::new() })
}

fn program_create(message: &Message, _: &[Payload], birth: &mut dyn FnMut() -> Birth) -> Outcome<Actor, Payload> {
    if message.to != CALLED {
        return Outcome::Done(Effects { halts: message.body == 2, ..Effects::default() }.into());
    }
    let mut outgoing = send(1, CALLED, 20, message.body);
    Arc::make_mut(&mut outgoing.envelope).creates = message.body % 2 == 1;
    Arc::make_mut(&mut outgoing.envelope).birth = outgoing.envelope.creates.then(birth);
    done(vec![outgoing])
}

fn program_poison(message: &Message, seen: &[Payload], birth: &mut dyn FnMut() -> Birth) -> Outcome<Actor, Payload> {
    match (message.to, message.body) {
        (20, 1) if !seen.contains(&2) => Outcome::Failed("too early".to_owned()),
        _ => program_1(message, seen, birth),
    }
}

fn program_timers(message: &Message, _: &[Payload], _: &mut dyn FnMut() -> Birth) -> Outcome<Actor, Payload> {
    let outgoing = send(1, CALLED, 20, message.body);
    let timer = Timer { due: Wall(0), slot: Slot::default(), outgoing, name: None };
    match message.to {
        CALLED => Outcome::Done(Effects { timers: vec![timer], ..Effects::default() }.into()),
        _ => done(Vec::new()),
    }
}

fn program_lanes(message: &Message, _: &[Payload], _: &mut dyn FnMut() -> Birth) -> Outcome<Actor, Payload> {
    let sends = || vec![send(1, CALLED, 20, message.body), send(2, CALLED, 20, message.body)];
    done(if message.to == CALLED { sends() } else { Vec::new() })
}

impl Bounds {
    fn program(&self) -> Program {
        match self {
            Self { creates: true, .. } => program_create,
            Self { timers: true, .. } => program_timers,
            Self { poison: true, .. } => program_poison,
            Self { lanes: 2, .. } => program_lanes,
            Self { receivers: 1, .. } => program_1,
            _ => program_2,
        }
    }

    /// Whether what is sent arrives in its order.
    fn keeps_order(&self) -> bool {
        !self.timers && !self.poison
    }
}

impl Model for Bounds {
    type State = State;
    type Action = Step;

    fn init_states(&self) -> Vec<State> {
        let mut world = World::new(self.config, 1 + self.lanes, self.program());
        world.quick = self.quick;
        vec![State { world, called: 0, take_overs: 0, ticks: 0, repeats: 0, refusals: 0, wishes: 0 }]
    }

    fn actions(&self, state: &State, steps: &mut Vec<Step>) {
        let world = &state.world;
        if state.called < self.calls {
            steps.push(Step::Call);
        }
        if state.repeats < self.repeats {
            steps.extend((1..=state.called).map(Step::Repeat));
        }
        steps.extend((0..world.pending.len()).map(Step::Apply));
        steps.extend((0..world.owners.len()).filter(|i| !world.owners[*i].outcomes.is_empty()).map(Step::Hear));
        for (index, owner) in world.owners.iter().enumerate() {
            steps.extend(owner.running.keys().map(|turn| Step::End(index, *turn)));
        }
        // With two lanes, the first one leads nowhere.
        let arrives = |index: &usize| self.lanes == 1 || world.network[*index].0 != PartitionId(1);
        steps.extend((0..world.network.len()).filter(arrives).map(Step::Deliver));
        if state.refusals < self.refusals {
            steps.extend((0..world.pending.len()).map(Step::Refuse));
        }
        if state.wishes < self.wishes && !world.disks[1].parked.is_empty() {
            steps.extend([false, true].map(|drops| Step::Wish { drops }));
        }
        steps.extend((0..world.owners.len()).filter(|i| !world.owners[*i].wishes.is_empty()).map(Step::Grant));
        if state.ticks < self.ticks {
            steps.extend([0, 1].map(Step::Tick));
        }
        if state.take_overs < self.take_overs {
            for partition in [0, 1] {
                steps.extend([true, false].map(|crash| Step::TakeOver { partition, crash }));
            }
        }
    }

    fn next_state(&self, last: &State, step: Step) -> Option<State> {
        let program = self.program();
        let mut state = last.clone();
        let world = &mut state.world;
        match step {
            Step::Call => {
                state.called += 1;
                world.call(0, CALLED, state.called, program);
            }
            Step::Repeat(body) => {
                state.repeats += 1;
                world.call(0, CALLED, body, program);
            }
            Step::Apply(index) => world.apply(index),
            Step::Hear(index) => world.hear(index, program),
            Step::End(index, turn) => world.end(index, turn, program),
            Step::Deliver(index) => {
                let message = world.network[index].clone();
                world.deliver(index, program);
                world.network.push(message);
            }
            Step::Tick(partition) => {
                state.ticks += 1;
                world.handle(world.owner(partition), Event::Tick, program);
            }
            Step::TakeOver { partition, crash } => {
                state.take_overs += 1;
                world.take_over(partition, crash, program);
            }
            Step::Refuse(index) => {
                state.refusals += 1;
                world.refuse(index);
            }
            Step::Wish { drops } => {
                state.wishes += 1;
                world.wish(1, drops);
            }
            Step::Grant(index) => world.grant(index, program),
        }
        world.network.sort();
        world.network.dedup();
        world.pending.sort();
        (state != *last).then_some(state)
    }

    fn properties(&self) -> Vec<Property<Self>> {
        vec![
            Property::always(ONCE, |bounds: &Self, state: &State| {
                let sent = state.world.fields(0, CALLED);
                let once = sent.iter().enumerate().all(|(i, body)| !sent[..i].contains(body));
                once && (0..bounds.receivers).all(|offset| {
                    let to = |body: &&Payload| bounds.receivers == 1 || **body % 2 == offset;
                    let sent: Vec<Payload> = sent.iter().filter(to).copied().collect();
                    let processed = state.world.processed(1, 20 + offset);
                    let mut done = [processed.clone(), state.world.disks[1].dropped.clone()].concat();
                    done.sort_unstable();
                    let done_once = done.windows(2).all(|two| two[0] != two[1]);
                    if bounds.keeps_order() { sent.starts_with(&processed) } else { done_once }
                })
            }),
            Property::always(KEPT, |bounds: &Self, state: &State| {
                let log = state.world.log(0, 1);
                let processed: usize = (0..bounds.receivers).map(|i| state.world.processed(1, 20 + i).len()).sum();
                let answered = (1..=bounds.calls).filter(|body| state.world.has_answer(*body));
                let disk = &state.world.disks[1];
                let timers = state.world.disks[0].timers.len() + state.world.disks[0].parked.len();
                let sent = state.world.fields(0, CALLED).len();
                log.before <= (processed + disk.parked.len() + disk.dropped.len()) as u64
                    && (!bounds.timers || sent == timers + log.last as usize)
                    && answered.into_iter().all(|body| state.world.fields(0, CALLED).contains(&body))
            }),
            Property::sometimes(ALL, |bounds: &Self, state: &State| {
                let disk = &state.world.disks[1];
                let arrived = if bounds.lanes == 2 {
                    state.world.processed(2, 20).len() == usize::from(bounds.calls)
                } else {
                    state.world.log(0, 1).before == u64::from(bounds.calls) && disk.parked.is_empty()
                };
                state.take_overs == bounds.take_overs && state.refusals == bounds.refusals && arrived
            }),
        ]
    }
}

const ONCE: &str = "each actor has processed a prefix of what was sent to it, in order, each message once";
const KEPT: &str = "what is acknowledged or answered is committed, and so is what waits for its time";
const ALL: &str = "everything is processed and acknowledged after the last change of owner";

/// An instance that takes longer is too large.
const LONGEST: Duration = Duration::from_secs(1800);

fn bounds() -> Bounds {
    let config = Config {
        window: 2,
        first_credit: 2,
        batch_max: 2,
        retransmit: Duration::from_nanos(0),
        retransmit_max: Duration::from_nanos(0),
        trim_after: Duration::from_nanos(0),
        ..Config::default()
    };
    Bounds {
        calls: 2,
        receivers: 1,
        creates: false,
        take_overs: 1,
        ticks: 0,
        repeats: 0,
        refusals: 0,
        wishes: 0,
        quick: true,
        timers: false,
        poison: false,
        lanes: 1,
        config,
    }
}

fn exhaust(name: &str, bounds: Bounds) {
    let begun = Instant::now();
    let checker = bounds.checker().threads(2).timeout(LONGEST).spawn_bfs().join();
    let Bounds { calls, receivers, take_overs, ticks, repeats, quick, .. } = checker.model();
    println!(
        "{name}: {calls} calls, {receivers} receivers, {take_overs} changes of owner, {ticks} ticks, {repeats} repeats, \
         quick {quick}: {} distinct states in {:?}",
        checker.unique_state_count(),
        begun.elapsed()
    );
    assert!(begun.elapsed() < LONGEST, "{name}: the instance is not exhausted");
    checker.assert_no_discovery(ONCE);
    checker.assert_no_discovery(KEPT);
    checker.assert_any_discovery(ALL);
}

/// Asserts that without one check a property fails.
fn breaks(name: &str, property: &'static str, mut bounds: Bounds, without: impl FnOnce(&mut Checks)) {
    without(&mut bounds.config.checks);
    let begun = Instant::now();
    let checker = bounds
        .checker()
        .threads(2)
        .finish_when(HasDiscoveries::AllOf([property].into()))
        .timeout(Duration::from_secs(60))
        .spawn_bfs()
        .join();
    let path = checker.discovery(property).unwrap_or_else(|| panic!("{name}: the model does not need this check"));
    println!(
        "{name}: broken after {} steps, {} distinct states in {:?}",
        path.into_actions().len(),
        checker.unique_state_count(),
        begun.elapsed()
    );
}

#[test]
fn two_messages_are_processed_once_while_an_owner_changes() {
    exhaust("one change", bounds());
}

#[test]
fn one_message_is_processed_once_while_owners_change_twice() {
    exhaust("two changes", Bounds { calls: 1, take_overs: 2, ..bounds() });
}

#[test]
fn two_messages_are_processed_once_while_they_are_sent_again() {
    exhaust("sent again", Bounds { take_overs: 0, ticks: 1, ..bounds() });
}

#[test]
fn an_actor_is_created_and_halted_once_while_an_owner_changes() {
    exhaust("create, halt", Bounds { creates: true, ..bounds() });
}

#[test]
fn an_actor_is_created_twice_and_halted_once_in_between() {
    exhaust("create, halt, create", Bounds { calls: 3, take_overs: 0, creates: true, ..bounds() });
}

#[test]
fn two_slow_turns_commit_in_any_order() {
    exhaust("slow turns", Bounds { receivers: 2, take_overs: 0, quick: false, ..bounds() });
    exhaust("slow turns", Bounds { calls: 1, take_overs: 2, quick: false, ..bounds() });
}

/// A message is parked, and operators do something about it.
fn operators() -> Bounds {
    let config = Config { attempts_max: 1, ..bounds().config };
    Bounds { take_overs: 0, wishes: 2, poison: true, config, ..bounds() }
}

#[test]
fn a_parked_message_is_processed_or_dropped_once_whatever_two_operators_want() {
    exhaust("operators", operators());
}

#[test]
fn without_one_operator_at_a_time_a_parked_message_runs_twice() {
    breaks("parked_once", ONCE, operators(), |checks| checks.parked_once = false);
}

#[test]
fn timers_fire_once_while_the_journal_refuses_a_commit() {
    exhaust("timers, refused", Bounds { take_overs: 0, ticks: 1, refusals: 1, timers: true, ..bounds() });
}

#[test]
fn two_messages_are_processed_once_while_the_journal_refuses_a_commit() {
    exhaust("refused", Bounds { take_overs: 0, refusals: 1, ..bounds() });
}

/// Two lanes, of which one leads nowhere.
fn lanes() -> Bounds {
    Bounds { take_overs: 0, lanes: 2, ..bounds() }
}

#[test]
fn a_lane_that_leads_nowhere_keeps_no_other_one_waiting() {
    exhaust("two lanes", lanes());
}

#[test]
fn without_closing_commits_a_lane_that_leads_nowhere_stops_all() {
    let mut bounds = lanes();
    bounds.config.checks.commit_closes = false;
    let checker = bounds.checker().threads(2).timeout(LONGEST).spawn_bfs().join();
    assert!(checker.discovery(ALL).is_none(), "the model does not need this check");
}

#[test]
fn without_counted_creation_a_halted_actor_comes_back() {
    breaks("counted_creation", ONCE, Bounds { creates: true, ..bounds() }, |checks| checks.counted_creation = false);
}

#[test]
fn a_repeated_call_runs_once_while_an_owner_changes() {
    exhaust("repeated call", Bounds { calls: 1, repeats: 1, ..bounds() });
}

#[test]
fn without_waiting_for_the_commit_an_acknowledged_message_is_lost() {
    breaks("acknowledge_after_commit", KEPT, bounds(), |checks| checks.acknowledge_after_commit = false);
}

#[test]
fn without_refusing_gaps_a_message_is_lost() {
    breaks("refuse_gaps", KEPT, bounds(), |checks| checks.refuse_gaps = false);
}

#[test]
fn without_the_receipt_in_the_commit_a_message_is_processed_twice() {
    breaks("receipt_in_commit", ONCE, bounds(), |checks| checks.receipt_in_commit = false);
}

#[test]
fn without_the_high_water_mark_a_message_is_queued_twice() {
    breaks("high_water_mark", ONCE, bounds(), |checks| checks.high_water_mark = false);
}

#[test]
fn without_waiting_for_the_commit_a_message_leaves_that_was_never_sent() {
    breaks("send_after_commit", ONCE, bounds(), |checks| checks.send_after_commit = false);
}

#[test]
fn without_the_fence_two_owners_process_a_message() {
    breaks("fence", ONCE, bounds(), |checks| checks.fence = false);
}

#[test]
fn without_recorded_answers_a_repeated_call_runs_twice() {
    breaks("recorded_answer", ONCE, Bounds { repeats: 1, ..bounds() }, |checks| checks.recorded_answer = false);
}
