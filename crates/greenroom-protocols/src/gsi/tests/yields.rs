//! Instances that give way to a cluster that calls them far more.

use std::collections::BTreeMap;

use super::*;

#[test]
fn an_instance_that_gives_way_leaves_the_other_cluster_time_to_ask() {
    let mut d = owned();
    assert_eq!(handle(&mut d, 20, Event::Yield), [Action::Release(Round(1))]);
    assert!(matches!(&handle(&mut d, 30, call(2, false))[..], [Action::Run { .. }]), "it runs on until it has ended");
    handle(&mut d, 40, Event::Released(Round(1)));
    assert_eq!(handle(&mut d, 50, call(3, false)), [], "it waits");
    assert_eq!(verdict(&receive(&mut d, 60, 1, ask(1))), Verdict::Pass { ran: BTreeMap::new(), last: Round(1) });
    assert_eq!(d.deadline(), Some(at(540)));
    let out = handle(&mut d, 540, Event::Tick);
    assert!(matches!(&out[..], [Action::Send(ClusterId(1), Message { body: Body::Ask { .. }, .. })]), "{out:?}");
    receive(&mut d, 550, 1, answer(2, Verdict::Held(instance(1, 1))));
    assert_eq!(d.state(), State::Cached(instance(1, 1)));
}

#[test]
fn nothing_gives_way_that_is_not_owned_and_nobody_waits_for_who_never_asks() {
    assert_eq!(handle(&mut doubtful(), 2000, Event::Yield), []);
    assert_eq!(handle(&mut entry(1, &[1, 2]), 0, Event::Yield), []);
    let mut d = owned();
    handle(&mut d, 20, Event::Yield);
    handle(&mut d, 40, Event::Released(Round(1)));
    handle(&mut d, 50, call(3, false));
    handle(&mut d, 540, Event::Tick);
    receive(&mut d, 550, 1, answer(2, pass()));
    assert_eq!(d.state(), State::Owned(Round(2)));
    // The next end is one as any other.
    handle(&mut d, 600, Event::Released(Round(2)));
    assert!(matches!(&handle(&mut d, 610, call(4, false))[..], [Action::Send(..)]));
}
