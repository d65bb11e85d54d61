//! How doors open and close.

use crate::client::call;
use crate::kinds::{node, open};

#[tokio::test]
async fn the_address_of_a_door_can_be_had_again_as_soon_as_its_node_has_stopped() {
    let (mut running, door) = open(node()).await;
    for _ in 0..30 {
        running.stop().await;
        (running, _) = open(node().http(&door)).await;
    }
    assert_eq!(call(&door, "/notes/a/all", "").await.status, 200);
    running.stop().await;
}
