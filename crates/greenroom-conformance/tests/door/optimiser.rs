//! What the optimiser makes of calls by a door.

use std::time::Duration;

use greenroom::optimiser::OptimiserMode;

use crate::client::call;
use crate::kinds::{node, open};

#[tokio::test]
async fn calls_of_a_nodes_own_door_count_as_messages_of_the_node() {
    let advised = node().configure(|config| config.optimiser.mode = OptimiserMode::Advise);
    let (node, door) = open(advised).await;
    let called = async {
        loop {
            assert_eq!(call(&door, "/notes/a/all", "").await.status, 200);
            // Nothing is sampled before each shard has looked for the first time.
            if let Some(advice) = node.explain("notes", "a").await {
                break advice;
            }
        }
    };
    let advice = tokio::time::timeout(PATIENCE, called).await.expect("it is sampled");
    assert!(advice.outside > 0.0 && advice.places.is_empty(), "{advice:?}");
    assert!(advice.why.starts_with("it stays"), "{advice:?}");
    node.stop().await;
}

const PATIENCE: Duration = Duration::from_secs(60);
