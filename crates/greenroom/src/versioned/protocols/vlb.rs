//! VLB around its machines: this cluster's participant, and the leader if it is here.

use std::collections::{BTreeMap, BTreeSet, VecDeque};

use greenroom_protocols::bcas::{self, Change};
use greenroom_protocols::gsi::ClusterId;
use greenroom_protocols::vlb::{
    Action as Do, Config, Event as Happened, Leader, LeaderEpoch, Note, Participant, Session, Snapshot, Submission,
    Version as LeaderVersion,
};
use serde::{Deserialize, Serialize};

use super::super::Rejected;
use super::super::protocol::{
    Action, Applied, ConsistencyProtocol, Event, Now, OutputValue, Place, StateValue, Timestamp, Types, UpdateValue,
    Version,
};
use super::{UPDATE_BYTES_MAX, open, open_change, seal, seal_change};

/// One instance of a state that a leader holds in memory.
pub(in super::super) struct Vlb {
    place: Place,
    participant: Participant<Whole>,
    /// Made with the first event, if this cluster's instance leads.
    leader: Option<Leader<Whole>>,
}

/// A state that is also changed by being cleared.
#[derive(Clone, PartialEq, Eq, Hash, Debug, Default)]
struct Whole(StateValue);

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
}

type Outcome = Applied<Option<OutputValue>, Rejected>;

/// What instances in different clusters send each other.
#[derive(Serialize, Deserialize)]
enum Message {
    Submit { leader: u64, epoch: u64, request: u64, first: u64, settled_under: u64, updates: Vec<serde_bytes::ByteBuf> },
    Answer { request: u64, latest: Latest, outcomes: Vec<(u64, Sent)> },
    Notify(Latest),
    Collect(u64),
    Collected(u64, Latest),
}

/// A snapshot as bytes.
#[derive(Serialize, Deserialize)]
struct Latest {
    epoch: u64,
    number: u64,
    #[serde(with = "serde_bytes")]
    state: Vec<u8>,
    applied: Vec<(u16, u64, u64)>,
}

/// An outcome as bytes.
#[derive(Serialize, Deserialize)]
enum Sent {
    Output(serde_bytes::ByteBuf),
    Rejected(String),
    Confirmed,
}

impl Vlb {
    pub(in super::super) fn new(place: Place) -> Self {
        let config = Config { resend_after: place.retry_after * 10, ..Config::default() };
        Self { participant: Participant::new(place.session, config), leader: None, place }
    }

    fn leads(&self) -> bool {
        self.place.around.leader == self.place.around.here || self.place.around.others.is_empty()
    }

    fn appoint(&mut self, now: Now, inside: &mut VecDeque<Inside>, out: &mut Vec<Action>) {
        let others = self.place.around.others.iter().map(|other| instance_of(*other));
        let mut notes = Vec::new();
        // Epochs of activations begin with 0, those of leaders with 1.
        let epoch = LeaderEpoch(self.place.epoch + 1);
        self.leader = Some(Leader::new(now.clock, epoch, others, Config::default(), &mut notes));
        inside.push_back(Inside::Happened(Happened::Leader(epoch)));
        self.post(notes, inside, out);
    }

    /// Sends what the leader says to whom, to each cluster once.
    fn post(&self, notes: Vec<(Session, Note<Whole>)>, inside: &mut VecDeque<Inside>, out: &mut Vec<Action>) {
        let mut notified = BTreeSet::new();
        for (to, note) in notes {
            if to == self.place.session {
                inside.push_back(Inside::Happened(Happened::Received(note)));
            } else if to.cluster != self.place.session.cluster
                && (!matches!(note, Note::Notify(_)) || notified.insert(to.cluster))
            {
                match seal_note(self.place.types, note).and_then(|message| seal(1, &message)) {
                    Ok(message) => out.push(Action::Send { to: to.cluster, wakes: false, message }),
                    Err(why) => out.push(Action::Trouble(why)),
                }
            }
        }
    }

    fn act(&mut self, now: Now, inside: &mut VecDeque<Inside>, out: &mut Vec<Action>) {
        while let Some(next) = inside.pop_front() {
            let event = match next {
                Inside::Happened(event) => event,
                Inside::Submission(submission) => {
                    let mut notes = Vec::new();
                    if let Some(leader) = &mut self.leader {
                        leader.submitted(submission, &mut notes);
                    }
                    self.post(notes, inside, out);
                    continue;
                }
            };
            let mut actions = Vec::new();
            self.participant.handle(now.clock, event, &mut actions);
            for action in actions {
                match action {
                    Do::Submit(submission) if self.leader.is_some() => inside.push_back(Inside::Submission(submission)),
                    Do::Submit(submission) => self.send(seal_submission(&submission), true, out),
                    Do::Collected(epoch, _, found) => {
                        let found = seal_latest(self.place.types, found);
                        self.send(found.map(|found| Message::Collected(epoch.0, found)), false, out);
                    }
                    Do::Outcome(number, outcome) => out.push(Action::Outcome(number, told(outcome))),
                    Do::Done(waiter) => out.push(Action::Done(waiter)),
                }
            }
        }
    }

    fn send(&self, message: Result<Message, String>, wakes: bool, out: &mut Vec<Action>) {
        match message.and_then(|message| seal(1, &message)) {
            Ok(message) => out.push(Action::Send { to: self.place.around.leader, wakes, message }),
            Err(why) => out.push(Action::Trouble(why)),
        }
    }

    fn received(&mut self, from: ClusterId, message: &[u8], inside: &mut VecDeque<Inside>) -> Result<(), String> {
        let types = self.place.types;
        let note = match open(message)? {
            Message::Submit { leader, epoch, request, first, settled_under, updates } => {
                let updates =
                    updates.iter().map(|change| open_change(types, change)).collect::<Result<Vec<_>, String>>()?;
                inside.push_back(Inside::Submission(Submission {
                    epoch: LeaderEpoch(leader),
                    from: Session { cluster: from, epoch },
                    request,
                    first,
                    settled_under: LeaderEpoch(settled_under),
                    updates,
                }));
                return Ok(());
            }
            Message::Collected(epoch, latest) => {
                let found = open_latest(types, latest)?;
                if let Some(leader) = &mut self.leader {
                    leader.collected(LeaderEpoch(epoch), instance_of(from), found);
                }
                return Ok(());
            }
            // The rest is a leader's to say.
            _ if from != self.place.around.leader => return Err("it does not lead".to_owned()),
            Message::Answer { request, latest, outcomes } => {
                let outcomes = outcomes.into_iter().map(|(number, sent)| Ok((number, sent.open(types)?)));
                Note::Answer(request, open_latest(types, latest)?, outcomes.collect::<Result<_, String>>()?)
            }
            Message::Notify(latest) => Note::Notify(open_latest(types, latest)?),
            Message::Collect(epoch) => Note::Collect(LeaderEpoch(epoch)),
        };
        inside.push_back(Inside::Happened(Happened::Received(note)));
        Ok(())
    }
}

impl ConsistencyProtocol for Vlb {
    fn handle(&mut self, now: Now, event: Event, out: &mut Vec<Action>) {
        let mut inside = VecDeque::new();
        if self.leads() && self.leader.is_none() {
            self.appoint(now, &mut inside, out);
        }
        match event {
            Event::Enqueue(_, change) => inside.push_back(Inside::Happened(Happened::Enqueue(change))),
            Event::Confirm(waiter) => inside.push_back(Inside::Happened(Happened::Confirm(waiter))),
            Event::Refresh(waiter) => inside.push_back(Inside::Happened(Happened::Refresh(waiter))),
            // What cannot be read is as good as lost.
            Event::Received { from, message } => _ = self.received(from, &message, &mut inside),
            Event::Unreached(cluster) => {
                if let Some(leader) = &mut self.leader {
                    leader.collected(leader.epoch(), instance_of(cluster), Snapshot::default());
                }
            }
            Event::Tick => {
                if let Some(leader) = &mut self.leader {
                    leader.tick(now.clock);
                }
                inside.push_back(Inside::Happened(Happened::Tick));
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
        [leader, self.participant.deadline()].into_iter().flatten().min()
    }

    fn loads(&self) -> bool {
        self.leads()
    }

    fn update_bytes_max(&self) -> Option<usize> {
        (!self.leads()).then_some(UPDATE_BYTES_MAX)
    }
}

/// What goes from the participant to the leader of the same instance, and back.
enum Inside {
    Submission(Submission<Change<UpdateValue>>),
    Happened(Happened<Whole>),
}

/// Stands for the instance of a cluster whose session the leader does not know.
fn instance_of(cluster: ClusterId) -> Session {
    Session { cluster, epoch: 0 }
}

fn told(outcome: Outcome) -> Applied<OutputValue, Rejected> {
    match outcome {
        Applied::Output(Some(output)) => Applied::Output(output),
        Applied::Output(None) | Applied::Confirmed => Applied::Confirmed,
        Applied::Rejected(why) => Applied::Rejected(why),
    }
}

fn seal_submission(submission: &Submission<Change<UpdateValue>>) -> Result<Message, String> {
    let updates = submission.updates.iter().map(|change| seal_change(change).map(|bytes| bytes.to_vec().into()));
    Ok(Message::Submit {
        leader: submission.epoch.0,
        epoch: submission.from.epoch,
        request: submission.request,
        first: submission.first,
        settled_under: submission.settled_under.0,
        updates: updates.collect::<Result<_, _>>()?,
    })
}

fn seal_note(types: Types, note: Note<Whole>) -> Result<Message, String> {
    Ok(match note {
        Note::Answer(request, latest, outcomes) => {
            let outcomes = outcomes.into_iter().map(|(number, outcome)| Ok((number, Sent::seal(types, outcome)?)));
            Message::Answer {
                request,
                latest: seal_latest(types, latest)?,
                outcomes: outcomes.collect::<Result<_, String>>()?,
            }
        }
        Note::Notify(latest) => Message::Notify(seal_latest(types, latest)?),
        Note::Collect(epoch) => Message::Collect(epoch.0),
    })
}

fn seal_latest(types: Types, snapshot: Snapshot<Whole>) -> Result<Latest, String> {
    let applied = snapshot.applied.iter().map(|(session, last)| (session.cluster.0, session.epoch, *last));
    Ok(Latest {
        epoch: snapshot.version.epoch.0,
        number: snapshot.version.number,
        state: (types.encode_state)(&snapshot.state.0)?.into(),
        applied: applied.collect(),
    })
}

fn open_latest(types: Types, latest: Latest) -> Result<Snapshot<Whole>, String> {
    let session = |cluster, epoch| Session { cluster: ClusterId(cluster), epoch };
    let applied: BTreeMap<Session, u64> =
        latest.applied.into_iter().map(|(cluster, epoch, last)| (session(cluster, epoch), last)).collect();
    Ok(Snapshot {
        version: LeaderVersion { epoch: LeaderEpoch(latest.epoch), number: latest.number },
        state: Whole((types.decode_state)(&latest.state)?),
        applied,
    })
}

impl Sent {
    fn seal(types: Types, outcome: Outcome) -> Result<Self, String> {
        Ok(match outcome {
            Applied::Output(Some(output)) => Self::Output((types.encode_output)(&output)?.to_vec().into()),
            Applied::Output(None) | Applied::Confirmed => Self::Confirmed,
            Applied::Rejected(why) => Self::Rejected(why.to_string()),
        })
    }

    fn open(self, types: Types) -> Result<Outcome, String> {
        Ok(match self {
            Self::Output(output) => Applied::Output(Some((types.decode_output)(&output)?)),
            Self::Rejected(why) => Applied::Rejected(Rejected::new(why)),
            Self::Confirmed => Applied::Confirmed,
        })
    }
}
