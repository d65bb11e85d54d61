//! Counters that two clusters have changed during a cut: after the heal, reads show each acknowledged save.

use std::thread::sleep;
use std::time::{Duration, Instant};

use serde_json::{Value, json};

use crate::alone;
use crate::score_boards::{Clusters, PATIENCE, Site};

/// Adds one; a conflict of saves is answered as an error, and made again.
fn add(site: &Site, counter: &str) -> Value {
    let until = Instant::now() + PATIENCE;
    loop {
        match site.try_call(counter, "add", &json!({"amount": 1})) {
            Ok(count) => return count,
            Err(why) => assert!(Instant::now() < until, "{counter} is not added to: {why}"),
        }
        sleep(Duration::from_millis(100));
    }
}

#[test]
fn after_a_heal_counters_show_what_both_clusters_have_saved() {
    let _alone = alone();
    let clusters = Clusters::start("");
    let (eu, us) = (&clusters.eu, &clusters.us);
    // The instance that ends after the heal has saved last in one half, the one that stays in the other.
    let counters = [("counter/in-eu", [us, eu]), ("counter/in-us", [eu, us])];
    for (counter, _) in counters {
        assert_eq!(add(eu, counter), 1);
        assert_eq!(add(us, counter), 2, "it is one actor");
    }
    clusters.cut();
    for (counter, [first, last]) in counters {
        add(last, counter);
        add(first, counter);
        assert_eq!(add(last, counter), 5, "both sides have saved");
    }
    clusters.heal();
    let until = Instant::now() + PATIENCE;
    for (counter, _) in counters {
        for site in [eu, us] {
            while let shown = site.try_call(counter, "get", &json!({}))
                && shown != Ok(5.into())
            {
                assert!(Instant::now() < until, "{counter} still shows {shown:?}");
                sleep(Duration::from_millis(100));
            }
        }
    }
}
