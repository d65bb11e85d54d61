//! One instance: what it knows of the latest version, and what it wants added.

use std::collections::VecDeque;

use super::{Applied, Config, LeaderEpoch, Note, Numbered, Session, Snapshot, Submission, Version, Versioned, Waiter};
use crate::time::Timestamp;

/// What happened to an instance.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub enum Event<S: Versioned> {
    /// This leader was appointed.
    Leader(LeaderEpoch),
    /// The user enqueued this.
    Enqueue(S::Update),
    /// Say [`Action::Done`] when all that is enqueued is confirmed.
    Confirm(Waiter),
    /// Say [`Action::Done`] when the latest version of after this request is here, and all that was enqueued before it is
    /// confirmed.
    Refresh(Waiter),
    /// Another instance may lead the same state, unknown to this one's leader: what is confirmed from here on is kept.
    Doubt,
    /// No other instance has led: what was kept is forgotten.
    Sure,
    /// Another leader stays: what was kept is to be confirmed by it, before all that is pending.
    Yield,
    /// The leader sent this.
    Received(Note<S>),
    /// The deadline came.
    Tick,
}

/// What must be done for an instance.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub enum Action<S: Versioned> {
    /// Send this to the leader.
    Submit(Submission<S::Update>),
    /// Send this to the leader that collects.
    Collected(LeaderEpoch, Session, Snapshot<S>),
    /// An own update is confirmed: its number and what it came to.
    Outcome(u64, Applied<S::Output, S::Error>),
    /// What this one waited for has come.
    Done(Waiter),
}

/// One instance of a state that a leader holds; see the [module](super).
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub struct Participant<S: Versioned> {
    me: Session,
    config: Config,
    /// The last leader that we have met.
    epoch: LeaderEpoch,
    confirmed: Snapshot<S>,
    pending: VecDeque<S::Update>,
    /// The last settled updates, while another instance may lead.
    kept: Option<VecDeque<S::Update>>,
    /// How many of our updates are no longer pending, and under which leader the last of them was settled.
    settled: u64,
    settled_under: LeaderEpoch,
    requests: u64,
    /// When the submission under way is sent again, and who it serves.
    under_way: Option<(Timestamp, Vec<(Waiter, u64)>)>,
    /// In the order of what they wait for.
    confirming: VecDeque<(Waiter, u64)>,
    /// What was enqueued before them, they wait for too.
    refreshing: Vec<(Waiter, u64)>,
}

impl<S: Versioned> Participant<S> {
    /// The instance of the activation `me`.
    pub fn new(me: Session, config: Config) -> Self {
        Self {
            me,
            config,
            epoch: LeaderEpoch::default(),
            confirmed: Snapshot::default(),
            pending: VecDeque::new(),
            kept: None,
            settled: 0,
            settled_under: LeaderEpoch::default(),
            requests: 0,
            under_way: None,
            confirming: VecDeque::new(),
            refreshing: Vec::new(),
        }
    }

    /// The last version that came from a leader.
    pub fn confirmed(&self) -> &Snapshot<S> {
        &self.confirmed
    }

    /// The confirmed state with the pending updates on top.
    pub fn tentative(&self) -> S {
        let mut state = self.confirmed.state.clone();
        // Those that are to be confirmed anew are in it.
        let within = self.confirmed.applied(self.me).saturating_sub(self.settled);
        for update in self.pending.iter().skip(within as usize) {
            let mut next = state.clone();
            if next.apply(update).is_ok() {
                state = next;
            }
        }
        state
    }

    /// How many of its updates a leader has confirmed.
    pub fn settled(&self) -> u64 {
        self.settled
    }

    /// How many of its updates no leader has confirmed.
    pub fn pending(&self) -> usize {
        self.pending.len()
    }

    /// How many of its updates are kept as another instance may lead; `None` if that is not so.
    pub fn kept(&self) -> Option<usize> {
        self.kept.as_ref().map(VecDeque::len)
    }

    /// The last leader that it has met.
    pub fn epoch(&self) -> LeaderEpoch {
        self.epoch
    }

    /// When `handle` next wants a [`Event::Tick`].
    pub fn deadline(&self) -> Option<Timestamp> {
        self.under_way.as_ref().map(|(resend_at, _)| *resend_at)
    }

    /// Notes how much the updates in one submission may [weigh](Versioned::weight), as the leader is near or far now.
    pub fn set_submission_weight_max(&mut self, most: usize) {
        self.config.submission_weight_max = most;
    }

    /// Applies `event` at `now`, appending what must happen to `out`, in order. Never fails.
    pub fn handle(&mut self, now: Timestamp, event: Event<S>, out: &mut Vec<Action<S>>) {
        match event {
            Event::Leader(epoch) => self.meet(epoch),
            Event::Enqueue(update) => self.pending.push_back(update),
            Event::Confirm(waiter) => self.confirming.push_back((waiter, self.last())),
            Event::Refresh(waiter) => self.refreshing.push((waiter, self.last())),
            Event::Doubt => _ = self.kept.get_or_insert_default(),
            Event::Sure => self.kept = None,
            Event::Yield => self.yields(),
            Event::Received(note) => self.receive(note, out),
            Event::Tick if self.deadline().is_some_and(|at| at <= now) => self.give_up(),
            Event::Tick => {}
        }
        let settled = self.settled;
        while let Some((waiter, _)) = self.confirming.pop_front_if(|(_, at)| *at <= settled) {
            out.push(Action::Done(waiter));
        }
        let works = !self.pending.is_empty() || !self.refreshing.is_empty();
        if self.under_way.is_none() && works {
            self.submit(now, out);
        }
        self.check_invariants();
    }

    /// What holds between two events, whatever leaders say.
    fn check_invariants(&self) {
        assert!(self.confirmed.version.epoch <= self.epoch, "a version is of a leader that was not met");
        assert!(self.settled_under <= self.epoch, "an update is settled under a leader that was not met");
        assert!(self.kept().is_none_or(|kept| kept as u64 <= self.settled), "more is kept than was settled");
        let waiter = self.confirming.front();
        assert!(waiter.is_none_or(|(_, at)| self.settled < *at), "what is confirmed is waited for");
        debug_assert!(self.confirming.iter().is_sorted_by_key(|(_, at)| *at), "who waits for less waits longer");
        let waits = !self.pending.is_empty() || !self.refreshing.is_empty();
        assert!(!waits || self.under_way.is_some(), "something waits, and nothing is submitted");
    }

    /// The number of the last enqueued update.
    fn last(&self) -> u64 {
        self.settled + self.pending.len() as u64
    }

    fn meet(&mut self, epoch: LeaderEpoch) {
        if epoch > self.epoch {
            // What is for whoever leads is for this one, too.
            let was_joining = self.epoch == LeaderEpoch::default();
            self.epoch = epoch;
            if !was_joining {
                self.give_up();
            }
        }
    }

    /// The submission under way counts for nothing: what it carried is still pending.
    fn give_up(&mut self) {
        if let Some((_, served)) = self.under_way.take() {
            self.refreshing.extend(served);
        }
    }

    fn yields(&mut self) {
        let Some(mut kept) = self.kept.take() else { return };
        // What the one that has confirmed it has still under way counts no more.
        self.meet(LeaderEpoch(self.epoch.0.saturating_add(1)));
        self.settled -= kept.len() as u64;
        // The leader that stays has seen none of those before them.
        self.settled_under = LeaderEpoch::default();
        kept.append(&mut self.pending);
        self.pending = kept;
    }

    fn submit(&mut self, now: Timestamp, out: &mut Vec<Action<S>>) {
        self.requests += 1;
        self.under_way = Some((now + self.config.resend_after, std::mem::take(&mut self.refreshing)));
        out.push(Action::Submit(Submission {
            epoch: self.epoch,
            from: self.me,
            request: self.requests,
            first: self.settled + 1,
            settled_under: self.settled_under,
            seen: self.confirmed.version,
            updates: self.batch(),
        }));
    }

    /// The first of the pending updates, as many as one submission takes.
    fn batch(&self) -> Vec<S::Update> {
        let mut room = self.config.submission_weight_max;
        let fits = |(at, update): &(usize, &S::Update)| {
            if self.config.submission_weight_max == usize::MAX {
                return true;
            }
            let weight = S::weight(update);
            let fits = *at == 0 || weight <= room;
            room = room.saturating_sub(weight);
            fits
        };
        self.pending.iter().enumerate().take_while(fits).map(|(_, update)| update.clone()).collect()
    }

    fn receive(&mut self, note: Note<S>, out: &mut Vec<Action<S>>) {
        match note {
            Note::Collect(epoch) => {
                self.meet(epoch);
                if epoch == self.epoch {
                    out.push(Action::Collected(epoch, self.me, self.confirmed.clone()));
                }
            }
            Note::Assumed(request, snapshot, outcomes) => {
                let epoch = self.epoch;
                let met_none = self.confirmed.version == Version::default()
                    && (epoch == LeaderEpoch::default() || epoch == snapshot.version.epoch);
                if met_none || !self.config.checks.assume {
                    self.receive(Note::Answer(request, snapshot, outcomes), out);
                }
            }
            Note::Notify(snapshot) => self.adopt(snapshot, Vec::new(), out),
            Note::Answer(request, snapshot, outcomes) => {
                let first = self.epoch == LeaderEpoch::default();
                let current = request == self.requests && (first || snapshot.version.epoch == self.epoch);
                let served = if current { self.under_way.take() } else { None };
                self.adopt(snapshot, outcomes, out);
                for (waiter, at) in served.into_iter().flat_map(|(_, served)| served) {
                    let place = self.confirming.partition_point(|(_, other)| *other <= at);
                    self.confirming.insert(place, (waiter, at));
                }
            }
        }
    }

    /// Takes a later version for the confirmed one; the pending updates are rebased on it.
    fn adopt(&mut self, snapshot: Snapshot<S>, outcomes: Vec<Numbered<S::Output, S::Error>>, out: &mut Vec<Action<S>>) {
        let checks = self.config.checks;
        let epoch = snapshot.version.epoch;
        if checks.epoch && (epoch < self.epoch || snapshot.version < self.confirmed.version) {
            return;
        }
        self.meet(epoch);
        self.confirmed = snapshot;
        let mut outcomes = outcomes.into_iter().peekable();
        while self.settled < self.confirmed.applied(self.me) {
            let Some(update) = self.pending.pop_front() else { break };
            if let Some(kept) = &mut self.kept {
                kept.push_back(update);
            }
            self.settled += 1;
            self.settled_under = epoch;
            while outcomes.next_if(|(number, _)| *number < self.settled).is_some() {}
            let known = outcomes.next_if(|(number, _)| *number == self.settled);
            out.push(Action::Outcome(self.settled, known.map_or(Applied::Confirmed, |(_, outcome)| outcome)));
        }
    }
}
