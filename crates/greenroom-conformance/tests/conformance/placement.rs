//! Placement and routing over several nodes: who hosts what, and how messages get there.

use std::collections::{BTreeMap, BTreeSet};

use greenroom::prelude::*;
use greenroom::{ActorId, Builder, Candidate, Placement};
use greenroom_sim::{Faults, Sim};

use crate::cluster::{Cluster, sim};
use crate::scenario::NODES;

/// An actor that says where it is, once for each placement.
macro_rules! whereabouts {
    ($name:ident, $placement:literal) => {
        #[derive(Default, Actor)]
        struct $name {
            heard: u64,
        }

        #[actor(placement = $placement)]
        impl $name {
            pub async fn place(&mut self, cx: &Cx) -> String {
                cx.node_name().to_owned()
            }

            pub async fn hear(&mut self) {
                self.heard += 1;
            }

            pub async fn heard(&self) -> u64 {
                self.heard
            }

            pub async fn go(&mut self, cx: &Cx) {
                cx.deactivate();
            }
        }
    };
}

whereabouts!(Balanced, "balanced");
whereabouts!(Anywhere, "random");
whereabouts!(Local, "local");
whereabouts!(Hashed, "hash");
whereabouts!(OnGpu, "role:gpu");
whereabouts!(OnLast, "the_last");
whereabouts!(OnlyOnA, "balanced");

/// The node whose name comes last.
struct Last;

impl Placement for Last {
    fn choose(&self, _: &ActorId, candidates: &[Candidate]) -> Option<String> {
        candidates.iter().map(|candidate| candidate.name.clone()).max()
    }
}

/// Calls down the list of keys; each link is on whatever node it is on.
#[derive(Default, Actor)]
struct Link {}

#[actor(placement = "random")]
impl Link {
    pub async fn pass(&mut self, cx: &Cx, mut rest: Vec<String>) -> Result<Vec<String>, String> {
        let Some(next) = rest.pop() else { return Ok(vec![cx.node_name().to_owned()]) };
        match LinkRef::of(cx, next).pass(rest).await {
            Ok(mut path) => {
                path.push(cx.node_name().to_owned());
                Ok(path)
            }
            Err(CallError::Actor(said)) => Err(said),
            Err(error) => Err(error.to_string()),
        }
    }
}

fn equip(builder: Builder, name: &str) -> Builder {
    let builder = builder
        .register::<Balanced>()
        .register::<Anywhere>()
        .register::<Local>()
        .register::<Hashed>()
        .register::<OnGpu>()
        .register::<OnLast>()
        .register::<Link>()
        .placement("the_last", Last);
    match name {
        "a" => builder.register::<OnlyOnA>(),
        "b" => builder.configure(|config| config.roles = vec!["gpu".into()]),
        _ => builder,
    }
}

fn within(seed: u64, scenario: impl AsyncFnOnce(Sim, [Node; 3]) + 'static) {
    sim(seed, Faults::none()).run(|sim| async move {
        let cluster = Cluster::new(&sim, equip);
        cluster.start_all(NODES).await;
        scenario(sim, cluster.three()).await;
    });
}

#[test]
fn balanced_placement_spreads_actors_over_the_nodes() {
    within(1, async |_, [a, ..]| {
        let mut places = BTreeMap::new();
        for key in 0..300 {
            *places.entry(BalancedRef::of(&a, key).place().await.unwrap()).or_insert(0) += 1;
        }
        assert_eq!(places.len(), 3, "{places:?}");
        assert!(places.values().all(|count| (60..=140).contains(count)), "{places:?}");
    });
}

#[test]
fn random_placement_uses_every_node() {
    within(2, async |_, [a, ..]| {
        let mut places = BTreeSet::new();
        for key in 0..100 {
            places.insert(AnywhereRef::of(&a, key).place().await.unwrap());
        }
        assert_eq!(places.len(), 3);
    });
}

#[test]
fn local_placement_is_where_the_first_call_comes_from() {
    within(3, async |_, nodes| {
        for (index, node) in nodes.iter().enumerate() {
            for key in 0..20 {
                let actor = LocalRef::of(node, format!("{index}-{key}"));
                assert_eq!(actor.place().await.unwrap(), node.name());
            }
        }
        let elsewhere = LocalRef::of(&nodes[1], "0-0");
        assert_eq!(elsewhere.place().await.unwrap(), "a", "it stays where it is");
    });
}

#[test]
fn hash_placement_is_the_same_whoever_calls() {
    within(4, async |_, nodes| {
        let mut places = BTreeSet::new();
        for key in 0..60 {
            let seen: BTreeSet<String> = {
                let mut seen = BTreeSet::new();
                for node in &nodes {
                    seen.insert(HashedRef::of(node, key).place().await.unwrap());
                }
                seen
            };
            assert_eq!(seen.len(), 1);
            places.extend(seen);
        }
        assert_eq!(places.len(), 3);
    });
}

#[test]
fn role_placement_keeps_to_the_nodes_with_the_role_and_one_of_ones_own_to_what_it_chooses() {
    within(5, async |_, [a, ..]| {
        for key in 0..20 {
            assert_eq!(OnGpuRef::of(&a, key).place().await.unwrap(), "b");
            assert_eq!(OnLastRef::of(&a, key).place().await.unwrap(), "c");
        }
    });
}

#[test]
fn a_kind_that_one_node_hosts_is_called_from_all() {
    within(6, async |_, nodes| {
        for node in &nodes {
            for key in 0..10 {
                assert_eq!(OnlyOnARef::of(node, key).place().await.unwrap(), "a");
            }
        }
    });
}

#[test]
fn one_way_messages_arrive_wherever_the_actor_is() {
    within(7, async |sim, nodes| {
        for key in 0..20 {
            for _ in 0..10 {
                for node in &nodes {
                    BalancedRef::of(node, key).hear().send();
                }
                tokio::time::sleep(std::time::Duration::from_millis(5)).await;
            }
        }
        tokio::time::sleep(std::time::Duration::from_secs(1)).await;
        for key in 0..20 {
            assert_eq!(BalancedRef::of(&nodes[0], key).heard().await.unwrap(), 30, "actor {key} at {:?}", sim.now());
        }
    });
}

#[test]
fn an_actor_that_has_gone_is_found_at_its_next_place() {
    within(8, async |_, nodes| {
        let refs: Vec<_> = nodes.iter().map(|node| AnywhereRef::of(node, "wanderer")).collect();
        let mut places = BTreeSet::new();
        for round in 0..30 {
            for actor in &refs {
                // Each has its own, possibly stale, idea of where the actor is.
                places.insert(actor.place().await.unwrap_or_else(|error| panic!("round {round}: {error}")));
            }
            refs[round % 3].go().await.unwrap();
            tokio::time::sleep(std::time::Duration::from_millis(50)).await;
        }
        assert_eq!(places.len(), 3, "it was everywhere once");
    });
}

#[test]
fn a_cycle_over_several_nodes_is_named() {
    within(9, async |_, [a, ..]| {
        let keys = |keys: &[&str]| keys.iter().rev().map(|key| (*key).to_owned()).collect::<Vec<_>>();
        let path = LinkRef::of(&a, "1").pass(keys(&["2", "3", "4", "5", "6"])).await.unwrap();
        assert!(path.iter().collect::<BTreeSet<_>>().len() > 1, "more than one node took part: {path:?}");
        let Err(CallError::Actor(said)) = LinkRef::of(&a, "1").pass(keys(&["2", "3", "4", "1"])).await else {
            panic!("it deadlocks")
        };
        assert!(said.contains("link/1 -> link/2 -> link/3 -> link/4 -> link/1"), "{said}");
    });
}
