//! Lost answers of the store, and random trouble for a cluster of three.

use proptest::prelude::*;

use super::*;

#[derive(Clone, Debug)]
enum Trouble {
    Run(u64),
    Pause(usize),
    Wake(usize),
    CutStore(usize),
    MendStore(usize),
    Suspect(usize, usize),
    Restart(usize),
    Double(usize),
    Leave(usize),
}

fn trouble() -> impl Strategy<Value = Trouble> {
    prop_oneof![
        4 => (50u64..3_000).prop_map(Trouble::Run),
        1 => (0usize..3).prop_map(Trouble::Pause),
        2 => (0usize..3).prop_map(Trouble::Wake),
        1 => (0usize..3).prop_map(Trouble::CutStore),
        2 => (0usize..3).prop_map(Trouble::MendStore),
        3 => (0usize..3, 0usize..3).prop_map(|(by, of)| Trouble::Suspect(by, of)),
        1 => (0usize..3).prop_map(Trouble::Restart),
        1 => (0usize..3).prop_map(Trouble::Double),
        1 => (0usize..3).prop_map(Trouble::Leave),
    ]
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 64, failure_persistence: None, ..ProptestConfig::default() })]

    /// The checks in [`World::event`] hold at every step; and when the trouble ends, a node can join.
    #[test]
    fn no_fence_outlives_a_judgement_whatever_happens(troubles in proptest::collection::vec(trouble(), 1..40)) {
        let config = Config::default();
        let mut world = World::settled(3, &config);
        let mut slots = [0, 1, 2];
        for trouble in troubles {
            match trouble {
                Trouble::Run(millis) => world.run(millis),
                Trouble::Pause(i) => world.nodes[slots[i]].paused = true,
                Trouble::Wake(i) => world.nodes[slots[i]].paused = false,
                Trouble::CutStore(i) => world.nodes[slots[i]].store_down = true,
                Trouble::MendStore(i) => world.nodes[slots[i]].store_down = false,
                Trouble::Suspect(by, of) if by != of && world.nodes[slots[of]].machine.me().is_some() => {
                    world.suspect(slots[by], slots[of]);
                }
                Trouble::Suspect(..) => {}
                Trouble::Restart(i) => {
                    // Killed, for nobody wakes it any more.
                    world.nodes[slots[i]].paused = true;
                    slots[i] = world.start(&"abc"[i..=i], &config);
                }
                Trouble::Double(i) => _ = world.start(&"abc"[i..=i], &config),
                Trouble::Leave(i) => world.event(slots[i], Event::Leave),
            }
        }
        for node in &mut world.nodes {
            node.store_down = false;
        }
        let last = world.start("z", &config);
        world.run(30_000);
        prop_assert!(world.nodes.iter().all(|node| node.paused) || world.status(last).is_some());
        let awaited = world.nodes[last].machine.awaited();
        let unreachable = world.nodes.iter().any(|n| n.paused && n.machine.me().is_some_and(|me| awaited.contains(&me)));
        prop_assert!(world.status(last) == Some(Status::Active) || unreachable);
        prop_assert_eq!(world.nodes[last].stopped, None);
    }
}

#[test]
fn a_node_that_drains_says_so_in_the_table_and_stays_active_until_it_leaves() {
    let mut world = World::settled(3, &Config::default());
    world.event(1, Event::Drain);
    world.run(3_000);
    for node in 0..3 {
        let view = world.nodes[node].view.clone().expect("it is a member");
        assert!(view.is_active(world.id(1)) && !view.is_serving(world.id(1)), "node {node} knows");
    }
    assert!(world.nodes[1].fences.last().is_some_and(|fence| *fence > world.clock(1)), "its turns go on");
    world.event(1, Event::Leave);
    world.run(1_000);
    assert_eq!(world.nodes[1].stopped, Some(StopReason::Left));
}

#[test]
fn three_votes_evict_where_three_are_asked_for_and_two_do_not() {
    let config = Config { votes: 3, ..Config::default() };
    let mut world = World::settled(5, &config);
    for voter in 0..3 {
        assert_eq!(world.status(4), Some(Status::Active), "after {voter} votes");
        world.suspect(voter, 4);
        world.run(2_000);
    }
    assert_eq!(world.status(4), Some(Status::Dead));
}

/// A node that renews for ten seconds, while `answers` says what it hears of each access to the table instead.
fn renewing(mut answers: impl FnMut(&Action, Option<Event>) -> Option<Event>) -> Option<StopReason> {
    let mut world = World::settled(1, &Config::default());
    for _ in 0..200 {
        world.now += 50;
        world.event(0, Event::Tick);
        for action in std::mem::take(&mut world.nodes[0].pending) {
            let answer = world.perform(0, &action);
            if let Some(event) = answers(&action, answer) {
                world.event(0, event);
            }
        }
        world.settle(0);
    }
    world.nodes[0].stopped
}

#[test]
fn a_renewal_that_landed_though_it_seemed_to_fail_does_not_end_the_lease() {
    let stopped = renewing(|action, answer| match action {
        Action::RenewLease { op, record, .. } if record.counter % 2 == 0 => Some(Event::StoreFailed { op: *op }),
        _ => answer,
    });
    assert_eq!(stopped, None);
}

#[test]
fn a_renewal_whose_answer_is_lost_does_not_end_the_lease() {
    let mut lost = 0;
    let stopped = renewing(|action, answer| match action {
        Action::RenewLease { record, .. } if record.counter % 4 == 0 => {
            lost += 1;
            None
        }
        _ => answer,
    });
    assert_eq!(stopped, None);
    assert!(lost > 1);
}

#[test]
fn a_lease_is_judged_by_its_holders_length_and_not_by_the_readers() {
    let long = Config { lease: Some(LeaseTimes::of(Duration::from_secs(20))), ..Config::default() };
    let mut world = World::settled(2, &Config::default());
    world.start("c", &long);
    world.run(8_000);
    assert_eq!(world.status(2), Some(Status::Active));
    world.nodes[2].paused = true;
    world.suspect(0, 2);
    world.suspect(1, 2);
    assert_eq!(world.status(2), Some(Status::Dead));
    world.run(10_000);
    assert_eq!(world.violation(), None);
}

#[test]
fn a_joiner_that_has_not_renewed_its_lease_does_not_become_active() {
    let mut world = World::settled(1, &Config::default());
    world.start("b", &Config::default());
    world.nodes[1].unrenewed = true;
    world.run(3_000);
    assert_eq!(world.status(1), Some(Status::Joining), "the others could not tell when it has ended");
    world.nodes[1].unrenewed = false;
    world.run(3_000);
    assert_eq!(world.status(1), Some(Status::Active));
}

#[test]
fn an_older_table_than_the_known_one_is_no_news() {
    let mut world = World::settled(1, &Config::default());
    let older = world.table.clone();
    world.start("b", &Config::default());
    world.run(3_000);
    let known = world.nodes[0].view.as_ref().expect("it has seen the table").version;
    assert!(older.as_ref().is_some_and(|(table, _)| table.version < known));
    let op = loop {
        world.now += 50;
        world.event(0, Event::Tick);
        let reading = world.nodes[0].pending.iter().find_map(|action| match action {
            Action::ReadTable { op } => Some(*op),
            _ => None,
        });
        match reading {
            Some(op) => break op,
            None => world.settle(0),
        }
    };
    world.nodes[0].pending.clear();
    // A replica of the store that lags behind.
    let leases = world.leases.clone();
    world.event(0, Event::TableRead { op, table: older, leases });
    assert!(world.nodes[0].pending.is_empty(), "nothing is written over what it says");
    assert_eq!(world.nodes[0].view.as_ref().map(|view| view.version), Some(known));
    world.run(3_000);
    assert_eq!([0, 1].map(|i| world.status(i)), [Some(Status::Active); 2], "and it goes on");
}

#[test]
fn a_joiner_leaves_who_has_reached_it_to_the_members_to_judge() {
    let mut world = World::settled(2, &Config::default());
    world.start("c", &Config::default());
    world.cut.insert((1, 2));
    world.run(3_000);
    world.nodes[0].store_down = true;
    world.run(8_000);
    assert_eq!(world.nodes[0].stopped, Some(StopReason::LeaseRanOut));
    assert_eq!([0, 2].map(|i| world.status(i)), [Some(Status::Active), Some(Status::Joining)]);
}

#[test]
fn kinds_that_come_and_go_while_a_node_runs_are_in_the_table() {
    let mut world = World::settled(2, &Config::default());
    let chat = KindInfo { name: "chat_room".into(), digest: "ab".into(), ..KindInfo::default() };
    world.event(1, Event::Kinds(vec![chat]));
    world.run(3_000);
    let hosts = |world: &World, node: usize| {
        let view = world.nodes[node].view.clone().expect("it is a member");
        view.hosts("chat_room").collect::<Vec<_>>()
    };
    assert_eq!((hosts(&world, 0), hosts(&world, 1)), (vec![world.id(1)], vec![world.id(1)]));
    let writes = world.writes;
    world.event(1, Event::Kinds(Vec::new()));
    world.run(3_000);
    assert_eq!((hosts(&world, 0), hosts(&world, 1)), (vec![], vec![]));
    assert!(world.writes > writes);
}
