//! The log of updates around its machines: the head, the entries and the snapshots as bytes, and the reading of them.

use std::time::Duration;

use greenroom_protocols::bcas::{
    Action as Do, Added, Config, Etag, Event as Happened, Record, Session, Waiter, Worker, Written,
};
use greenroom_protocols::update_log::{Logged, Replay, leads_to, snapshot_due};

use super::super::log_record::{self, Head};
use super::super::protocol::{
    Access, Action, Answer, ConsistencyProtocol, Delivery, Entry, Event, Log, Now, Place, StateValue, Timestamp,
    Version,
};
use super::{UPDATE_BYTES_MAX, open, seal, told_of};

/// One instance of a state that is a log of its updates.
pub(in super::super) struct UpdateLog {
    worker: Worker<Logged<StateValue>>,
    place: Place,
    /// What is being read, between two accesses.
    reading: Option<Reading>,
    /// Whether the head is gone, and it is asked whether the log is, too.
    gone: bool,
    /// The position of the last snapshot that is known here.
    snapshot: u64,
    /// The snapshot that the write under way takes.
    taking: Option<u64>,
    /// Whether the state was kept without a log so far: what it was goes before the first entry.
    begins: bool,
    /// Whether the sessions of earlier activations have been fenced.
    fenced: bool,
    /// Whether the store is read where the worker wanted to write what cannot be encoded.
    unwritable: bool,
}

struct Reading {
    head: Head,
    etag: Etag,
    replay: Replay<StateValue>,
    log: Log,
    /// Whether the head lies behind what was confirmed here, and it is asked whether the log does, too.
    went_back: bool,
}

impl UpdateLog {
    pub(in super::super) fn new(place: Place) -> Self {
        let limits = place.journal.unwrap_or_default();
        let config = Config {
            retry_after: place.retry_after,
            // The head and two snapshots go along.
            batch_len_max: limits.operations_max.saturating_sub(3).min(BATCH_LEN_MAX),
            batch_weight_max: (limits.bytes_max / 4).min(BATCH_BYTES_MAX),
            ..Config::default()
        };
        Self {
            worker: Worker::new(place.session, config),
            place,
            reading: None,
            gone: false,
            snapshot: 0,
            taking: None,
            begins: false,
            fenced: false,
            unwritable: false,
        }
    }

    /// What the worker hears of an answer; `None` if there is more to read.
    fn answered(&mut self, answer: Answer, out: &mut Vec<Action>) -> Option<Happened<Logged<StateValue>>> {
        if std::mem::take(&mut self.unwritable) {
            return Some(Happened::Written(Written::Unknown));
        }
        let read = match answer {
            Answer::Written(written) => {
                if matches!(written, Written::Applied(_)) {
                    self.snapshot = self.snapshot.max(self.taking.unwrap_or(0));
                    self.begins = false;
                }
                return Some(Happened::Written(written));
            }
            Answer::Failed => return Some(self.give_up(None, out)),
            Answer::Record(None) if self.worker.record().is_some() => {
                self.gone = true;
                out.push(Action::Access(Access::End(Log::Updates)));
                return None;
            }
            Answer::Record(None) => return Some(Happened::Read(None)),
            Answer::Record(Some((bytes, etag))) => self.head(&bytes, etag, out),
            Answer::End(next) => self.end(next, out),
            Answer::Entries(entries) => self.entries(&entries, out),
        };
        read.unwrap_or_else(|why| Some(self.give_up(Some(why), out)))
    }

    fn give_up(&mut self, why: Option<String>, out: &mut Vec<Action>) -> Happened<Logged<StateValue>> {
        (self.reading, self.gone) = (None, false);
        out.extend(why.map(Action::Trouble));
        Happened::ReadFailed
    }

    fn head(&mut self, bytes: &[u8], etag: Etag, out: &mut Vec<Action>) -> Read {
        self.begins = false;
        let head = match log_record::open_head(bytes)? {
            log_record::Found::Head(head) => head,
            log_record::Found::Plain => {
                let Record { version, state, sessions, salt, floors } =
                    super::super::record::open(self.place.types, bytes).map_err(|why| format!("{why} (no log yet)"))?;
                self.begins = true;
                let record = Record { version, state: Logged { state, entries: 0 }, sessions, salt, floors };
                return Ok(Some(Happened::Read(Some((record, etag)))));
            }
        };
        let (known, version) = self.worker.confirmed();
        if let Some((record, _)) = self.worker.record()
            && record.salt == head.salt
        {
            // It is the one that is here.
            let record = head.record(known.clone());
            return Ok(Some(Happened::Read(Some((record, etag)))));
        }
        let is_cold = version == Version::default();
        let went_back = !is_cold && (head.entries <= known.entries || self.worker.misses(&head.sessions));
        let (replay, log) = if is_cold || went_back {
            (Replay::new(Logged::default(), Version::default(), head.entries), Log::Snapshots)
        } else {
            (Replay::new(known.clone(), version, head.entries), Log::Updates)
        };
        self.reading = Some(Reading { head, etag, replay, log, went_back });
        if went_back {
            out.push(Action::Access(Access::End(Log::Updates)));
            return Ok(None);
        }
        if is_cold {
            out.push(Action::Access(Access::End(Log::Snapshots)));
            return Ok(None);
        }
        self.go_on(out)
    }

    fn end(&mut self, next: u64, out: &mut Vec<Action>) -> Read {
        let entries = next.saturating_sub(1);
        if std::mem::take(&mut self.gone) {
            return if entries == 0 { Ok(Some(Happened::Read(None))) } else { Err(apart(0, entries)) };
        }
        if let Some(reading) = self.reading.as_mut().filter(|reading| reading.went_back) {
            if reading.head.entries != entries {
                return Err(apart(reading.head.entries, entries));
            }
            reading.went_back = false;
            out.push(Action::Access(Access::End(Log::Snapshots)));
            return Ok(None);
        }
        match next {
            0 | 1 => self.go_on(out),
            _ => {
                out.push(Action::Access(Access::Entries { log: Log::Snapshots, from: next - 1, limit: 1 }));
                Ok(None)
            }
        }
    }

    fn entries(&mut self, entries: &[Entry], out: &mut Vec<Action>) -> Read {
        let types = self.place.types;
        let Some(reading) = &mut self.reading else { return Err("entries that nobody has asked for".to_owned()) };
        match reading.log {
            Log::Snapshots => {
                for entry in entries {
                    let (snapshot, version) = log_record::open_snapshot(types, &entry.value)?;
                    self.snapshot = self.snapshot.max(snapshot.entries);
                    reading.replay.skip_to(snapshot, version);
                }
            }
            Log::Updates if entries.is_empty() => return Err("the log ends before its head says".to_owned()),
            Log::Updates => {
                for entry in entries {
                    let entry = log_record::open_entry(types, entry)?.entry;
                    reading.replay.take(&entry).map_err(|broken| broken.to_string())?;
                }
            }
        }
        self.go_on(out)
    }

    /// Reads on, or tells the worker what there is.
    fn go_on(&mut self, out: &mut Vec<Action>) -> Read {
        let Some(Reading { head, etag, replay, went_back, .. }) = self.reading.take() else { return Ok(None) };
        if let Some(from) = replay.wants() {
            self.reading = Some(Reading { head, etag, replay, log: Log::Updates, went_back });
            out.push(Action::Access(Access::Entries { log: Log::Updates, from, limit: ENTRIES_MAX }));
            return Ok(None);
        }
        let (state, version) = replay.reached();
        if state.entries == head.entries && !leads_to(version, head.version) {
            return Err("the log and its head do not have the same version".to_owned());
        }
        let record = head.record(state);
        Ok(Some(Happened::Read(Some((record, etag)))))
    }

    fn act(&mut self, now: Now, event: Happened<Logged<StateValue>>, out: &mut Vec<Action>) {
        let mut actions = Vec::new();
        self.worker.handle(now.clock, event, &mut actions);
        for action in actions {
            match action {
                Do::Read => out.push(Action::Access(Access::Read)),
                Do::Write { expect, record, added } => match self.write(now.wall, expect, &record, &added) {
                    Ok(write) => out.push(Action::Access(write)),
                    Err(why) => {
                        out.push(Action::Trouble(format!("it cannot be encoded: {why}")));
                        self.unwritable = true;
                        out.push(Action::Access(Access::Read));
                    }
                },
                Do::Notify(..) => self.notify(out),
                Do::Outcome(sequence, outcome) => out.push(Action::Outcome(sequence, outcome)),
                Do::Done(waiter) => out.push(Action::Done(waiter)),
                Do::Trouble(trouble) => out.push(told_of(trouble)),
                // No instance is far from a journal: none has said so.
                Do::Delegate(_) | Do::Tell(..) => {}
            }
        }
    }

    /// The commit of a head with what it adds, and a snapshot if one is due.
    fn write(
        &mut self,
        wall: Duration,
        expect: Option<Etag>,
        record: &Record<Logged<StateValue>>,
        added: &[Added<Logged<StateValue>>],
    ) -> Result<Access, String> {
        let types = self.place.types;
        let mut appends = Vec::with_capacity(added.len() + 2);
        if self.begins {
            let (before, version) = self.worker.confirmed();
            appends.push((Log::Snapshots, log_record::seal_snapshot(types, before, version)?));
        }
        for added in added {
            appends.push((Log::Updates, log_record::seal_entry(added, wall)?));
        }
        let entries = record.state.entries;
        self.taking = None;
        if snapshot_due(self.snapshot, entries, self.place.snapshot_every) {
            let snapshot = log_record::seal_snapshot(types, &record.state, record.version)?;
            let limits = self.place.journal.unwrap_or_default();
            // One that does not fit is left out: the log alone leads to the state, too.
            if snapshot.len() <= limits.value_bytes_max.min(limits.bytes_max / 2) {
                appends.push((Log::Snapshots, snapshot));
                self.taking = Some(entries);
            }
        }
        let head = Head { version: record.version, entries, sessions: record.sessions.clone(), salt: record.salt };
        Ok(Access::Write { expect, record: log_record::seal_head(&head)?, appends })
    }

    /// Tells the others that there is something to read.
    fn notify(&self, out: &mut Vec<Action>) {
        let Ok(message) = seal(1, &()) else { return };
        let others = self.place.around.others.iter();
        out.extend(others.map(|to| Action::Send { to: *to, delivery: Delivery::IfActive, message: message.clone() }));
    }
}

impl ConsistencyProtocol for UpdateLog {
    fn handle(&mut self, now: Now, event: Event, out: &mut Vec<Action>) {
        let event = match event {
            Event::Enqueue(_, change) => Happened::Enqueue(change),
            Event::Confirm(waiter) => Happened::Confirm(waiter),
            Event::Refresh(waiter) => Happened::Refresh(waiter),
            Event::Answered(answer) => match self.answered(answer, out) {
                Some(event) => event,
                None => return,
            },
            Event::Received { message, .. } if open::<()>(&message).is_ok() => Happened::Refresh(NOBODY),
            Event::Reached(cluster) => {
                // What either of the two has written meanwhile.
                let message = seal(1, &()).ok().filter(|_| self.place.around.others.contains(&cluster));
                out.extend(message.map(|message| Action::Send { to: cluster, delivery: Delivery::IfActive, message }));
                Happened::Refresh(NOBODY)
            }
            Event::Around(around) => return self.place.around = around,
            Event::Received { .. } | Event::Unreached(_) => return,
            Event::Doubtful(_) | Event::Yields(_) | Event::Ends => return,
            Event::Tick => Happened::Tick,
        };
        let read = matches!(event, Happened::Read(_));
        self.act(now, event, out);
        if read && !std::mem::replace(&mut self.fenced, true) {
            // They were activations of this actor that can write no more: the store refuses what they have under way once
            // this one has written.
            let own = self.place.session;
            let earlier: Vec<Session> =
                self.worker.sessions().filter(|other| other.cluster == own.cluster && *other != own).collect();
            for session in earlier {
                self.act(now, Happened::Fenced(session), out);
            }
        }
    }

    fn confirmed(&self) -> (StateValue, Version) {
        let (logged, version) = self.worker.confirmed();
        (logged.state.clone(), version)
    }

    fn tentative(&self) -> StateValue {
        self.worker.tentative().state
    }

    fn pending(&self) -> usize {
        self.worker.pending()
    }

    fn deadline(&self) -> Option<Timestamp> {
        self.worker.deadline()
    }

    fn update_bytes_max(&self) -> Option<usize> {
        let limits = self.place.journal.unwrap_or_default();
        Some(UPDATE_BYTES_MAX.min(limits.value_bytes_max).min(limits.bytes_max / 4))
    }
}

/// What the worker hears, if the reading has ended.
type Read = Result<Option<Happened<Logged<StateValue>>>, String>;

/// What keeps a log whose head was changed by hand, and what helps.
fn apart(said: u64, entries: u64) -> String {
    format!(
        "the head of the log says that it has {said} updates, and it has {entries}: the head was put back or deleted without the log; \
         put back the head that belongs to it, or both"
    )
}

/// Who waits for what others have said there is.
const NOBODY: Waiter = Waiter(0);

/// Updates in one commit at most.
const BATCH_LEN_MAX: usize = 1000;

/// Bytes of updates in one commit, about.
const BATCH_BYTES_MAX: usize = 4 << 20;

/// Entries that are read at once.
const ENTRIES_MAX: usize = 1000;
