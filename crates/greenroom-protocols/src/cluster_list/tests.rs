use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use super::*;
use crate::gsi::{Acknowledged, Change, ChangeRefused};
use crate::time::Timestamp;

const LOST_AFTER: Duration = Duration::from_secs(20);

fn at(secs: u64) -> Timestamp {
    // Past the first half of `lost_after`, for which a node counts from its start.
    Timestamp::from_nanos((100 + secs) * 1_000_000_000)
}

fn ids(clusters: &[u16]) -> BTreeSet<ClusterId> {
    clusters.iter().copied().map(ClusterId).collect()
}

fn given(clusters: &[u16]) -> ClusterList {
    ClusterList::given(Configuration::new(ids(clusters)))
}

fn keeper(me: u16, list: ClusterList) -> ListKeeper {
    let config = Config { lost_after: LOST_AFTER, checks: Checks::default() };
    ListKeeper::new(ClusterId(me), list, false, config, Timestamp::from_nanos(0))
}

fn handle(keeper: &mut ListKeeper, secs: u64, event: Event) -> Vec<Action> {
    let mut out = Vec::new();
    keeper.handle(at(secs), event, &mut out);
    out
}

/// The clusters `answering` answer by list `number`, which follows `base`.
fn answered(keeper: &mut ListKeeper, secs: u64, answering: &[u16], (number, base): (u64, u64)) {
    for cluster in ids(answering) {
        let (number, base) = (ConfigEpoch(number), ConfigEpoch(base));
        handle(keeper, secs, Event::Answered(Answer { cluster, asked: at(secs), number, base }));
    }
}

/// The list of five after `removed` are lost, made while these do not answer.
fn without(keeper: &ListKeeper, removed: &[u16]) -> Result<ClusterList, StepRefused> {
    let number = ConfigEpoch(keeper.list().number().0 + 1);
    keeper.step(&ListStep::Lose(ids(removed)), number, &BTreeMap::new(), &ids(removed))
}

#[test]
fn a_set_is_removed_in_one_step_and_is_in_force_by_a_majority_of_the_list_before() {
    let mut a = keeper(1, given(&[1, 2, 3, 4, 5]));
    let two = without(&a, &[4, 5]).expect("three of five answer");
    handle(&mut a, 0, Event::Accepted(two.clone()));
    handle(&mut a, 0, Event::Acknowledged(ClusterId(1), ConfigEpoch(2)));
    assert_eq!(handle(&mut a, 0, Event::Acknowledged(ClusterId(2), ConfigEpoch(2))), []);
    assert!(!a.is_in_force() && a.due_step(at(1000), Duration::ZERO).is_none(), "two of five are too few");
    let refused = without(&a, &[3]).expect_err("no step is taken from a list that is not in force");
    let StepRefused::NotInForce { number: 2, votes } = refused else { panic!("{refused}") };
    assert_eq!((votes.given.clone(), votes.missing().collect(), votes.needed()), (ids(&[1, 2]), ids(&[3, 4, 5]), 3));
    let out = handle(&mut a, 10, Event::Acknowledged(ClusterId(3), ConfigEpoch(2)));
    assert_eq!(out, [Action::InForce(ConfigEpoch(2))]);
    assert!(a.due_step(at(30), Duration::ZERO).is_none(), "its time counts from then");
    assert!(a.due_step(at(31), Duration::from_secs(60)).is_none(), "another cluster waits for longer");
    assert_eq!(a.due_step(at(31), Duration::ZERO), Some(ListStep::DropLost));
    let three = a.step(&ListStep::DropLost, ConfigEpoch(3), &BTreeMap::new(), &BTreeSet::new()).expect("it is due");
    assert_eq!(three.configuration.clusters.into_keys().collect::<BTreeSet<_>>(), ids(&[1, 2, 3]));
}

#[test]
fn of_two_rival_lists_a_cluster_acknowledges_the_first() {
    let a = keeper(1, given(&[1, 2, 3, 4, 5]));
    let one = without(&a, &[4, 5]).expect("three of five answer");
    let mut rival =
        a.step(&ListStep::Lose(ids(&[1, 2])), ConfigEpoch(194), &BTreeMap::new(), &ids(&[1, 2])).expect("so do these");
    let mut c = keeper(3, given(&[1, 2, 3, 4, 5]));
    handle(&mut c, 0, Event::Tick);
    assert_eq!(handle(&mut c, 0, Event::Heard { list: one.clone(), in_force: false }), [Action::Accept(one.clone())]);
    handle(&mut c, 0, Event::Accepted(one.clone()));
    assert_eq!(handle(&mut c, 1, Event::Heard { list: rival.clone(), in_force: false }), []);
    let told = handle(&mut c, 1, Event::Heard { list: rival.clone(), in_force: true });
    assert_eq!(told, [Action::Accept(rival.clone())], "the other one never comes into force");
    // What follows the rival says the same.
    rival.before = Some(ListBefore { number: rival.number(), voters: ids(&[3, 4, 5]) });
    rival.configuration.epoch.0 += 1;
    assert_eq!(handle(&mut c, 2, Event::Heard { list: rival.clone(), in_force: false }), [Action::Accept(rival)]);
}

#[test]
fn a_cluster_is_confirmed_by_a_majority_of_its_newest_list_and_of_the_one_in_force() {
    let mut a = keeper(1, given(&[1, 2, 3, 4, 5]));
    assert_eq!(handle(&mut a, 0, Event::Tick), [Action::Fence(true)]);
    answered(&mut a, 1, &[2], (1, 0));
    assert!(a.is_fenced(), "two of five");
    answered(&mut a, 2, &[3], (1, 0));
    assert!(!a.is_fenced());
    let two = without(&a, &[4, 5]).expect("three of five answer");
    handle(&mut a, 3, Event::Accepted(two));
    assert_eq!(handle(&mut a, 11, Event::Tick), [Action::Fence(true)], "only the third one's answer counts still");
    answered(&mut a, 12, &[2], (2, 1));
    assert!(a.is_fenced(), "two of three, of a list that is not in force: two of five");
    let two = a.list().clone();
    handle(&mut a, 12, Event::Heard { list: two, in_force: true });
    assert!(!a.is_fenced());
}

#[test]
fn an_answer_by_a_later_list_does_not_count() {
    let mut c = keeper(3, given(&[1, 2, 3, 4, 5]));
    answered(&mut c, 0, &[1, 2], (2, 1));
    assert!(c.is_fenced(), "it is to adopt that list first");
    answered(&mut c, 1, &[4, 5], (1, 0));
    assert!(!c.is_fenced());
}

#[test]
fn a_read_of_the_store_breaks_a_tie_and_nothing_else() {
    for (clusters, fenced) in [(&[1, 2][..], false), (&[1, 2, 3], true), (&[1, 2, 3, 4, 5], true)] {
        let mut a = keeper(1, given(clusters));
        handle(&mut a, 0, Event::Tick);
        handle(&mut a, 0, Event::StoreRead { asked: at(0), number: ConfigEpoch(1) });
        assert_eq!(a.is_fenced(), fenced, "alone with the store, of {clusters:?}");
    }
    let mut a = keeper(1, given(&[1, 2]));
    handle(&mut a, 0, Event::StoreRead { asked: at(0), number: ConfigEpoch(7) });
    assert!(a.is_fenced(), "it is to adopt that list first");
}

#[test]
fn a_removal_that_cannot_come_into_force_is_refused_and_vouching_takes_votes_away() {
    let mut a = keeper(1, given(&[1, 2, 3]));
    let refused = without(&a, &[2, 3]).expect_err("one of three");
    let StepRefused::TooFew(votes) = refused else { panic!("{refused}") };
    assert_eq!((votes.given.clone(), votes.needed()), (ids(&[1]), 2));
    let vouch = ListStep::Vouch(ids(&[2, 3]));
    let two = a.step(&vouch, ConfigEpoch(2), &BTreeMap::new(), &ids(&[2, 3])).expect("they do not run");
    assert_eq!(two.configuration.clusters.keys().copied().collect::<BTreeSet<_>>(), ids(&[1]), "they leave at once");
    handle(&mut a, 0, Event::Accepted(two));
    let out = handle(&mut a, 0, Event::Acknowledged(ClusterId(1), ConfigEpoch(2)));
    assert_eq!((out, a.is_fenced()), (vec![Action::InForce(ConfigEpoch(2))], false));
}

#[test]
fn two_that_are_lost_do_not_keep_each_other_in_the_list() {
    let a = keeper(1, given(&[1, 2, 3, 4, 5]));
    assert!(without(&a, &[4, 5]).is_ok() && without(&a, &[4]).is_ok() && without(&a, &[5]).is_ok());
    let said =
        BTreeMap::from([1, 2, 3].map(|id| (ClusterId(id), Acknowledged { epoch: ConfigEpoch(1), empty: false })));
    let drained = a.step(&ListStep::Change(Change::Drain(ClusterId(1))), ConfigEpoch(2), &said, &ids(&[4, 5]));
    let behind = ChangeRefused::Unacknowledged { cluster: 4, epoch: 1 };
    assert_eq!(drained, Err(behind.into()), "other steps wait for all members");
}

#[test]
fn vouching_lets_a_list_go_on_whose_voters_are_gone() {
    let mut a = keeper(1, given(&[1, 2, 3, 4, 5]));
    let two = without(&a, &[4, 5]).expect("three of five answer");
    handle(&mut a, 0, Event::Accepted(two));
    handle(&mut a, 0, Event::Acknowledged(ClusterId(1), ConfigEpoch(2)));
    let vouch = |clusters: &[u16]| ListStep::Vouch(ids(clusters));
    let step = |a: &ListKeeper, step| a.step(&step, ConfigEpoch(3), &BTreeMap::new(), &BTreeSet::new());
    assert!(step(&a, vouch(&[3, 4, 5])).is_err(), "1 of the two that are left");
    handle(&mut a, 0, Event::Acknowledged(ClusterId(2), ConfigEpoch(2)));
    let three = step(&a, vouch(&[3, 4, 5])).expect("both of the two that are left");
    assert_eq!(three.before.expect("it follows one").voters, ids(&[1, 2]));
}

/// The clusters that have acknowledged the list with this number.
fn said(number: u64, clusters: &[u16]) -> BTreeMap<ClusterId, Acknowledged> {
    let said = Acknowledged { epoch: ConfigEpoch(number), empty: false };
    ids(clusters).into_iter().map(|cluster| (cluster, said)).collect()
}

#[test]
fn a_cluster_that_took_a_rival_with_a_higher_number_adopts_the_list_in_force_under_a_number_above_it() {
    let one = given(&[1, 2, 3]);
    let add = |keeper: &ListKeeper, cluster, number| {
        let step = ListStep::Change(Change::Add(ClusterId(cluster)));
        keeper.step(&step, ConfigEpoch(number), &said(1, &[1, 2, 3]), &BTreeSet::new()).expect("all work by the list")
    };
    let (mut a, mut c) = (keeper(1, one.clone()), keeper(3, one));
    let (two, rival) = (add(&a, 7, 2), add(&c, 8, 194));
    handle(&mut a, 0, Event::Accepted(two.clone()));
    handle(&mut c, 0, Event::Accepted(rival.clone()));
    assert_eq!(handle(&mut a, 0, Event::Heard { list: rival, in_force: false }), []);
    assert_eq!(a.due_step(at(0), Duration::ZERO), None, "the rival may come into force still");
    for cluster in [1, 2] {
        handle(&mut a, 0, Event::Acknowledged(ClusterId(cluster), ConfigEpoch(2)));
    }
    assert_eq!(handle(&mut c, 0, Event::Heard { list: two, in_force: true }), [], "numbers never fall");
    let drain = ListStep::Change(Change::Drain(ClusterId(1)));
    let acknowledged = [said(2, &[1, 2]), said(194, &[3])].into_iter().flatten().collect();
    let drained = a.step(&drain, ConfigEpoch(3), &acknowledged, &BTreeSet::new());
    let behind = ChangeRefused::Unacknowledged { cluster: 3, epoch: 2 };
    assert_eq!(drained, Err(behind.into()), "a rival is another list, whatever its number is");
    assert_eq!(a.due_step(at(0), Duration::ZERO), Some(ListStep::Renumber));
    let number = ConfigEpoch(a.highest_number().0 + 1);
    let three = a.step(&ListStep::Renumber, number, &BTreeMap::new(), &BTreeSet::new()).expect("it is outnumbered");
    assert_eq!(three.configuration.clusters, a.list().configuration.clusters);
    assert_eq!(
        handle(&mut c, 1, Event::Heard { list: three.clone(), in_force: false }),
        [Action::Accept(three.clone())]
    );
    handle(&mut a, 1, Event::Accepted(three));
    assert_eq!(a.outnumbered_by(), None, "once is enough");
}

#[test]
fn a_node_hears_of_a_rival_from_another_node_of_its_cluster() {
    let mut a = keeper(1, given(&[1, 2, 3]));
    handle(&mut a, 0, Event::RivalHeard(ConfigEpoch(194)));
    assert_eq!(a.outnumbered_by(), Some(ConfigEpoch(194)));
    let refused = a.step(&ListStep::Renumber, ConfigEpoch(195), &BTreeMap::new(), &ids(&[2, 3]));
    assert!(matches!(refused, Err(StepRefused::TooFew(_))), "one of three answers: {refused:?}");
}

#[test]
fn a_minority_makes_no_list_that_would_bind_its_votes() {
    let a = keeper(1, given(&[1, 2, 3]));
    let add = |silent: &[u16]| {
        a.step(&ListStep::Change(Change::Add(ClusterId(4))), ConfigEpoch(2), &said(1, &[1, 2, 3]), &ids(silent))
    };
    assert!(matches!(add(&[2, 3]), Err(StepRefused::TooFew(_))));
    assert!(add(&[3]).is_ok());
}
