use super::*;
use crate::gsi::ClusterId;
use crate::time::Timestamp;

#[derive(Clone, PartialEq, Eq, Hash, Debug, Default)]
struct Log(Vec<u8>);

impl Versioned for Log {
    type Update = u8;
    type Output = ();
    type Error = ();

    fn apply(&mut self, update: &u8) -> Result<(), ()> {
        self.0.push(*update);
        Ok(())
    }
}

const START: Timestamp = Timestamp::from_nanos(0);

const fn session(id: u16) -> Session {
    Session { cluster: ClusterId(id), epoch: 1 }
}

/// The leader of `epoch`, which has collected nothing.
fn leader(epoch: u64) -> Leader<Log> {
    Leader::new(START, LeaderEpoch(epoch), [], Config::default(), &mut Vec::new())
}

fn participant(id: u16, epoch: u64) -> Participant<Log> {
    let mut participant = Participant::new(session(id), Config::default());
    handle(&mut participant, Event::Leader(LeaderEpoch(epoch)));
    participant
}

fn handle(participant: &mut Participant<Log>, event: Event<Log>) -> Vec<Action<Log>> {
    let mut out = Vec::new();
    participant.handle(START, event, &mut out);
    out
}

fn submission(out: &[Action<Log>]) -> Submission<u8> {
    let [Action::Submit(submission)] = out else { panic!("no submission: {out:?}") };
    submission.clone()
}

fn submit(leader: &mut Leader<Log>, submission: &Submission<u8>) -> Vec<(Session, Note<Log>)> {
    let mut out = Vec::new();
    leader.submitted(submission.clone(), &mut out);
    out
}

#[test]
fn a_submission_sent_twice_is_applied_once() {
    let (mut l, mut p) = (leader(1), participant(1, 1));
    let once = submission(&handle(&mut p, Event::Enqueue(7)));
    submit(&mut l, &once);
    submit(&mut l, &once);
    assert_eq!(l.latest().unwrap().state, Log(vec![7]), "V1");
}

#[test]
fn a_later_leader_is_later_than_any_number_of_an_earlier_one() {
    let mut p = participant(1, 1);
    let long = Snapshot { version: Version { epoch: LeaderEpoch(1), number: 9 }, ..Snapshot::default() };
    handle(&mut p, Event::Received(Note::Notify(long.clone())));
    let short = Snapshot { version: Version { epoch: LeaderEpoch(2), number: 1 }, ..Snapshot::default() };
    handle(&mut p, Event::Received(Note::Notify(short.clone())));
    handle(&mut p, Event::Received(Note::Notify(long)));
    assert_eq!(p.confirmed(), &short, "V2");
}

#[test]
fn a_superseded_leader_accepts_nothing_more() {
    let (mut l, mut p) = (leader(1), participant(1, 1));
    let late = submission(&handle(&mut p, Event::Enqueue(7)));
    assert!(l.supersede(LeaderEpoch(2)).is_some());
    assert_eq!(submit(&mut l, &late), [], "V3");
    assert_eq!(l.latest(), None);
    assert_eq!(submit(&mut leader(2), &late), [], "nor does its successor take what was meant for it");
}

#[test]
fn only_the_next_update_is_accepted_and_the_answer_tells_which_that_is() {
    let (mut l, mut p) = (leader(1), participant(1, 1));
    let mut gap = submission(&handle(&mut p, Event::Enqueue(7)));
    gap.first = 3;
    gap.settled_under = LeaderEpoch(1);
    let out = submit(&mut l, &gap);
    let [(_, Note::Answer(_, snapshot, _))] = &out[..] else { panic!("{out:?}") };
    assert_eq!((snapshot.applied(session(1)), snapshot.state.clone()), (0, Log::default()), "V4");
}

#[test]
fn updates_lost_with_a_leader_do_not_block_those_after_them() {
    let (mut l, mut p) = (leader(1), participant(1, 1));
    let first = submission(&handle(&mut p, Event::Enqueue(7)));
    for (_, note) in submit(&mut l, &first) {
        handle(&mut p, Event::Received(note));
    }
    let mut successor = leader(2);
    handle(&mut p, Event::Enqueue(8));
    let again = submission(&handle(&mut p, Event::Leader(LeaderEpoch(2))));
    for (_, note) in submit(&mut successor, &again) {
        handle(&mut p, Event::Received(note));
    }
    assert_eq!(p.tentative(), Log(vec![8]), "rebased on what the new leader has");
    assert_eq!(p.settled(), 2);
}

#[test]
fn a_first_access_takes_one_round_trip() {
    let (mut l, mut p) = (leader(1), participant(1, 1));
    let join = submission(&handle(&mut p, Event::Enqueue(7)));
    handle(&mut p, Event::Confirm(Waiter(1)));
    let out = submit(&mut l, &join);
    let [(_, answer)] = &out[..] else { panic!("{out:?}") };
    let out = handle(&mut p, Event::Received(answer.clone()));
    assert_eq!(out, [Action::Outcome(1, Applied::Output(())), Action::Done(Waiter(1))], "V5");
}

#[test]
fn a_notification_that_overtakes_a_lost_acknowledgement_trims() {
    let (mut l, mut p, mut q) = (leader(1), participant(1, 1), participant(2, 1));
    let own = submission(&handle(&mut p, Event::Enqueue(7)));
    submit(&mut l, &own);
    let other = submission(&handle(&mut q, Event::Enqueue(8)));
    let out = submit(&mut l, &other);
    let note = out.iter().find(|(to, _)| *to == session(1)).map(|(_, note)| note.clone()).unwrap();
    handle(&mut p, Event::Received(note));
    assert_eq!(p.tentative(), Log(vec![7, 8]), "V6");
    assert_eq!(p.settled(), 1);
}

#[test]
fn a_new_leader_collects_the_latest_version_before_it_accepts() {
    let snapshot = |number, log: &[u8]| Snapshot {
        version: Version { epoch: LeaderEpoch(1), number },
        state: Log(log.to_vec()),
        applied: [(session(1), number)].into(),
    };
    let mut out = Vec::new();
    let both = [session(1), session(2)];
    let mut l = Leader::new(START, LeaderEpoch(2), both, Config::default(), &mut out);
    assert_eq!(out.len(), 2);
    let early = submission(&handle(&mut participant(3, 2), Event::Enqueue(9)));
    assert_eq!(submit(&mut l, &early), []);
    l.collected(LeaderEpoch(2), session(1), snapshot(2, &[7, 8]));
    l.collected(LeaderEpoch(2), session(2), snapshot(1, &[7]));
    assert_eq!(l.latest().unwrap().state, Log(vec![7, 8]));
    submit(&mut l, &early);
    assert_eq!(l.latest().unwrap().version, Version { epoch: LeaderEpoch(2), number: 3 });
}

#[test]
fn a_new_leader_begins_without_those_that_are_silent() {
    let mut l: Leader<Log> = Leader::new(START, LeaderEpoch(2), [session(1)], Config::default(), &mut Vec::new());
    l.tick(START);
    assert_eq!(l.latest(), None);
    l.tick(l.deadline().unwrap());
    assert!(l.latest().is_some());
}

#[test]
fn a_refresh_waits_for_an_answer_to_a_submission_after_it() {
    let (mut l, mut p) = (leader(1), participant(1, 1));
    let before = submission(&handle(&mut p, Event::Refresh(Waiter(1))));
    handle(&mut p, Event::Refresh(Waiter(2)));
    let (_, answer) = submit(&mut l, &before).remove(0);
    let out = handle(&mut p, Event::Received(answer));
    assert_eq!(out[0], Action::Done(Waiter(1)));
    assert!(matches!(&out[1..], [Action::Submit(_)]), "{out:?}");
}

#[test]
fn without_the_rule_of_the_next_a_gap_is_accepted() {
    let config = Config { checks: Checks { next_only: false, ..Checks::default() }, ..Config::default() };
    let mut l: Leader<Log> = Leader::new(START, LeaderEpoch(1), [], config, &mut Vec::new());
    let mut gap = submission(&handle(&mut participant(1, 1), Event::Enqueue(7)));
    (gap.first, gap.settled_under) = (3, LeaderEpoch(1));
    submit(&mut l, &gap);
    assert_eq!(l.latest().unwrap().applied(session(1)), 3, "numbers 1 and 2 can never be applied");
}
