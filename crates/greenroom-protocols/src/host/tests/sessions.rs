//! Greetings, leases and offers.

use std::time::Duration;

use proptest::prelude::*;

use super::*;

const A: SessionId = SessionId(1);
const B: SessionId = SessionId(2);

/// A node whose own lease lasts, and sessions that have said hello at 0.
fn node(settings: Settings, sessions: &[SessionId]) -> Sessions {
    let mut node = Sessions::new(settings);
    tell(&mut node, 0, ControlEvent::NodeLease { until: at(1_000_000) });
    for session in sessions {
        tell(&mut node, 0, ControlEvent::Connected { session: *session });
        tell(&mut node, 0, ControlEvent::Hello { session: *session, ended: None, bounds: Bounds::default() });
    }
    node
}

fn tell(node: &mut Sessions, ms: u64, event: ControlEvent) -> Vec<ControlAction> {
    let mut out = Vec::new();
    node.handle(at(ms), event, &mut out);
    out
}

fn offers(node: &mut Sessions, ms: u64, session: SessionId, index: u32, offer: Offer) -> (Verdict, Vec<ControlAction>) {
    let event = ControlEvent::Offer { session, index, offer, allowed: Ok(()), claimed: None };
    let mut out = tell(node, ms, event);
    let Some(at) = out.iter().position(|action| matches!(action, ControlAction::Offered { .. })) else {
        panic!("no verdict: {out:?}")
    };
    let ControlAction::Offered { verdict, .. } = out.remove(at) else { unreachable!("it was found") };
    (verdict, out)
}

fn over(session: SessionId) -> ControlAction {
    ControlAction::Tell(Word::Over { session })
}

fn lost(session: SessionId) -> ControlAction {
    ControlAction::Tell(Word::Lost { session })
}

#[test]
fn a_hello_that_does_not_come_in_time_closes_the_connection() {
    let mut node = node(Settings::default(), &[]);
    tell(&mut node, 0, ControlEvent::Connected { session: A });
    assert_eq!(node.deadline(), Some(at(5_000)));
    assert_eq!(tell(&mut node, 4_999, ControlEvent::Tick), []);
    let closed = tell(&mut node, 5_000, ControlEvent::Tick);
    assert_eq!(closed[0], ControlAction::Close { session: A, why: Close::Silent });
    assert_eq!(node.deadline(), None);
}

#[test]
fn a_lease_is_renewed_by_alives_and_over_without() {
    let mut node = node(Settings::default(), &[A]);
    let lease = Duration::from_secs(5);
    let answer = tell(&mut node, 4_000, ControlEvent::Alive { session: A, number: 7 });
    assert_eq!(answer, [ControlAction::Lease { session: A, number: 7, lease }]);
    assert_eq!(tell(&mut node, 8_999, ControlEvent::Tick), []);
    let close = ControlAction::Close { session: A, why: Close::LeaseOver };
    assert_eq!(tell(&mut node, 9_000, ControlEvent::Tick), [close, lost(A), over(A)]);
    assert_eq!(tell(&mut node, 9_001, ControlEvent::Alive { session: A, number: 8 }), []);
}

#[test]
fn an_alive_that_is_handled_after_the_lease_comes_too_late() {
    let mut node = node(Settings::default(), &[A]);
    let late = tell(&mut node, 5_000, ControlEvent::Alive { session: A, number: 1 });
    assert!(!late.iter().any(|action| matches!(action, ControlAction::Lease { .. })), "{late:?}");
    assert_eq!(late.last(), Some(&over(A)));
}

#[test]
fn a_host_with_a_broken_control_lane_holds_its_seats_until_its_lease_is_over_by_the_nodes_clock() {
    let mut node = node(Settings::default(), &[A]);
    let broken = tell(&mut node, 1_000, ControlEvent::Broken { session: A });
    assert_eq!(broken, [ControlAction::Close { session: A, why: Close::Broken }, lost(A)]);
    assert_eq!(tell(&mut node, 4_999, ControlEvent::Alive { session: A, number: 1 }), [], "it never comes back");
    assert_eq!(tell(&mut node, 5_000, ControlEvent::Tick), [over(A)]);
}

#[test]
fn what_is_known_to_act_no_more_is_over_at_once() {
    for event in [
        ControlEvent::ProcessGone { session: A },
        ControlEvent::Goodbye { session: A },
        ControlEvent::Hello { session: B, ended: Some(A), bounds: Bounds::default() },
    ] {
        let mut node = node(Settings::default(), &[A]);
        tell(&mut node, 0, ControlEvent::Connected { session: B });
        tell(&mut node, 1_000, ControlEvent::Broken { session: A });
        assert_eq!(tell(&mut node, 1_001, event)[0], over(A));
        assert!(!node.is_live(A));
    }
}

#[test]
fn no_host_is_told_that_it_may_act_for_longer_than_its_node() {
    let told = |settings| {
        let mut node = Sessions::new(settings);
        tell(&mut node, 0, ControlEvent::NodeLease { until: at(3_000) });
        tell(&mut node, 0, ControlEvent::Connected { session: A });
        let welcome =
            tell(&mut node, 1_000, ControlEvent::Hello { session: A, ended: None, bounds: Bounds::default() });
        let ControlAction::Welcome { lease, .. } = welcome[0] else { panic!("{welcome:?}") };
        (lease, tell(&mut node, 3_000, ControlEvent::Tick))
    };
    let (lease, at_its_end) = told(Settings::default());
    assert_eq!(lease, Duration::from_secs(2));
    assert_eq!(at_its_end[0], ControlAction::Close { session: A, why: Close::Fenced });
    let (lease, at_its_end) = told(with(|checks| checks.node_lease = false));
    assert_eq!((lease, at_its_end), (Duration::from_secs(5), vec![]), "the host runs on beside its successor");
}

#[test]
fn a_host_that_does_not_drop_a_broken_lane_gets_no_further_lease() {
    let answers = |settings| {
        let mut node = node(settings, &[A]);
        let shard = Shard(0);
        let told = tell(&mut node, 1_000, ControlEvent::LaneBroken { session: A, shard });
        assert_eq!(told, [ControlAction::LaneLost { session: A, shard }]);
        tell(&mut node, 4_000, ControlEvent::Alive { session: A, number: 1 });
        tell(&mut node, 6_000, ControlEvent::Alive { session: A, number: 2 }).len()
    };
    assert_eq!(answers(Settings::default()), 0);
    assert_eq!(answers(with(|checks| checks.overdue = false)), 1, "its seats are held for ever");
}

#[test]
fn a_lane_is_dropped_once_for_each_time_that_it_broke() {
    let mut node = node(Settings::default(), &[A]);
    let (shard, dropped) = (Shard(3), ControlEvent::LaneDropped { session: A, shard: Shard(3) });
    assert_eq!(tell(&mut node, 0, dropped.clone()), [], "it answers nothing");
    tell(&mut node, 0, ControlEvent::LaneBroken { session: A, shard });
    let word = ControlAction::Tell(Word::Dropped { session: A, shard });
    assert_eq!(tell(&mut node, 0, dropped.clone()), [word]);
    assert_eq!(tell(&mut node, 0, dropped), []);
}

#[test]
fn the_first_digest_of_a_version_holds_and_what_differs_is_refused() {
    let second = |settings| {
        let mut node = node(settings, &[A, B]);
        let (first, _) = offers(&mut node, 0, A, 0, offer("room", 1, 1, "aa"));
        assert_eq!(first, Verdict::Taken);
        offers(&mut node, 0, B, 0, offer("room", 1, 1, "bb")).0
    };
    let Verdict::Refused(refusal @ Refusal::Digest { .. }) = second(Settings::default()) else { panic!() };
    assert!(refusal.to_string().contains("raise the version"), "{refusal}");
    assert_eq!(second(with(|checks| checks.digest = false)), Verdict::Taken);
}

#[test]
fn a_digest_that_the_view_has_holds_too() {
    let mut node = node(Settings::default(), &[A]);
    let allowed = Ok(());
    let (offer, claimed) = (offer("room", 1, 1, "aa"), Some("bb".into()));
    let out = tell(&mut node, 0, ControlEvent::Offer { session: A, index: 0, offer, allowed, claimed });
    assert!(matches!(out[0], ControlAction::Offered { verdict: Verdict::Refused(Refusal::Digest { .. }), .. }));
}

#[test]
fn a_newer_version_takes_the_place_of_an_older_one_and_not_the_other_way_round() {
    let mut node = node(Settings::default(), &[A, B]);
    offers(&mut node, 0, A, 0, offer("room", 1, 1, "aa"));
    let (newer, _) = offers(&mut node, 0, B, 0, offer("room", 2, 1, "bb"));
    assert_eq!(newer, Verdict::TakenInPlace);
    let (older, _) = offers(&mut node, 0, B, 1, offer("room", 1, 1, "aa"));
    assert_eq!(older, Verdict::Taken);
    assert_eq!(node.row(), [offer("room", 2, 1, "bb")]);
}

#[test]
fn what_a_host_may_not_offer_is_refused_by_name() {
    let mut node = node(Settings { kinds_max: 1, ..Settings::default() }, &[A]);
    let linked = Err(NotAllowed::Linked("user".into()));
    let event =
        ControlEvent::Offer { session: A, index: 0, offer: offer("user", 1, 1, "aa"), allowed: linked, claimed: None };
    let ControlAction::Offered { verdict: Verdict::Refused(refusal), .. } = tell(&mut node, 0, event).remove(0) else {
        panic!()
    };
    assert!(refusal.to_string().contains("\"user\" is linked"), "{refusal}");
    let (versions, _) = offers(&mut node, 0, A, 1, offer("room", 1, 2, "aa"));
    assert!(matches!(versions, Verdict::Refused(Refusal::Versions { .. })));
    offers(&mut node, 0, A, 2, offer("room", 1, 1, "aa"));
    let (many, _) = offers(&mut node, 0, A, 3, offer("other", 1, 1, "cc"));
    assert_eq!(many, Verdict::Refused(Refusal::TooMany { max: 1 }));
}

/// Writes of the row while a host comes for an instant in each of ten seconds.
fn rows(settings: Settings) -> usize {
    let mut node = node(settings, &[]);
    let mut rows = 0;
    for round in 0..10 {
        let session = SessionId(round);
        tell(&mut node, round * 1_000, ControlEvent::Connected { session });
        tell(&mut node, round * 1_000, ControlEvent::Hello { session, ended: None, bounds: Bounds::default() });
        let (_, came) = offers(&mut node, round * 1_000, session, 0, offer("room", 1, 1, "aa"));
        let gone = tell(&mut node, round * 1_000 + 500, ControlEvent::Goodbye { session });
        let row = |action: &&ControlAction| matches!(action, ControlAction::Row { .. });
        rows += came.iter().chain(&gone).filter(row).count();
    }
    rows
}

#[test]
fn l20_a_host_that_restarts_every_second_does_not_write_the_row_each_time() {
    assert_eq!(rows(Settings::default()), 1);
    assert_eq!(rows(with(|checks| checks.row = false)), 20);
}

#[test]
fn l20_hosts_that_come_within_a_second_are_one_write() {
    let writes = |settings| {
        let mut node = node(settings, &[A]);
        let is_row = |action: &ControlAction| matches!(action, ControlAction::Row { .. });
        let came = |n: u32| offers(&mut node, u64::from(n) * 100, A, n, offer(&format!("kind{n}"), 1, 1, "aa")).1;
        let writes: Vec<_> = (0..10).flat_map(came).filter(is_row).collect();
        (writes.len(), node.deadline())
    };
    assert_eq!(writes(Settings::default()), (1, Some(at(1_000))), "what came since then is written a second later");
    assert_eq!(writes(with(|checks| checks.row = false)).0, 10);
}

#[test]
fn a_kind_leaves_the_row_once_nobody_has_offered_it_for_the_grace() {
    let mut node = node(Settings::default(), &[A]);
    offers(&mut node, 0, A, 0, offer("room", 1, 1, "aa"));
    tell(&mut node, 1_000, ControlEvent::Goodbye { session: A });
    assert_eq!(node.deadline(), Some(at(9_000)));
    assert_eq!(tell(&mut node, 8_999, ControlEvent::Tick), []);
    assert_eq!(tell(&mut node, 9_000, ControlEvent::Tick), [ControlAction::Row { kinds: vec![] }]);
}

#[test]
fn a_pulse_counts_from_when_it_was_sent_and_leaves_a_hundredth() {
    let mut pulse = Pulse::new(at(0), Duration::from_secs(5));
    assert!(pulse.may_act(at(4_949)) && !pulse.may_act(at(4_950)));
    assert_eq!(pulse.due(), at(1_000));
    let number = pulse.send(at(1_000));
    pulse.answered(number, Duration::from_secs(5));
    assert_eq!(pulse.until(), at(5_950), "however late the answer is read");
    pulse.answered(number, Duration::from_secs(50));
    pulse.answered(99, Duration::from_secs(50));
    assert_eq!(pulse.until(), at(5_950), "what answers nothing changes nothing");
}

#[test]
fn a_session_that_has_drained_everywhere_is_over() {
    let mut node = node(Settings { shards: 2, ..Settings::default() }, &[A]);
    let drained = |shard| ControlEvent::Drained { session: A, shard: Shard(shard) };
    assert_eq!(tell(&mut node, 1, drained(0)), [], "nobody has asked it to");
    tell(&mut node, 1, ControlEvent::Drain { session: A });
    assert_eq!(tell(&mut node, 1, drained(0)), []);
    assert_eq!(tell(&mut node, 1, drained(0)), [], "it is said once");
    let over = tell(&mut node, 1, drained(1));
    assert!(over.contains(&ControlAction::Close { session: A, why: Close::Done }), "{over:?}");
    assert!(over.contains(&ControlAction::Tell(Word::Over { session: A })), "{over:?}");
}

#[test]
fn a_version_that_nobody_offers_any_more_comes_back_with_another_description() {
    let mut node = node(Settings::default(), &[A, B]);
    assert_eq!(offers(&mut node, 1, A, 0, offer("room", 1, 1, "aa")).0, Verdict::Taken);
    tell(&mut node, 2, ControlEvent::Goodbye { session: A });
    assert_eq!(offers(&mut node, 3, B, 0, offer("room", 1, 1, "bb")).0, Verdict::Taken);
    assert_eq!(&*node.row()[0].digest, "bb");
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 128, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn no_lease_of_a_host_outlasts_the_lease_of_its_node(steps in proptest::collection::vec((0u64..3_000, 0u8..4), 1..40)) {
        let mut node = Sessions::new(Settings::default());
        let (mut ms, mut node_until, mut sessions) = (0, 0, Vec::new());
        for (pause, step) in steps {
            ms += pause;
            let mut out = Vec::new();
            match step {
                0 => {
                    node_until = ms + 6_000;
                    tell(&mut node, ms, ControlEvent::NodeLease { until: at(node_until) });
                }
                1 => {
                    let session = SessionId(sessions.len() as u64);
                    sessions.push(session);
                    tell(&mut node, ms, ControlEvent::Connected { session });
                    let hello = ControlEvent::Hello { session, ended: None, bounds: Bounds::default() };
                    out = tell(&mut node, ms, hello);
                }
                _ => {
                    for session in &sessions {
                        out.extend(tell(&mut node, ms, ControlEvent::Alive { session: *session, number: ms }));
                    }
                }
            }
            for action in out {
                if let ControlAction::Welcome { lease, .. } | ControlAction::Lease { lease, .. } = action {
                    prop_assert!(at(ms) + lease <= at(node_until.max(ms)), "{lease:?} at {ms} of {node_until}");
                }
            }
            for session in sessions.iter().filter(|session| node.is_live(**session)) {
                prop_assert!(node.until(*session) <= Some(at(node_until.max(ms))));
            }
        }
    }
}
