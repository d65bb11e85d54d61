use std::collections::BTreeMap;

use super::*;

type Gsi = Entry<&'static str, u8, u8>;
type Out = Vec<Action<&'static str, u8, u8>>;

const NEVER: Timestamp = Timestamp::NEVER;

fn at(millis: u64) -> Timestamp {
    Timestamp::from_nanos(millis * 1_000_000)
}

fn configuration(clusters: &[u16]) -> Configuration {
    Configuration::new(clusters.iter().map(|id| ClusterId(*id)))
}

fn entry(me: u16, clusters: &[u16]) -> Gsi {
    Entry::new(ClusterId(me), configuration(clusters), Config::default(), Round(0))
}

fn handle(entry: &mut Gsi, millis: u64, event: Event<&'static str, u8, u8>) -> Out {
    let mut out = Vec::new();
    entry.handle(at(millis), event, &mut out);
    out
}

fn body(body: Body<&'static str, u8, u8>) -> Message<&'static str, u8, u8> {
    Message { configuration: ConfigEpoch(1), body }
}

fn receive(entry: &mut Gsi, millis: u64, from: u16, it: Body<&'static str, u8, u8>) -> Out {
    handle(entry, millis, Event::Received(ClusterId(from), body(it)))
}

fn call(id: u64, repeatable: bool) -> Event<&'static str, u8, u8> {
    Event::Call(Call { id: CallId(id), operation: "op", repeatable, deadline: NEVER })
}

fn ask(round: u64) -> Body<&'static str, u8, u8> {
    Body::Ask { round: Round(round), carried: Vec::new() }
}

fn answer(round: u64, verdict: Verdict) -> Body<&'static str, u8, u8> {
    Body::Answer { round: Round(round), verdict, declined: true }
}

fn pass() -> Verdict {
    Verdict::Pass { ran: BTreeMap::new() }
}

fn verdict(out: &Out) -> Verdict {
    let verdict = out.iter().find_map(|action| match action {
        Action::Send(_, Message { body: Body::Answer { verdict, .. }, .. }) => Some(verdict.clone()),
        _ => None,
    });
    verdict.expect("a question is answered")
}

fn instance(cluster: u16, round: u64) -> Instance {
    Instance { cluster: ClusterId(cluster), round: Round(round) }
}

/// An entry of cluster 1 of two that is doubtful since round 1.
fn doubtful() -> Gsi {
    let mut c = entry(1, &[1, 2]);
    handle(&mut c, 0, call(1, true));
    handle(&mut c, 1000, Event::Tick);
    assert_eq!(c.state(), State::Doubtful(Round(1)));
    c
}

/// An entry of cluster 2 of two that owns the actor since round 1.
fn owned() -> Gsi {
    let mut d = entry(2, &[1, 2]);
    handle(&mut d, 0, call(1, true));
    receive(&mut d, 10, 1, answer(1, pass()));
    assert_eq!(d.state(), State::Owned(Round(1)));
    d
}

#[test]
fn stale_pass_of_an_abandoned_round_is_ignored() {
    let mut c = entry(1, &[1, 2]);
    handle(&mut c, 0, call(1, true));
    assert_eq!(verdict(&receive(&mut c, 10, 2, ask(1))), pass());
    assert_eq!(c.state(), State::Loser);
    handle(&mut c, 1000, Event::Tick);
    handle(&mut c, 1100, Event::Tick);
    assert_eq!(c.state(), State::Requested);
    receive(&mut c, 1110, 2, answer(1, pass()));
    assert_eq!(c.state(), State::Requested, "G1: the pass was for round 1");
}

#[test]
fn a_rerun_from_doubtful_loses_like_any_round() {
    let mut c = doubtful();
    handle(&mut c, 11_000, Event::Tick);
    assert_eq!(c.state(), State::Requested);
    assert_eq!(c.running(), Some(Round(1)), "the instance is kept and serves");
    assert_eq!(verdict(&receive(&mut c, 11_010, 2, ask(1))), pass());
    receive(&mut c, 11_020, 2, answer(2, pass()));
    assert_eq!(c.state(), State::Doubtful(Round(1)), "G2: the round was lost before its pass came");
}

#[test]
fn a_question_of_another_configuration_is_not_passed() {
    let mut c = entry(1, &[1, 2]);
    let newer = Message { configuration: ConfigEpoch(2), body: ask(1) };
    let out = handle(&mut c, 0, Event::Received(ClusterId(2), newer));
    assert_eq!(verdict(&out), Verdict::Unknown, "G3");
    assert!(out.contains(&Action::FetchConfiguration(ConfigEpoch(2))));
    assert_eq!(verdict(&receive(&mut c, 0, 3, ask(1))), Verdict::Unknown, "a cluster that is not listed");
}

#[test]
fn a_cluster_is_dropped_only_after_it_was_drained_everywhere() {
    let one = configuration(&[1, 2]);
    let said =
        |epoch, empty| (1..=2).map(|id| (ClusterId(id), Acknowledged { epoch: ConfigEpoch(epoch), empty })).collect();
    let drop = Change::Drop(ClusterId(2));
    assert_eq!(one.change(drop, &said(1, true)), Err(ChangeRefused::NotDraining(2)));
    let two = one.change(Change::Drain(ClusterId(2)), &said(1, false)).unwrap();
    assert_eq!(two.change(drop, &said(1, true)), Err(ChangeRefused::Unacknowledged { cluster: 1, epoch: 2 }));
    assert_eq!(two.change(drop, &said(2, false)), Err(ChangeRefused::NotEmpty(2)));
    assert_eq!(two.change(drop, &said(2, true)).unwrap().standing(ClusterId(2)), None, "G3");

    let mut d = owned();
    assert!(handle(&mut d, 20, Event::Configuration(two)).contains(&Action::Release(Round(1))));
    handle(&mut d, 30, Event::Released(Round(1)));
    assert!(d.is_empty());
    assert_eq!(handle(&mut d, 40, call(2, false)), [Action::End(CallId(2), End::Refused(Refusal::Draining))]);
}

#[test]
fn a_range_in_recovery_answers_unknown() {
    let mut d: Gsi = Entry::recovering(ClusterId(2), configuration(&[1, 2]), Config::default(), Round(9));
    assert_eq!(verdict(&receive(&mut d, 0, 1, ask(1))), Verdict::Unknown, "G4");
    let report = Report { instance: Round(3), owned: true, ran: BTreeMap::new() };
    handle(&mut d, 10, Event::Recovered(Some(report)));
    assert_eq!(verdict(&receive(&mut d, 20, 1, ask(1))), Verdict::Held(instance(2, 3)));
}

#[test]
fn fail_and_silence_together_activate_nothing() {
    let mut c = entry(1, &[1, 2, 3]);
    handle(&mut c, 0, call(1, true));
    receive(&mut c, 10, 2, answer(1, Verdict::Fail));
    let out = handle(&mut c, 1000, Event::Tick);
    assert_eq!(c.state(), State::Invalid, "G5: {out:?}");
    assert!(handle(&mut c, 1050, Event::Tick).iter().any(|a| matches!(a, Action::Send(..))), "it starts over");
}

#[test]
fn pessimistic_silence_activates_nothing_and_is_refused_at_the_deadline() {
    let config = Config { mode: Mode::Pessimistic, carry: false, ..Config::default() };
    let mut c: Gsi = Entry::new(ClusterId(1), configuration(&[1, 2]), config, Round(0));
    let waits = Call { id: CallId(1), operation: "op", repeatable: false, deadline: at(5000) };
    handle(&mut c, 0, Event::Call(waits));
    let mut out = Vec::new();
    while out.is_empty() {
        let now = c.deadline().unwrap();
        c.handle(now, Event::Tick, &mut out);
        out.retain(|action| !matches!(action, Action::Send(..)));
    }
    assert_eq!(out, [Action::End(CallId(1), End::Refused(Refusal::Unreachable))]);
    assert_eq!(c.instance(), None);
}

#[test]
fn healing_hands_over_what_the_owner_has_not_seen() {
    let (mut c, mut d) = (doubtful(), owned());
    handle(&mut c, 11_000, Event::Tick);
    let out = receive(&mut c, 11_010, 2, answer(2, Verdict::Held(instance(2, 1))));
    assert_eq!(out, [Action::Suspend(Round(1))]);
    assert_eq!(c.running(), None, "a suspended instance starts no turn");
    let out = handle(&mut c, 11_020, Event::Suspended { instance: Round(1), unseen: 42 });
    let [Action::Send(_, hand_over)] = &out[..] else { panic!("{out:?}") };
    let merge = Action::Merge { from: ClusterId(1), number: Round(3), unseen: 42 };
    assert_eq!(handle(&mut d, 0, Event::Received(ClusterId(1), hand_over.clone())), [merge], "G6");
    let again = handle(&mut d, 0, Event::Received(ClusterId(1), hand_over.clone()));
    assert_eq!(again, [], "a copy is not merged twice");
    let out = handle(&mut d, 0, Event::Merged { from: ClusterId(1), number: Round(3) });
    let [Action::Send(_, confirmed)] = &out[..] else { panic!("{out:?}") };
    assert_eq!(c.instance(), Some(Round(1)), "kept until it is confirmed");
    assert_eq!(
        handle(&mut c, 11_040, Event::Received(ClusterId(2), confirmed.clone())),
        [Action::Deactivate(Round(1))]
    );
}

#[test]
fn a_loser_whose_owner_is_gone_keeps_its_instance() {
    let mut c = doubtful();
    handle(&mut c, 11_000, Event::Tick);
    receive(&mut c, 11_010, 2, answer(2, Verdict::Held(instance(2, 1))));
    handle(&mut c, 11_020, Event::Suspended { instance: Round(1), unseen: 42 });
    receive(&mut c, 11_030, 2, Body::NotOwner { number: Round(3) });
    let out = receive(&mut c, 11_040, 2, answer(4, pass()));
    assert_eq!(out, [Action::Settle(Round(1))]);
    assert_eq!(c.running(), Some(Round(1)));
}

#[test]
fn a_call_for_an_earlier_ownership_is_not_run() {
    let mut d = owned();
    let forward = |round| Body::Forward { to: instance(2, round), call: Carried { id: CallId(7), operation: "op" } };
    let out = receive(&mut d, 20, 1, forward(0));
    assert!(matches!(&out[..], [Action::Send(_, Message { body: Body::NotHere { .. }, .. })]), "G8: {out:?}");
    assert!(matches!(&receive(&mut d, 20, 1, forward(1))[..], [Action::Run { .. }]));
}

#[test]
fn a_cached_owner_that_is_gone_costs_a_new_round_and_the_call_runs() {
    let mut c = entry(1, &[1, 2]);
    handle(&mut c, 0, call(1, false));
    receive(&mut c, 10, 2, Body::Answer { round: Round(1), verdict: Verdict::Held(instance(2, 1)), declined: false });
    let out = receive(&mut c, 10, 2, Body::Result { call: CallId(1), result: 5 });
    assert_eq!(out, [Action::End(CallId(1), End::Result(5))], "one round trip");
    handle(&mut c, 20, call(2, false));
    receive(&mut c, 30, 2, Body::NotHere { to: instance(2, 1), call: CallId(2) });
    assert_eq!(c.state(), State::Requested);
    let out = receive(&mut c, 40, 2, answer(2, pass()));
    assert!(matches!(&out[..], [Action::Activate { .. }, Action::Run { .. }]), "{out:?}");
}

#[test]
fn after_silence_an_operation_that_may_have_run_ends_unknown() {
    let mut c = entry(1, &[1, 2]);
    handle(&mut c, 0, call(1, false));
    handle(&mut c, 0, call(2, true));
    let out = handle(&mut c, 1000, Event::Tick);
    assert!(out.contains(&Action::End(CallId(1), End::Unknown)), "{out:?}");
    assert_eq!(
        out.iter().filter(|action| matches!(action, Action::Run { .. })).count(),
        1,
        "what may be repeated runs"
    );
}

#[test]
fn no_operation_travels_to_a_cluster_known_to_be_lost() {
    let mut c = entry(1, &[1, 2]);
    handle(&mut c, 0, Event::Lost(ClusterId(2)));
    handle(&mut c, 0, call(1, false));
    let out = handle(&mut c, 1000, Event::Tick);
    assert!(out.iter().any(|action| matches!(action, Action::Run { .. })), "it runs here, doubtful: {out:?}");
}

#[test]
fn without_hand_over_the_losers_updates_are_gone() {
    let checks = Checks { hand_over: false, ..Checks::default() };
    let config = Config { checks, ..Config::default() };
    let mut c: Gsi = Entry::new(ClusterId(1), configuration(&[1, 2]), config, Round(0));
    handle(&mut c, 0, call(1, true));
    handle(&mut c, 1000, Event::Tick);
    handle(&mut c, 11_000, Event::Tick);
    let out = receive(&mut c, 11_010, 2, answer(2, Verdict::Held(instance(2, 1))));
    assert_eq!(out, [Action::Deactivate(Round(1))]);
}

#[test]
fn without_numbered_ownerships_a_call_reaches_a_later_one() {
    let checks = Checks { ownership: false, ..Checks::default() };
    let config = Config { checks, ..Config::default() };
    let mut d: Gsi = Entry::new(ClusterId(2), configuration(&[1, 2]), config, Round(0));
    handle(&mut d, 0, call(1, true));
    receive(&mut d, 10, 1, answer(1, pass()));
    let old = Body::Forward { to: instance(2, 0), call: Carried { id: CallId(7), operation: "op" } };
    assert!(matches!(&receive(&mut d, 20, 1, old)[..], [Action::Run { .. }]));
}

#[test]
fn a_call_that_no_cluster_was_sent_is_refused_at_its_deadline() {
    let config = Config { mode: Mode::Pessimistic, ..Config::default() };
    let mut c: Gsi = Entry::new(ClusterId(1), configuration(&[1, 2]), config, Round(0));
    handle(&mut c, 0, Event::Lost(ClusterId(2)));
    let waits = Call { id: CallId(1), operation: "op", repeatable: false, deadline: at(500) };
    handle(&mut c, 0, Event::Call(waits));
    let out = handle(&mut c, 500, Event::Tick);
    assert!(out.contains(&Action::End(CallId(1), End::Refused(Refusal::Unreachable))), "{out:?}");
}
