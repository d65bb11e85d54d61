//! Guards that no trace of the models needs: each would be missed by nobody else.

use super::*;

fn carrying(leased: bool) -> Body<&'static str, u8, u8> {
    let carried = vec![Carried { id: CallId(7), operation: "op" }];
    Body::Ask { round: Round(5), carried, leased, doubtful: false }
}

fn runs(out: &Out) -> bool {
    out.iter().any(|action| matches!(action, Action::Run { .. }))
}

#[test]
fn a_round_of_an_older_configuration_is_not_won() {
    let mut c = entry(1, &[1, 2]);
    handle(&mut c, 0, call(1, true));
    let next = Configuration { epoch: ConfigEpoch(2), ..configuration(&[1, 2, 3]) };
    handle(&mut c, 10, Event::Configuration(next));
    receive(&mut c, 20, 2, answer(1, pass()));
    assert_eq!((c.state(), c.instance()), (State::Invalid, None), "3 was not asked");
}

#[test]
fn what_was_taken_in_is_confirmed_again_and_what_is_for_another_owner_is_not() {
    let mut d = owned();
    let hand_over = |round| Body::HandOver { to: instance(2, round), number: Round(3), unseen: 42 };
    let out = receive(&mut d, 20, 1, hand_over(9));
    assert_eq!(out, [Action::Send(ClusterId(1), body(Body::NotOwner { number: Round(3) }))]);
    receive(&mut d, 30, 1, hand_over(1));
    handle(&mut d, 40, Event::Merged { from: ClusterId(1), number: Round(3) });
    let confirmed = Action::Send(ClusterId(1), body(Body::HandedOver { number: Round(3) }));
    assert_eq!(receive(&mut d, 50, 1, hand_over(1)), [confirmed], "the first word was lost");
}

#[test]
fn who_has_asked_nobody_runs_only_what_began_under_the_same_lease() {
    let mut d = with_home(2);
    handle(&mut d, 0, Event::Lease(ConfigEpoch(1)));
    handle(&mut d, 0, call(1, false));
    assert!(!runs(&receive(&mut d, 10, 1, carrying(false))), "an owner before the lease may have run it");

    let config = Config::default();
    let mut d: Gsi = Entry::recovering(ClusterId(2), configuration(&[1, 2]), config, Round(9), at(0));
    handle(&mut d, 0, Event::Recovered(Some(Report { instance: Round(9), owned: true })));
    assert!(!runs(&receive(&mut d, 10, 1, carrying(true))), "it has no lease");
}

#[test]
fn a_memory_counts_as_older_than_a_round_only_if_it_is_by_both_clocks() {
    for (remembers_ms, believed) in [(605, false), (620, true)] {
        let mut c = entry(1, &[1, 2]);
        handle(&mut c, 0, call(7, false));
        handle(&mut c, 400, Event::Tick);
        let body = Body::Answer { round: Round(1), verdict: pass(), declined: true, carried: false, remembers_ms };
        assert_eq!(runs(&receive(&mut c, 600, 2, body)), believed, "{remembers_ms} ms");
    }
}

#[test]
fn what_travels_when_its_caller_gives_up_may_have_run() {
    let mut c = entry(1, &[1, 2]);
    let short = Call { id: CallId(7), operation: "op", repeatable: false, deadline: at(200) };
    handle(&mut c, 0, Event::Call(short));
    assert_eq!(handle(&mut c, 200, Event::Tick), [Action::End(CallId(7), End::Unknown)]);
}
