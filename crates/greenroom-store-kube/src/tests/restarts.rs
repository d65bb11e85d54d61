//! A server that is killed with its etcd.

use greenroom_store_conformance::restarts::{self, End};

use super::*;

const ENDS: &[End<KubeApiserver>] = &[("kill", KubeApiserver::kill), ("kill", KubeApiserver::kill)];

#[tokio::test]
async fn no_acknowledged_increment_is_lost_when_the_server_and_its_etcd_are_killed() {
    let Some(server) = prepared() else { return };
    let store = Arc::new(open(&server, KubeApiserver::ADMIN, "killed").await.unwrap());
    restarts::no_increment_is_lost(store, server, ENDS, |server| server.restart().unwrap()).await;
}
