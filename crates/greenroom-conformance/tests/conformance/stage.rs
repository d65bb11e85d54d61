//! The stage of a cluster, by way of any of its nodes: who is where, who is hot, who talks with whom, who has moved.

use std::time::Duration;

use greenroom::Builder;
use greenroom::optimiser::OptimiserMode;
use greenroom::prelude::*;
use serde_json::{Value, json};

use crate::cluster::Cluster;
use crate::scenario::{NODES, calm, rough};

/// Asks a band to play.
#[derive(Default, Actor)]
struct Fan {}

#[actor(placement = "role:fans", idle = "20s")]
impl Fan {
    pub async fn cheer(&mut self, cx: &Cx, band: String) -> Result<u64, String> {
        BandRef::of(cx, band.as_str()).play().await.map_err(|error| error.to_string())
    }

    pub async fn boo(&mut self) -> Result<(), String> {
        Err("they do not play".to_owned())
    }
}

#[derive(Default, Actor)]
struct Band {
    songs: u64,
}

#[actor(placement = "role:bands", idle = "20s")]
impl Band {
    pub async fn play(&mut self) -> u64 {
        self.songs += 1;
        self.songs
    }

    pub async fn tour(&mut self, cx: &Cx, node: String) {
        cx.migrate_to(&node).expect("it is hosted there");
    }

    async fn migrating(&mut self) -> u64 {
        self.songs
    }

    async fn migrated(&mut self, songs: u64) {
        self.songs = songs;
    }
}

fn mute(builder: Builder, name: &str) -> Builder {
    let role = if name == "a" { "fans" } else { "bands" };
    builder.register::<Fan>().register::<Band>().configure(|config| {
        config.roles = vec![role.to_owned()];
        config.optimiser.mode = OptimiserMode::Off;
    })
}

fn advised(builder: Builder, name: &str) -> Builder {
    mute(builder, name).configure(|config| config.optimiser.mode = OptimiserMode::Advise)
}

async fn look(cluster: &Cluster, at: &str) -> Value {
    cluster.node(at).expect("it was started").stage(100).await
}

fn list(value: &Value) -> &[Value] {
    value.as_array().map_or(&[], Vec::as_slice)
}

/// How many actors of `kind` the threads of all nodes have.
fn count(seen: &Value, kind: &str) -> u64 {
    let shards = list(&seen["nodes"]).iter().flat_map(|node| list(&node["shards"]));
    shards.filter_map(|shard| shard["counts"][kind].as_u64()).sum()
}

fn hot<'a>(seen: &'a Value, actor: &str) -> Vec<&'a Value> {
    list(&seen["hot"]).iter().filter(|hot| hot["actor"] == actor).collect()
}

/// Four fans cheer a band each, ten times a second, for so long; one of them boos as often.
async fn concert(cluster: &Cluster, seconds: u64) {
    let a = cluster.node("a").expect("it was started");
    for _ in 0..seconds * 10 {
        tokio::time::sleep(Duration::from_millis(100)).await;
        for fan in 0..4_u64 {
            let band = if fan < 3 { "hit" } else { "miss" };
            FanRef::of(&a, fan).cheer(band).await.expect("they play");
        }
        assert!(FanRef::of(&a, 0_u64).boo().await.is_err());
    }
}

#[test]
fn any_node_says_who_is_where_who_is_hot_and_who_talks_with_whom() {
    calm(5, advised, |cluster| async move {
        concert(&cluster, 100).await;
        for at in NODES {
            let seen = look(&cluster, at).await;
            assert_eq!((count(&seen, "fan"), count(&seen, "band")), (4, 2), "{seen}");
            let hottest = &seen["hot"][0];
            assert_eq!(hottest["actor"], "band/hit", "three of four play with it: {seen}");
            let within = |value: &Value, about: f64| {
                let value = value.as_f64().expect("a number");
                assert!((0.6 * about..1.5 * about).contains(&value), "{value} is not about {about}: {seen}");
            };
            within(&hottest["turns"], 30.0);
            let [booing] = hot(&seen, "fan/0")[..] else { panic!("{seen}") };
            within(&booing["turns"], 20.0);
            within(&booing["failed"], 10.0);
            assert_eq!((&booing["node"], &hot(&seen, "fan/1")[0]["failed"]), (&json!("a"), &json!(0.0)), "{seen}");
            assert_eq!(list(&seen["kinds"]).len(), 1, "{seen}");
            let pair = &seen["kinds"][0];
            assert_eq!(
                (&pair["from"], &pair["to"], &pair["remote_share"]),
                (&json!("fan"), &json!("band"), &json!(1.0))
            );
            within(&pair["rate"], 40.0);
            assert_eq!(list(&seen["edges"]).len(), 4, "each fan and its band: {seen}");
            for edge in list(&seen["edges"]) {
                let ends =
                    [&edge[0], &edge[1]].map(|end| &seen["hot"][end.as_u64().expect("an index") as usize]["actor"]);
                let band = if ends.contains(&&json!("fan/3")) { "band/miss" } else { "band/hit" };
                assert!(ends.contains(&&json!(band)), "{edge} is between {ends:?}");
                assert_eq!(edge[3], 2, "they are on two nodes: {seen}");
                within(&edge[2], 20.0);
            }
            let silent = (&seen["silent"], &seen["edges_left_out"], &seen["hot_left_out"]);
            assert_eq!(silent, (&json!([]), &json!(0), &json!(0)), "{seen}");
        }
    });
}

#[test]
fn where_all_have_as_much_to_do_some_who_talk_are_told_with_both_ends() {
    calm(5, advised, |cluster| async move {
        let a = cluster.node("a").expect("it was started");
        for _ in 0..20 {
            for pair in 0..80_u64 {
                FanRef::of(&a, pair).cheer(format!("of-{pair}")).await.expect("they play");
            }
            tokio::time::sleep(Duration::from_millis(500)).await;
        }
        for at in NODES {
            let seen = cluster.node(at).expect("it was started").stage(10).await;
            let (told, edges) = (list(&seen["hot"]), list(&seen["edges"]));
            assert!(told.len() == 10 && edges.len() >= 2, "half of the places are those of pairs: {seen}");
            for edge in edges {
                let ends = [&edge[0], &edge[1]].map(|end| &told[end.as_u64().expect("an index") as usize]["actor"]);
                let mut keys = ends.map(|end| end.as_str().expect("a name").replace("fan/", "band/of-"));
                keys.sort();
                assert_eq!(keys[0], keys[1], "{ends:?}");
            }
            assert_eq!(seen["edges_left_out"].as_u64().map(|left_out| left_out > 40), Some(true), "{seen}");
        }
    });
}

#[test]
fn who_has_moved_is_told_with_why_and_is_hot_where_it_is_now() {
    calm(10, advised, |cluster| async move {
        concert(&cluster, 10).await;
        let before = hot(&look(&cluster, "a").await, "band/hit")[0]["node"].clone();
        let to = if before == "b" { "c" } else { "b" };
        BandRef::of(&cluster.node("a").expect("it was started"), "hit").tour(to).await.expect("it answers");
        concert(&cluster, 10).await;
        let seen = look(&cluster, "a").await;
        let told: Vec<_> = hot(&seen, "band/hit").iter().map(|hot| &hot["node"]).collect();
        assert_eq!(told, [&json!(to)], "it is on one node: {seen}");
        let [moved] = list(&seen["moves"]) else { panic!("one move: {seen}") };
        assert_eq!((&moved["actor"], &moved["from"], &moved["to"]), (&json!("band/hit"), &before, &json!(to)));
        assert_eq!(moved["why"], "it was asked for");
        let counts = list(&seen["moved"]["counts"]);
        assert_eq!((counts.len(), counts.iter().filter_map(Value::as_u64).sum::<u64>()), (60, 1), "{seen}");
    });
}

#[test]
fn where_nothing_is_sampled_that_is_said_and_who_is_hot_is_known_all_the_same() {
    calm(5, mute, |cluster| async move {
        concert(&cluster, 30).await;
        let seen = look(&cluster, "c").await;
        assert_eq!(seen["hot"][0]["actor"], "band/hit", "{seen}");
        assert_eq!((&seen["edges"], &seen["kinds"]), (&json!([]), &json!([])), "{seen}");
        let shards = list(&seen["nodes"]).iter().flat_map(|node| list(&node["shards"]));
        assert!(shards.into_iter().all(|shard| shard["samples"] == false && shard["answers"] == true), "{seen}");
    });
}

#[test]
fn who_has_gone_is_hot_no_more() {
    calm(5, advised, |cluster| async move {
        concert(&cluster, 10).await;
        tokio::time::sleep(Duration::from_secs(60)).await;
        let seen = look(&cluster, "b").await;
        assert_eq!((&seen["hot"], count(&seen, "fan") + count(&seen, "band")), (&json!([]), 0), "{seen}");
    });
}

#[test]
fn however_many_look_shards_are_asked_once_a_second() {
    calm(5, advised, |cluster| async move {
        concert(&cluster, 5).await;
        let first = look(&cluster, "a").await;
        for _ in 0..5 {
            let a = cluster.node("a").expect("it was started");
            for fan in 10..20_u64 {
                FanRef::of(&a, fan).boo().await.expect_err("it boos");
            }
            let soon = look(&cluster, "a").await;
            assert_eq!((&first["nodes"], &first["hot"]), (&soon["nodes"], &soon["hot"]), "as it was said a moment ago");
        }
        tokio::time::sleep(Duration::from_secs(1)).await;
        assert_eq!(count(&look(&cluster, "a").await, "fan"), 14);
    });
}

#[test]
fn looking_at_the_stage_activates_nobody_whatever_the_network_does() {
    rough(20, advised, |cluster| async move {
        for round in 0..20 {
            let seen = look(&cluster, NODES[round % NODES.len()]).await;
            assert_eq!((count(&seen, "fan") + count(&seen, "band"), &seen["hot"]), (0, &json!([])), "{seen}");
            tokio::time::sleep(Duration::from_millis(300)).await;
        }
    });
}
