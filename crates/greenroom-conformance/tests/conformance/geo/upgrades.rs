//! Versioned states of two versions of a program, in clusters that are upgraded one after the other.

use std::time::Duration;

use greenroom::Builder;
use greenroom_sim::seeds;

use super::pages::{Library, Setup};
use super::world::{CLUSTERS, run};
use crate::meters::{MeterV1, MeterV1Ref, MeterV2, MeterV2Ref};

/// The first cluster runs the old version, the others the new one.
fn equip(builder: Builder, cluster: &str, setup: Setup) -> Builder {
    let builder = builder.configure(move |config| {
        config.kinds.entry("meter".to_owned()).or_default().protocol = Some(setup.protocol.to_owned());
    });
    if cluster == CLUSTERS[0].0 { builder.register::<MeterV1>() } else { builder.register::<MeterV2>() }
}

#[test]
fn what_a_cluster_of_the_new_version_says_and_writes_is_read_by_one_of_the_old() {
    for protocol in ["bcas", "vlb", "log"] {
        let name = "what_a_cluster_of_the_new_version_says_and_writes_is_read_by_one_of_the_old";
        seeds(&format!("{name} ({protocol})"), 5, |seed| {
            run(seed, move |sim| async move {
                let library = Library::boot_with(&sim, Setup { clusters: 2, ..Setup::of(protocol) }, equip).await;
                library.all_answer().await;
                let (old, new) = (library.node("e1"), library.node("u1"));
                for key in 0..4_u64 {
                    let (old, new) = (MeterV1Ref::of(&old, key), MeterV2Ref::of(&new, key));
                    for round in 0..3 {
                        let counted = new.count().by(Duration::from_secs(60)).await.expect("the new one answers");
                        assert_eq!(counted.0, 2 * round + 1, "{protocol}: meter {key} at the new cluster");
                        let counted = old.count().by(Duration::from_secs(60)).await.expect("the old one answers");
                        assert_eq!(counted.0, 2 * round + 2, "{protocol}: meter {key} at the old cluster");
                    }
                }
            });
        });
    }
}
