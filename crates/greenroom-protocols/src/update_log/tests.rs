use super::*;
use crate::bcas::{Action, Config, Event, Session, Waiter, Worker, Written};
use crate::gsi::ClusterId;
use crate::membership::Etag;
use crate::time::Timestamp;

/// Numbers in a row; a negative one is rejected.
#[derive(Clone, PartialEq, Eq, Hash, Debug, Default)]
struct Row(Vec<i64>);

impl Versioned for Row {
    type Update = i64;
    type Output = ();
    type Error = &'static str;

    fn apply(&mut self, update: &i64) -> Result<(), &'static str> {
        self.0.push(*update);
        if *update < 0 { Err("negative") } else { Ok(()) }
    }
}

/// What one worker has written: its last record, and the log.
fn written(changes: &[Change<i64>]) -> (Record<Logged<Row>>, Vec<Entry<Row>>) {
    let config = Config { batch_len_max: 2, ..Config::default() };
    let mut worker: Worker<Logged<Row>> = Worker::new(Session { cluster: ClusterId(1), epoch: 1 }, config);
    let (mut log, mut out, mut last) = (Vec::new(), Vec::new(), Record::default());
    for change in changes {
        worker.handle(Timestamp::default(), Event::Enqueue(change.clone()), &mut out);
    }
    worker.handle(Timestamp::default(), Event::Refresh(Waiter(1)), &mut out);
    while let Some(action) = (!out.is_empty()).then(|| out.remove(0)) {
        let event = match action {
            Action::Read => Event::Read(None),
            Action::Write { record, added, .. } => {
                assert!(added.len() <= 2, "no more than a commit may hold");
                for added in added {
                    let rejected = added.rejected.is_some();
                    let position = log.len() as u64 + 1;
                    log.push(Entry { position, version: added.version, change: added.change, rejected });
                }
                last = record;
                Event::Written(Written::Applied(Etag(last.version.number.to_string())))
            }
            _ => continue,
        };
        worker.handle(Timestamp::default(), event, &mut out);
    }
    assert_eq!(worker.pending(), 0);
    (last, log)
}

fn some_changes() -> Vec<Change<i64>> {
    [1, -2, 3, 4]
        .map(Change::Update)
        .into_iter()
        .chain([Change::Clear, Change::Update(5), Change::Update(-6)])
        .collect()
}

fn replay(from: Logged<Row>, version: Version, log: &[Entry<Row>]) -> Result<(Logged<Row>, Version), Broken> {
    let mut replay = Replay::new(from, version, log.len() as u64);
    while let Some(next) = replay.wants() {
        replay.take(&log[next as usize - 1])?;
    }
    Ok(replay.reached())
}

#[test]
fn a_log_leads_to_the_state_that_was_written() {
    let (last, log) = written(&some_changes());
    assert_eq!(last.state, Logged { state: Row(vec![5]), entries: 7 });
    assert_eq!(replay(Logged::default(), Version::default(), &log), Ok((last.state, last.version)));
}

#[test]
fn every_snapshot_leads_to_the_same_end() {
    let (last, log) = written(&some_changes());
    for at in 0..=log.len() {
        let (snapshot, version) = replay(Logged::default(), Version::default(), &log[..at]).unwrap();
        assert_eq!(snapshot.entries, at as u64);
        let mut rest = Replay::new(Logged::default(), Version::default(), log.len() as u64);
        rest.skip_to(snapshot, version);
        for entry in &log[at..] {
            rest.take(entry).unwrap();
        }
        assert_eq!(rest.reached(), (last.state.clone(), last.version), "from {at}");
    }
}

#[test]
fn a_snapshot_behind_the_end_is_passed_over() {
    let (_, log) = written(&some_changes());
    let (snapshot, version) = replay(Logged::default(), Version::default(), &log).unwrap();
    let mut earlier = Replay::new(Logged::default(), Version::default(), 1);
    earlier.skip_to(snapshot, version);
    assert_eq!(earlier.wants(), Some(1));
}

#[test]
fn a_log_that_does_not_fit_is_not_believed() {
    let (_, log) = written(&some_changes());
    let mut replay: Replay<Row> = Replay::new(Logged::default(), Version::default(), 7);
    assert_eq!(replay.take(&log[1]), Err(Broken::Gap { expected: 1, found: 2 }));
    let strange = Entry { version: Version { incarnation: 0, number: 9 }, ..log[0].clone() };
    assert_eq!(replay.clone().take(&strange), Err(Broken::Version { position: 1 }));
    let accepted = Entry { change: Change::Update(-1), ..log[0].clone() };
    let error = replay.take(&accepted).unwrap_err();
    assert!(matches!(error, Broken::Rejected { position: 1, .. }), "what was applied is not left out: {error}");
}

#[test]
fn a_snapshot_is_due_after_so_many_entries() {
    assert!(!snapshot_due(0, 99, 100));
    assert!(snapshot_due(0, 100, 100));
    assert!(!snapshot_due(100, 150, 100));
    assert!(!snapshot_due(0, 1_000, 0), "0 is for never");
}

#[test]
fn a_log_goes_on_in_a_later_incarnation_after_its_store_went_back() {
    let (_, mut log) = written(&[1, 2, 3].map(Change::Update));
    for entry in &mut log[1..] {
        entry.version.incarnation += 4;
    }
    let end = (Logged { state: Row(vec![1, 2, 3]), entries: 3 }, Version { incarnation: 4, number: 3 });
    assert_eq!(replay(Logged::default(), Version::default(), &log), Ok(end));
    log[2].version.incarnation = 0;
    assert_eq!(replay(Logged::default(), Version::default(), &log), Err(Broken::Version { position: 3 }));
}
