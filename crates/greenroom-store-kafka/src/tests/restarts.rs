//! A broker that is killed.

use greenroom_store_conformance::restarts::{self, End};

use super::*;

const ENDS: &[End<Kafka>] = &[("kill", Kafka::kill), ("stop", Kafka::stop), ("kill", Kafka::kill)];

fn restart(kafka: &mut Kafka) {
    kafka.restart().unwrap();
}

#[tokio::test]
async fn no_acknowledged_increment_is_lost_when_the_broker_is_killed() {
    let Some(kafka) = broker() else { return };
    let store = open(&named(&kafka, "increments", "&checkpoint_kib=16")).await;
    restarts::no_increment_is_lost(store, kafka, ENDS, restart).await;
}

#[tokio::test]
async fn commits_that_were_acknowledged_survive_the_death_of_the_broker() {
    let Some(kafka) = broker() else { return };
    let store = open(&named(&kafka, "commits", "&checkpoint_kib=16")).await;
    restarts::no_commit_is_lost(store, kafka, ENDS, restart).await;
}
