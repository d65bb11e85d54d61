//! States of two versions of a program, side by side in one cluster.

use std::time::Duration;

use greenroom::prelude::*;
use greenroom::state::{Old, Older, Written};
use greenroom::{Builder, Refusal};
use serde::{Deserialize, Serialize};

use crate::cluster::Cluster;
use crate::scenario::calm_over;

/// The first version: cents.
#[derive(Default, Serialize, Deserialize, Actor)]
struct TillV1 {
    cents: u64,
}

#[actor(kind = "till", persistent)]
impl TillV1 {
    pub async fn pay(&mut self, cx: &Cx, cents: u64) -> Result<(u64, String), StateError> {
        self.cents += cents;
        cx.save(self).await?;
        Ok((self.cents, cx.node_name().to_owned()))
    }
}

/// The second: whole coins and the rest, and it can write the first.
#[derive(Default, Serialize, Deserialize, Actor)]
struct TillV2 {
    coins: u64,
    rest: u64,
}

#[actor(kind = "till", persistent, version = 2, writes = 1)]
impl TillV2 {
    pub async fn pay(&mut self, cx: &Cx, cents: u64) -> Result<(u64, String), StateError> {
        let all = self.coins * 100 + self.rest + cents;
        (self.coins, self.rest) = (all / 100, all % 100);
        cx.save(self).await?;
        Ok((all, cx.node_name().to_owned()))
    }

    fn migrate(old: Old<'_>) -> Result<Self, String> {
        let cents = old.read::<TillV1>()?.cents;
        Ok(Self { coins: cents / 100, rest: cents % 100 })
    }

    fn write_older(&self, older: Older) -> Result<Written, String> {
        older.write(&TillV1 { cents: self.coins * 100 + self.rest })
    }
}

/// The second version of a field's type, which does not say how the first is written.
#[derive(Default, Serialize, Deserialize)]
struct Stamps {
    all: u64,
}

impl State for Stamps {
    const VERSION: u8 = 2;
}

#[derive(Default, Serialize, Deserialize)]
struct StampsV1 {
    all: u64,
}

impl State for StampsV1 {}

#[derive(Default, Actor)]
struct CardV1 {
    stamps: Stored<StampsV1>,
}

#[actor(kind = "card")]
impl CardV1 {
    pub async fn stamp(&mut self, cx: &Cx) -> Result<(u64, String), StateError> {
        self.stamps.all += 1;
        self.stamps.save(cx).await?;
        Ok((self.stamps.all, cx.node_name().to_owned()))
    }
}

#[derive(Default, Actor)]
struct CardV2 {
    stamps: Stored<Stamps>,
}

#[actor(kind = "card")]
impl CardV2 {
    pub async fn stamp(&mut self, cx: &Cx) -> Result<(u64, String), StateError> {
        self.stamps.all += 1;
        self.stamps.save(cx).await?;
        Ok((self.stamps.all, cx.node_name().to_owned()))
    }
}

/// Nodes whose names begin with `new` run the second version.
fn equip(builder: Builder, name: &str) -> Builder {
    match name.starts_with("new") {
        true => builder.register::<TillV2>().register::<CardV2>(),
        false => builder.register::<TillV1>().register::<CardV1>(),
    }
}

/// Pays one cent to each till by way of `node`; what each then has, and where each is.
async fn pay_all(cluster: &Cluster, node: &str) -> Vec<(u64, String)> {
    let node = cluster.node(node).expect("it was started");
    let mut paid = Vec::new();
    for key in 0..TILLS {
        // Each program has a reference of its own.
        let answer = match node.name().starts_with("new") {
            true => TillV2Ref::of(&node, key).pay(1).await,
            false => TillV1Ref::of(&node, key).pay(1).await,
        };
        paid.push(answer.expect("each till answers"));
    }
    paid
}

/// The version of the type that wrote the till's record.
async fn written(cluster: &Cluster, state: &str) -> u8 {
    let found = cluster.store.seen_by("store").read(state, Duration::from_secs(5)).await.unwrap();
    // Format, epoch, writer and sequence, then the codec and the version.
    found.expect("it was saved").value[1 + 3 * 8 + 1]
}

/// Takes a node out in order, and waits until the others know.
async fn retire(cluster: &Cluster, name: &str, stay: &[&str]) {
    cluster.node(name).expect("it was started").stop().await;
    cluster.sim.crash(name);
    cluster.settled(stay).await;
}

#[test]
fn actors_of_two_versions_side_by_side_outlive_whichever_goes_first() {
    calm_over(&["old", "new"], 10, equip, |cluster| async move {
        let paid = pay_all(&cluster, "old").await;
        for place in ["old", "new"] {
            assert!(paid.iter().any(|(_, at)| at == place), "both versions host tills: {paid:?}");
        }
        for key in 0..TILLS {
            assert_eq!(written(&cluster, &format!("state/@greenroom/till/self/{key}")).await, 1, "what both read");
        }
        retire(&cluster, "new", &["old"]).await;
        let paid = pay_all(&cluster, "old").await;
        assert!(paid.iter().all(|paid| *paid == (2, "old".to_owned())), "nothing was refused, nothing lost: {paid:?}");
    });
}

#[test]
fn once_all_nodes_read_the_new_version_it_is_written_and_who_does_not_read_it_hosts_none() {
    calm_over(&["old", "new"], 10, equip, |cluster| async move {
        pay_all(&cluster, "new").await;
        retire(&cluster, "old", &["new"]).await;
        // Some node raises it with its next look at the table.
        tokio::time::sleep(Duration::from_secs(5)).await;
        pay_all(&cluster, "new").await;
        assert_eq!(written(&cluster, "state/@greenroom/till/self/0").await, 2);
        // The old program comes back: a slip, or a roll-back too late.
        cluster.start("old").await;
        cluster.settled(&["new", "old"]).await;
        cluster.sim.crash("new");
        cluster.start("new").await;
        cluster.settled(&["new", "old"]).await;
        let paid = pay_all(&cluster, "old").await;
        assert!(paid.iter().all(|(_, at)| at == "new"), "{paid:?}");
        retire(&cluster, "new", &["old"]).await;
        let old = cluster.node("old").expect("it was started");
        let refused = TillV1Ref::of(&old, 0).pay(1).await;
        let Err(CallError::Refused(refusal @ Refusal::Version(_))) = &refused else { panic!("{refused:?}") };
        assert_eq!(refusal.retry_after(), None, "no retry helps");
        assert!(refusal.to_string().contains("node old reads up to version 1"), "{refusal}");
    });
}

#[test]
fn where_the_new_version_cannot_write_the_old_one_the_old_nodes_keep_the_actors_until_they_go() {
    calm_over(&["old", "new"], 10, equip, |cluster| async move {
        let new = cluster.node("new").expect("it was started");
        for key in 0..TILLS {
            assert_eq!(CardV2Ref::of(&new, key).stamp().await, Ok((1, "old".to_owned())));
        }
        retire(&cluster, "old", &["new"]).await;
        for key in 0..TILLS {
            assert_eq!(CardV2Ref::of(&new, key).stamp().await, Ok((2, "new".to_owned())));
        }
        assert_eq!(written(&cluster, "state/@greenroom/card/stamps/0").await, 2);
    });
}

const TILLS: u64 = 12;
