//! The runtime's internal actors, which no host reaches.

use greenroom_wire::{ExtensionView, Status};

use super::puppet::Puppet;
use super::with_socket;
use crate::client::call;
use crate::kinds::{node, open};

#[tokio::test]
async fn internal_kinds_are_unknown_to_hosts_and_topics_are_not() {
    let folder = tempfile::tempdir().expect("a folder");
    let builder = node().journal("memory:").configure(|config| config.shards = 1);
    let (builder, path) = with_socket(builder, &folder, "a");
    let (node, door) = open(builder).await;
    for (kind, method, status) in [
        ("greenroom.partition", "look", Status::Refused),
        ("greenroom.partition", "wake", Status::Refused),
        ("greenroom.keeper", "escalate", Status::Refused),
        ("greenroom.of_a_later_build", "run", Status::Refused),
        ("topics", "subscribers", Status::Ok),
        ("topics", "activated", Status::Refused),
    ] {
        let mut host = Puppet::comes(&path, "caller", 1).await;
        host.defines(kind, method).await;
        host.asks((1, 0), "0", None, ExtensionView::default()).await;
        assert_eq!(host.answer().await, (1, status), "{kind}.{method} as a client");
        let read = tokio::spawn({
            let door = door.clone();
            async move { call(&door, "/caller/x/total", "{}").await }
        });
        host.seats().await;
        let (turn, _) = host.turn().await;
        host.asks((2, turn), "0", None, ExtensionView::default()).await;
        assert_eq!(host.answer().await, (2, status), "{kind}.{method} in a turn");
        host.ends(turn, 1, false).await;
        assert_eq!(read.await.expect("it ends").body, "1");
        host.leaves().await;
    }
    node.stop().await;
}
