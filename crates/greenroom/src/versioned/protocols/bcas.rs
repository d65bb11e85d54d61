//! BCAS around its machine: records and messages as bytes.

use std::collections::{BTreeMap, BTreeSet};

use greenroom_protocols::bcas::{
    Action as Do, Batch, Config, Etag, Event as Happened, Record, Session, Waiter, Worker,
};
use greenroom_protocols::gsi::ClusterId;

use super::super::protocol::{
    Access, Action, Answer, ConsistencyProtocol, Delivery, Event, Now, Place, StateValue, Timestamp, Version, Written,
};
use super::super::record;
use super::bcas_message::{BATCH_LEN_MAX, Message, Seen};
use super::sent::Sent;
use super::{UPDATE_BYTES_MAX, open, open_change, seal, seal_change, told_of};

/// One instance of a state that is one record of a store.
pub(in super::super) struct Bcas {
    worker: Worker<StateValue>,
    place: Place,
    /// Whether the sessions of earlier activations have been fenced.
    fenced: bool,
    /// Whether the store is read where the worker wanted to write what cannot be encoded.
    unwritable: bool,
    /// Whether the instance nearest the store was asked for the record.
    asked: bool,
    /// Clusters that have asked for the record, which is not here yet.
    askers: BTreeSet<ClusterId>,
    /// What updates of other clusters' sessions have come to, for the next notification.
    told: BTreeMap<ClusterId, Vec<(u64, u64, Sent)>>,
}

impl Bcas {
    pub(in super::super) fn new(place: Place) -> Self {
        let delegates = place.around.near.is_some() && !place.around.others.is_empty();
        let config = Config { retry_after: place.retry_after, far: is_far(&place), delegates, ..Config::default() };
        Self {
            worker: Worker::new(place.session, config),
            place,
            fenced: false,
            unwritable: false,
            asked: false,
            askers: BTreeSet::new(),
            told: BTreeMap::new(),
        }
    }

    fn translate(&mut self, now: Now, event: Event, out: &mut Vec<Action>) -> Option<Happened<StateValue>> {
        let failed = |why, out: &mut Vec<Action>| {
            out.push(Action::Trouble(why));
            Happened::ReadFailed
        };
        Some(match event {
            Event::Enqueue(_, change) => Happened::Enqueue(change),
            Event::Confirm(waiter) => Happened::Confirm(waiter),
            Event::Refresh(waiter) => Happened::Refresh(waiter),
            Event::Answered(_) if std::mem::take(&mut self.unwritable) => Happened::Written(Written::Unknown),
            Event::Answered(Answer::Record(None)) => Happened::Read(None),
            Event::Answered(Answer::Record(Some((bytes, etag)))) => match record::open(self.place.types, &bytes) {
                Ok(record) => Happened::Read(Some((record, etag))),
                Err(why) => failed(why, out),
            },
            Event::Answered(Answer::Written(written)) => Happened::Written(written),
            Event::Answered(Answer::Failed | Answer::Entries(_) | Answer::End(_)) => Happened::ReadFailed,
            // What cannot be read is as good as lost.
            Event::Received { from, message } => self.received(now, from, &message, out).ok()??,
            Event::Reached(cluster) => {
                self.show(cluster, out);
                Happened::Refresh(NOBODY)
            }
            Event::Around(around) => {
                self.place.around = around;
                self.worker.set_far(is_far(&self.place));
                return None;
            }
            Event::Unreached(_) | Event::Doubtful(_) | Event::Yields(_) | Event::Ends => return None,
            Event::Tick => Happened::Tick,
        })
    }

    fn received(
        &mut self,
        now: Now,
        from: ClusterId,
        message: &[u8],
        out: &mut Vec<Action>,
    ) -> Result<Option<Happened<StateValue>>, String> {
        let types = self.place.types;
        Ok(Some(match open(message)? {
            Message::Written { record, etag, outcomes } => {
                let record = record::open(types, &record)?;
                let own = outcomes.into_iter().filter(|(epoch, ..)| *epoch == self.place.session.epoch);
                let own = own.map(|(_, sequence, sent)| Ok((sequence, sent.open(types)?)));
                self.act(now, Happened::Told(own.collect::<Result<_, String>>()?), out);
                Happened::Notified(record, Etag(etag))
            }
            Message::Newer => Happened::Refresh(NOBODY),
            Message::Batch { epoch, first, changes, seen } => {
                if first == 0 || changes.len() > BATCH_LEN_MAX {
                    return Err("no batch".to_owned());
                }
                let changes = changes.iter().map(|change| open_change(types, change)).collect::<Result<_, _>>()?;
                let (session, seen) =
                    (Session { cluster: from, epoch }, Version { incarnation: seen.0, number: seen.1 });
                Happened::Delegated(Batch { session, first, seen, changes })
            }
            Message::Ended { epochs } => {
                let ended: Vec<Session> = self
                    .worker
                    .sessions()
                    .filter(|session| session.cluster == from && epochs.contains(&session.epoch))
                    .collect();
                for session in ended {
                    self.act(now, Happened::Fenced(session), out);
                }
                return Ok(None);
            }
            Message::Ask => {
                self.askers.insert(from);
                return Ok(None);
            }
        }))
    }

    fn act(&mut self, now: Now, event: Happened<StateValue>, out: &mut Vec<Action>) {
        let mut actions = Vec::new();
        self.worker.handle(now.clock, event, &mut actions);
        for action in actions {
            match action {
                Do::Read => out.push(Action::Access(Access::Read)),
                Do::Write { expect, record, .. } => match record::seal(self.place.types, &record) {
                    Ok(record) => out.push(Action::Access(Access::Write { expect, record, appends: Vec::new() })),
                    Err(why) => {
                        out.push(Action::Trouble(format!("it cannot be encoded: {why}")));
                        self.unwritable = true;
                        out.push(Action::Access(Access::Read));
                    }
                },
                Do::Tell(session, outcomes) => {
                    let sent = outcomes.into_iter().map(|(sequence, outcome)| {
                        let outcome = Sent::seal(self.place.types, outcome).unwrap_or(Sent::Confirmed);
                        (session.epoch, sequence, outcome)
                    });
                    self.told.entry(session.cluster).or_default().extend(sent);
                }
                Do::Notify(record, etag) => self.notify(&record, &etag, out),
                Do::Delegate(batch) => self.delegate(&batch, out),
                Do::Outcome(sequence, outcome) => out.push(Action::Outcome(sequence, outcome)),
                Do::Done(waiter) => out.push(Action::Done(waiter)),
                Do::Trouble(trouble) => out.push(told_of(trouble)),
            }
        }
        if !self.askers.is_empty() && self.worker.record().is_some() {
            for cluster in std::mem::take(&mut self.askers) {
                self.show(cluster, out);
            }
        }
    }

    /// Sends the record that is here to a cluster.
    fn show(&self, cluster: ClusterId, out: &mut Vec<Action>) {
        if let Some((record, etag)) = self.worker.record()
            && self.place.around.others.contains(&cluster)
        {
            out.extend(self.letter(cluster, record, etag, Vec::new()));
        }
    }

    fn notify(&mut self, record: &Record<StateValue>, etag: &Etag, out: &mut Vec<Action>) {
        let mut told = std::mem::take(&mut self.told);
        for to in &self.place.around.others {
            out.extend(self.letter(*to, record, etag, told.remove(to).unwrap_or_default()));
        }
    }

    /// The record for a cluster; only word of it, if it is too large.
    fn letter(
        &self,
        to: ClusterId,
        record: &Record<StateValue>,
        etag: &Etag,
        outcomes: Vec<(u64, u64, Sent)>,
    ) -> Option<Action> {
        // It was encoded for the store just now.
        let record = record::seal(self.place.types, record).ok()?;
        let message = if record.len() > RECORD_LEN_MAX {
            Message::Newer
        } else {
            Message::Written { record: record.into(), etag: etag.0.clone(), outcomes }
        };
        Some(Action::Send { to, delivery: Delivery::IfActive, message: seal(1, &message).ok()? })
    }

    fn delegate(&self, batch: &Batch<super::UpdateValue>, out: &mut Vec<Action>) {
        let Some(to) = self.place.around.near else { return };
        let changes = batch.changes.iter().map(|change| seal_change(change).map(|bytes| bytes.to_vec().into()));
        let (epoch, first, seen) = (batch.session.epoch, batch.first, Seen(batch.seen.incarnation, batch.seen.number));
        let message = changes
            .collect::<Result<_, _>>()
            .and_then(|changes| seal(1, &Message::Batch { epoch, first, changes, seen }));
        match message {
            Ok(message) => out.push(Action::Send { to, delivery: Delivery::Wakes, message }),
            // It is written directly after the time-out.
            Err(why) => out.push(Action::Trouble(why)),
        }
    }

    /// Earlier activations of this actor in this cluster have ended: the store refuses what they have under way once this one has written,
    /// and who writes for them is told.
    fn fence(&mut self, now: Now, out: &mut Vec<Action>) {
        if self.worker.record().is_none() || std::mem::replace(&mut self.fenced, true) {
            return;
        }
        let own = self.place.session;
        let earlier: Vec<Session> =
            self.worker.sessions().filter(|other| other.cluster == own.cluster && *other != own).collect();
        let near = self.place.around.near.filter(|_| is_far(&self.place) && !earlier.is_empty());
        let ended = Message::Ended { epochs: earlier.iter().map(|session| session.epoch).collect() };
        let ended = near.zip(seal(1, &ended).ok());
        out.extend(ended.map(|(to, message)| Action::Send { to, delivery: Delivery::IfActive, message }));
        for session in earlier {
            self.act(now, Happened::Fenced(session), out);
        }
    }
}

impl ConsistencyProtocol for Bcas {
    fn handle(&mut self, now: Now, event: Event, out: &mut Vec<Action>) {
        if is_far(&self.place) && !std::mem::replace(&mut self.asked, true) {
            // What is there is shown soon, and no call waits for it.
            let near = self.place.around.near.zip(seal(1, &Message::Ask).ok());
            out.extend(near.map(|(to, message)| Action::Send { to, delivery: Delivery::Wakes, message }));
        }
        if let Some(event) = self.translate(now, event, out) {
            // What an activation is shown first has sessions of earlier ones alone.
            let shown = matches!(event, Happened::Read(_) | Happened::Notified(..));
            self.act(now, event, out);
            if shown {
                self.fence(now, out);
            }
        } else if !self.askers.is_empty() {
            // It may be here already; a tick alone changes nothing.
            self.act(now, Happened::Tick, out);
        }
    }

    fn confirmed(&self) -> (StateValue, Version) {
        let (state, version) = self.worker.confirmed();
        (state.clone(), version)
    }

    fn tentative(&self) -> StateValue {
        self.worker.tentative()
    }

    fn pending(&self) -> usize {
        self.worker.pending()
    }

    fn deadline(&self) -> Option<Timestamp> {
        self.worker.deadline()
    }

    fn loads(&self) -> bool {
        !is_far(&self.place)
    }

    fn update_bytes_max(&self) -> Option<usize> {
        is_far(&self.place).then_some(UPDATE_BYTES_MAX)
    }
}

/// Whether the instance of another cluster is nearer to the store.
fn is_far(place: &Place) -> bool {
    let around = &place.around;
    around.near.is_some_and(|near| near != around.here && around.others.contains(&near))
}

/// Who waits for what others have said there is.
const NOBODY: Waiter = Waiter(0);
/// A larger record is not sent: who hears of it reads it.
const RECORD_LEN_MAX: usize = 8 << 20;
