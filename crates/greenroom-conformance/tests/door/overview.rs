//! A cluster at a glance.

use std::time::Duration;

use crate::client::{call, get};
use crate::kinds::{node, open};

#[tokio::test]
async fn a_node_remembers_what_it_did_though_nobody_looked() {
    let (node, door) = open(node()).await;
    for _ in 0..5 {
        call(&door, "/notes/a/add", r#"{"text":"a line","times":1}"#).await;
    }
    call(&door, "/notes/b/add", r#"{"text":"a line that is too long","times":1}"#).await.problem(422, "actor-error");
    let seen = loop {
        let seen = get(&door, "/-/overview?seconds=60").await.json();
        if seen["totals"]["calls"] == 6 {
            break seen;
        }
        tokio::time::sleep(Duration::from_millis(50)).await;
    };
    assert_eq!(seen["totals"]["failed"], 1, "{seen}");
    assert!(seen["totals"]["outside"]["p99"].as_f64() > Some(0.0), "{seen}");
    let series = &seen["series"];
    let sum: f64 = series["calls"].as_array().unwrap().iter().filter_map(|calls| calls.as_f64()).sum();
    assert_eq!((sum, &series["step"]), (6.0, &1.into()), "{seen}");
    let own = &seen["clusters"][0]["nodes"][0];
    assert_eq!((&own["status"], &own["answers"]), (&"active".into(), &true.into()), "{seen}");
    assert_eq!(own["kinds"]["notes"], 2, "{seen}");
    let shards: u64 = own["shards"].as_array().unwrap().iter().filter_map(|shard| shard["activations"].as_u64()).sum();
    assert_eq!((shards, &seen["totals"]["activations"]), (2, &2.into()), "{seen}");
    assert!(own["resident"].as_u64() > Some(0) && own["limit"].as_u64() > own["resident"].as_u64(), "{seen}");
    for wrong in ["seconds=0", "seconds=3601", "second=1", "seconds"] {
        get(&door, &format!("/-/overview?{wrong}")).await.problem(400, "bad-request");
    }
    node.stop().await;
}
