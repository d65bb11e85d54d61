//! BCAS around its machine: records and messages as bytes.

use greenroom_protocols::bcas::{Action as Do, Batch, Config, Etag, Event as Happened, Record, Session, Worker};
use greenroom_protocols::gsi::ClusterId;
use serde::{Deserialize, Serialize};

use super::super::protocol::{
    Access, Action, Answer, ConsistencyProtocol, Event, Now, Place, StateValue, Timestamp, Version, Written,
};
use super::super::record;
use super::{UPDATE_BYTES_MAX, open, open_change, seal, seal_change};

/// One instance of a state that is one record of a store.
pub(in super::super) struct Bcas {
    worker: Worker<StateValue>,
    place: Place,
    /// Whether the sessions of earlier activations have been fenced.
    fenced: bool,
    /// Whether the store is read where the worker wanted to write what cannot be encoded.
    unwritable: bool,
}

/// What instances in different clusters send each other.
#[derive(Serialize, Deserialize)]
enum Message {
    /// This record was written, with this tag.
    Written {
        #[serde(with = "serde_bytes")]
        record: Vec<u8>,
        etag: String,
    },
    /// Write this for the sender.
    Batch { cluster: u16, epoch: u64, first: u64, changes: Vec<serde_bytes::ByteBuf> },
}

impl Bcas {
    pub(in super::super) fn new(place: Place) -> Self {
        let config = Config { retry_after: place.retry_after, far: place.around.near.is_some(), ..Config::default() };
        Self { worker: Worker::new(place.session, config), place, fenced: false, unwritable: false }
    }

    fn translate(&mut self, event: Event, out: &mut Vec<Action>) -> Option<Happened<StateValue>> {
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
            Event::Received { from, message } => self.received(from, &message).ok()?,
            Event::Unreached(_) => return None,
            Event::Tick => Happened::Tick,
        })
    }

    fn received(&self, from: ClusterId, message: &[u8]) -> Result<Happened<StateValue>, String> {
        Ok(match open(message)? {
            Message::Written { record, etag } => {
                Happened::Notified(record::open(self.place.types, &record)?, Etag(etag))
            }
            Message::Batch { cluster, epoch, first, changes } => {
                if ClusterId(cluster) != from || first == 0 || changes.len() > BATCH_LEN_MAX {
                    return Err("no batch of its sender".to_owned());
                }
                let changes =
                    changes.iter().map(|change| open_change(self.place.types, change)).collect::<Result<_, _>>()?;
                Happened::Delegated(Batch { session: Session { cluster: from, epoch }, first, changes })
            }
        })
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
                Do::Notify(record, etag) => self.notify(&record, etag, out),
                Do::Delegate(batch) => self.delegate(&batch, out),
                Do::Outcome(sequence, outcome) => out.push(Action::Outcome(sequence, outcome)),
                Do::Done(waiter) => out.push(Action::Done(waiter)),
            }
        }
    }

    fn notify(&self, record: &Record<StateValue>, etag: Etag, out: &mut Vec<Action>) {
        if self.place.around.others.is_empty() {
            return;
        }
        // It was encoded for the store just now.
        let Ok(bytes) = record::seal(self.place.types, record) else { return };
        let Ok(message) = seal(1, &Message::Written { record: bytes.into(), etag: etag.0 }) else { return };
        let others = self.place.around.others.iter();
        out.extend(others.map(|to| Action::Send { to: *to, wakes: false, message: message.clone() }));
    }

    fn delegate(&self, batch: &Batch<super::UpdateValue>, out: &mut Vec<Action>) {
        let Some(to) = self.place.around.near else { return };
        let changes = batch.changes.iter().map(|change| seal_change(change).map(|bytes| bytes.to_vec().into()));
        let Session { cluster, epoch } = batch.session;
        let message = changes
            .collect::<Result<_, _>>()
            .and_then(|changes| seal(1, &Message::Batch { cluster: cluster.0, epoch, first: batch.first, changes }));
        match message {
            Ok(message) => out.push(Action::Send { to, wakes: true, message }),
            // It is written directly after the time-out.
            Err(why) => out.push(Action::Trouble(why)),
        }
    }
}

impl ConsistencyProtocol for Bcas {
    fn handle(&mut self, now: Now, event: Event, out: &mut Vec<Action>) {
        let Some(event) = self.translate(event, out) else { return };
        let read = matches!(event, Happened::Read(_));
        self.act(now, event, out);
        if read && !std::mem::replace(&mut self.fenced, true) && self.place.around.others.is_empty() {
            // They were activations of this actor that can write no more: the store refuses what they have under way once
            // this one has written. Where others may write for them, a batch may still be on its way.
            let own = self.place.session;
            let earlier: Vec<Session> =
                self.worker.sessions().filter(|other| other.cluster == own.cluster && *other != own).collect();
            for session in earlier {
                self.act(now, Happened::Fenced(session), out);
            }
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
        self.place.around.near.is_none()
    }

    fn update_bytes_max(&self) -> Option<usize> {
        self.place.around.near.map(|_| UPDATE_BYTES_MAX)
    }
}

/// Changes in one message: as many as may wait.
const BATCH_LEN_MAX: usize = super::super::instance::PENDING_MAX;
