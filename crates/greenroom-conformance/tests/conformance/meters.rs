//! Versioned states of two versions of a program, side by side in one cluster.

use std::time::Duration;

use greenroom::Builder;
use greenroom::prelude::*;
use greenroom::state::{Old, Older, Written};
use serde::{Deserialize, Serialize};

use crate::cluster::Cluster;
use crate::scenario::calm_over;

/// The first version: units, and updates that are numbers.
#[derive(Default, Clone, Serialize, Deserialize)]
struct UnitsV1 {
    units: u64,
}

impl VersionedState for UnitsV1 {
    type Update = u64;

    fn apply(&mut self, more: &u64) {
        self.units += more;
    }
}

#[derive(Default, Actor)]
pub(crate) struct MeterV1 {
    read: Versioned<UnitsV1>,
}

#[actor(kind = "meter", instances = "per_cluster")]
impl MeterV1 {
    /// Adds one; what there is, and where.
    #[update]
    pub async fn count(&self, cx: &Cx) -> Result<(u64, String), String> {
        self.read.confirm(1).await.map_err(|error| error.to_string())?;
        Ok((self.read.confirmed().0.units, cx.node_name().to_owned()))
    }
}

/// The second: thousands and the rest, and updates with a name. It can write the first.
#[derive(Default, Clone, Serialize, Deserialize)]
struct Units {
    thousands: u64,
    rest: u64,
}

#[derive(Clone, Serialize, Deserialize)]
struct More {
    units: u64,
}

impl VersionedState for Units {
    type Update = More;

    const VERSION: u8 = 2;
    const WRITES: u8 = 1;
    const UPDATE_VERSION: u8 = 2;
    const UPDATE_WRITES: u8 = 1;

    fn apply(&mut self, more: &More) {
        let all = self.thousands * 1000 + self.rest + more.units;
        (self.thousands, self.rest) = (all / 1000, all % 1000);
    }

    fn migrate(old: Old<'_>) -> Result<Self, String> {
        let units = old.read::<UnitsV1>()?.units;
        Ok(Self { thousands: units / 1000, rest: units % 1000 })
    }

    fn migrate_update(old: Old<'_>) -> Result<More, String> {
        old.read().map(|units| More { units })
    }

    fn write_older(&self, older: Older) -> Result<Written, String> {
        older.write(&UnitsV1 { units: self.thousands * 1000 + self.rest })
    }

    fn write_older_update(more: &More, older: Older) -> Result<Written, String> {
        older.write(&more.units)
    }
}

#[derive(Default, Actor)]
pub(crate) struct MeterV2 {
    read: Versioned<Units>,
}

#[actor(kind = "meter", instances = "per_cluster")]
impl MeterV2 {
    #[update]
    pub async fn count(&self, cx: &Cx) -> Result<(u64, String), String> {
        self.read.confirm(More { units: 1 }).await.map_err(|error| error.to_string())?;
        let now = self.read.confirmed().0;
        Ok((now.thousands * 1000 + now.rest, cx.node_name().to_owned()))
    }
}

/// Nodes whose names begin with `new` run the second version.
fn equip(builder: Builder, name: &str) -> Builder {
    if name.starts_with("new") { builder.register::<MeterV2>() } else { builder.register::<MeterV1>() }
}

/// Counts one at each meter by way of `node`.
async fn count_all(cluster: &Cluster, node: &str) -> Vec<(u64, String)> {
    let node = cluster.node(node).expect("it was started");
    let mut counted = Vec::new();
    for key in 0..METERS {
        let answer = match node.name().starts_with("new") {
            true => MeterV2Ref::of(&node, key).count().await,
            false => MeterV1Ref::of(&node, key).count().await,
        };
        counted.push(answer.expect("each meter answers"));
    }
    counted
}

/// The version of the type that wrote the meter's record.
async fn written(cluster: &Cluster, key: u64) -> u8 {
    let state = format!("state/@greenroom/meter/read/{key}");
    let found = cluster.store.seen_by("store").read(&state, Duration::from_secs(5)).await.unwrap();
    let record = found.expect("it was written").value;
    // Format and head, then the codec and the version.
    let head = u32::from_le_bytes(record[1..5].try_into().unwrap()) as usize;
    record[5 + head + 1]
}

async fn retire(cluster: &Cluster, name: &str, stay: &[&str]) {
    cluster.node(name).expect("it was started").stop().await;
    cluster.sim.crash(name);
    cluster.settled(stay).await;
}

#[test]
fn versioned_states_of_two_versions_side_by_side_outlive_whichever_goes_first() {
    calm_over(&["old", "new"], 10, equip, |cluster| async move {
        let counted = count_all(&cluster, "old").await;
        for place in ["old", "new"] {
            assert!(counted.iter().any(|(_, at)| at == place), "both versions host meters: {counted:?}");
        }
        for key in 0..METERS {
            assert_eq!(written(&cluster, key).await, 1, "what both read");
        }
        retire(&cluster, "new", &["old"]).await;
        let counted = count_all(&cluster, "old").await;
        assert!(counted.iter().all(|counted| *counted == (2, "old".to_owned())), "nothing was lost: {counted:?}");
    });
}

#[test]
fn once_all_nodes_read_the_new_version_of_a_versioned_state_it_is_written() {
    calm_over(&["old", "new"], 10, equip, |cluster| async move {
        count_all(&cluster, "new").await;
        retire(&cluster, "old", &["new"]).await;
        // Some node raises it with its next look at the table; instances that are there already go on as they began.
        tokio::time::sleep(Duration::from_secs(5)).await;
        cluster.sim.crash("new");
        cluster.start("new").await;
        cluster.settled(&["new"]).await;
        let counted = count_all(&cluster, "new").await;
        assert!(counted.iter().all(|(units, _)| *units == 2), "nothing was lost: {counted:?}");
        assert_eq!(written(&cluster, 0).await, 2);
    });
}

const METERS: u64 = 12;
