mod moves;

use std::collections::BTreeMap;

use proptest::prelude::*;

use super::*;
use crate::checks::Checks;
use crate::node::{Member, Status};

const KEY: u8 = 7;

fn at(millis: u64) -> Timestamp {
    Timestamp::from_nanos(millis * 1_000_000)
}

/// A view with these nodes active; (node, millisecond at which its lease is over) dead.
fn view(version: u64, active: &[u64], dead: &[(u64, u64)]) -> Arc<View> {
    let member = |status| Member { status, ..Member::default() };
    let mut view = View { version, next_node: 100, ..View::default() };
    for id in active {
        view.members.insert(NodeId(*id), member(Status::Active));
    }
    for (id, over) in dead {
        view.members.insert(NodeId(*id), member(Status::Dead));
        view.freed.insert(NodeId(*id), at(*over));
    }
    Arc::new(view)
}

/// The range that `first` owns among `active`, and `then` among `later`.
fn range_where(active: &[u64], first: u64, later: &[u64], then: u64) -> RangeId {
    (0..RANGES)
        .map(RangeId)
        .find(|r| {
            owner(*r, &view(1, active, &[])) == Some(NodeId(first))
                && owner(*r, &view(1, later, &[])) == Some(NodeId(then))
        })
        .expect("with 128 ranges every order of a few nodes occurs")
}

/// Some nodes with one range, and what is active on each.
struct Cluster {
    nodes: BTreeMap<u64, (Range<u8>, BTreeMap<u8, Epoch>)>,
}

impl Cluster {
    /// Nodes 1 to `count`, of which `active` have processed version 1 and reported.
    fn new(range: RangeId, count: u64, active: &[u64]) -> Self {
        let nodes = (1..=count).map(|id| (id, (Range::new(NodeId(id), range), BTreeMap::new()))).collect();
        let mut cluster = Self { nodes };
        let view = view(1, active, &[]);
        for id in active {
            cluster.view(*id, &view);
        }
        cluster
    }

    fn event(&mut self, now: u64, node: u64, event: Event<u8>) -> Vec<Action<u8>> {
        let (range, active) = self.nodes.get_mut(&node).unwrap();
        let mut out = Vec::new();
        range.handle(at(now), event, || active.iter().map(|(k, e)| (*k, *e)).collect::<Vec<_>>().into(), &mut out);
        out
    }

    /// Node `id` sees `view`, and its report is delivered.
    fn view(&mut self, id: u64, view: &Arc<View>) {
        for action in self.event(0, id, Event::View(Arc::clone(view))) {
            self.carry(0, action);
        }
    }

    fn carry(&mut self, now: u64, action: Action<u8>) {
        if let Action::Report { to, report } = action {
            self.event(now, to.0, Event::Report(report));
        }
    }

    fn resolve(&self, now: u64, node: u64) -> Resolution {
        self.nodes[&node].0.resolve(at(now), &KEY)
    }

    fn grant(&mut self, now: u64, owner: u64, host: u64) -> Grant {
        match self.nodes.get_mut(&owner).unwrap().0.grant(at(now), KEY, NodeId(host)) {
            Resolution::At(grant) => grant,
            other => panic!("not granted: {other:?}"),
        }
    }

    /// A call with `grant` arrives at the host.
    fn call(&mut self, host: u64, grant: &Grant) -> Acceptance {
        let (range, active) = self.nodes.get_mut(&host).unwrap();
        let acceptance = range.accept(grant);
        if acceptance == Acceptance::Accepted {
            active.insert(KEY, grant.placed.epoch);
        }
        acceptance
    }

    fn release(&mut self, host: u64) -> Released<u8> {
        let (range, active) = self.nodes.get_mut(&host).unwrap();
        let epoch = active.remove(&KEY).expect("it is active");
        range.release(KEY, epoch)
    }
}

#[test]
fn d1_two_racing_first_calls_activate_once() {
    let mut cluster = Cluster::new(range_where(&[1, 2], 1, &[1, 2], 1), 2, &[1, 2]);
    assert_eq!(cluster.resolve(0, 1), Resolution::Absent, "the first call");
    assert_eq!(cluster.resolve(0, 1), Resolution::Absent, "the second call, while the first is being placed");
    let first = cluster.grant(0, 1, 1);
    let second = cluster.grant(0, 1, 2);
    assert_eq!(first, second, "the second goes where the first went");
    assert_eq!(cluster.call(1, &second), Acceptance::Accepted);
    assert_eq!(cluster.call(2, &second), Acceptance::NotMe);
}

#[test]
fn d2_the_owner_dies_and_the_activation_that_survives_elsewhere_stays_the_only_one() {
    let range = range_where(&[1, 2, 3], 1, &[2, 3], 2);
    let mut cluster = Cluster::new(range, 3, &[1, 2, 3]);
    let grant = cluster.grant(0, 1, 3);
    cluster.call(3, &grant);
    let after = view(2, &[2, 3], &[(1, 4_000)]);
    cluster.view(2, &after);
    assert_eq!(cluster.resolve(0, 2), Resolution::Wait { until: None }, "node 3 has not reported");
    cluster.view(3, &after);
    assert_eq!(cluster.resolve(0, 2), Resolution::At(Grant { by: NodeId(2), view: 2, ..grant }));
}

#[test]
fn d2_an_actor_that_may_be_on_the_dead_owner_waits_for_its_lease() {
    let range = range_where(&[1, 2, 3], 1, &[2, 3], 2);
    let mut cluster = Cluster::new(range, 3, &[1, 2, 3]);
    let after = view(2, &[2, 3], &[(1, 4_000)]);
    cluster.view(3, &after);
    cluster.view(2, &after);
    cluster.view(3, &after);
    let out = cluster.event(0, 3, Event::Asked { from: NodeId(2), view: 2 });
    out.into_iter().for_each(|action| cluster.carry(0, action));
    assert_eq!(cluster.resolve(10, 2), Resolution::Wait { until: Some(at(4_000)) });
    assert_eq!(cluster.nodes[&2].0.deadline(), Some(at(4_000)));
    assert_eq!(cluster.event(4_000, 2, Event::Tick), [Action::Ready]);
    assert_eq!(cluster.resolve(4_000, 2), Resolution::Absent);
}

#[test]
fn d3_what_the_old_owner_grants_during_the_hand_off_is_refused_or_reported() {
    let range = range_where(&[1, 2], 1, &[1, 2, 3], 3);
    for accepted_before in [true, false] {
        let mut cluster = Cluster::new(range, 3, &[1, 2]);
        let after = view(2, &[1, 2, 3], &[]);
        cluster.view(3, &after);
        let grant = cluster.grant(0, 1, 2);
        if accepted_before {
            assert_eq!(cluster.call(2, &grant), Acceptance::Accepted);
        }
        cluster.view(2, &after);
        cluster.view(1, &after);
        if accepted_before {
            assert_eq!(cluster.resolve(0, 3), Resolution::At(Grant { by: NodeId(3), view: 2, ..grant }));
        } else {
            assert_eq!(cluster.call(2, &grant), Acceptance::NotOwner { owner: Some(NodeId(3)), view: 2 });
            assert_eq!(cluster.resolve(0, 3), Resolution::Absent);
        }
        assert_eq!(cluster.resolve(0, 1), Resolution::NotOwner(Some(NodeId(3))));
    }
}

#[test]
fn d4_a_message_for_an_earlier_incarnation_activates_nothing() {
    let mut cluster = Cluster::new(range_where(&[1, 2], 1, &[1, 3], 1), 3, &[1, 2]);
    let stale = cluster.grant(0, 1, 2);
    let restarted = view(2, &[1, 3], &[(2, 4_000)]);
    cluster.view(1, &restarted);
    cluster.view(3, &restarted);
    assert_eq!(cluster.call(3, &stale), Acceptance::NotMe);
    assert_eq!(cluster.resolve(10, 1), Resolution::Wait { until: Some(at(4_000)) });
    assert_eq!(cluster.resolve(4_000, 1), Resolution::Absent);
}

#[test]
fn d4_only_the_incarnation_check_refuses_a_grant_that_reached_the_successor_by_address() {
    let range = range_where(&[1, 2], 1, &[1, 3], 1);
    let placed = Placed { node: NodeId(2), epoch: Epoch(5) };
    for incarnation_check in [true, false] {
        let mut host = Host::new(NodeId(3), range, Checks { incarnation_check, ..Checks::default() });
        host.view(view(2, &[1, 3], &[(2, 4_000)]));
        let acceptance = host.accept(&Grant { placed, by: NodeId(1), view: 2 });
        assert_eq!(acceptance, if incarnation_check { Acceptance::NotMe } else { Acceptance::Accepted });
    }
}

#[test]
fn d5_a_late_release_does_not_remove_the_successor() {
    let mut cluster = Cluster::new(range_where(&[1, 2], 1, &[1, 2], 1), 2, &[1, 2]);
    let first = cluster.grant(0, 1, 2);
    cluster.call(2, &first);
    let released = cluster.release(2);
    cluster.event(0, 1, Event::Released(released));
    let second = cluster.grant(0, 1, 2);
    assert!(second.placed.epoch > first.placed.epoch);
    assert_eq!(cluster.call(2, &second), Acceptance::Accepted);
    cluster.event(0, 1, Event::Released(released));
    assert_eq!(cluster.resolve(0, 1), Resolution::At(second));
}

#[test]
fn a_grant_delayed_until_after_the_release_is_stale() {
    let mut cluster = Cluster::new(range_where(&[1, 2], 1, &[1, 2], 1), 2, &[1, 2]);
    let grant = cluster.grant(0, 1, 2);
    cluster.call(2, &grant);
    cluster.release(2);
    assert_eq!(cluster.call(2, &grant), Acceptance::Stale);
}

#[test]
fn a_host_that_is_behind_says_so_and_accepts_once_it_has_caught_up() {
    let range = range_where(&[1, 2], 1, &[1, 2, 3], 3);
    let mut cluster = Cluster::new(range, 3, &[1, 2]);
    let mut after = View::clone(&view(2, &[1, 2, 3], &[]));
    cluster.view(1, &Arc::new(after.clone()));
    cluster.view(2, &Arc::new(after.clone()));
    cluster.view(3, &Arc::new(after.clone()));
    after.version = 3;
    let newest = Arc::new(after);
    cluster.view(3, &newest);
    let grant = cluster.grant(0, 3, 2);
    assert_eq!(cluster.call(2, &grant), Acceptance::Behind { view: 3 });
    cluster.view(2, &newest);
    assert_eq!(cluster.call(2, &grant), Acceptance::Accepted);
}

#[test]
fn a_report_from_a_newer_view_is_kept_until_the_own_view_catches_up() {
    let range = range_where(&[1, 2], 1, &[1, 2, 3], 3);
    let mut cluster = Cluster::new(range, 3, &[1, 2]);
    let after = view(2, &[1, 2, 3], &[]);
    cluster.view(1, &after);
    cluster.view(2, &after);
    assert_eq!(cluster.resolve(0, 3), Resolution::NotOwner(None));
    cluster.view(3, &after);
    assert_eq!(cluster.resolve(0, 3), Resolution::Absent);
}

#[test]
fn a_lost_report_is_asked_for_again() {
    let range = range_where(&[1, 2], 1, &[1, 2, 3], 3);
    let mut cluster = Cluster::new(range, 3, &[1, 2]);
    let after = view(2, &[1, 2, 3], &[]);
    cluster.view(1, &after);
    drop(cluster.event(0, 2, Event::View(Arc::clone(&after))));
    cluster.view(3, &after);
    assert_eq!(cluster.nodes[&3].0.deadline(), Some(at(500)));
    let asked = cluster.event(500, 3, Event::Tick);
    assert_eq!(asked, [Action::AskReport { from: NodeId(2), range, view: 2, via: None }]);
    for action in cluster.event(500, 2, Event::Asked { from: NodeId(3), view: 2 }) {
        cluster.carry(500, action);
    }
    assert_eq!(cluster.resolve(500, 3), Resolution::Absent);
    assert_eq!(cluster.nodes[&3].0.deadline(), None);
}

#[test]
fn a_host_reports_to_an_owner_of_a_view_once_it_has_seen_that() {
    let range = range_where(&[1, 2], 1, &[1, 2, 3], 1);
    let mut cluster = Cluster::new(range, 2, &[1, 2]);
    let asked = || Event::Asked { from: NodeId(1), view: 2 };
    assert_eq!(cluster.event(0, 2, asked()), [], "what it accepts by the view before would not be in the report");
    drop(cluster.event(0, 2, Event::View(view(2, &[1, 2, 3], &[]))));
    assert!(matches!(&cluster.event(0, 2, asked())[..], [Action::Report { report: Report { view: 2, .. }, .. }]));
}

#[test]
fn a_host_that_stays_silent_is_asked_through_each_other_node_in_turn() {
    let range = range_where(&[1, 2, 4], 1, &[1, 2, 3, 4], 3);
    let mut cluster = Cluster::new(range, 4, &[1, 2, 4]);
    cluster.view(3, &view(2, &[1, 2, 3, 4], &[]));
    for host in [1, 4] {
        let report = Report { from: NodeId(host), range, view: 2, activations: vec![], in_transit: vec![] };
        cluster.event(0, 3, Event::Report(report));
    }
    let asked: Vec<_> = (1..=5)
        .flat_map(|turn| cluster.event(turn * 500, 3, Event::Tick))
        .map(|action| match action {
            Action::AskReport { from: NodeId(2), view: 2, via, .. } => via,
            other => panic!("{other:?}"),
        })
        .collect();
    assert_eq!(asked, [None, Some(NodeId(1)), None, Some(NodeId(4)), None]);
}

#[test]
fn a_report_from_an_older_view_or_a_second_one_changes_nothing() {
    let range = range_where(&[1, 2, 3], 1, &[2, 3], 2);
    let mut cluster = Cluster::new(range, 3, &[1, 2, 3]);
    cluster.view(2, &view(5, &[2, 3], &[(1, 0)]));
    let report =
        |view, activations| Event::Report(Report { from: NodeId(3), range, view, activations, in_transit: vec![] });
    cluster.event(0, 2, report(4, vec![]));
    assert_eq!(cluster.resolve(0, 2), Resolution::Wait { until: None });
    cluster.event(0, 2, report(5, vec![]));
    assert_eq!(cluster.resolve(0, 2), Resolution::Absent);
    cluster.event(0, 2, report(5, vec![(KEY, Epoch(9))]));
    assert_eq!(cluster.resolve(0, 2), Resolution::Absent);
}

#[test]
fn of_two_hosts_that_report_one_actor_the_lower_epoch_ends() {
    let range = range_where(&[1, 2, 3], 1, &[2, 3], 2);
    for first in [2, 3] {
        let mut cluster = Cluster::new(range, 3, &[1, 2, 3]);
        let epochs = BTreeMap::from([(2, Epoch(5)), (3, Epoch(9))]);
        for (host, epoch) in &epochs {
            cluster.nodes.get_mut(host).unwrap().1.insert(KEY, *epoch);
        }
        let after = view(2, &[2, 3], &[(1, 0)]);
        let report = cluster.event(0, 3, Event::View(Arc::clone(&after)));
        let mut out = Vec::new();
        if first == 3 {
            report.clone().into_iter().for_each(|action| cluster.carry(0, action));
        }
        out.extend(cluster.event(0, 2, Event::View(Arc::clone(&after))));
        if let [Action::Report { report, .. }] = &report[..] {
            out.extend(cluster.event(0, 2, Event::Report(report.clone())));
        }
        assert!(out.contains(&Action::Deactivate { node: NodeId(2), key: KEY, epoch: Epoch(5) }), "{out:?}");
        let Resolution::At(grant) = cluster.resolve(0, 2) else { panic!("it is on node 3") };
        assert_eq!(grant.placed, Placed { node: NodeId(3), epoch: Epoch(9) });
    }
}

#[test]
fn a_range_that_stays_keeps_its_entries_and_those_on_the_dead_wait() {
    let range = range_where(&[1, 2, 3], 1, &[1, 3], 1);
    let mut cluster = Cluster::new(range, 3, &[1, 2, 3]);
    let grant = cluster.grant(0, 1, 2);
    cluster.view(1, &view(2, &[1, 3], &[(2, 4_000)]));
    assert_eq!(cluster.resolve(0, 1), Resolution::Wait { until: Some(at(4_000)) });
    assert_eq!(cluster.nodes[&1].0.resolve(at(0), &8), Resolution::Absent, "other actors do not wait");
    assert_eq!(cluster.resolve(4_000, 1), Resolution::Absent);
    assert!(cluster.grant(4_000, 1, 3).placed.epoch > grant.placed.epoch);
    cluster.event(4_000, 1, Event::View(view(3, &[1], &[(2, 4_000), (3, 4_000)])));
    assert_eq!(cluster.nodes[&1].0.entries(), 0, "what cannot be asked for again is not kept");
}

#[test]
fn a_grant_is_above_what_a_report_told_though_more_were_granted_in_one_view_than_it_has_epochs() {
    let range = range_where(&[1, 2], 1, &[1, 2, 3], 3);
    let mut cluster = Cluster::new(range, 3, &[1, 2]);
    // An owner of the first view has granted until its epochs reached into those of the second.
    let told = Epoch((2 << 32) + 5);
    let host = cluster.nodes.get_mut(&2).unwrap();
    assert_eq!(
        host.0.accept(&Grant { placed: Placed { node: NodeId(2), epoch: told }, by: NodeId(1), view: 1 }),
        Acceptance::Accepted
    );
    host.1.insert(KEY, told);
    let after = view(2, &[1, 2, 3], &[]);
    for id in [3, 1, 2] {
        cluster.view(id, &after);
    }
    let Resolution::At(known) = cluster.resolve(0, 3) else { panic!("it is on node 2") };
    assert_eq!(known.placed.epoch, told);
    let released = cluster.release(2);
    cluster.event(0, 3, Event::Released(released));
    let next = cluster.grant(0, 3, 2);
    assert!(next.placed.epoch > told, "{next:?}");
    assert_eq!(cluster.call(2, &next), Acceptance::Accepted, "the host takes nothing at or below what it has released");
}

#[test]
fn who_was_joining_and_is_gone_may_have_owned_the_range_between_two_views() {
    let range = range_where(&[1, 2], 1, &[1, 2, 3], 3);
    // As node 1 sees it: node 3 joins, and two versions later it is dead, or drains.
    let mut joining = View { next_node: 4, ..View::clone(&view(1, &[1, 2], &[])) };
    joining.members.insert(NodeId(3), Member { status: Status::Joining, ..Member::default() });
    let gone = View { next_node: 4, ..View::clone(&view(3, &[1, 2], &[(3, 4_000)])) };
    let mut draining = View { next_node: 4, ..View::clone(&view(3, &[1, 2, 3], &[])) };
    draining.members.get_mut(&NodeId(3)).unwrap().draining = true;
    for later in [gone, draining] {
        let mut cluster = Cluster::new(range, 3, &[]);
        cluster.view(1, &Arc::new(joining.clone()));
        cluster.view(2, &Arc::new(joining.clone()));
        cluster.view(1, &Arc::new(joining.clone()));
        let report = Report { from: NodeId(2), range, view: 1, activations: vec![], in_transit: vec![] };
        cluster.event(0, 1, Event::Report(report));
        assert_eq!(cluster.resolve(0, 1), Resolution::Absent, "all have reported");
        // In the version between, node 3 was active: it owned the range, and placed the actor on node 2.
        let mut between = View::clone(&joining);
        (between.version, between.members.get_mut(&NodeId(3)).unwrap().status) = (2, Status::Active);
        cluster.view(2, &Arc::new(between));
        let placed = Placed { node: NodeId(2), epoch: Epoch(2 << 32) };
        assert_eq!(cluster.call(2, &Grant { placed, by: NodeId(3), view: 2 }), Acceptance::Accepted);
        let later = Arc::new(later);
        cluster.view(1, &later);
        assert_eq!(cluster.resolve(0, 1), Resolution::Wait { until: None }, "node 2 is asked again");
        cluster.view(2, &later);
        let Resolution::At(known) = cluster.resolve(0, 1) else { panic!("it is on node 2") };
        assert_eq!(known.placed, placed);
    }
}

#[test]
fn a_node_that_is_not_active_is_granted_nothing() {
    let mut cluster = Cluster::new(range_where(&[1, 2], 1, &[1, 2], 1), 2, &[1, 2]);
    let range = &mut cluster.nodes.get_mut(&1).unwrap().0;
    assert_eq!(range.grant(at(0), KEY, NodeId(50)), Resolution::Absent);
}

#[test]
fn ranges_spread_over_nodes_and_few_move_when_one_joins() {
    let (before, after) = (view(1, &[1, 2, 3], &[]), view(2, &[1, 2, 3, 4], &[]));
    let mut owned = BTreeMap::new();
    for range in (0..RANGES).map(RangeId) {
        *owned.entry(owner(range, &after).unwrap()).or_insert(0) += 1;
        if owner(range, &after) != Some(NodeId(4)) {
            assert_eq!(owner(range, &before), owner(range, &after), "only the joiner takes");
        }
    }
    assert!(owned.len() == 4 && owned.values().all(|count| *count >= 16), "{owned:?}");
}

proptest! {
    #[test]
    fn epochs_rise_over_grants_views_and_owners(steps in proptest::collection::vec((0u64..4, 0u64..1_000), 1..50)) {
        let mut last = Epoch::default();
        let mut version = 1;
        for (views, grants) in steps {
            version += views;
            for _ in 0..grants {
                let next = last.next(version);
                prop_assert!(next > last && next.0 >> 32 >= version);
                last = next;
            }
        }
    }

    #[test]
    fn every_hash_has_a_range(hash: u64) {
        prop_assert!(range_of(hash) < RangeId(RANGES));
    }
}

#[test]
fn an_entry_costs_its_key_and_sixteen_bytes() {
    assert_eq!(size_of::<Placed>(), 16);
    assert!(size_of::<Range<u64>>() <= 320, "nor do the ranges themselves cost much");
}
