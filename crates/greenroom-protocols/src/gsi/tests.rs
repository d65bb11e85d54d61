use std::collections::{BTreeMap, BTreeSet};

use super::*;

mod guards;
mod traces;
mod yields;

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
    Entry::new(ClusterId(me), configuration(clusters), Config::default(), Round(0), at(0))
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
    Body::Ask { round: Round(round), carried: Vec::new(), leased: false, doubtful: false }
}

fn answer(round: u64, verdict: Verdict) -> Body<&'static str, u8, u8> {
    told(round, verdict, true, true)
}

/// An answer of a cluster that has always been there.
fn told(round: u64, verdict: Verdict, declined: bool, carried: bool) -> Body<&'static str, u8, u8> {
    Body::Answer { round: Round(round), verdict, declined, carried, remembers_ms: 600_000 }
}

fn pass() -> Verdict {
    Verdict::Pass { ran: BTreeMap::new(), last: Round(0) }
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

/// An entry of cluster 1 of these that activates nothing while one is silent.
fn pessimistic(clusters: &[u16]) -> Gsi {
    let config = Config { mode: Mode::Pessimistic, ..Config::default() };
    Entry::new(ClusterId(1), configuration(clusters), config, Round(0), at(0))
}

/// An entry of cluster 1 of two that is doubtful since round 1.
fn doubtful() -> Gsi {
    doubtful_by(Checks::default())
}

fn doubtful_by(checks: Checks) -> Gsi {
    let config = Config { checks, ..Config::default() };
    let mut c: Gsi = Entry::new(ClusterId(1), configuration(&[1, 2]), config, Round(0), at(0));
    handle(&mut c, 0, call(1, true));
    handle(&mut c, 1000, Event::Tick);
    assert_eq!(c.state(), State::Doubtful(Round(1)));
    c
}

/// An entry of cluster 2 of two that owns the actor since round 1.
fn owned() -> Gsi {
    owned_by(Checks::default())
}

fn owned_by(checks: Checks) -> Gsi {
    let config = Config { checks, ..Config::default() };
    let mut d: Gsi = Entry::new(ClusterId(2), configuration(&[1, 2]), config, Round(0), at(0));
    handle(&mut d, 0, call(1, true));
    receive(&mut d, 10, 1, answer(1, pass()));
    assert_eq!(d.state(), State::Owned(Round(1)));
    d
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
    assert_eq!(two.change(Change::Drain(ClusterId(2)), &said(2, false)), Err(ChangeRefused::Draining(2)));
    assert_eq!(two.change(drop, &said(2, false)), Err(ChangeRefused::NotEmpty(2)));
    assert_eq!(two.change(drop, &said(2, true)).unwrap().standing(ClusterId(2)), None, "G3");

    let mut d = owned();
    assert!(handle(&mut d, 20, Event::Configuration(two)).contains(&Action::Release(Round(1))));
    handle(&mut d, 30, Event::Released(Round(1)));
    assert!(d.is_empty());
    assert_eq!(handle(&mut d, 40, call(2, false)), [Action::End(CallId(2), End::Refused(Refusal::Draining))]);
}

#[test]
fn a_draining_cluster_is_vacant_though_its_callers_go_on() {
    let mut d = entry(2, &[1, 2]);
    handle(&mut d, 0, call(1, false));
    let held = Verdict::Held(Instance { cluster: ClusterId(1), round: Round(7) });
    receive(&mut d, 10, 1, answer(1, held));
    let mut two = configuration(&[1, 2]);
    two.epoch.0 += 1;
    two.clusters.insert(ClusterId(2), Standing::Draining);
    handle(&mut d, 20, Event::Configuration(two));
    let out = handle(&mut d, 30, call(2, false));
    assert!(matches!(&out[..], [Action::Send(ClusterId(1), _)]), "it is called where it is: {out:?}");
    assert!(d.is_vacant() && !d.is_empty(), "it owns nothing, and a call of its own is away");
}

/// What these clusters have acknowledged, with instances.
fn said(all: &[(u16, u64)]) -> BTreeMap<ClusterId, Acknowledged> {
    let said = |epoch| Acknowledged { epoch: ConfigEpoch(epoch), empty: false };
    all.iter().map(|(id, epoch)| (ClusterId(*id), said(*epoch))).collect()
}

#[test]
fn who_was_added_and_never_comes_hinders_nobody() {
    let one = configuration(&[1, 2]);
    let two = one.change(Change::Add(ClusterId(3)), &said(&[(1, 1), (2, 1)])).unwrap();
    let others = said(&[(1, 2), (2, 2)]);
    assert_eq!(
        two.change(Change::Admit(ClusterId(3)), &others),
        Err(ChangeRefused::Unacknowledged { cluster: 3, epoch: 2 }),
        "it takes part only once it works by the list"
    );
    assert_eq!(two.admissible(&others).count(), 0);
    assert!(
        two.change(Change::Drain(ClusterId(2)), &others).is_ok()
            && two.change(Change::Add(ClusterId(4)), &others).is_ok()
    );
    assert_eq!(two.change(Change::Drain(ClusterId(3)), &others), Err(ChangeRefused::NotAdmitted(3)));
    assert_eq!(two.change(Change::Drop(ClusterId(3)), &others).unwrap().clusters, one.clusters);
    let behind = Err(ChangeRefused::Unacknowledged { cluster: 2, epoch: 2 });
    assert_eq!(two.change(Change::Drop(ClusterId(3)), &said(&[(1, 2), (2, 1)])), behind, "the others are waited for");
    let all = said(&[(1, 2), (2, 2), (3, 2)]);
    assert_eq!(two.admissible(&all).collect::<Vec<_>>(), [ClusterId(3)]);
    let three = two.change(Change::Admit(ClusterId(3)), &all).unwrap();
    assert_eq!(three.standing(ClusterId(3)), Some(Standing::Full));
    assert_eq!(
        three.change(Change::Admit(ClusterId(3)), &said(&[(1, 3), (2, 3), (3, 3)])),
        Err(ChangeRefused::Present(3))
    );
}

#[test]
fn a_cluster_that_is_lost_is_taken_out_without_its_word() {
    let two = configuration(&[1, 2, 3]);
    let others = said(&[(1, 1), (3, 1)]);
    let behind = Err(ChangeRefused::Unacknowledged { cluster: 2, epoch: 1 });
    assert_eq!(two.change(Change::Drain(ClusterId(3)), &others), behind);
    let left = two.change(Change::Lose(ClusterId(2)), &said(&[])).unwrap();
    assert_eq!((left.epoch, left.standing(ClusterId(2))), (ConfigEpoch(2), Some(Standing::Lost)));
    let lost = Err(ChangeRefused::Lost(2));
    for change in [Change::Lose(ClusterId(2)), Change::Drain(ClusterId(2)), Change::Drop(ClusterId(2))] {
        assert_eq!(left.change(change, &said(&[(1, 2), (3, 2)])), lost, "it may live: its time has not run out");
    }
    let mut over = said(&[(1, 2), (3, 2)]);
    over.insert(ClusterId(2), Acknowledged { epoch: ConfigEpoch(0), empty: true });
    assert_eq!(left.change(Change::Drop(ClusterId(2)), &over).unwrap().standing(ClusterId(2)), None);
}

/// Clusters 1 and 2, of which 2 is lost.
fn without_two() -> Configuration {
    configuration(&[1, 2]).change(Change::Lose(ClusterId(2)), &said(&[(1, 1)])).unwrap()
}

#[test]
fn nobody_owns_what_a_lost_cluster_may_have_until_that_is_dropped() {
    let config = Config { mode: Mode::Pessimistic, ..Config::default() };
    let mut d: Gsi = Entry::new(ClusterId(1), without_two(), config, Round(0), at(0));
    let out = handle(&mut d, 0, call(1, true));
    assert_eq!(
        out,
        [Action::End(CallId(1), End::Refused(Refusal::Unreachable))],
        "it is not asked, and not waited for"
    );
    let mut all = said(&[(1, 2)]);
    all.insert(ClusterId(2), Acknowledged { epoch: ConfigEpoch(0), empty: true });
    let dropped = without_two().change(Change::Drop(ClusterId(2)), &all).unwrap();
    handle(&mut d, 10, Event::Configuration(dropped));
    let out = handle(&mut d, 1000, call(2, true));
    assert!(out.contains(&Action::Activate { instance: Round(2), doubtful: false }), "{out:?}");
}

#[test]
fn calls_that_are_away_at_a_lost_cluster_end_unknown() {
    let mut d = entry(1, &[1, 2]);
    handle(&mut d, 0, call(1, false));
    receive(&mut d, 10, 2, answer(1, Verdict::Held(Instance { cluster: ClusterId(2), round: Round(7) })));
    handle(&mut d, 20, call(2, false));
    let out = handle(&mut d, 30, Event::Configuration(without_two()));
    assert!(out.contains(&Action::End(CallId(2), End::Unknown)), "{out:?}");
}

#[test]
fn who_may_be_taken_for_lost_gives_up_what_must_be_single_and_its_lease() {
    let config = Config { mode: Mode::Pessimistic, home: Some(Home::At(ClusterId(2), 0)), ..Config::default() };
    let mut d: Gsi = Entry::new(ClusterId(2), configuration(&[1, 2]), config, Round(0), at(0));
    handle(&mut d, 0, Event::Lease(ConfigEpoch(1)));
    let out = handle(&mut d, 0, call(1, true));
    assert!(out.contains(&Action::Activate { instance: Round(1), doubtful: false }), "{out:?}");
    assert_eq!(handle(&mut d, 10, Event::Fenced(true)), [Action::Release(Round(1))]);
    handle(&mut d, 20, Event::Released(Round(1)));
    handle(&mut d, 30, Event::Lease(ConfigEpoch(1)));
    let out = handle(&mut d, 40, call(2, true));
    assert!(matches!(&out[..], [Action::Send(ClusterId(1), _)]), "it asks as any other: {out:?}");
    let out = receive(&mut d, 50, 1, answer(2, pass()));
    assert!(
        !out.iter().any(|action| matches!(action, Action::Activate { .. })),
        "the answer may be an old one: {out:?}"
    );

    let config = Config { mode: Mode::Optimistic, ..config };
    let mut d: Gsi = Entry::new(ClusterId(2), configuration(&[1]), config, Round(0), at(0));
    handle(&mut d, 10, Event::Fenced(true));
    assert_eq!(handle(&mut d, 20, Event::Fenced(false)), [], "what may be two goes on");
}

#[test]
fn clusters_that_stand_in_never_give_the_same_number() {
    let mut given = BTreeMap::new();
    for epoch in 1..400 {
        let list = Configuration { epoch: ConfigEpoch(epoch), ..configuration(&[1, 2, 3]) };
        let first = list.number_after(ClusterId(1), false);
        assert!(first.0 > epoch);
        for (cluster, stands_in) in [(1, false), (2, true), (3, true)] {
            let next = list.number_after(ClusterId(cluster), stands_in);
            assert!(next.0 > epoch);
            assert_eq!(*given.entry(next).or_insert(cluster), cluster, "{next:?} after {epoch}");
        }
    }
    assert_eq!(configuration(&[1, 2]).number_after(ClusterId(1), false), ConfigEpoch(2), "the first one counts");
}

/// The configuration in which the last of these does not take part yet.
fn with_a_joiner() -> Configuration {
    let one = configuration(&[1, 2]);
    one.change(Change::Add(ClusterId(3)), &said(&[(1, 1), (2, 1)])).unwrap()
}

#[test]
fn who_does_not_take_part_yet_is_not_asked_and_not_passed() {
    let two = with_a_joiner();
    let mut c: Gsi = Entry::new(ClusterId(1), two.clone(), Config::default(), Round(0), at(0));
    let out = handle(&mut c, 0, call(1, true));
    assert!(matches!(&out[..], [Action::Send(ClusterId(2), _)]), "{out:?}");
    let mut d: Gsi = Entry::new(ClusterId(2), two, Config::default(), Round(0), at(0));
    let question = Message { configuration: ConfigEpoch(2), body: ask(1) };
    let out = handle(&mut d, 0, Event::Received(ClusterId(3), question));
    assert_eq!(verdict(&out), Verdict::Unknown);
}

#[test]
fn calls_wait_until_their_cluster_takes_part() {
    let two = with_a_joiner();
    let mut e: Gsi = Entry::new(ClusterId(3), two.clone(), Config::default(), Round(0), at(0));
    assert_eq!(handle(&mut e, 0, call(1, true)), []);
    assert_eq!(handle(&mut e, 5000, Event::Tick), [], "it asks nobody");
    let three = two.change(Change::Admit(ClusterId(3)), &said(&[(1, 2), (2, 2), (3, 2)])).unwrap();
    let out = handle(&mut e, 6000, Event::Configuration(three));
    assert!(matches!(&out[..], [Action::Send(..), Action::Send(..)]), "{out:?}");
    let mut alone: Gsi = Entry::new(ClusterId(3), configuration(&[3]), Config::default(), Round(0), at(0));
    handle(&mut alone, 0, call(1, true));
    let out = handle(&mut alone, 10, Event::Configuration(two));
    assert_eq!(out, [Action::Release(Round(1))], "what it owned when it was alone is not the others'");
}

#[test]
fn g3_a_call_that_has_waited_for_the_recovery_of_a_cluster_that_leaves_asks_nobody() {
    let one = configuration(&[1, 2]);
    let said = (1..=2).map(|id| (ClusterId(id), Acknowledged { epoch: ConfigEpoch(1), empty: false })).collect();
    let leaving = one.change(Change::Drain(ClusterId(2)), &said).unwrap();
    let mut c = Entry::recovering(ClusterId(2), leaving, Config::default(), Round(0), at(0));
    assert_eq!(handle(&mut c, 10, call(1, false)), []);
    let refused = Action::End(CallId(1), End::Refused(Refusal::Draining));
    assert_eq!(handle(&mut c, 20, Event::Recovered(None)), [refused]);
}

#[test]
fn pessimistic_silence_activates_nothing_and_is_refused_when_the_round_ends() {
    let mut c = pessimistic(&[1, 2, 3]);
    handle(&mut c, 0, Event::Lost(ClusterId(3)));
    handle(&mut c, 0, call(1, true));
    handle(&mut c, 900, call(2, false));
    let refused = |id| Action::End(CallId(id), End::Refused(Refusal::Unreachable));
    let out = receive(&mut c, 950, 2, answer(1, pass()));
    assert_eq!(out, [refused(1), refused(2)], "the lost one is not waited for");
    assert_eq!((c.instance(), c.state(), c.deadline()), (None, State::Invalid, None), "nothing goes on");
    assert_eq!(c.silent(), &BTreeSet::from([ClusterId(3)]));
    handle(&mut c, 2000, Event::Reached(ClusterId(3)));
    handle(&mut c, 2000, call(3, true));
    for cluster in [2, 3] {
        receive(&mut c, 2100, cluster, answer(2, pass()));
    }
    assert_eq!(c.state(), State::Owned(Round(2)), "the next call asks anew");
}

#[test]
fn a_pessimistic_call_waits_for_a_cluster_that_cannot_tell_yet() {
    let mut c = pessimistic(&[1, 2]);
    handle(&mut c, 0, call(1, false));
    receive(&mut c, 10, 2, answer(1, Verdict::Unknown));
    assert_eq!(handle(&mut c, 1000, Event::Tick), [], "it answers: its range recovers");
    handle(&mut c, 1050, Event::Tick);
    let out = receive(&mut c, 1060, 2, answer(2, pass()));
    assert!(matches!(&out[..], [Action::Activate { doubtful: false, .. }, Action::Run { .. }]), "{out:?}");
}

#[test]
fn a_pessimistic_instance_in_doubt_is_not_passed_over() {
    let config = Config { mode: Mode::Pessimistic, ..Config::default() };
    let recovered = |me| {
        let mut entry: Gsi = Entry::recovering(ClusterId(me), configuration(&[1, 2]), config, Round(9), at(0));
        handle(&mut entry, 0, Event::Recovered(Some(Report { instance: Round(9), owned: false })));
        entry
    };
    let asks = |round, doubtful| Body::Ask { round: Round(round), carried: Vec::new(), leased: false, doubtful };
    let mut c = recovered(1);
    assert_eq!(verdict(&receive(&mut c, 10, 2, asks(1, false))), Verdict::Unknown, "it may be the only one");
    handle(&mut c, 50, Event::Tick);
    assert_eq!(verdict(&receive(&mut c, 60, 2, asks(2, false))), Verdict::Unknown, "whoever has precedence");

    let mut d: Gsi = Entry::new(ClusterId(2), configuration(&[1, 2]), config, Round(0), at(0));
    handle(&mut d, 0, call(1, true));
    assert!(matches!(verdict(&receive(&mut d, 70, 1, asks(10, true))), Verdict::Pass { .. }), "who has none yields");
    let settled = [Action::Settle(Round(9)), Action::Reload(Round(9))];
    assert_eq!(receive(&mut c, 80, 2, answer(10, pass())), settled);

    let (mut c, mut d) = (recovered(1), recovered(2));
    assert!(matches!(verdict(&receive(&mut c, 10, 2, asks(10, true))), Verdict::Pass { .. }), "both are in doubt");
    handle(&mut d, 50, Event::Tick);
    assert_eq!(verdict(&receive(&mut d, 60, 1, asks(10, true))), Verdict::Fail);
}

#[test]
fn a_call_for_an_instance_in_recovery_asks_anew() {
    let mut d: Gsi = Entry::recovering(ClusterId(2), configuration(&[1, 2]), Config::default(), Round(9), at(0));
    let call = Carried { id: CallId(7), operation: "op" };
    let out = receive(&mut d, 10, 1, Body::Forward { to: instance(2, 3), call });
    let told = Body::NotHere { to: instance(2, 3), call: CallId(7) };
    assert_eq!(out, [Action::Send(ClusterId(1), body(told))]);
}

#[test]
fn a_loser_whose_owner_is_gone_keeps_its_instance() {
    let mut c = doubtful();
    handle(&mut c, 11_000, Event::Tick);
    receive(&mut c, 11_010, 2, answer(2, Verdict::Held(instance(2, 1))));
    handle(&mut c, 11_020, Event::Suspended { instance: Round(1), unseen: 42 });
    receive(&mut c, 11_030, 2, Body::NotOwner { number: Round(3) });
    let out = receive(&mut c, 11_040, 2, answer(4, pass()));
    assert_eq!(out, [Action::Settle(Round(1)), Action::Reload(Round(1))]);
    assert_eq!(c.running(), Some(Round(1)));
}

#[test]
fn a_cached_owner_that_is_gone_costs_a_new_round_and_the_call_runs() {
    let mut c = entry(1, &[1, 2]);
    handle(&mut c, 0, call(1, false));
    receive(&mut c, 10, 2, told(1, Verdict::Held(instance(2, 1)), false, true));
    let out = receive(&mut c, 10, 2, Body::Result { call: CallId(1), result: 5 });
    assert_eq!(out, [Action::End(CallId(1), End::Result(5))], "one round trip");
    handle(&mut c, 20, call(2, false));
    receive(&mut c, 30, 2, Body::NotHere { to: instance(2, 1), call: CallId(2) });
    assert_eq!(c.state(), State::Requested);
    let out = receive(&mut c, 40, 2, answer(2, pass()));
    assert!(matches!(&out[..], [Action::Activate { .. }, Action::Run { .. }]), "{out:?}");
}

#[test]
fn a_forwarded_call_whose_owner_is_lost_runs_again_only_if_it_may_be_repeated() {
    let mut c = entry(1, &[1, 2]);
    handle(&mut c, 0, call(1, false));
    receive(&mut c, 10, 2, told(1, Verdict::Held(instance(2, 1)), false, true));
    handle(&mut c, 20, call(2, false));
    handle(&mut c, 20, call(3, true));
    let out = handle(&mut c, 30, Event::Lost(ClusterId(2)));
    assert!(out.contains(&Action::End(CallId(2), End::Unknown)), "it may have run: {out:?}");
    let ran = out.iter().filter_map(|action| match action {
        Action::Run { call, .. } => Some(call.id),
        _ => None,
    });
    assert_eq!(ran.collect::<Vec<_>>(), [CallId(3)]);
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
    let out = handle(&mut c, 0, call(1, false));
    assert!(out.iter().any(|action| matches!(action, Action::Run { .. })), "it runs here, doubtful: {out:?}");
}

#[test]
fn a_call_that_no_cluster_was_sent_is_refused_at_its_deadline() {
    let mut c = pessimistic(&[1, 2]);
    handle(&mut c, 0, call(1, true));
    handle(&mut c, 1000, Event::Tick);
    let waits = Call { id: CallId(2), operation: "op", repeatable: false, deadline: at(2500) };
    handle(&mut c, 2000, Event::Call(waits));
    let out = handle(&mut c, 2500, Event::Tick);
    assert!(out.contains(&Action::End(CallId(2), End::Refused(Refusal::Unreachable))), "{out:?}");
}

/// An entry of a cluster of three whose actor is at home in the second.
fn with_home(me: u16) -> Gsi {
    let home = Some(Home::At(ClusterId(2), 7));
    let config = Config { home, mode: Mode::Pessimistic, ..Config::default() };
    Entry::new(ClusterId(me), configuration(&[1, 2, 3]), config, Round(0), at(0))
}

#[test]
fn a_home_with_the_lease_activates_without_a_question() {
    let mut d = with_home(2);
    handle(&mut d, 0, Event::Lease(ConfigEpoch(1)));
    let out = handle(&mut d, 0, call(1, false));
    assert!(matches!(&out[..], [Action::Activate { doubtful: false, .. }, Action::Run { .. }]), "{out:?}");
}

#[test]
fn a_home_that_is_asked_activates_and_runs_what_travels() {
    let mut d = with_home(2);
    handle(&mut d, 0, Event::Lease(ConfigEpoch(1)));
    let carried = vec![Carried { id: CallId(7), operation: "op" }];
    let out = receive(&mut d, 0, 1, Body::Ask { round: Round(1), carried, leased: true, doubtful: false });
    assert_eq!(verdict(&out), Verdict::Held(instance(2, 1)));
    assert!(matches!(out.last(), Some(Action::Run { .. })), "{out:?}");
}

#[test]
fn a_home_without_the_lease_asks_first_and_does_not_pass() {
    let mut d = with_home(2);
    let out = receive(&mut d, 0, 3, ask(1));
    assert_eq!(verdict(&out), Verdict::Fail);
    assert_eq!(d.state(), State::Requested, "it wants the actor at home");
}

#[test]
fn away_from_home_no_round_is_won() {
    let mut c = with_home(3);
    handle(&mut c, 0, call(1, true));
    for cluster in [1, 2] {
        receive(&mut c, 10, cluster, answer(1, pass()));
    }
    assert_eq!((c.state(), c.instance()), (State::Invalid, None));
    assert!(c.deadline().is_some(), "it asks again");
}

#[test]
fn the_lease_ends_with_the_configuration() {
    let mut d = with_home(2);
    handle(&mut d, 0, Event::Lease(ConfigEpoch(1)));
    let next = Configuration { epoch: ConfigEpoch(2), ..configuration(&[1, 2, 3]) };
    handle(&mut d, 0, Event::Configuration(next));
    let out = handle(&mut d, 0, call(1, false));
    assert!(out.iter().all(|action| matches!(action, Action::Send(..))) && out.len() == 2, "{out:?}");
    let message = Message { configuration: ConfigEpoch(1), body: ask(1) };
    let out = handle(&mut d, 0, Event::Received(ClusterId(1), message));
    assert_eq!(verdict(&out), Verdict::Unknown, "who has not followed is told nothing");
}

#[test]
fn what_is_away_from_its_new_home_is_released() {
    let home = Some(Home::At(ClusterId(3), 7));
    let config = Config { home, ..Config::default() };
    let mut c: Gsi = Entry::new(ClusterId(1), configuration(&[1]), config, Round(0), at(0));
    handle(&mut c, 0, call(1, true));
    assert_eq!(c.state(), State::Owned(Round(1)), "it was at home here as long as 3 took no part");
    let next = Configuration { epoch: ConfigEpoch(2), ..configuration(&[1, 3]) };
    assert_eq!(handle(&mut c, 0, Event::Configuration(next)), [Action::Release(Round(1))]);
}

#[test]
fn a_home_is_chosen_by_the_hash_among_those_that_take_part() {
    let three = configuration(&[1, 2, 3]);
    let home = |configuration: &Configuration, hash| configuration.home(Home::Hash(hash)).expect("somebody takes part");
    let shares = (0..3000).fold([0; 3], |mut shares, hash| {
        shares[usize::from(home(&three, hash).0) - 1] += 1;
        shares
    });
    assert!(shares.iter().all(|share| (800..1200).contains(share)), "{shares:?}");
    let mut two = three.clone();
    two.clusters.insert(ClusterId(3), Standing::Draining);
    for hash in 0..3000 {
        let before = home(&three, hash);
        assert!(before == ClusterId(3) || home(&two, hash) == before, "only what must moves");
    }
}
