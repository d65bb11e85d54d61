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
fn a_submission_whose_numbers_do_not_end_applies_nothing() {
    let (mut l, mut p) = (leader(1), participant(1, 1));
    let once = submission(&handle(&mut p, Event::Enqueue(7)));
    let endless = Submission { first: u64::MAX, settled_under: LeaderEpoch::default(), ..once.clone() };
    submit(&mut l, &endless);
    assert_eq!(l.latest().unwrap().state, Log(Vec::new()));
    submit(&mut l, &once);
    assert_eq!(l.latest().unwrap().state, Log(vec![7]));
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
        ..Snapshot::default()
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

fn snapshot(epoch: u64, number: u64, log: &[u8]) -> Snapshot<Log> {
    Snapshot { version: Version { epoch: LeaderEpoch(epoch), number }, state: Log(log.to_vec()), ..Snapshot::default() }
}

#[test]
fn what_a_later_leader_had_is_later_whatever_its_number() {
    let both = [session(1), session(2)];
    let mut l = Leader::new(START, LeaderEpoch(3), both, Config::default(), &mut Vec::new());
    l.collected(LeaderEpoch(3), session(1), snapshot(1, 9, &[1]));
    l.collected(LeaderEpoch(2), session(2), snapshot(2, 9, &[3]));
    assert_eq!(l.latest(), None, "an answer to another leader");
    assert_eq!(l.supersede(LeaderEpoch(4)), None, "it does not know the latest version yet");
    l.collected(LeaderEpoch(3), session(2), snapshot(2, 1, &[2]));
    let mut l = Leader::new(START, LeaderEpoch(3), both, Config::default(), &mut Vec::new());
    l.collected(LeaderEpoch(3), session(1), snapshot(1, 9, &[1]));
    l.collected(LeaderEpoch(3), session(2), snapshot(2, 1, &[2]));
    assert_eq!(l.latest().unwrap().state, Log(vec![2]));
}

#[test]
fn an_instance_does_not_go_back_nor_answer_an_earlier_leader() {
    let mut p = participant(1, 2);
    handle(&mut p, Event::Received(Note::Notify(snapshot(2, 2, &[1, 2]))));
    handle(&mut p, Event::Received(Note::Notify(snapshot(2, 1, &[1]))));
    assert_eq!(p.confirmed().state, Log(vec![1, 2]));
    assert_eq!(handle(&mut p, Event::Received(Note::Collect(LeaderEpoch(1)))), []);
    let out = handle(&mut p, Event::Received(Note::Collect(LeaderEpoch(2))));
    assert!(matches!(&out[..], [Action::Collected(..)]), "{out:?}");
}

#[test]
fn a_late_answer_does_not_serve_a_later_refresh() {
    let (mut l, mut p) = (leader(1), participant(1, 1));
    let first = submission(&handle(&mut p, Event::Refresh(Waiter(1))));
    handle(&mut p, Event::Refresh(Waiter(2)));
    let (_, late) = submit(&mut l, &first).remove(0);
    let mut out = Vec::new();
    p.handle(p.deadline().unwrap(), Event::Tick, &mut out);
    let second = submission(&out);
    assert_eq!(handle(&mut p, Event::Received(late)), []);
    let (_, answer) = submit(&mut l, &second).remove(0);
    let out = handle(&mut p, Event::Received(answer));
    assert!([1, 2].iter().all(|waiter| out.contains(&Action::Done(Waiter(*waiter)))), "{out:?}");
}

#[test]
fn what_was_settled_under_the_same_leader_is_missing_from_nothing() {
    let (mut l, mut p) = (leader(1), participant(1, 1));
    for update in [7, 8] {
        let submission = submission(&handle(&mut p, Event::Enqueue(update)));
        assert_eq!(submission.settled_under, LeaderEpoch(u64::from(update == 8)));
        for (_, note) in submit(&mut l, &submission) {
            handle(&mut p, Event::Received(note));
        }
    }
    assert_eq!(p.confirmed().state, Log(vec![7, 8]));
}

/// A new instance in cluster 2.
fn newcomer(epoch: u64) -> Participant<Log> {
    Participant::new(Session { cluster: ClusterId(2), epoch }, Config::default())
}

/// A leader that has heard so many instances of cluster 2, one after the other, and what the first one has submitted.
fn crowded(sessions: u64) -> (Leader<Log>, Submission<u8>) {
    let (mut l, mut first) = (leader(1), None);
    for n in 0..sessions {
        let joins = submission(&handle(&mut newcomer(n), Event::Enqueue(n as u8)));
        submit(&mut l, &joins);
        first.get_or_insert(joins);
    }
    (l, first.expect("there is one"))
}

#[test]
fn a_leader_remembers_so_many_sessions_of_a_cluster_and_tells_the_last_one() {
    let (mut l, late) = crowded(SESSIONS_MAX as u64 + 1);
    let applied = l.latest().unwrap().applied.clone();
    assert_eq!(applied.len(), SESSIONS_MAX);
    let before = l.latest().unwrap().state.clone();
    let out = submit(&mut l, &late);
    assert!(matches!(&out[..], [(_, Note::Answer(1, _, outcomes))] if outcomes.is_empty()), "{out:?}");
    assert_eq!(l.latest().unwrap().state, before, "a late copy from one that is forgotten");
    let other = submission(&handle(&mut participant(1, 1), Event::Enqueue(99)));
    let told: Vec<_> = submit(&mut l, &other).into_iter().filter(|(to, _)| to.cluster == ClusterId(2)).collect();
    assert_eq!(told.len(), 1, "one instance is there at a time");
}

#[test]
fn who_begins_after_others_were_forgotten_is_taken_in_once_it_has_seen_that() {
    let (mut l, _) = crowded(SESSIONS_MAX as u64 + 1);
    let mut p = newcomer(1000);
    let mut joins = submission(&handle(&mut p, Event::Enqueue(77)));
    for turn in 0.. {
        assert!(turn < 3, "it is never taken in");
        let out = submit(&mut l, &joins);
        let answer = out.into_iter().find(|(to, _)| to.epoch == 1000).expect("it is answered").1;
        match &handle(&mut p, Event::Received(answer))[..] {
            [Action::Outcome(1, _)] => break,
            again => joins = submission(again),
        }
    }
    assert_eq!(l.latest().unwrap().state.0.iter().filter(|update| **update == 77).count(), 1);
    // It was quiet for long, and is not remembered any more.
    let next = submission(&handle(&mut p, Event::Enqueue(78)));
    for n in 2000..2000 + SESSIONS_MAX as u64 + 1 {
        let joins = submission(&handle(&mut newcomer(n), Event::Refresh(Waiter(1))));
        submit(&mut l, &joins);
    }
    assert!(!l.latest().unwrap().applied.contains_key(&next.from));
    submit(&mut l, &next);
    assert_eq!(l.latest().unwrap().state.0.last(), Some(&78));
}

#[test]
fn without_floors_a_late_copy_is_applied_twice() {
    let config = Config { checks: Checks { floors: false, ..Checks::default() }, ..Config::default() };
    let (l, late) = crowded(SESSIONS_MAX as u64 + 1);
    let found = l.latest().unwrap().clone();
    let mut l = Leader::new(START, LeaderEpoch(2), [session(1)], config, &mut Vec::new());
    l.collected(LeaderEpoch(2), session(1), found);
    submit(&mut l, &late);
    assert_eq!(l.latest().unwrap().state.0.iter().filter(|update| **update == 0).count(), 2);
}

/// A join of the instance of cluster 2, and a new leader that waits for that cluster only.
fn joining() -> (Leader<Log>, Participant<Log>, Submission<u8>) {
    let mut p = newcomer(7);
    let joins = submission(&handle(&mut p, Event::Enqueue(5)));
    let of_cluster = Session { cluster: ClusterId(2), epoch: 0 };
    let l = Leader::new(START, LeaderEpoch(2), [of_cluster], Config::default(), &mut Vec::new());
    (l, p, joins)
}

fn collected(out: &[Action<Log>]) -> Snapshot<Log> {
    let [Action::Collected(_, _, found)] = out else { panic!("{out:?}") };
    found.clone()
}

#[test]
fn who_joins_and_has_nothing_is_answered_while_it_is_asked() {
    let (mut l, mut p, joins) = joining();
    let out = submit(&mut l, &joins);
    let [(_, answer @ Note::Assumed(..))] = &out[..] else { panic!("{out:?}") };
    assert_eq!(l.latest(), None, "nothing else is accepted yet");
    let found = collected(&handle(&mut p, Event::Received(Note::Collect(LeaderEpoch(2)))));
    assert_eq!(handle(&mut p, Event::Received(answer.clone())), [Action::Outcome(1, Applied::Output(()))]);
    l.collected(LeaderEpoch(2), joins.from, found);
    assert_eq!(l.latest(), Some(p.confirmed()));
}

#[test]
fn a_late_join_does_not_hide_what_its_sender_has_met_since() {
    let (mut l, mut p, joins) = joining();
    handle(&mut p, Event::Received(Note::Notify(snapshot(1, 1, &[9]))));
    let (_, answer) = submit(&mut l, &joins).remove(0);
    assert_eq!(l.latest(), None);
    assert_eq!(handle(&mut p, Event::Received(answer)), []);
    assert_eq!(p.confirmed().state, Log(vec![9]));
    let out = handle(&mut p, Event::Received(Note::Collect(LeaderEpoch(2))));
    let [Action::Collected(_, _, found), Action::Submit(again)] = &out[..] else { panic!("{out:?}") };
    l.collected(LeaderEpoch(2), joins.from, found.clone());
    assert_eq!(l.latest().unwrap().state, Log(vec![9]));
    submit(&mut l, again);
    assert_eq!(l.latest().unwrap().state, Log(vec![9, 5]));
}

#[test]
fn who_joins_is_answered_early_only_if_all_others_have_answered() {
    let (_, _, joins) = joining();
    let both = [session(1), Session { cluster: ClusterId(2), epoch: 0 }];
    let mut l: Leader<Log> = Leader::new(START, LeaderEpoch(2), both, Config::default(), &mut Vec::new());
    assert_eq!(submit(&mut l, &joins), []);
    l.collected(LeaderEpoch(2), session(1), Snapshot::default());
    assert_eq!(submit(&mut l, &joins).len(), 1);
    let other = submission(&handle(&mut newcomer(8), Event::Enqueue(6)));
    assert_eq!(submit(&mut l, &other), [], "another one of its cluster may have another past");
    let earlier = Session { cluster: ClusterId(2), epoch: 3 };
    l.collected(LeaderEpoch(2), earlier, snapshot(1, 1, &[9]));
    assert_eq!(l.latest(), None, "one that has ended does not speak for it");
    l.tick(l.deadline().unwrap());
    assert_eq!(l.latest().unwrap().state, Log(vec![5]), "the one that joined may have taken the answer");
}

#[test]
fn what_a_doubtful_leader_has_confirmed_is_confirmed_by_the_one_that_stays() {
    let (mut doubtful, mut stays) = (leader(5), leader(1));
    let mut p = participant(2, 5);
    handle(&mut p, Event::Doubt);
    for update in [7, 8] {
        let own = submission(&handle(&mut p, Event::Enqueue(update)));
        for (_, note) in submit(&mut doubtful, &own) {
            handle(&mut p, Event::Received(note));
        }
    }
    assert_eq!((p.settled(), p.kept()), (2, Some(2)));
    let late = Note::Notify(p.confirmed().clone());
    submit(&mut stays, &submission(&handle(&mut participant(1, 1), Event::Enqueue(1))));
    let again = submission(&handle(&mut p, Event::Yield));
    assert_eq!((again.first, &again.updates[..]), (1, &[7, 8][..]));
    assert_eq!(p.tentative(), Log(vec![7, 8]), "each is seen once meanwhile");
    handle(&mut p, Event::Received(late));
    assert_eq!(p.settled(), 0, "what the doubtful one has confirmed does not count");
    assert!(again.epoch > LeaderEpoch(5), "who stays must lead above that");
    let found = stays.supersede(LeaderEpoch(7)).unwrap();
    let mut stays = Leader::new(START, LeaderEpoch(7), [session(1)], Config::default(), &mut Vec::new());
    stays.collected(LeaderEpoch(7), session(1), found);
    let out = handle(&mut p, Event::Received(Note::Collect(LeaderEpoch(7))));
    let [Action::Collected(..), Action::Submit(again)] = &out[..] else { panic!("{out:?}") };
    for _ in 0..2 {
        submit(&mut stays, again);
    }
    assert_eq!(stays.latest().unwrap().state, Log(vec![1, 7, 8]));
    handle(&mut p, Event::Confirm(Waiter(4)));
    let (_, answer) = submit(&mut stays, again).remove(0);
    assert!(handle(&mut p, Event::Received(answer)).contains(&Action::Done(Waiter(4))));
}

#[test]
fn what_was_confirmed_before_doubts_ended_is_not_kept() {
    let mut p = participant(1, 1);
    handle(&mut p, Event::Doubt);
    handle(&mut p, Event::Enqueue(7));
    handle(
        &mut p,
        Event::Received(Note::Notify(Snapshot { applied: [(session(1), 1)].into(), ..snapshot(1, 1, &[7]) })),
    );
    assert_eq!(p.kept(), Some(1));
    handle(&mut p, Event::Sure);
    assert_eq!(handle(&mut p, Event::Yield), []);
    assert_eq!(p.settled(), 1);
}

#[test]
fn a_submission_takes_no_more_than_its_weight_but_one_update_at_least() {
    let config = Config { submission_weight_max: 2, ..Config::default() };
    let (mut l, mut p) = (leader(1), Participant::new(session(1), config));
    handle(&mut p, Event::Leader(LeaderEpoch(1)));
    let mut next = submission(&handle(&mut p, Event::Enqueue(1)));
    for update in 2..=6 {
        handle(&mut p, Event::Enqueue(update));
    }
    for sizes in [1, 2, 2, 1] {
        assert_eq!(next.updates.len(), sizes);
        let (_, answer) = submit(&mut l, &next).remove(0);
        match handle(&mut p, Event::Received(answer)).pop() {
            Some(Action::Submit(again)) => next = again,
            _ => assert_eq!(p.pending(), 0),
        }
    }
    assert_eq!(p.confirmed().state, Log(vec![1, 2, 3, 4, 5, 6]));
}
