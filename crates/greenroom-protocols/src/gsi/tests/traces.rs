//! The traces that must not be (G1-G6, G8, and operations run twice), each with its check and without.

use super::*;

/// Runs a trace: it is as it must be, and would not be without its check.
fn needed(trace: fn(Checks), take_out: fn(&mut Checks)) {
    trace(Checks::default());
    let mut checks = Checks::default();
    take_out(&mut checks);
    assert!(std::panic::catch_unwind(|| trace(checks)).is_err(), "the trace does not need its check");
}

fn by(checks: Checks) -> Config {
    Config { checks, ..Config::default() }
}

fn entry_by(checks: Checks, me: u16, clusters: &[u16]) -> Gsi {
    Entry::new(ClusterId(me), configuration(clusters), by(checks), Round(0), at(0))
}

#[test]
fn stale_pass_of_an_abandoned_round_is_ignored() {
    let trace = |checks: Checks| {
        let mut c = entry_by(checks, 1, &[1, 2]);
        handle(&mut c, 0, call(1, true));
        assert!(matches!(verdict(&receive(&mut c, 10, 2, ask(1))), Verdict::Pass { .. }));
        assert_eq!(c.state(), State::Loser);
        handle(&mut c, 1000, Event::Tick);
        handle(&mut c, 1100, Event::Tick);
        assert_eq!(c.state(), State::Requested);
        receive(&mut c, 1110, 2, answer(1, pass()));
        assert_eq!(c.state(), State::Requested, "G1: the pass was for round 1");
    };
    needed(trace, |checks| checks.round = false);
}

#[test]
fn a_rerun_from_doubtful_loses_like_any_round() {
    let trace = |checks: Checks| {
        let mut c = doubtful_by(checks);
        handle(&mut c, 11_000, Event::Tick);
        assert_eq!(c.state(), State::Requested);
        assert_eq!(c.running(), Some(Round(1)), "the instance is kept and serves");
        assert!(matches!(verdict(&receive(&mut c, 11_010, 2, ask(1))), Verdict::Pass { .. }));
        receive(&mut c, 11_020, 2, answer(2, pass()));
        assert_eq!(c.state(), State::Doubtful(Round(1)), "G2: the round was lost before its pass came");
    };
    needed(trace, |checks| checks.rerun_is_a_round = false);
}

#[test]
fn a_question_of_another_configuration_is_not_passed() {
    let trace = |checks: Checks| {
        let mut c = entry_by(checks, 1, &[1, 2]);
        let newer = Message { configuration: ConfigEpoch(2), body: ask(1) };
        let out = handle(&mut c, 0, Event::Received(ClusterId(2), newer));
        assert_eq!(verdict(&out), Verdict::Unknown, "G3");
        assert!(out.contains(&Action::FetchConfiguration(ConfigEpoch(2))));
        assert_eq!(verdict(&receive(&mut c, 0, 3, ask(1))), Verdict::Unknown, "a cluster that is not listed");
    };
    needed(trace, |checks| checks.configuration = false);
}

#[test]
fn a_range_in_recovery_answers_unknown() {
    let trace = |checks: Checks| {
        let mut d: Gsi = Entry::recovering(ClusterId(2), configuration(&[1, 2]), by(checks), Round(9), at(0));
        assert_eq!(verdict(&receive(&mut d, 0, 1, ask(1))), Verdict::Unknown, "G4");
        let report = Report { instance: Round(3), owned: true };
        handle(&mut d, 10, Event::Recovered(Some(report)));
        assert_eq!(verdict(&receive(&mut d, 20, 1, ask(1))), Verdict::Held(instance(2, 3)));
    };
    needed(trace, |checks| checks.recovery = false);
}

#[test]
fn fail_and_silence_together_activate_nothing() {
    let trace = |checks: Checks| {
        let mut c = entry_by(checks, 1, &[1, 2, 3]);
        handle(&mut c, 0, call(1, true));
        receive(&mut c, 10, 2, answer(1, Verdict::Fail));
        let out = handle(&mut c, 1000, Event::Tick);
        assert_eq!(c.state(), State::Invalid, "G5: {out:?}");
        assert!(handle(&mut c, 1050, Event::Tick).iter().any(|a| matches!(a, Action::Send(..))), "it starts over");
    };
    needed(trace, |checks| checks.fail = false);
}

#[test]
fn healing_hands_over_what_the_owner_has_not_seen() {
    let trace = |checks: Checks| {
        let (mut c, mut d) = (doubtful_by(checks), owned_by(checks));
        handle(&mut c, 11_000, Event::Tick);
        let out = receive(&mut c, 11_010, 2, answer(2, Verdict::Held(instance(2, 1))));
        assert_eq!(out, [Action::Suspend(Round(1))]);
        assert_eq!(c.running(), None, "a suspended instance starts no turn");
        let out = handle(&mut c, 11_020, Event::Suspended { instance: Round(1), unseen: 42 });
        let [Action::Send(_, hand_over)] = &out[..] else { panic!("{out:?}") };
        let merge = Action::Merge { from: ClusterId(1), number: Round(3), unseen: 42 };
        let merged = [merge, Action::Reload(Round(1))];
        assert_eq!(handle(&mut d, 0, Event::Received(ClusterId(1), hand_over.clone())), merged, "G6, G9");
        let again = handle(&mut d, 0, Event::Received(ClusterId(1), hand_over.clone()));
        assert_eq!(again, [], "a copy is not merged twice");
        let out = handle(&mut d, 0, Event::Merged { from: ClusterId(1), number: Round(3) });
        let [Action::Send(_, confirmed)] = &out[..] else { panic!("{out:?}") };
        assert_eq!(c.instance(), Some(Round(1)), "kept until it is confirmed");
        assert_eq!(
            handle(&mut c, 11_040, Event::Received(ClusterId(2), confirmed.clone())),
            [Action::Deactivate(Round(1))]
        );
    };
    needed(trace, |checks| checks.hand_over = false);
}

#[test]
fn a_call_for_an_earlier_ownership_is_not_run() {
    let trace = |checks: Checks| {
        let mut d = owned_by(checks);
        let forward =
            |round| Body::Forward { to: instance(2, round), call: Carried { id: CallId(7), operation: "op" } };
        let out = receive(&mut d, 20, 1, forward(0));
        assert!(matches!(&out[..], [Action::Send(_, Message { body: Body::NotHere { .. }, .. })]), "G8: {out:?}");
        assert!(matches!(&receive(&mut d, 20, 1, forward(1))[..], [Action::Run { .. }]));
    };
    needed(trace, |checks| checks.ownership = false);
}

/// A question of cluster 1 that carries call 7.
fn carrying(round: u64) -> Body<&'static str, u8, u8> {
    let carried = vec![Carried { id: CallId(7), operation: "op" }];
    Body::Ask { round: Round(round), carried, leased: false, doubtful: false }
}

fn runs(out: &Out) -> bool {
    out.iter().any(|action| matches!(action, Action::Run { .. }))
}

fn is_declined(out: &Out) -> bool {
    let Some(Action::Send(_, Message { body: Body::Answer { declined, .. }, .. })) = out.first() else {
        panic!("{out:?}")
    };
    *declined
}

#[test]
fn what_a_lost_node_declined_does_not_run_at_its_successor() {
    let trace = |checks: Checks| {
        // The answer that declines is slow, and the question is sent again: to who took the range over, and owns the actor.
        let mut c = entry_by(checks, 1, &[1, 2]);
        handle(&mut c, 0, call(7, false));
        let out = handle(&mut c, 400, Event::Tick);
        let [Action::Send(_, again)] = &out[..] else { panic!("{out:?}") };
        let mut d: Gsi = Entry::recovering(ClusterId(2), configuration(&[1, 2]), by(checks), Round(9), at(300));
        handle(&mut d, 300, Event::Recovered(Some(Report { instance: Round(9), owned: true })));
        let out = handle(&mut d, 450, Event::Received(ClusterId(1), again.clone()));
        assert!(!runs(&out), "C will carry it again: {out:?}");
        receive(&mut c, 460, 2, answer(1, Verdict::Fail));
        let out = handle(&mut c, 510, Event::Tick);
        assert!(
            matches!(&out[..], [Action::Send(_, Message { body: Body::Ask { carried, .. }, .. })] if carried.len() == 1)
        );
    };
    needed(trace, |checks| (checks.carried_once, checks.whole) = (false, false));
}

#[test]
fn what_a_lost_node_may_have_run_is_not_declined_by_its_successor() {
    let trace = |checks: Checks| {
        let mut c = entry_by(checks, 1, &[1, 2]);
        handle(&mut c, 0, call(7, false));
        handle(&mut c, 400, Event::Tick);
        let remembers_ms = 100;
        let body = Body::Answer { round: Round(1), verdict: pass(), declined: true, carried: false, remembers_ms };
        let out = receive(&mut c, 600, 2, body);
        assert!(out.contains(&Action::End(CallId(7), End::Unknown)) && !runs(&out), "{out:?}");
    };
    needed(trace, |checks| checks.memory = false);
}

#[test]
fn a_question_sent_again_is_declined_by_who_has_always_been_there() {
    let mut d = entry(2, &[1, 2]);
    let out = receive(&mut d, 500, 1, ask(1));
    assert!(is_declined(&out));
    let out = receive(&mut d, 900, 1, carrying(1));
    assert!(is_declined(&out), "the first one was overtaken: {out:?}");

    let mut c = entry(1, &[1, 2]);
    handle(&mut c, 0, call(7, false));
    handle(&mut c, 400, Event::Tick);
    let out = receive(&mut c, 600, 2, told(1, pass(), true, false));
    assert!(runs(&out), "nobody else can have run it: {out:?}");
}

#[test]
fn an_owner_by_recovery_declines_what_may_have_run_before() {
    let trace = |checks: Checks| {
        let mut d: Gsi = Entry::recovering(ClusterId(2), configuration(&[1, 2]), by(checks), Round(9), at(0));
        handle(&mut d, 0, Event::Recovered(Some(Report { instance: Round(9), owned: true })));
        let out = receive(&mut d, 10_000, 1, carrying(1));
        assert!(is_declined(&out) && !runs(&out), "the asker forwards it: {out:?}");
        let forward = Body::Forward { to: instance(2, 9), call: Carried { id: CallId(7), operation: "op" } };
        assert!(runs(&receive(&mut d, 10_200, 1, forward)));
    };
    needed(trace, |checks| checks.whole = false);
}

#[test]
fn an_owner_runs_what_began_after_it_owned() {
    let mut d = entry(2, &[1, 2]);
    handle(&mut d, 0, call(1, true));
    receive(&mut d, 10, 1, answer(1, Verdict::Pass { ran: BTreeMap::new(), last: Round(4) }));
    assert!(!runs(&receive(&mut d, 20, 1, carrying(4))), "it had begun before");
    assert!(runs(&receive(&mut d, 30, 1, carrying(5))));
}

#[test]
fn an_owner_whose_predecessor_has_forgotten_runs_nothing_unnamed() {
    let trace = |checks: Checks| {
        let mut d = entry_by(checks, 2, &[1, 2, 3]);
        handle(&mut d, 0, call(1, true));
        receive(&mut d, 10, 1, answer(1, pass()));
        let body = Body::Answer { round: Round(1), verdict: pass(), declined: true, carried: true, remembers_ms: 100 };
        receive(&mut d, 200, 3, body);
        assert_eq!(d.state(), State::Owned(Round(1)));
        let out = receive(&mut d, 300, 1, carrying(1));
        assert!(is_declined(&out) && !runs(&out), "cluster 3 may have run it: {out:?}");
    };
    needed(trace, |checks| checks.memory = false);
}

#[test]
fn what_began_above_another_floor_is_not_run() {
    let trace = |checks: Checks| {
        let (old, new) = (Round::floor(1, 9), Round::floor(1, 7));
        let mut d = entry_by(checks, 2, &[1, 2]);
        handle(&mut d, 0, call(1, true));
        receive(&mut d, 10, 1, answer(1, Verdict::Pass { ran: BTreeMap::new(), last: new }));
        let out = receive(&mut d, 20, 1, carrying(old.0 + 5));
        assert!(is_declined(&out) && !runs(&out), "an earlier owner may have run it: {out:?}");
        assert!(runs(&receive(&mut d, 30, 1, carrying(new.0 + 1))));
    };
    needed(trace, |checks| checks.floor = false);
}

#[test]
fn a_cluster_that_has_forgotten_its_rounds_is_served_by_who_has_not() {
    let (old, new) = (Round::floor(1, 9), Round::floor(1, 7));
    let mut d = entry(2, &[1, 2]);
    handle(&mut d, 0, call(1, true));
    receive(&mut d, 10, 1, answer(1, Verdict::Pass { ran: BTreeMap::new(), last: old }));
    assert!(runs(&receive(&mut d, 20, 1, carrying(old.0 + 1))));
    let mut c: Gsi = Entry::new(ClusterId(1), configuration(&[1, 2]), Config::default(), new, at(0));
    let out = handle(&mut c, 30, call(8, false));
    let [Action::Send(_, question)] = &out[..] else { panic!("{out:?}") };
    let out = handle(&mut d, 40, Event::Received(ClusterId(1), question.clone()));
    let [Action::Send(_, said)] = &out[..] else { panic!("it cannot tell when that began: {out:?}") };
    let out = handle(&mut c, 50, Event::Received(ClusterId(2), said.clone()));
    let [Action::Send(_, forward)] = &out[..] else { panic!("it is sent to the instance by its name: {out:?}") };
    assert!(runs(&handle(&mut d, 60, Event::Received(ClusterId(1), forward.clone()))));
}

#[test]
fn a_memory_that_had_room_for_one_floor_is_as_young_as_what_it_has_lost() {
    let home = Some(Home::At(ClusterId(2), 7));
    let mut d: Gsi =
        Entry::new(ClusterId(2), configuration(&[1, 2]), Config { home, ..Config::default() }, Round(0), at(0));
    handle(&mut d, 0, Event::Lease(ConfigEpoch(1)));
    let leased = |round: Round| {
        let carried = vec![Carried { id: CallId(7), operation: "op" }];
        Body::Ask { round, carried, leased: true, doubtful: false }
    };
    let (old, new) = (Round::floor(1, 9), Round::floor(1, 7));
    assert!(runs(&receive(&mut d, 100, 1, leased(old))));
    assert!(runs(&receive(&mut d, 200, 1, leased(new))), "under a lease it does not count what came first");
    let out = receive(&mut d, 300, 1, Body::Ask { round: old, carried: Vec::new(), leased: false, doubtful: false });
    let Some(Action::Send(_, Message { body: Body::Answer { remembers_ms, .. }, .. })) = out.first() else {
        panic!("{out:?}")
    };
    assert_eq!(*remembers_ms, 100, "that the old one ran is forgotten");
}

#[test]
fn a_cluster_that_has_forgotten_its_numbers_hands_over_again() {
    let mut d = owned();
    let hand_over = |number| Body::HandOver { to: instance(2, 1), number, unseen: 42 };
    let (old, new) = (Round::floor(1, 9), Round::floor(1, 7));
    for number in [old, new] {
        let out = receive(&mut d, 20, 1, hand_over(number));
        assert_eq!(out, [Action::Merge { from: ClusterId(1), number, unseen: 42 }, Action::Reload(Round(1))]);
        handle(&mut d, 30, Event::Merged { from: ClusterId(1), number });
    }
}
