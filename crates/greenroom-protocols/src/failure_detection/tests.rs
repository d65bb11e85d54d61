use std::collections::BTreeSet;

use super::*;
use crate::node::{Member, Status};
use crate::time::Timestamp;

fn view(version: u64, nodes: impl IntoIterator<Item = u64>) -> Arc<View> {
    let active = || Member { status: Status::Active, ..Member::default() };
    Arc::new(View { version, members: nodes.into_iter().map(|id| (NodeId(id), active())).collect(), ..View::default() })
}

/// One detector, on node 1, in a world where some nodes answer after `delay`.
struct World {
    now: u64,
    detector: FailureDetector,
    silent: BTreeSet<NodeId>,
    /// Whom node 1 does not reach itself.
    cut: BTreeSet<NodeId>,
    delay: u64,
    answers: Vec<(u64, NodeId, u64)>,
    suspected: Vec<(u64, NodeId)>,
}

impl World {
    fn new(nodes: u64) -> Self {
        let mut world = Self {
            now: 0,
            detector: FailureDetector::new(Config::default(), NodeId(1)),
            silent: BTreeSet::new(),
            cut: BTreeSet::new(),
            delay: 10,
            answers: Vec::new(),
            suspected: Vec::new(),
        };
        world.event(Event::View(view(1, 1..=nodes)));
        world
    }

    fn event(&mut self, event: Event) {
        let mut out = Vec::new();
        self.detector.handle(Timestamp::from_nanos(self.now * 1_000_000), event, &mut out);
        for action in out {
            match action {
                Action::Probe { to, seq } if !self.silent.contains(&to) && !self.cut.contains(&to) => {
                    self.answers.push((self.now + self.delay, to, seq));
                }
                Action::ProbeVia { via, to, seq } => {
                    assert!(via != to && via != NodeId(1));
                    if !self.silent.contains(&via) && !self.silent.contains(&to) {
                        self.answers.push((self.now + 2 * self.delay, to, seq));
                    }
                }
                Action::Probe { .. } => {}
                Action::Suspect { node } => self.suspected.push((self.now, node)),
            }
        }
    }

    fn run(&mut self, millis: u64) {
        for _ in 0..millis / 10 {
            self.now += 10;
            let (due, later) = std::mem::take(&mut self.answers).into_iter().partition(|(at, ..)| *at <= self.now);
            self.answers = later;
            let due: Vec<(u64, NodeId, u64)> = due;
            for (_, node, seq) in due {
                self.event(Event::Answer { node, seq });
            }
            self.event(Event::Tick);
        }
    }
}

#[test]
fn a_killed_node_of_three_is_suspected_within_two_seconds_and_a_bit() {
    for killed_at in [3_000, 3_200, 3_490] {
        let mut world = World::new(3);
        world.run(killed_at);
        world.silent.insert(NodeId(2));
        world.run(2_100);
        let (at, node) = world.suspected[0];
        assert_eq!(node, NodeId(2));
        assert!(at - killed_at <= 2_100, "suspected after {} ms", at - killed_at);
        assert_eq!(world.suspected.len(), 1);
    }
}

#[test]
fn of_two_nodes_the_other_is_suspected_without_an_intermediary() {
    let mut world = World::new(2);
    world.silent.insert(NodeId(2));
    world.run(2_000);
    assert_eq!(world.suspected, [(1_510, NodeId(2))]);
}

#[test]
fn a_node_that_others_reach_is_not_suspected() {
    let mut world = World::new(3);
    world.cut.insert(NodeId(2));
    world.run(20_000);
    assert!(world.suspected.is_empty());
}

#[test]
fn a_slow_node_whose_answers_come_late_is_not_suspected() {
    let mut world = World::new(3);
    world.delay = 700;
    world.run(20_000);
    assert!(world.suspected.is_empty());
}

#[test]
fn suspicion_is_repeated_while_the_silence_lasts_and_ends_with_it() {
    let mut world = World::new(3);
    world.silent.insert(NodeId(3));
    world.run(6_000);
    let repeated = world.suspected.len();
    assert!(repeated >= 3, "suspected {repeated} times");
    world.silent.clear();
    world.run(10_000);
    assert!(world.suspected.len() <= repeated + 1);
}

#[test]
fn a_node_that_was_paused_accuses_nobody() {
    let mut world = World::new(3);
    world.run(1_000);
    world.answers.clear();
    world.now += 60_000;
    world.event(Event::Tick);
    world.run(5_000);
    assert!(world.suspected.is_empty());
}

#[test]
fn an_answer_to_an_old_probe_is_no_sign_of_life() {
    let mut world = World::new(3);
    world.run(2_000);
    world.silent.insert(NodeId(2));
    for _ in 0..30 {
        world.run(100);
        world.event(Event::Answer { node: NodeId(2), seq: 1 });
        world.event(Event::Answer { node: NodeId(2), seq: u64::MAX });
    }
    assert!(!world.suspected.is_empty());
}

#[test]
fn watching_ends_when_the_view_drops_the_node() {
    let mut world = World::new(3);
    world.silent.insert(NodeId(2));
    world.run(500);
    world.event(Event::View(view(2, [1, 3])));
    world.run(10_000);
    assert!(world.suspected.is_empty());
    world.event(Event::View(view(1, [1, 2, 3])));
    assert!(world.detector.watched().all(|node| node == NodeId(3)), "an older view changes nothing");
}

#[test]
fn every_node_is_watched_and_up_to_four_nodes_all_watch_each_other() {
    for nodes in 2..40u64 {
        let mut watchers = vec![0; nodes as usize + 1];
        for me in 1..=nodes {
            let mut detector = FailureDetector::new(Config::default(), NodeId(me));
            detector.handle(Timestamp::default(), Event::View(view(1, 1..=nodes)), &mut Vec::new());
            assert_eq!(detector.watched().count() as u64, 3.min(nodes - 1));
            detector.watched().for_each(|node| watchers[node.0 as usize] += 1);
        }
        assert!(watchers[1..].iter().all(|count| *count >= 1), "{nodes} nodes: {watchers:?}");
    }
}
