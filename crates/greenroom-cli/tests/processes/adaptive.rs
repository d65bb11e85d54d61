//! An adaptive actor of two clusters of real processes: as many instances as its callers make worth while.

use std::time::{Duration, Instant};

use serde_json::json;

use crate::alone;
use crate::score_boards::{Clusters, PATIENCE, Site, won};

#[test]
fn readers_in_both_clusters_get_an_instance_each_and_one_clusters_writer_gets_the_only_one() {
    let _alone = alone();
    let clusters = Clusters::start(ADAPTIVE);
    let (eu, us) = (&clusters.eu, &clusters.us);
    eu.try_to("won_for_sure", &won("ada")).expect("all is well");
    assert!(how(eu).contains("INSTANCES single"), "{}", how(eu));

    until(
        "an instance in each",
        &clusters,
        |said| said.iter().all(|said| said.contains("INSTANCES per_cluster")),
        || {
            for site in [eu, us] {
                assert_eq!(site.ask("scores", &json!({})), json!({"ada": 1}), "it is seen from each while it switches");
            }
        },
    );
    us.try_to("won_for_sure", &won("bo")).expect("all is well");

    let mut sure = 1;
    let is_single =
        |said: &[String; 2]| said[0].contains("INSTANCES single, in eu") && said[1].contains("is in cluster \"eu\"");
    until("one instance, where it is written", &clusters, is_single, || {
        eu.try_to("won_for_sure", &won("ada")).expect("it is written while it switches");
        sure += 1;
    });
    assert!(how(eu).contains("updates"), "it says why: {}", how(eu));
    clusters.both_show(&json!({"ada": sure, "bo": 1}));
}

/// How many instances there are, as a cluster knows it.
fn how(site: &Site) -> String {
    site.told(&["inspect", "score_board/cup"])
}

fn until(what: &str, clusters: &Clusters, is_so: impl Fn(&[String; 2]) -> bool, mut meanwhile: impl FnMut()) {
    let end = Instant::now() + PATIENCE;
    loop {
        for _ in 0..20 {
            meanwhile();
        }
        let said = [&clusters.eu, &clusters.us].map(how);
        if is_so(&said) {
            return;
        }
        assert!(Instant::now() < end, "not {what}: {said:#?}");
        std::thread::sleep(Duration::from_millis(20));
    }
}

const ADAPTIVE: &str = "[geo.stores]\ndefault = \"eu\"\n\
    [geo.kinds.score_board]\ninstances = \"adaptive\"\n\
    [geo.adaptive]\nwindow = 1\nreport_every = 0.2\ndwell = 1\ngain = 2\n";
