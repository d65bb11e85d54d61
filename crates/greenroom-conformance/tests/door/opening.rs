//! How doors open and close.

use std::net::TcpListener;

use crate::client::call;
use crate::kinds::{node, open};

#[tokio::test]
async fn the_address_of_a_door_can_be_had_again_as_soon_as_its_node_has_stopped() {
    for _ in 0..30 {
        let (running, door) = open(node()).await;
        assert_eq!(call(&door, "/notes/a/all", "").await.status, 200);
        running.stop().await;
        // Before anything else of this thread has its go.
        TcpListener::bind(&door).expect("nobody listens there any more");
    }
}
