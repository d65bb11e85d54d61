//! One actor's entry in one cluster's directory: rounds, questions and the instance.

use std::collections::{BTreeMap, BTreeSet};

use super::carry::Calls;
use super::healing::Handing;
use super::inquiry::{Asked, Conclusion, Inquiry};
use super::memory::Memory;
use super::{
    Action, Body, ClusterId, Config, ConfigEpoch, Configuration, End, Event, Message, Mode, Refusal, Report, Round,
    Standing, State,
};
use crate::time::Timestamp;

/// One actor's entry in one cluster; see the [module](super).
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub struct Entry<O, R, U> {
    pub(super) me: ClusterId,
    pub(super) config: Config,
    pub(super) configuration: Configuration,
    pub(super) state: State,
    pub(super) recovering: bool,
    /// The configuration for which the actor's home holds the lease.
    pub(super) leased: Option<ConfigEpoch>,
    /// Whether this cluster may be taken for lost.
    fenced: bool,
    /// The instance here, in whatever state the entry is.
    pub(super) instance: Option<Round>,
    /// Whether the instance here was stopped to be handed over.
    pub(super) suspended: bool,
    /// Whether the instance here is to end for another cluster's sake.
    yields: bool,
    /// The last number given to a round or a hand-over.
    pub(super) last: Round,
    pub(super) inquiry: Option<Inquiry<O>>,
    /// When the next round starts.
    pub(super) again_at: Option<Timestamp>,
    pub(super) memory: Memory,
    /// Clusters that did not answer the last time.
    pub(super) silent: BTreeSet<ClusterId>,
    /// Clusters that the transport does not reach.
    pub(super) lost: BTreeSet<ClusterId>,
    pub(super) calls: Calls<O>,
    pub(super) handing: Option<Handing<U>>,
    /// When to report next that an instance here ended in doubt; `None` if an owner knows, or there was none.
    pub(super) report_at: Option<Timestamp>,
    /// The last hand-over of each cluster given to the instance here, and whether it has taken it in.
    pub(super) merges: BTreeMap<ClusterId, (Round, bool)>,
    results: std::marker::PhantomData<R>,
}

impl<O: Clone, R, U: Clone> Entry<O, R, U> {
    /// An entry of cluster `me` with no instance, whose rounds are numbered above `floor`; in this cluster, no entry that could
    /// have run anything for others since `since` was forgotten.
    pub fn new(me: ClusterId, configuration: Configuration, config: Config, floor: Round, since: Timestamp) -> Self {
        Self {
            me,
            config,
            configuration,
            state: State::Invalid,
            recovering: false,
            leased: None,
            fenced: false,
            instance: None,
            suspended: false,
            yields: false,
            last: floor,
            inquiry: None,
            again_at: None,
            memory: Memory::new(since),
            silent: BTreeSet::new(),
            lost: BTreeSet::new(),
            calls: Calls::default(),
            handing: None,
            report_at: None,
            merges: BTreeMap::new(),
            results: std::marker::PhantomData,
        }
    }

    /// An entry in a range that recovers: until [`Event::Recovered`] it answers Unknown and starts nothing.
    pub fn recovering(
        me: ClusterId,
        configuration: Configuration,
        config: Config,
        floor: Round,
        since: Timestamp,
    ) -> Self {
        Self { recovering: true, ..Self::new(me, configuration, config, floor, since) }
    }

    /// The cluster that it is of.
    pub fn me(&self) -> ClusterId {
        self.me
    }

    /// Where the entry stands.
    pub fn state(&self) -> State {
        self.state
    }

    /// The instance here, if there is one, whether or not it is owned.
    pub fn instance(&self) -> Option<Round> {
        self.instance
    }

    /// The instance that may run turns now.
    pub fn running(&self) -> Option<Round> {
        self.instance.filter(|_| !self.suspended)
    }

    /// Clusters that did not answer the last time.
    pub fn silent(&self) -> &BTreeSet<ClusterId> {
        &self.silent
    }

    /// The last number that this entry gave: the floor of the next one.
    pub fn last_round(&self) -> Round {
        self.last
    }

    /// The configuration that the entry works by.
    pub fn configuration(&self) -> &Configuration {
        &self.configuration
    }

    /// Whether nothing is owned here and nothing that may own: a leaving cluster whose entries all are vacant may be dropped, as they stay
    /// so. Calls that are away at owners elsewhere do not count: while callers go on, there are always some.
    pub fn is_vacant(&self) -> bool {
        !self.recovering && self.is_blank()
    }

    /// Whether nothing is here and nothing is under way: it may be forgotten, but for the operations that it has run, after the longest
    /// deadline of a call.
    pub fn is_empty(&self) -> bool {
        self.is_vacant() && self.calls.is_empty() && self.report_at.is_none()
    }

    /// When `handle` next wants a [`Event::Tick`].
    pub fn deadline(&self) -> Option<Timestamp> {
        let round = self.inquiry.iter().map(|inquiry| inquiry.resend_at.min(inquiry.silent_at));
        let handing = self.handing.iter().filter(|handing| handing.unseen.is_some());
        let handing = handing.map(|handing| handing.resend_at.min(handing.silent_at));
        let carried = self.inquiry.iter().flat_map(|inquiry| &inquiry.carried).map(|call| call.deadline);
        let report = self.report_at.filter(|_| self.is_blank());
        round.chain(handing).chain(carried).chain(self.again_at).chain(report).chain(self.calls.deadline()).min()
    }

    /// Applies `event` at `now`, appending what must happen to `out`, in order. Never fails.
    pub fn handle(&mut self, now: Timestamp, event: Event<O, R, U>, out: &mut Vec<Action<O, R, U>>) {
        match event {
            Event::Configuration(configuration) => self.configure(now, configuration, out),
            Event::Call(call) => self.call(now, call, out),
            Event::Received(from, message) => self.receive(now, from, message, out),
            Event::Ran { origin, call, result } => self.send(origin, Body::Result { call, result }, out),
            Event::Suspended { instance, unseen } => self.suspended(now, instance, unseen, out),
            Event::Merged { from, number } => {
                if self.merges.get(&from).is_some_and(|(last, _)| *last == number) {
                    self.merges.insert(from, (number, true));
                    self.send(from, Body::HandedOver { number }, out);
                }
            }
            Event::Released(instance) => self.released(now, instance, out),
            Event::Recovered(report) => self.recovered(now, report, out),
            Event::Lease(epoch) => self.leased = self.leased.max(Some(epoch)).filter(|_| !self.fenced),
            Event::Fenced(fenced) => {
                self.fenced = fenced && self.config.checks.lost;
                if self.fenced {
                    self.leased = None;
                }
                if self.is_barred() {
                    out.extend(self.instance.map(Action::Release));
                }
            }
            Event::Yield => {
                if let State::Owned(instance) = self.state {
                    self.yields = true;
                    out.push(Action::Release(instance));
                }
            }
            Event::Lost(cluster) => {
                self.silent.insert(cluster);
                self.lost.insert(cluster);
                self.lose_owner(now, cluster, out);
                self.conclude_if_over(now, out);
            }
            Event::Reached(cluster) => {
                self.silent.remove(&cluster);
                self.lost.remove(&cluster);
            }
            Event::Tick => self.tick(now, out),
        }
        self.check_invariants();
    }

    /// What holds between two events.
    pub(super) fn check_invariants(&self) {
        // A round that is not in this state leaves the one before.
        let is_round = matches!(self.state, State::Requested | State::Loser);
        let settled = !self.config.checks.rerun_is_a_round || is_round == self.inquiry.is_some();
        assert!(settled, "the state does not say whether a round is under way");
        match self.state {
            State::Invalid => assert_eq!(self.instance, None, "an instance is left where there is none"),
            State::Owned(round) | State::Doubtful(round) => {
                assert_eq!(self.instance, Some(round), "the entry is for another instance than the one here");
            }
            State::Cached(_) if self.inquiry.is_none() => {
                let handed = self.instance.is_some() == self.handing.is_some();
                assert!(handed, "an instance is here, and is not handed over to its owner");
            }
            State::Cached(_) | State::Requested | State::Loser => {}
        }
        if let Some(inquiry) = &self.inquiry {
            assert_eq!(inquiry.round, self.last, "the round under way is not the last one");
        }
        if let Some(handing) = &self.handing {
            assert_eq!(self.state, State::Cached(handing.to), "an instance is handed over to who does not own it");
        }
        let stands_still = self.handing.is_some() || self.inquiry.is_some();
        assert!(!self.suspended || stands_still && self.instance.is_some(), "an instance stands still for nothing");
        assert!(self.merges.is_empty() || self.instance.is_some(), "what was handed over is nowhere");
        assert!(!self.instance.is_some_and(|instance| instance.follows(self.last)), "an instance has a number to come");
        assert!(!self.recovering || self.is_blank(), "a range that recovers has begun something");
        assert!(!self.fenced || self.leased.is_none(), "who may be taken for lost holds a lease");
    }

    /// Whether there is no instance and no round.
    pub(super) fn is_blank(&self) -> bool {
        self.instance.is_none() && self.inquiry.is_none()
    }

    fn receive(&mut self, now: Timestamp, from: ClusterId, message: Message<O, R, U>, out: &mut Vec<Action<O, R, U>>) {
        match message.body {
            Body::Ask { round, carried, leased, doubtful } => {
                self.asked(now, from, message.configuration, (round, carried, leased, doubtful), out);
            }
            Body::Answer { round, verdict, declined, carried, remembers_ms } => {
                self.answered(now, from, round, verdict, (declined, carried, remembers_ms), out);
            }
            Body::Forward { to, call } => self.forwarded(from, to, call, out),
            Body::NotHere { to, call } => self.not_here(now, to, call, out),
            Body::Result { call, result } => self.result(call, result, out),
            Body::HandOver { to, number, unseen } => self.handed(from, to, number, unseen, out),
            Body::HandedOver { number } => {
                if let Some(handing) = self.handing.take_if(|handing| handing.number == number) {
                    self.silent.remove(&handing.to.cluster);
                    self.deactivate(out);
                    self.forward_waiting(out);
                }
            }
            Body::NotOwner { number } => {
                if self.handing.take_if(|handing| handing.number == number).is_some() {
                    self.start_round(now, out);
                }
            }
        }
    }

    pub(super) fn send(&self, to: ClusterId, body: Body<O, R, U>, out: &mut Vec<Action<O, R, U>>) {
        out.push(Action::Send(to, Message { configuration: self.configuration.epoch, body }));
    }

    pub(super) fn is_recovering(&self) -> bool {
        self.recovering
    }

    /// Whether this cluster takes no part: it is leaving, or is not listed, or not yet admitted.
    pub(super) fn is_out(&self) -> bool {
        self.configuration.standing(self.me) != Some(Standing::Full)
    }

    /// Whether this cluster is to take part: calls wait for that.
    pub(super) fn is_joining(&self) -> bool {
        self.configuration.standing(self.me) == Some(Standing::Joining)
    }

    /// Whether an instance here might be a second one where there must not be two.
    fn is_barred(&self) -> bool {
        self.fenced && self.config.mode == Mode::Pessimistic
    }

    /// Starts a round, with the instance if there is one (G2).
    pub(super) fn start_round(&mut self, now: Timestamp, out: &mut Vec<Action<O, R, U>>) {
        self.last.0 += 1;
        self.again_at = None;
        let round = self.last;
        let carried = match self.instance {
            None if self.config.carry => self.calls.take_waiting(),
            _ => Vec::new(),
        };
        let leased = self.has_lease();
        let others = self.configuration.voters().filter(|cluster| *cluster != self.me && !leased);
        let asked = others
            .map(|cluster| {
                let carries = !carried.is_empty() && !self.silent.contains(&cluster);
                let (heard, declined, remembers) = (false, false, false);
                (cluster, Asked { verdict: None, heard, declined, remembers, carries })
            })
            .collect();
        let silent_at = now + self.config.silent_after;
        self.inquiry = Some(Inquiry { round, asked, carried, began: now, resend_at: now, silent_at });
        if self.instance.is_none() || self.config.checks.rerun_is_a_round {
            self.state = State::Requested;
        }
        self.ask(now, true, out);
        self.conclude_if_over(now, out);
    }

    /// Ends the round if no answer that may come changes what it means.
    pub(super) fn conclude_if_over(&mut self, now: Timestamp, out: &mut Vec<Action<O, R, U>>) {
        let is_lost = |cluster: ClusterId| {
            self.lost.contains(&cluster) || self.configuration.standing(cluster) == Some(Standing::Lost)
        };
        if self.inquiry.as_ref().is_some_and(|inquiry| inquiry.is_complete(is_lost) || inquiry.is_settled()) {
            self.conclude(now, out);
        }
    }

    /// Ends the round with the answers that there are.
    pub(super) fn conclude(&mut self, now: Timestamp, out: &mut Vec<Action<O, R, U>>) {
        let Some(inquiry) = self.inquiry.take() else { return };
        let conclusion = inquiry.conclusion(self.state == State::Loser, self.config.checks.fail);
        let unanswered = inquiry.asked.iter().filter(|(_, asked)| asked.is_silent());
        if !inquiry.is_settled() {
            self.silent.extend(unanswered.map(|(cluster, _)| *cluster));
        }
        let (round, silent) = (inquiry.round, inquiry.is_silent() && self.instance.is_none());
        // Who won under a lease has asked nobody.
        self.memory.set_whole(conclusion == Conclusion::Won && inquiry.is_remembered() && !self.has_lease());
        self.dispose(inquiry, conclusion, out);
        let only_reports = self.only_reports();
        if matches!(conclusion, Conclusion::Won | Conclusion::Elsewhere(_)) {
            self.report_at = None;
        }
        match conclusion {
            Conclusion::Won | Conclusion::Silence if only_reports => self.state = State::Invalid,
            Conclusion::Won if self.is_away() || self.is_barred() => self.start_over(now, out),
            Conclusion::Won => self.activate(now, round, false, out),
            Conclusion::Silence if self.config.mode == Mode::Optimistic => self.activate(now, round, true, out),
            Conclusion::Silence if silent => {
                self.calls.refuse(out);
                self.start_over(now, out);
            }
            Conclusion::Silence | Conclusion::Lost => self.start_over(now, out),
            Conclusion::Elsewhere(owner) => self.cache(now, owner, out),
        }
    }

    fn activate(&mut self, now: Timestamp, round: Round, doubtful: bool, out: &mut Vec<Action<O, R, U>>) {
        let allowed =
            if doubtful { self.config.mode == Mode::Optimistic } else { !self.is_away() && !self.is_barred() };
        assert!(allowed, "an instance is made where there must be none");
        self.yields &= self.instance.is_some();
        let instance = self.instance.unwrap_or(round);
        let resumes = std::mem::take(&mut self.suspended);
        match (self.instance, doubtful) {
            (None, _) => out.push(Action::Activate { instance, doubtful }),
            (Some(_), false) => {
                out.push(Action::Settle(instance));
                self.reload(instance, out);
            }
            (Some(_), true) if resumes => out.push(Action::Resume(instance)),
            (Some(_), true) => {}
        }
        self.instance = Some(instance);
        self.state = if doubtful { State::Doubtful(instance) } else { State::Owned(instance) };
        self.again_at = doubtful.then(|| now + self.config.rerun_every);
        for call in self.calls.take_waiting() {
            self.run(call, out);
        }
        if self.is_out() || !doubtful && self.is_away() {
            out.push(Action::Release(instance));
        }
    }

    /// Backs off until the next round.
    fn start_over(&mut self, now: Timestamp, out: &mut Vec<Action<O, R, U>>) {
        match self.instance {
            Some(instance) => {
                self.state = State::Doubtful(instance);
                if std::mem::take(&mut self.suspended) {
                    out.push(Action::Resume(instance));
                }
            }
            None => self.state = State::Invalid,
        }
        if self.instance.is_some() || self.calls.is_waiting() {
            self.again_at = Some(now + self.config.back_off);
        }
    }

    fn released(&mut self, now: Timestamp, instance: Round, out: &mut Vec<Action<O, R, U>>) {
        if self.instance != Some(instance) {
            return;
        }
        self.plan_report(now);
        self.instance = None;
        self.suspended = false;
        self.handing = None;
        self.merges.clear();
        self.inquiry = None;
        self.again_at = std::mem::take(&mut self.yields).then(|| now + self.config.yield_for);
        match self.state {
            State::Cached(_) => self.forward_waiting(out),
            _ => self.state = State::Invalid,
        }
        self.progress(now, out);
    }

    fn recovered(&mut self, now: Timestamp, report: Option<Report>, out: &mut Vec<Action<O, R, U>>) {
        if !std::mem::take(&mut self.recovering) {
            return;
        }
        if let Some(Report { instance, owned }) = report {
            if instance.follows(self.last) {
                self.last = instance;
            }
            self.instance = Some(instance);
            self.state = if owned { State::Owned(instance) } else { State::Doubtful(instance) };
            self.again_at = (!owned).then(|| now + self.config.back_off);
            for call in self.calls.take_waiting() {
                self.run(call, out);
            }
            if self.is_out() || self.is_barred() || owned && self.is_away() {
                out.push(Action::Release(instance));
            }
        }
        self.progress(now, out);
    }

    /// Adopts a newer configuration; a round of the old one is abandoned.
    fn configure(&mut self, now: Timestamp, configuration: Configuration, out: &mut Vec<Action<O, R, U>>) {
        if configuration.epoch <= self.configuration.epoch {
            return;
        }
        self.configuration = configuration;
        if let Some(inquiry) = self.inquiry.take() {
            self.calls.carried_away(inquiry.carried);
            self.start_over(now, out);
        }
        if let State::Cached(owner) = self.state
            && matches!(self.configuration.standing(owner.cluster), None | Some(Standing::Lost))
        {
            self.lose_owner(now, owner.cluster, out);
        }
        if self.is_out() {
            if !self.is_joining() {
                self.turn_away(out);
            }
            if matches!(self.state, State::Owned(_) | State::Doubtful(_)) {
                out.extend(self.instance.map(Action::Release));
            }
        } else if self.is_away() && matches!(self.state, State::Owned(_)) {
            out.extend(self.instance.map(Action::Release));
        }
        self.progress(now, out);
    }

    /// Starts a round if calls wait for one; a cluster that takes no part starts none, also for calls that have waited for its
    /// recovery.
    pub(super) fn progress(&mut self, now: Timestamp, out: &mut Vec<Action<O, R, U>>) {
        let idle = self.state == State::Invalid && self.inquiry.is_none() && self.again_at.is_none();
        if idle && !self.recovering && self.calls.is_waiting() && !self.is_joining() {
            if self.is_out() {
                self.turn_away(out);
            } else {
                self.start_round(now, out);
            }
        }
    }

    fn turn_away(&mut self, out: &mut Vec<Action<O, R, U>>) {
        let waiting = self.calls.take_waiting().into_iter();
        out.extend(waiting.map(|call| Action::End(call.id, End::Refused(Refusal::Draining))));
    }

    /// Forgets an owner that cannot be reached.
    fn lose_owner(&mut self, now: Timestamp, cluster: ClusterId, out: &mut Vec<Action<O, R, U>>) {
        self.calls.lost(cluster, out);
        if matches!(self.state, State::Cached(owner) if owner.cluster == cluster) {
            self.handing = None;
            match self.instance {
                Some(_) => self.start_round(now, out),
                None => self.state = State::Invalid,
            }
        }
        self.progress(now, out);
    }

    fn tick(&mut self, now: Timestamp, out: &mut Vec<Action<O, R, U>>) {
        if let Some(inquiry) = &mut self.inquiry {
            // What no cluster was sent, or all have declined, has not run.
            let declined = inquiry.is_declined();
            for call in inquiry.carried.extract_if(.., |call| call.deadline <= now) {
                let end = if declined { End::Refused(Refusal::Unreachable) } else { End::Unknown };
                out.push(Action::End(call.id, end));
            }
            if inquiry.silent_at <= now {
                self.conclude(now, out);
            } else if inquiry.resend_at <= now {
                self.ask(now, false, out);
            }
        }
        if let Some(owner) = self.calls.expire(now, out)
            && self.state == State::Cached(owner)
            && self.handing.is_none()
        {
            self.state = State::Invalid;
        }
        if let Some(handing) = self.handing.as_ref().filter(|handing| handing.unseen.is_some()) {
            if handing.silent_at <= now {
                self.silent.insert(handing.to.cluster);
                self.handing = None;
                self.start_round(now, out);
            } else if handing.resend_at <= now {
                self.hand_over(now, out);
            }
        }
        if self.again_at.is_some_and(|at| at <= now) {
            self.again_at = None;
            if self.instance.is_some() {
                self.start_round(now, out);
            }
        }
        self.report_if_due(now, out);
        self.progress(now, out);
    }

    /// Removes a call from the round that carries it, if its result overtook the answer.
    pub(super) fn take_carried(&mut self, call: super::CallId) -> bool {
        let carried = self.inquiry.iter_mut().flat_map(|inquiry| inquiry.carried.extract_if(.., |c| c.id == call));
        carried.count() > 0
    }
}
