//! An ownership of a partition: the thin loop around its machine, events in, actions out.

use std::collections::{BTreeMap, VecDeque};
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;

use futures_util::stream::FuturesUnordered;
use futures_util::{FutureExt, StreamExt};
use greenroom_protocols::delivery::{
    Answer, CommitId, Config, DeadLetter, Outcome as TurnOutcome, Recovered, Stop, TurnId,
};
use greenroom_reliable::ledger::{Ledger, Outcome};
use greenroom_store::{Applied, Journal};
use greenroom_world::{BoxFuture, Timestamp};
use tokio::sync::{mpsc, oneshot};

use super::admin::Wish;
use super::answers::Answered;
use super::callers::Callers;
use super::cast::{Begun, Cast, End};
use super::counts::Share;
use super::driver::Over;
use super::errands::{Changes, Desk, Done, Errand, subject};
use super::name::{Act, Body, Happening, Machine, Named};
use super::outputs::{Leaving, Outputs};
use super::partition::Input;
use super::parts::parts;
use super::suspects::Suspects;
use super::takings::Later;
use super::waiting::{self, WaitingWishKind};
use crate::actor::error::Refusal;
use crate::here::port::Port;
use crate::observe::events::Happened as Event;
use crate::shard::Shard;
use crate::shard::calls::Completion;

/// An ownership of a partition.
pub(super) struct Owned {
    pub(super) port: Arc<Port>,
    pub(super) desk: Desk,
    pub(super) machine: Machine,
    actions: VecDeque<Act>,
    /// What the machine has just wanted, which goes behind `actions` at once: room that is kept.
    wanted: Vec<Act>,
    pub(super) errands: FuturesUnordered<Errand>,
    pub(super) cast: Cast,
    /// Changes of turns that have ended and are not committed, and what is to be done after their commit.
    changes: BTreeMap<TurnId, (Changes, Vec<Later>)>,
    flight: Option<(CommitId, Vec<TurnId>)>,
    callers: Callers,
    /// Actors whose records are being read: each is given up with its sender.
    loading: BTreeMap<Named, oneshot::Sender<()>>,
    /// The same of calls whose answers are looked for, by their keys.
    recalling: BTreeMap<String, oneshot::Sender<()>>,
    suspects: Suspects,
    over: Option<Over>,
    pub(super) commits: u64,
    pub(super) turns: u64,
    pub(super) last_commit: Duration,
    share: Share,
    outputs: Outputs,
    /// True if an owner before may have died: messages that it had begun may still be on their way here.
    after_death: bool,
}

impl Owned {
    pub(super) fn recover(
        port: &Arc<Port>,
        journal: &dyn Journal,
        ledger: Ledger,
        recovered: Recovered<Named, Body>,
    ) -> Self {
        let limits = journal.limits();
        let config = Config {
            partitions: port.node.config().reliable.partitions,
            operations_max: limits.operations_max.min(Config::default().operations_max + 1) - 1,
            bytes_max: (limits.bytes_max / 2).min(Config::default().bytes_max),
            answers_keep: port.node.config().reliable.answers_keep,
            answers_bytes_max: port.node.config().reliable.answers_bytes_max,
            deaths_max: port.node.config().reliable.deaths_max,
            checks: port.node.config().checks.delivery,
            ..Config::default()
        };
        let ledger = if config.checks.fence { ledger } else { ledger.unfenced() };
        let mut actions = Vec::new();
        let now = (port.node.world().now(), port.node.wall());
        let after_death = recovered.after_death;
        let machine = Machine::recover(config, ledger.owner(), recovered, now, &mut actions);
        tracing::info!(partition = ledger.owner().partition.0, epoch = ledger.owner().epoch.0, "a partition is taken");
        let (partition, epoch) = (ledger.owner().partition.0, ledger.owner().epoch.0);
        port.node.happened(Event::PartitionTaken { partition, epoch });
        let cast = Cast::new(port.clone(), ledger.owner(), ledger.life());
        Self {
            port: port.clone(),
            desk: Desk { node: port.node.clone(), ledger },
            machine,
            actions: actions.into(),
            wanted: Vec::new(),
            errands: FuturesUnordered::new(),
            cast,
            changes: BTreeMap::new(),
            flight: None,
            callers: Callers::default(),
            loading: BTreeMap::new(),
            recalling: BTreeMap::new(),
            suspects: Suspects::default(),
            over: None,
            commits: 0,
            turns: 0,
            last_commit: Duration::ZERO,
            share: Share::new(port.node.clone()),
            outputs: Outputs::default(),
            after_death,
        }
    }

    pub(super) async fn run(mut self, inputs: &mut mpsc::Receiver<Input>, early: &mut VecDeque<Input>) -> Over {
        let world = self.port.node.world().clone();
        let mut timer: Option<(Timestamp, BoxFuture<()>)> = None;
        let mut sweep_at = world.now() + SWEEP;
        let mut leaving: Option<(Timestamp, oneshot::Sender<()>)> = None;
        let mut at_once = 0;
        loop {
            while let Some(input) = early.pop_front() {
                self.input(input, &mut leaving);
            }
            self.carry_out();
            if let Some(over) = self.over.take() {
                self.let_go();
                return over;
            }
            // What has come already is taken in before anybody looks at the whole, which takes as long as one of them.
            if at_once < AT_ONCE_MAX && self.take_in(inputs, &mut leaving) {
                at_once += 1;
                continue;
            }
            at_once = 0;
            let (answers, answers_bytes) = self.machine.kept();
            let now = [
                self.cast.len() as u64,
                self.machine.queued() as u64,
                self.backlog(),
                answers as u64,
                answers_bytes,
                self.machine.parked() as u64,
            ];
            self.share.tell(now);
            let now = world.now();
            if leaving.as_ref().is_some_and(|(until, _)| *until <= now || self.is_quiet()) {
                self.leave().await;
                return Over::Left(leaving.map(|(_, told)| told));
            }
            let due = self.machine.deadline().unwrap_or(Timestamp::NEVER).min(sweep_at);
            let due = leaving.as_ref().map_or(due, |(until, _)| due.min(*until));
            if timer.as_ref().is_none_or(|(at, _)| *at != due) {
                timer = Some((due, world.sleep_until(due)));
            }
            let Some((_, sleep)) = &mut timer else { continue };
            tokio::select! {
                biased;
                Some(done) = self.errands.next(), if !self.errands.is_empty() => self.done(done),
                input = inputs.recv() => match input {
                    Some(input) => self.input(input, &mut leaving),
                    // The activation was cut.
                    None => {
                        self.leave().await;
                        return Over::Left(None);
                    }
                },
                () = sleep => {
                    timer = None;
                    let now = world.now();
                    if sweep_at <= now {
                        sweep_at = now + SWEEP;
                        self.cast.sweep(&mut self.machine, now);
                    }
                    self.happen(Happening::Tick);
                }
            }
        }
    }

    /// Takes in one thing that has come, if there is one.
    fn take_in(
        &mut self,
        inputs: &mut mpsc::Receiver<Input>,
        leaving: &mut Option<(Timestamp, oneshot::Sender<()>)>,
    ) -> bool {
        if let Some(done) = self.errands.next().now_or_never().flatten() {
            self.done(done);
        } else if let Ok(input) = inputs.try_recv() {
            self.input(input, leaving);
        } else {
            return false;
        }
        true
    }

    /// Whether nothing is under way but messages to other partitions.
    fn is_quiet(&self) -> bool {
        self.flight.is_none() && self.machine.queued() == 0
    }

    /// Lets go of everything: what is not committed was never there.
    fn let_go(&mut self) {
        self.cast.cut_all();
        self.callers.answer_all(&Answered::Lost);
    }

    /// Lets go of everything, and tells the next owner that nothing of it runs any more.
    async fn leave(mut self) {
        self.let_go();
        let attempts = self.machine.handed_over();
        if let Err(error) = self.desk.ledger.leave(attempts, !self.after_death).await {
            tracing::debug!(%error, "the next owner of a partition takes this one for dead");
        }
    }

    fn now(&self) -> Timestamp {
        self.port.node.world().now()
    }

    pub(super) fn happen(&mut self, event: Happening) {
        self.machine.handle(self.port.node.world().now(), event, &mut self.wanted);
        self.actions.extend(self.wanted.drain(..));
    }

    /// Checks whether a message from outside may come to an actor.
    ///
    /// # Errors
    /// The name is none of this cluster's, or the cluster drains and holds nothing any more.
    fn admit(&self, actor: &Named) -> Result<(), Refusal> {
        let node = &self.port.node;
        actor.check(node.config().reliable.partitions)?;
        if node.reliable().is_closed.load(Ordering::Acquire) {
            let cluster = &node.config().cluster;
            let message = format!(
                "cluster {cluster:?} drains, and has no reliable actors any more; call them in another cluster"
            );
            return Err(Refusal::Activation { message });
        }
        Ok(())
    }

    fn input(&mut self, input: Input, leaving: &mut Option<(Timestamp, oneshot::Sender<()>)>) {
        match input {
            Input::Called(letter, waiter) => {
                if let Err(refusal) = self.admit(&letter.to) {
                    tracing::debug!(message = subject(&letter), %refusal, "a message for a reliable actor is for nobody");
                    // An error means that the caller has gone.
                    let _ = waiter.map(|waiter| waiter.send(Answered::refused(refusal)));
                    return;
                }
                let entered = waiter.map_or(Ok(()), |waiter| self.callers.enter(&letter, waiter));
                if let Err((waiter, refusal)) = entered {
                    // An error means that the caller has gone.
                    let _ = waiter.send(Answered::refused(refusal));
                    return;
                }
                self.happen(Happening::Called(letter));
            }
            Input::Withdrawn(actor, call) => {
                if self.callers.gone(&call) {
                    self.recalling.remove(&call);
                    self.happen(Happening::Withdrawn { actor: actor.clone(), call });
                    if !self.machine.awaits(&actor) {
                        self.loading.remove(&actor);
                    }
                }
            }
            Input::Arrived(wire) => self.happen(Happening::Arrived(*wire)),
            Input::Look(report) => _ = report.send(self.report()),
            Input::Wish(Wish::Actor { kind, key }, done) => {
                let memory = self.cast.is_in_memory(&kind, &key);
                self.errands.push(self.desk.clone().show(kind, key, memory, done));
            }
            Input::Wish(Wish::Waiting { actor }, done) => self.ask_waiting(WaitingWishKind::List(actor), done),
            Input::Wish(Wish::Drop(name), done) if waiting::is_place_name(&name) => {
                self.ask_waiting(WaitingWishKind::Drop(name), done);
            }
            Input::Wish(wish, done) => self.errands.push(self.desk.clone().parked(wish, done)),
            Input::Leave(told) => *leaving = Some((self.now() + LEAVE_MAX, told)),
        }
    }

    pub(super) fn backlog(&self) -> u64 {
        self.machine.sender().backlog().map(|(_, backlog, _)| backlog).sum()
    }

    /// Carries out what the machine wants, in order.
    fn carry_out(&mut self) {
        while let (Some(action), None) = (self.actions.pop_front(), &self.over) {
            self.act(action);
        }
    }

    fn act(&mut self, action: Act) {
        match action {
            Act::Send { to, wire } if to == self.desk.ledger.owner().partition => self.happen(Happening::Arrived(wire)),
            Act::Send { to, wire } => Shard::with(|shard| {
                if let Some(shard) = shard {
                    let partition = shard.partition(to);
                    parts(wire).into_iter().for_each(|part| partition.arrived(part).send());
                }
            }),
            // A name that was given to this incarnation alone.
            Act::Load(actor) if actor.birth().is_some_and(|birth| self.machine.born(&actor) == Some(birth)) => {
                self.done(Done::Loaded { actor, presence: None, queue: Vec::new(), fields: Vec::new() });
            }
            Act::Load(actor) => {
                let (loading, given_up) = oneshot::channel();
                self.loading.insert(actor.clone(), loading);
                self.errands.push(self.desk.clone().load(actor, given_up));
            }
            Act::Reset(actor) => {
                self.suspects.undone(&actor);
                self.cast.cut(&actor);
                self.changes.retain(|_, ((_, changes), _)| Cast::changed(changes) != &actor);
            }
            Act::Admit { turn, envelope, alone } => {
                let message = subject(&envelope);
                if alone {
                    tracing::warn!(
                        message,
                        "processes may have died during this turn: it begins again, alone, once that is recorded"
                    );
                } else {
                    tracing::debug!(
                        message,
                        "a process may have died during this turn: it begins again once that is recorded"
                    );
                }
                self.suspects.wait(turn, envelope.to.clone());
                self.errands.push(self.desk.clone().admission(turn, envelope, alone));
            }
            Act::Run { turn, envelope } => {
                let begun = self.cast.begin(turn, &envelope, self.port.node.world().now());
                self.begun(begun);
            }
            Act::Commit(commit) => {
                let changes = commit.turns.iter().filter_map(|turn| Some(self.changes.get(turn)?.0.clone())).collect();
                self.flight = Some((commit.id, commit.turns.clone()));
                self.errands.push(self.desk.clone().commit(commit, changes));
            }
            Act::Page { lane, from, limit } => self.errands.push(self.desk.clone().page(lane, from, limit)),
            Act::Trim { lane, through } => self.errands.push(self.desk.clone().trim(lane, through)),
            Act::Recall { key, numbers } => {
                let (recalling, given_up) = oneshot::channel();
                self.recalling.insert(key.clone(), recalling);
                self.errands.push(self.desk.clone().recall(key, numbers, given_up));
            }
            Act::Prune { answers, bundles } => self.errands.push(self.desk.clone().prune(answers, bundles)),
            Act::Answer { call, answer } => {
                if let Answer::Full | Answer::OverShare { .. } = answer {
                    self.share.turned_down();
                }
                let answered = Answered::of(answer, &self.port.node);
                self.callers.answer(&call, &answered);
            }
            Act::Refuse(reason) => {
                let partition = self.desk.ledger.owner().partition.0;
                tracing::error!(
                    partition,
                    %reason,
                    "a message of another partition is out of bounds and was refused; check which nodes reach this one"
                );
            }
            Act::DeadLetter { envelope, why } => {
                let why = match why {
                    DeadLetter::NoRoom => {
                        let queue = "a partition of reliable actors".to_owned();
                        Refusal::Overloaded { queue, bound: Config::default().queued_max as u64 }
                    }
                    _ => Refusal::DeadLetter { actor: envelope.to.to_string() },
                };
                tracing::debug!(message = subject(&envelope), %why, "a message of a reliable actor came to nothing");
            }
            Act::Output { life, lane, number, envelope, patient } => {
                let leaving = Leaving { life, lane, number, letter: envelope, patient };
                self.errands.push(self.desk.clone().hand_over(leaving, self.outputs.taken_by(lane)));
            }
            Act::Stop(why) => {
                if why == Stop::Deposed {
                    tracing::info!(partition = self.desk.ledger.owner().partition.0, "a partition has another owner");
                    let partition = self.desk.ledger.owner().partition.0;
                    self.port.node.happened(Event::PartitionLost { partition });
                }
                self.over = Some(Over::Again);
            }
        }
    }

    /// Takes in what has become of a turn at its beginning.
    fn begun(&mut self, begun: Begun) {
        match begun {
            Begun::Runs(turn, ended) => self.errands.push(Desk::turn(turn, ended)),
            Begun::Ended(turn, completion) => self.turn_over(turn, Some(completion)),
            Begun::Fails(turn, outcome) => self.happen(Happening::Ended { turn, outcome }),
            Begun::Strands(turn, letter) => self.errands.push(self.desk.clone().later(turn, letter)),
            Begun::Reads(actor) => self.errands.push(self.desk.clone().fields(actor)),
            Begun::Waits => {}
        }
    }

    fn done(&mut self, done: Done) {
        match done {
            Done::Unloadable { actor, error } => {
                self.loading.remove(&actor);
                self.happen(Happening::Unloadable { actor, error });
            }
            Done::Happened(event) => self.happen(event),
            Done::Loaded { actor, presence, queue, fields } => {
                self.loading.remove(&actor);
                self.cast.loaded(&actor, fields);
                self.happen(Happening::Loaded { actor, presence, queue });
            }
            Done::Fields { actor, fields } => {
                let begun = self.cast.read(&actor, fields, self.port.node.world().now());
                self.begun(begun);
            }
            Done::Due { turn, letter } => {
                let begun = self.cast.begin_stranded(turn, &letter, self.port.node.world().now());
                self.begun(begun);
            }
            Done::Admitted { turn, permit } if self.machine.awaits_admission(turn) => {
                if permit.is_some() {
                    self.errands.push(self.desk.clone().alone_for_long(turn));
                }
                self.suspects.admitted(turn, permit);
                self.happen(Happening::Admitted(turn));
            }
            // The turn is not wanted any more.
            Done::Admitted { .. } => {}
            Done::AloneForLong { turn } => self.suspects.share(turn),
            Done::Turn { turn, completion } => self.turn_over(turn, completion),
            Done::Committed { id, outcome, took } => self.committed(id, outcome, took),
            Done::Parked { wish, parked, done } => {
                let answer = parked.and_then(|parked| self.grant(&wish, parked));
                // An error means that nobody waits.
                let _ = done.send(answer);
            }
            Done::Waiting { wish, deferred } => self.grant_waiting(wish, deferred),
            Done::Output { lane, number, refused } => self.happen(match refused {
                None => Happening::Delivered { lane, number },
                Some(error) => Happening::Refused { lane, number, error },
            }),
            Done::Nothing => {}
        }
    }

    fn turn_over(&mut self, turn: TurnId, completion: Option<Completion>) {
        let Some(end) = self.cast.end(turn, completion) else { return };
        match end {
            End::Done(ended) => {
                self.changes.insert(turn, (ended.changes, ended.later));
                self.happen(Happening::Ended { turn, outcome: TurnOutcome::Done(ended.effects) });
            }
            End::Deferred => {
                self.suspects.committed(turn);
                self.happen(Happening::Ended { turn, outcome: TurnOutcome::Deferred });
            }
            End::Failed(why) => self.happen(Happening::Ended { turn, outcome: TurnOutcome::Failed(why) }),
            End::Died => self.happen(Happening::Ended { turn, outcome: TurnOutcome::Died }),
            End::Again => self.over = Some(Over::Again),
            End::Twice(begun) => self.begun(begun),
        }
    }

    fn committed(&mut self, id: CommitId, outcome: Outcome, took: Duration) {
        let turns = match self.flight.take() {
            Some((flight, turns)) if flight == id => turns,
            other => return self.flight = other,
        };
        match outcome {
            Outcome::Committed => {
                self.commits += 1;
                self.turns += turns.len() as u64;
                self.last_commit = took;
                self.share.committed(turns.len() as u64, took);
                for turn in turns {
                    self.suspects.committed(turn);
                    if let Some(((_, changes), later)) = self.changes.remove(&turn) {
                        let begun = self.cast.committed(Cast::changed(&changes));
                        self.begun(begun);
                        Shard::with(|shard| later.into_iter().for_each(|later| _ = shard.map(later)));
                    }
                }
                self.happen(Happening::Committed(id));
            }
            Outcome::Aborted(error) => {
                tracing::warn!(%error, "a commit of reliable actors is refused by the journal");
                self.happen(Happening::Aborted { id, error });
            }
            Outcome::Unsettled(error) => {
                tracing::warn!(%error, "nobody knows whether a commit is applied; the partition is recovered");
                if error.applied() == Applied::No {
                    // Then nothing that anybody waits for has run, and this is why.
                    let refusal = Refusal::Activation { message: error.to_string() };
                    self.callers.answer_all(&Answered::refused(refusal));
                }
                self.happen(Happening::Unsettled(id));
            }
            Outcome::Deposed => self.happen(Happening::Deposed),
            // The errand tries again by itself.
            Outcome::Again(_) => self.happen(Happening::Unsettled(id)),
        }
    }
}

/// What is taken in between two looks at the whole: at gauges, at what is due, at whether the partition is to leave.
const AT_ONCE_MAX: u32 = 64;
/// Between two looks for actors that nobody needs.
const SWEEP: Duration = Duration::from_secs(5);
/// Time for what has begun to be committed before a partition leaves.
const LEAVE_MAX: Duration = Duration::from_secs(2);
