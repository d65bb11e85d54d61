//! VLB around its machines: this cluster's participant, and the leader if it is here.

use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::time::Duration;

use greenroom_protocols::bcas::{self, Change, Waiter};
use greenroom_protocols::gsi::ClusterId;
use greenroom_protocols::vlb::{
    Action as Do, Config, Event as Happened, Leader, LeaderEpoch, Note, Participant, Session, Snapshot, Submission,
};

use super::super::Rejected;
use super::super::elsewhere::Around;
use super::super::protocol::{
    Action, Applied, ConsistencyProtocol, Delivery, Event, Now, OutputValue, Place, StateValue, Timestamp, UpdateValue,
    Version,
};
use super::vlb_message::{Message, Said};
use super::{UPDATE_BYTES_MAX, open, seal};

/// One instance of a state that a leader holds in memory.
pub(in super::super) struct Vlb {
    place: Place,
    participant: Participant<Whole>,
    /// Made with the first event, if this cluster's instance leads.
    leader: Option<Leader<Whole>>,
    /// What came before the leader knew the latest version: the last of each session.
    early: BTreeMap<Session, Submission<Change<UpdateValue>>>,
    /// When this instance makes itself known to the leader, if its calls have not.
    join_at: Option<Timestamp>,
    /// Clusters that are to be told of the latest version, and when they were told last.
    owed: BTreeSet<ClusterId>,
    told_at: Option<Timestamp>,
    /// Where the instance may be that stays, if this one does not.
    yields: Option<Vec<ClusterId>>,
    begun: bool,
}

/// A state that is also changed by being cleared.
#[derive(Clone, PartialEq, Eq, Hash, Debug, Default)]
pub(super) struct Whole(pub(super) StateValue);

impl bcas::Versioned for Whole {
    type Update = Change<UpdateValue>;
    type Output = Option<OutputValue>;
    type Error = Rejected;

    fn apply(&mut self, change: &Change<UpdateValue>) -> Result<Option<OutputValue>, Rejected> {
        match change {
            Change::Update(update) => self.0.apply(update).map(Some),
            Change::Clear => {
                self.0 = StateValue::default();
                Ok(None)
            }
        }
    }

    fn weight(change: &Change<UpdateValue>) -> usize {
        match change {
            Change::Update(update) => StateValue::weight(update),
            Change::Clear => 0,
        }
    }
}

type Outcome = Applied<Option<OutputValue>, Rejected>;

impl Vlb {
    pub(in super::super) fn new(place: Place) -> Self {
        let config = Config { resend_after: place.retry_after * 10, ..Config::default() };
        let participant = Participant::new(place.session, config);
        let (early, owed) = (BTreeMap::new(), BTreeSet::new());
        let (join_at, told_at, yields) = (None, None, None);
        Self { participant, leader: None, place, early, join_at, owed, told_at, yields, begun: false }
    }

    fn leads(&self) -> bool {
        self.place.around.leader == self.place.around.here || self.place.around.others.is_empty()
    }

    /// Leads from now on, above every leader that was met, and above `above`.
    fn appoint(&mut self, now: Now, above: LeaderEpoch, inside: &mut VecDeque<Inside>, out: &mut Vec<Action>) {
        let own = self.place.session;
        if let Some(latest) = self.leader.take().and_then(|leader| leader.latest().cloned()) {
            // What it has confirmed is among what its successor collects.
            inside.push_back(Inside::Happened(Happened::Received(Note::Notify(latest))));
        }
        let epoch = number(&self.place, above.max(self.participant.epoch()));
        // What goes to the leader of the same instance is no message.
        self.participant.set_submission_weight_max(usize::MAX);
        let all = self.place.around.others.iter().map(|other| instance_of(*other)).chain([own]);
        let mut notes = Vec::new();
        self.leader = Some(Leader::new(now.clock, epoch, all, Config::default(), &mut notes));
        self.post(now, notes, inside, out);
    }

    /// Another one leads from now on.
    fn retire(&mut self, inside: &mut VecDeque<Inside>) {
        self.participant.set_submission_weight_max(SUBMISSION_BYTES_MAX);
        self.early.clear();
        self.owed.clear();
        if let Some(latest) = self.leader.take().and_then(|leader| leader.latest().cloned()) {
            inside.push_back(Inside::Happened(Happened::Received(Note::Notify(latest))));
        }
    }

    /// Sends what the leader says to whom. Of the latest version all clusters are told together, the first time at once.
    fn post(
        &mut self,
        now: Now,
        notes: Vec<(Session, Note<Whole>)>,
        inside: &mut VecDeque<Inside>,
        out: &mut Vec<Action>,
    ) {
        for (to, note) in notes {
            match note {
                note if to == self.place.session => inside.push_back(Inside::Happened(Happened::Received(note))),
                _ if to.cluster == self.place.session.cluster => {}
                Note::Notify(_) if self.place.around.others.contains(&to.cluster) => _ = self.owed.insert(to.cluster),
                // It had an instance that did not stay.
                Note::Notify(_) => {}
                note => {
                    if matches!(note, Note::Answer(..)) {
                        self.owed.remove(&to.cluster);
                    }
                    self.note(to, note, out);
                }
            }
        }
        self.tell(now, out);
    }

    /// When clusters are told of the latest version, if some are to be and it is known.
    fn tells_at(&self) -> Option<Timestamp> {
        self.leader.as_ref().and_then(Leader::latest).filter(|_| !self.owed.is_empty())?;
        Some(self.told_at.map_or(Timestamp::default(), |told| told + TELL_EVERY))
    }

    fn tell(&mut self, now: Now, out: &mut Vec<Action>) {
        let due = self.tells_at().is_some_and(|at| at <= now.clock);
        let Some(latest) = self.leader.as_ref().and_then(Leader::latest).filter(|_| due) else { return };
        let note = Message::note(self.place.types, 0, Note::Notify(latest.clone())).and_then(|note| seal(1, &note));
        self.told_at = Some(now.clock);
        for to in std::mem::take(&mut self.owed) {
            out.push(match &note {
                Ok(note) => Action::Send { to, delivery: Delivery::IfActive, message: note.clone() },
                Err(why) => Action::Trouble(why.clone()),
            });
        }
    }

    fn note(&self, to: Session, note: Note<Whole>, out: &mut Vec<Action>) {
        let delivery = if matches!(note, Note::Collect(_)) { Delivery::Asks } else { Delivery::IfActive };
        self.send(to.cluster, delivery, Message::note(self.place.types, to.epoch, note), out);
    }

    fn send(&self, to: ClusterId, delivery: Delivery, message: Result<Message, String>, out: &mut Vec<Action>) {
        match message.and_then(|message| seal(1, &message)) {
            Ok(message) => out.push(Action::Send { to, delivery, message }),
            Err(why) => out.push(Action::Trouble(why)),
        }
    }

    fn act(&mut self, now: Now, inside: &mut VecDeque<Inside>, out: &mut Vec<Action>) {
        loop {
            if let Some(leader) = self.leader.as_ref().filter(|_| !self.early.is_empty()) {
                let all = std::mem::take(&mut self.early).into_iter();
                let (due, early): (BTreeMap<_, _>, _) = all.partition(|(_, submission)| is_due(leader, submission));
                self.early = early;
                inside.extend(due.into_values().map(Inside::Submission));
            }
            let Some(next) = inside.pop_front() else { return };
            let event = match next {
                Inside::Happened(event) => event,
                Inside::Submission(submission) => {
                    self.submitted(now, submission, inside, out);
                    continue;
                }
            };
            let mut actions = Vec::new();
            self.participant.handle(now.clock, event, &mut actions);
            for action in actions {
                match action {
                    Do::Submit(submission) if self.leader.is_some() => inside.push_back(Inside::Submission(submission)),
                    Do::Submit(submission) => match &self.yields {
                        Some(others) => {
                            for to in others {
                                self.send(*to, Delivery::Asks, Message::submit(&submission), out);
                            }
                        }
                        None => {
                            let leader = self.place.around.leader;
                            self.send(leader, Delivery::Wakes, Message::submit(&submission), out);
                        }
                    },
                    Do::Collected(epoch, session, found) => match &mut self.leader {
                        Some(leader) => leader.collected(epoch, session, found),
                        None => self.collected(self.place.around.leader, epoch, found, out),
                    },
                    Do::Outcome(number, outcome) => out.push(Action::Outcome(number, told(outcome))),
                    Do::Done(waiter) => out.push(Action::Done(waiter)),
                }
            }
        }
    }

    /// Says what is here to a leader that collects.
    fn collected(&self, to: ClusterId, epoch: LeaderEpoch, found: Snapshot<Whole>, out: &mut Vec<Action>) {
        let own = self.place.session.epoch;
        self.send(to, Delivery::IfActive, Message::collected(self.place.types, epoch, own, found), out);
    }

    fn submitted(
        &mut self,
        now: Now,
        submission: Submission<Change<UpdateValue>>,
        inside: &mut VecDeque<Inside>,
        out: &mut Vec<Action>,
    ) {
        let Some(leader) = &mut self.leader else { return };
        let mut notes = Vec::new();
        if is_due(leader, &submission) {
            leader.submitted(submission, &mut notes);
        } else if self.early.len() < EARLY_MAX {
            self.early.insert(submission.from, submission);
        }
        self.post(now, notes, inside, out);
    }

    fn received(
        &mut self,
        now: Now,
        from: ClusterId,
        message: &[u8],
        inside: &mut VecDeque<Inside>,
        out: &mut Vec<Action>,
    ) -> Result<(), String> {
        let said = open::<Message>(message)?.open(self.place.types, from)?;
        let (epoch, own) = (self.leader.as_ref().map(Leader::epoch), self.place.session.epoch);
        match (said, epoch) {
            // Whoever else has an instance may be the one that stays.
            (Said::Submission(_), Some(_)) if self.participant.kept().is_some() => {}
            // A leader was met that has a higher number: this one's must be higher than that.
            (Said::Submission(submission), Some(epoch)) if submission.epoch > epoch => {
                self.appoint(now, submission.epoch, inside, out);
                if !self.place.around.others.contains(&from) {
                    self.lead(from, out);
                }
            }
            // It follows an earlier one; it submits again when it knows better.
            (Said::Submission(submission), Some(epoch))
                if submission.epoch != LeaderEpoch::default() && submission.epoch != epoch =>
            {
                self.lead(from, out);
            }
            (Said::Submission(submission), Some(_)) => inside.push_back(Inside::Submission(submission)),
            (Said::Collected(_, _, found), Some(epoch)) if found.version.epoch > epoch => {
                self.appoint(now, found.version.epoch, inside, out);
            }
            (Said::Collected(asked, by, found), Some(_)) => {
                if let Some(leader) = &mut self.leader {
                    leader.collected(asked, by, found);
                }
            }
            // It was asked by an earlier instance here.
            (Said::Note(to, Note::Answer(..) | Note::Assumed(..)), _) if to.is_some_and(|to| to != own) => {}
            (Said::Note(_, Note::Collect(asked)), _) if asked < self.participant.epoch() => {
                // Who asks does not know of the leader that was met here, whose updates it is to have.
                let latest = self.leader.as_ref().and_then(Leader::latest).unwrap_or(self.participant.confirmed());
                self.collected(from, asked, latest.clone(), out);
            }
            (Said::Note(_, Note::Collect(asked)), led) if led.is_none_or(|led| asked > led) => {
                self.retire(inside);
                // Its list of clusters may be newer than ours.
                self.place.around.leader = from;
                inside.push_back(Inside::Happened(Happened::Received(Note::Collect(asked))));
            }
            (Said::Note(_, note @ (Note::Answer(..) | Note::Assumed(..) | Note::Notify(_))), None) => {
                inside.push_back(Inside::Happened(Happened::Received(note)));
            }
            // Whoever says it does not lead, or has mistaken this one for the leader.
            _ => {}
        }
        Ok(())
    }

    /// Tells an instance who leads.
    fn lead(&self, to: ClusterId, out: &mut Vec<Action>) {
        if let Some(leader) = &self.leader {
            self.note(instance_of(to), Note::Collect(leader.epoch()), out);
        }
    }

    /// Another cluster's instance of the actor stays, in one of these.
    fn yields(&mut self, others: Vec<ClusterId>, inside: &mut VecDeque<Inside>) {
        self.retire(inside);
        self.yields = Some(others);
        inside.push_back(Inside::Happened(Happened::Yield));
    }

    fn moved(&mut self, now: Now, around: Around, inside: &mut VecDeque<Inside>, out: &mut Vec<Action>) {
        self.place.around = around;
        match (self.leads(), self.leader.is_some()) {
            (true, false) => self.appoint(now, LeaderEpoch::default(), inside, out),
            (false, true) => self.retire(inside),
            _ => {}
        }
    }

    /// What is told again to a cluster that may have missed it.
    fn reached(&mut self, cluster: ClusterId, inside: &mut VecDeque<Inside>, out: &mut Vec<Action>) {
        match self.leader.as_ref().map(|leader| leader.latest().cloned()) {
            Some(Some(latest)) if self.place.around.others.contains(&cluster) => {
                self.note(instance_of(cluster), Note::Notify(latest), out);
            }
            None if cluster == self.place.around.leader => {
                inside.push_back(Inside::Happened(Happened::Refresh(NOBODY)));
            }
            _ => {}
        }
    }

    fn tick(&mut self, now: Now, inside: &mut VecDeque<Inside>, out: &mut Vec<Action>) {
        if let Some(leader) = &mut self.leader {
            leader.tick(now.clock);
        }
        self.tell(now, out);
        if self.participant.deadline().is_some_and(|due| due <= now.clock) {
            out.push(Action::Trouble("the instance that leads, in another cluster, does not answer".to_owned()));
        }
        inside.push_back(Inside::Happened(Happened::Tick));
        if self.join_at.is_some_and(|at| at <= now.clock) {
            self.join_at = None;
            if self.participant.epoch() == LeaderEpoch::default() && self.participant.deadline().is_none() {
                inside.push_back(Inside::Happened(Happened::Refresh(NOBODY)));
            }
        }
    }
}

impl ConsistencyProtocol for Vlb {
    fn handle(&mut self, now: Now, event: Event, out: &mut Vec<Action>) {
        let mut inside = VecDeque::new();
        if !self.begun && !matches!(event, Event::Ends) {
            self.begun = true;
            if self.leads() {
                self.appoint(now, LeaderEpoch::default(), &mut inside, out);
            } else {
                self.retire(&mut inside);
                // The first call carries its updates along.
                self.join_at = Some(now.clock + JOIN_AFTER);
            }
        }
        match event {
            Event::Enqueue(_, change) => inside.push_back(Inside::Happened(Happened::Enqueue(change))),
            Event::Confirm(waiter) => inside.push_back(Inside::Happened(Happened::Confirm(waiter))),
            Event::Refresh(waiter) => inside.push_back(Inside::Happened(Happened::Refresh(waiter))),
            // What cannot be read is as good as lost.
            Event::Received { from, message } => _ = self.received(now, from, &message, &mut inside, out),
            Event::Unreached(cluster) => {
                if let Some(leader) = &mut self.leader {
                    leader.collected(leader.epoch(), instance_of(cluster), Snapshot::default());
                }
            }
            Event::Reached(cluster) => self.reached(cluster, &mut inside, out),
            // Who does not stay follows whoever does.
            Event::Around(_) if self.yields.is_some() => {}
            Event::Around(around) => self.moved(now, around, &mut inside, out),
            Event::Doubtful(true) => inside.push_back(Inside::Happened(Happened::Doubt)),
            Event::Doubtful(false) => inside.push_back(Inside::Happened(Happened::Sure)),
            Event::Yields(others) => self.yields(others, &mut inside),
            Event::Tick => self.tick(now, &mut inside, out),
            Event::Ends => {
                self.told_at = None;
                self.tell(now, out);
            }
            Event::Answered(_) => {}
        }
        self.act(now, &mut inside, out);
    }

    fn confirmed(&self) -> (StateValue, Version) {
        let Snapshot { version, state, .. } = self.participant.confirmed();
        (state.0.clone(), Version { incarnation: version.epoch.0, number: version.number })
    }

    fn tentative(&self) -> StateValue {
        self.participant.tentative().0
    }

    fn pending(&self) -> usize {
        self.participant.pending()
    }

    fn deadline(&self) -> Option<Timestamp> {
        let leader = self.leader.as_ref().and_then(Leader::deadline);
        [leader, self.participant.deadline(), self.join_at, self.tells_at()].into_iter().flatten().min()
    }

    fn loads(&self) -> bool {
        // A state in memory is there at once; the others are not waited for.
        self.place.around.others.is_empty()
    }

    fn kept(&self) -> usize {
        self.participant.kept().unwrap_or(0)
    }

    fn update_bytes_max(&self) -> Option<usize> {
        let sends = !self.place.around.others.is_empty() || self.participant.kept().is_some();
        sends.then_some(UPDATE_BYTES_MAX)
    }
}

/// What goes from the participant to the leader of the same instance, and back.
enum Inside {
    Submission(Submission<Change<UpdateValue>>),
    Happened(Happened<Whole>),
}

/// Whether the leader takes it now.
fn is_due(leader: &Leader<Whole>, submission: &Submission<Change<UpdateValue>>) -> bool {
    leader.latest().is_some() || submission.epoch == LeaderEpoch::default() && leader.assumes(submission.from)
}

/// The number of a leader of this activation, above that one. No leader of another cluster has the same, so that a version names
/// one state also while clusters that do not hear each other have one each.
fn number(place: &Place, above: LeaderEpoch) -> LeaderEpoch {
    // The version of the view that the activation was granted under, and how many have been under it.
    let own = (place.epoch >> 32) << 28 | place.epoch & ((1 << 28) - 1);
    let number = (own.max(above.0 >> 16) + 1).min((1 << 48) - 1);
    LeaderEpoch(number << 16 | u64::from(place.session.cluster.0))
}

/// Stands for the instance of a cluster whose session the leader does not know.
fn instance_of(cluster: ClusterId) -> Session {
    Session { cluster, epoch: 0 }
}

pub(super) fn told(outcome: Outcome) -> Applied<OutputValue, Rejected> {
    match outcome {
        Applied::Output(Some(output)) => Applied::Output(output),
        Applied::Output(None) | Applied::Confirmed => Applied::Confirmed,
        Applied::Rejected(why) => Applied::Rejected(why),
    }
}

pub(super) fn whole(outcome: Applied<OutputValue, Rejected>) -> Outcome {
    match outcome {
        Applied::Output(output) => Applied::Output(Some(output)),
        Applied::Confirmed => Applied::Confirmed,
        Applied::Rejected(why) => Applied::Rejected(why),
    }
}

/// Who waits for what others have said there is.
const NOBODY: Waiter = Waiter(0);
/// Time in which the first call of an instance may make it known to the leader.
const JOIN_AFTER: Duration = Duration::from_millis(10);
/// Time between two notifications of other clusters, which are far: what came meanwhile goes together.
const TELL_EVERY: Duration = Duration::from_millis(5);
/// Bytes of updates in one submission to another cluster, about.
const SUBMISSION_BYTES_MAX: usize = 4 << 20;
/// Sessions whose submissions wait for the leader to know the latest version.
const EARLY_MAX: usize = 1024;
