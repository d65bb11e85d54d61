//! Where a pid leads.

use std::time::Duration;

use greenroom::prelude::*;

use super::{BossRef, Worker, WorkerRef, equip, is_dead, until};
use crate::scenario::{calm, rough};

#[test]
fn a_spawned_actor_answers_from_every_node_as_a_virtual_one_does() {
    calm(20, equip, |cluster| async move {
        let nodes = cluster.three();
        let pid = BossRef::of(&nodes[0], "boss").hire().await.expect("nothing is wrong");
        for (at, node) in nodes.iter().enumerate() {
            assert_eq!(pid.bind(node).add(2).await, Ok(2 * at as u64 + 2));
            assert_eq!(pid.bind(node).node().await, Ok("a".to_owned()));
        }
    });
}

#[test]
fn a_pid_travels_in_messages_and_is_called_by_who_gets_it() {
    calm(20, equip, |cluster| async move {
        let [a, b, c] = cluster.three();
        let one = a.spawn(Worker { count: 0 }).await.expect("it runs");
        let other = BossRef::of(&b, "boss").hire().await.expect("nothing is wrong");
        assert_eq!(one.bind(&c).ask(other.clone()).await, Ok(1));
        assert_eq!(one.ask(one.clone()).await.map_err(|error| error.to_string().contains("deadlock")), Err(true));
        assert_eq!(other.bind(&a).count().await, Ok(1));
    });
}

#[test]
fn two_spawned_actors_share_nothing() {
    calm(10, equip, |cluster| async move {
        let [a, ..] = cluster.three();
        let boss = BossRef::of(&a, "boss");
        let (one, other) = (boss.hire().await.expect("nothing is wrong"), boss.hire().await.expect("nothing is wrong"));
        assert_ne!(one, other);
        let (one, other) = (one.bind(&a), other.bind(&a));
        assert_eq!((one.add(1).await, other.add(5).await, one.count().await), (Ok(1), Ok(5), Ok(1)));
    });
}

#[test]
fn an_actor_is_spawned_on_the_node_that_was_chosen() {
    calm(20, equip, |cluster| async move {
        let [a, ..] = cluster.three();
        let pid = BossRef::of(&a, "boss").hire_on("c", 40).await.expect("nothing is wrong").bind(&a);
        assert_eq!((pid.node().await, pid.add(2).await), (Ok("c".to_owned()), Ok(42)));
        let root = a.spawn_on::<Worker>("b", 7).await.expect("nothing is wrong");
        assert_eq!((root.node().await, root.count().await), (Ok("b".to_owned()), Ok(7)));
        let nowhere = BossRef::of(&a, "boss").hire_on("d", 1).await.unwrap_err().to_string();
        assert!(nowhere.contains("no node called \"d\""), "{nowhere}");
    });
}

#[test]
fn a_pid_of_an_earlier_incarnation_of_its_node_is_a_dead_letter_at_once() {
    calm(20, equip, |cluster| async move {
        let [a, b, _] = cluster.three();
        let pid = BossRef::of(&b, "boss").hire().await.expect("nothing is wrong").bind(&a);
        assert_eq!(pid.add(1).await, Ok(1));
        cluster.sim.crash("b");
        cluster.settled(&["a", "c"]).await;
        cluster.start("b").await;
        cluster.settled(&["a", "b", "c"]).await;
        let began = cluster.sim.now();
        assert!(is_dead(pid.add(1).await));
        let b = cluster.node("b").expect("it was started");
        assert!(is_dead(pid.bind(&b).add(1).await), "the new incarnation knows that it is not meant");
        assert!(cluster.sim.now() - began < Duration::from_secs(1), "nobody waited for a deadline");
    });
}

#[test]
fn keys_of_users_never_name_a_spawned_actor() {
    calm(10, equip, |cluster| async move {
        let [a, b, _] = cluster.three();
        let pid = BossRef::of(&a, "boss").hire().await.expect("nothing is wrong");
        let made_up = [pid.key().as_str(), "~", "~1.2.3.4", "~~", "~anything"];
        for node in [&a, &b] {
            for key in made_up {
                let forged = WorkerRef::of(node, key);
                assert!(matches!(forged.add(1).await, Err(CallError::Refused(Refusal::InvalidKey { .. }))), "{key}");
                assert!(matches!(forged.add(1).try_send(), Ok(()) | Err(Refusal::InvalidKey { .. })), "{key}");
                let virtual_one = BossRef::of(node, key).epoch().await;
                assert!(matches!(virtual_one, Err(CallError::Refused(Refusal::InvalidKey { .. }))), "{key}");
            }
        }
        assert_eq!(pid.bind(&b).count().await, Ok(0), "none of it arrived");
    });
}

#[test]
fn a_pid_under_another_kind_is_a_dead_letter() {
    calm(10, equip, |cluster| async move {
        let [a, ..] = cluster.three();
        let pid = BossRef::of(&a, "boss").hire().await.expect("nothing is wrong");
        let text = serde_json::to_string(&pid).expect("a pid is plain data");
        let boss: BossRef = serde_json::from_str(&text).expect("a reference is plain data");
        assert!(is_dead(boss.bind(&a).epoch().await));
        assert!(serde_json::from_str::<Pid<Worker>>("\"boss\"").is_err(), "a virtual actor's key is no pid");
    });
}

#[test]
fn one_way_messages_to_an_ended_actor_are_dead_letters_that_can_be_seen() {
    calm(10, equip, |cluster| async move {
        let [a, b, _] = cluster.three();
        let mut letters = a.dead_letters();
        let pid = BossRef::of(&a, "boss").hire().await.expect("nothing is wrong").bind(&a);
        pid.stop().await.expect("it runs");
        pid.add(1).send();
        pid.bind(&b).work(1).send();
        let mut methods = Vec::new();
        for _ in 0..2 {
            let letter = letters.next().await.expect("the node runs");
            assert_eq!((&letter.to, letters.dropped()), (pid.id(), 0));
            assert!(matches!(letter.why, Refusal::DeadLetter { .. }), "{letter:?}");
            methods.push(letter.method);
        }
        methods.sort();
        assert_eq!(methods, ["add", "work"]);
    });
}

#[test]
fn in_a_rough_world_a_spawned_actor_answers_or_is_dead_and_never_anew() {
    rough(20, equip, |cluster| async move {
        let Some(a) = cluster.node("a") else { return };
        let Ok(pid) = a.spawn(Worker { count: 0 }).await else { return };
        let (mut acknowledged, mut tried) = (0, 0);
        for round in 0..60 {
            let Some(node) = cluster.node(["a", "b", "c"][round % 3]) else { continue };
            tried += 1;
            match pid.bind(&node).add(1).by(Duration::from_secs(2)).await {
                Ok(count) => {
                    assert!(count > acknowledged && count <= tried, "{acknowledged} < {count} <= {tried}");
                    acknowledged = count;
                }
                Err(CallError::Refused(Refusal::DeadLetter { .. })) => {
                    until("its node has gone", || async { cluster.node("a").is_none_or(|a| a.is_stopped()) }).await;
                    return;
                }
                Err(_) => {}
            }
        }
    });
}
