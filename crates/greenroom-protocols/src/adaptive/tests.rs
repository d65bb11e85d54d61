use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use proptest::prelude::*;

use super::*;
use crate::time::Timestamp;

const EU: ClusterId = ClusterId(1);
const US: ClusterId = ClusterId(2);

fn reads(reads: u64) -> Operations {
    Operations { reads, ..Operations::default() }
}

/// Updates that nobody waits for.
fn updates(updates: u64) -> Operations {
    Operations { updates, ..Operations::default() }
}

fn confirmed(updates: u64) -> Operations {
    Operations { updates, confirms: updates, ..Operations::default() }
}

/// Two clusters, their decider, and what each of them has heard.
struct Both {
    decider: Decider,
    now: Timestamp,
    heard: BTreeMap<ClusterId, Known>,
    switches: usize,
    /// Whether nobody hears anything.
    deaf: bool,
    /// Where the one instance is.
    at: ClusterId,
}

impl Both {
    fn with(config: Config, near: Option<ClusterId>) -> Self {
        let setting = Setting { clusters: BTreeSet::from([EU, US]), near };
        let now = Timestamp::from_nanos(0);
        let decider = Decider::new(7, config, setting, Known::default(), now);
        let heard = [EU, US].map(|cluster| (cluster, Known::default())).into();
        Self { decider, now, heard, switches: 0, deaf: false, at: EU }
    }

    fn new() -> Self {
        Self::with(Config::default(), None)
    }

    fn mode(&self) -> Mode {
        self.decider.known().mode
    }

    fn tell(&mut self, event: Event) {
        let mut out = Vec::new();
        self.decider.handle(self.now, Duration::ZERO, event, &mut out);
        for action in out {
            match action {
                Action::Switched(_) => self.switches += 1,
                Action::Announce(..) if self.deaf => {}
                Action::Announce(to, known) => {
                    assert!(self.heard[&to].epoch <= known.epoch, "epochs only rise");
                    let (epoch, mode) = (known.epoch, known.mode);
                    self.heard.insert(to, known);
                    if mode == (Mode::Single { home: Some(to) }) {
                        self.at = to;
                        self.tell(Event::Ready { at: to, epoch });
                    }
                }
            }
        }
    }

    /// One second of what each cluster asks, told in the order of `first`.
    fn second(&mut self, eu: Operations, us: Operations, first: ClusterId) {
        let second = if first == EU { US } else { EU };
        self.now = self.now + Duration::from_secs(1);
        let by = BTreeMap::from([(EU, eu), (US, us)]);
        if self.heard[&EU].mode == Mode::PerCluster {
            for at in [first, second] {
                let known = self.heard[&at].clone();
                self.tell(Event::Counted { at, known, by: BTreeMap::from([(at, by[&at])]) });
            }
        } else {
            let known = self.heard[&self.at].clone();
            self.tell(Event::Counted { at: self.at, known, by });
        }
        self.tell(Event::Tick);
    }

    fn seconds(&mut self, seconds: u64, eu: Operations, us: Operations) {
        for _ in 0..seconds {
            self.second(eu, us, EU);
        }
    }
}

#[test]
fn reads_in_all_clusters_make_an_instance_in_each_and_one_clusters_updates_make_one() {
    let mut both = Both::new();
    both.seconds(29, reads(10), reads(10));
    assert_eq!(both.mode(), Mode::default(), "a window has not passed");
    both.seconds(2, reads(10), reads(10));
    assert_eq!(both.mode(), Mode::PerCluster);
    assert_eq!(both.heard[&US].mode, Mode::PerCluster);
    let why = both.decider.known().why.clone().expect("it has decided");
    assert_eq!(why.counted[&US], reads(155), "what is older than a window counts half");
    assert_eq!((why.single, why.per_cluster), (Trips::of(155), Trips(0)));
    both.seconds(58, reads(0), confirmed(90));
    assert_eq!(both.mode(), Mode::PerCluster, "it has not been so for long enough");
    both.seconds(2, reads(0), confirmed(90));
    assert_eq!(both.mode(), Mode::Single { home: Some(US) });
    assert_eq!(both.decider.known().epoch.number, 2);
}

#[test]
fn one_instance_stays_where_what_is_asked_elsewhere_goes_to_the_store_anyway() {
    let mut both = Both::with(Config::default(), Some(EU));
    both.seconds(300, reads(1), confirmed(10));
    assert_eq!((both.mode(), both.switches), (Mode::default(), 0));
}

#[test]
fn one_instance_goes_to_the_cluster_that_calls_it_where_that_alone_is_cheapest() {
    let mut both = Both::new();
    both.seconds(10, reads(3), reads(0));
    both.seconds(60, reads(1), updates(10));
    assert_eq!((both.mode(), both.at, both.switches), (Mode::Single { home: Some(US) }, US, 1));
    let Why { single, per_cluster, elsewhere, .. } = both.decider.known().why.clone().expect("it has decided");
    assert!(elsewhere.is_some_and(|there| there < per_cluster && per_cluster < single), "{elsewhere:?}, {single:?}");
    both.seconds(300, reads(1), updates(10));
    assert_eq!(both.switches, 1, "there it stays");
    both.seconds(300, updates(10), reads(1));
    assert_eq!((both.mode(), both.at), (Mode::Single { home: Some(EU) }, EU), "and it may come back");
}

#[test]
fn one_instance_stays_that_is_called_from_both_alike_and_costs_less_than_two() {
    let mut both = Both::new();
    both.seconds(600, Operations { reads: 1, ..updates(40) }, Operations { reads: 1, ..updates(40) });
    let many = Setting { clusters: (1..=9).map(ClusterId).collect(), near: None };
    let counted = BTreeMap::from([(EU, updates(40)), (US, updates(40))]);
    assert_eq!(Costs::alone(&counted, EU, &many), Costs::alone(&counted, US, &many));
    assert!(both.switches <= 1, "{}", both.switches);
}

#[test]
fn of_two_switches_that_pay_the_one_is_made_that_saves_more() {
    let mut both = Both::new();
    both.seconds(10, reads(1), reads(0));
    both.seconds(60, reads(1), reads(40));
    assert_eq!(
        (both.mode(), both.switches),
        (Mode::PerCluster, 1),
        "reads are near everywhere, not in one cluster alone"
    );
}

#[test]
fn little_is_no_reason() {
    let mut both = Both::new();
    for _ in 0..20 {
        both.seconds(29, reads(0), reads(0));
        both.seconds(1, reads(0), reads(5));
    }
    assert_eq!(both.switches, 0);
}

#[test]
fn the_home_to_be_is_told_before_the_others() {
    let mut both = Both::new();
    both.seconds(31, reads(10), reads(10));
    assert_eq!(both.mode(), Mode::PerCluster);
    both.deaf = true;
    both.seconds(62, reads(0), confirmed(90));
    let (known, mut out) = (both.decider.known().clone(), Vec::new());
    assert_eq!(known.mode, Mode::Single { home: Some(US) });
    both.decider.handle(both.now + Duration::from_secs(1), Duration::ZERO, Event::Tick, &mut out);
    assert_eq!(out, [Action::Announce(US, known.clone())], "again, and to nobody else");
    out.clear();
    both.decider.handle(both.now, Duration::ZERO, Event::Ready { at: EU, epoch: known.epoch }, &mut out);
    assert_eq!(out, [], "that is not the home");
    both.decider.handle(both.now, Duration::ZERO, Event::Ready { at: US, epoch: known.epoch }, &mut out);
    assert_eq!(out, [EU, US].map(|cluster| Action::Announce(cluster, known.clone())));
    assert_eq!(both.decider.deadline(), None);
}

#[test]
fn a_home_that_is_lost_does_not_keep_the_others_waiting() {
    let mut both = Both::new();
    both.seconds(31, reads(10), reads(10));
    both.deaf = true;
    both.seconds(60, reads(0), confirmed(90));
    both.deaf = false;
    both.heard.remove(&US);
    let (mut out, late) = (Vec::new(), both.now + Config::default().prepare_for);
    both.decider.handle(late, Duration::ZERO, Event::Tick, &mut out);
    assert!(matches!(out[..], [Action::Announce(EU, _), Action::Announce(US, _)]), "{out:?}");
}

#[test]
fn a_new_decider_goes_on_from_the_mode_that_it_is_told() {
    let mut both = Both::new();
    both.seconds(31, reads(10), reads(10));
    let (before, setting) = (both.decider.known().clone(), both.decider.setting().clone());
    both.decider = Decider::new(3, Config::default(), setting, Known::default(), both.now);
    both.second(reads(1), reads(1), US);
    assert_eq!(both.decider.known(), &before);
    both.seconds(62, reads(0), confirmed(90));
    assert_eq!(both.decider.known().epoch, Epoch { number: 2, by: 3 });
}

#[test]
fn who_knows_an_older_mode_hears_of_the_newer_one() {
    let mut both = Both::new();
    both.seconds(31, reads(10), reads(10));
    both.heard.insert(US, Known::default());
    both.second(reads(1), reads(1), EU);
    assert_eq!(both.heard[&US].mode, Mode::PerCluster);
}

#[test]
fn all_are_told_again_now_and_then() {
    let mut both = Both::new();
    both.seconds(31, reads(10), reads(10));
    both.heard.insert(EU, Known::default());
    for _ in 0..61 {
        both.now = both.now + Duration::from_secs(1);
        let known = both.decider.known().clone();
        both.tell(Event::Counted { at: US, known, by: BTreeMap::from([(US, reads(10)), (EU, reads(10))]) });
    }
    assert_eq!(both.heard[&EU].mode, Mode::PerCluster, "though nothing has come from there");
}

#[test]
fn nothing_is_decided_while_a_cluster_is_silent_nor_by_what_was_counted_then() {
    let mut both = Both::new();
    both.seconds(31, reads(10), reads(10));
    both.tell(Event::Apart(true));
    both.seconds(200, confirmed(10), reads(0));
    assert_eq!((both.mode(), both.switches), (Mode::PerCluster, 1));
    both.tell(Event::Apart(false));
    both.seconds(100, reads(10), reads(10));
    assert_eq!((both.mode(), both.switches), (Mode::PerCluster, 1), "all is as it was");
}

#[test]
fn what_is_told_of_strangers_does_not_count() {
    let mut both = Both::new();
    for _ in 0..100 {
        let by = (100..200).map(|stranger| (ClusterId(stranger), reads(100))).collect();
        both.now = both.now + Duration::from_secs(1);
        both.tell(Event::Counted { at: EU, known: Known::default(), by });
    }
    assert!(both.decider.counted().is_empty() && both.switches == 0);
}

fn operations() -> impl Strategy<Value = Operations> {
    (0..50_u64, 0..50_u64, 0..50_u64, 0..50_u64).prop_map(|(reads, updates, confirms, refreshes)| Operations {
        reads,
        updates: updates + confirms,
        confirms,
        refreshes,
    })
}

proptest! {
    #[test]
    fn a_steady_mix_switches_at_most_once_or_twice_to_move_the_instance(
        eu in operations(),
        us in operations(),
        near in proptest::option::of(prop_oneof![Just(EU), Just(US)]),
        orders in proptest::collection::vec(any::<bool>(), 600),
    ) {
        let mut both = Both::with(Config::default(), near);
        for order in orders {
            both.second(eu, us, if order { EU } else { US });
        }
        prop_assert!(both.switches <= 2);
        if both.switches == 2 {
            prop_assert_eq!(both.mode(), Mode::Single { home: Some(US) }, "from its first home to the other one");
        }
    }

    #[test]
    fn mixes_that_alternate_switch_no_more_often_than_the_dwell_time_allows(
        mixes in proptest::collection::vec((operations(), operations(), 1..20_u64), 1..60),
        near in proptest::option::of(prop_oneof![Just(EU), Just(US)]),
    ) {
        let mut both = Both::with(Config::default(), near);
        for (eu, us, seconds) in mixes {
            both.seconds(seconds, eu, us);
        }
        let dwells = both.now.as_nanos() / Config::default().dwell.as_nanos() as u64;
        prop_assert!(both.switches as u64 <= dwells + 1);
    }

    #[test]
    fn mixes_that_alternate_quicker_than_the_window_count_as_their_mean(seconds in 1..6_u64, order in any::<bool>()) {
        let mut both = Both::new();
        for at in 0..100 {
            let mixes = [(reads(10), reads(10)), (confirmed(3), reads(0))];
            let (eu, us) = mixes[(at + usize::from(order)) % 2];
            both.seconds(seconds, eu, us);
        }
        prop_assert!(both.switches <= 1, "{} switches", both.switches);
    }

    #[test]
    fn a_switch_costs_less_than_what_it_ends(eu in operations(), us in operations(), home in prop_oneof![Just(EU), Just(US)]) {
        let counted = BTreeMap::from([(EU, eu), (US, us)]);
        let setting = Setting { clusters: BTreeSet::from([EU, US]), near: Some(EU) };
        let costs = Costs::of(&counted, home, &setting, Trips(250));
        let alone = BTreeMap::from([(home, counted[&home])]);
        prop_assert_eq!(Costs::of(&alone, home, &setting, Trips(250)).single, Trips(0), "the home's cost nothing");
        prop_assert!(costs.single >= Trips::of(counted.iter().filter(|(at, _)| **at != home).map(|(_, asked)| asked.calls()).sum()));
        let (best, least) = Costs::best(&counted, &setting, Trips(250)).expect("there are clusters");
        let gain = |costs: Costs| i128::from(costs.single.0) - i128::from(costs.per_cluster.0);
        prop_assert!(gain(least) <= gain(costs), "{:?} is best", best);
    }
}
