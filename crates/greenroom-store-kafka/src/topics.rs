//! The two topics: made if they are not there, and looked at if they are.

use std::time::{Duration, Instant};

use greenroom_store::{Result, StoreError};
use rdkafka::admin::{AdminClient, AdminOptions, NewTopic, ResourceSpecifier, TopicReplication};
use rdkafka::client::DefaultClientContext;
use rdkafka::error::{KafkaError, RDKafkaErrorCode};

use crate::settings::Settings;
use crate::{RECORD_BYTES_MAX, clients, fault};

/// Makes sure of the topics; how many partitions they have.
///
/// # Errors
/// [`StoreError`].
pub(crate) async fn ensure(settings: &Settings) -> Result<i32> {
    let fault = |error: KafkaError| fault::without_effect(&settings.name, &error);
    let admin: AdminClient<DefaultClientContext> = clients::common(settings).create().map_err(fault)?;
    let options = AdminOptions::new().request_timeout(Some(PATIENCE)).operation_timeout(Some(PATIENCE));
    let (commits, states) = (settings.commits(), settings.states());
    let record_bytes = RECORD_BYTES_MAX.to_string();
    let topic = |name| {
        NewTopic::new(name, settings.partitions, TopicReplication::Fixed(settings.replicas))
            .set("max.message.bytes", &record_bytes)
    };
    let new = [
        topic(&commits).set("cleanup.policy", "delete").set("retention.ms", "-1").set("retention.bytes", "-1"),
        // Only what is not written to any more is compacted.
        topic(&states).set("cleanup.policy", "compact").set("segment.bytes", "67108864"),
    ];
    for made in admin.create_topics(&new, &options).await.map_err(fault)? {
        match made {
            Ok(_) | Err((_, RDKafkaErrorCode::TopicAlreadyExists)) => {}
            Err((topic, code)) => {
                let reason = format!("topic {topic:?} cannot be made: {code}");
                return Err(StoreError::Configuration { store: settings.name.clone(), reason });
            }
        }
    }
    check(settings, &admin, &options).await?;
    let name = settings.name.clone();
    let (settings, found) = (settings.clone(), tokio::task::spawn_blocking);
    found(move || partitions(&settings, &admin))
        .await
        .unwrap_or_else(|error| Err(StoreError::Unavailable { store: name, reason: error.to_string() }))
}

/// Topics that were there may be set to forget what they must keep.
async fn check(settings: &Settings, admin: &AdminClient<DefaultClientContext>, options: &AdminOptions) -> Result<()> {
    let (commits, states) = (settings.commits(), settings.states());
    let expected = [
        (&commits, [("cleanup.policy", "delete"), ("retention.ms", "-1"), ("retention.bytes", "-1")].as_slice()),
        (&states, [("cleanup.policy", "compact")].as_slice()),
    ];
    for (topic, expected) in expected {
        let asked = admin.describe_configs(&[ResourceSpecifier::Topic(topic)], options).await;
        let described = asked.map_err(|error| fault::without_effect(&settings.name, &error))?;
        let Some(Ok(described)) = described.into_iter().next() else { continue };
        for (name, value) in expected {
            let found = described.get(name).and_then(|entry| entry.value.as_deref()).unwrap_or(value);
            if found != *value {
                let reason = format!(
                    "topic {topic:?} has {name}={found}, and would forget what it must keep; set {name}={value}"
                );
                return Err(StoreError::Configuration { store: settings.name.clone(), reason });
            }
        }
    }
    Ok(())
}

/// How many partitions both topics have, as soon as each has a leader.
fn partitions(settings: &Settings, admin: &AdminClient<DefaultClientContext>) -> Result<i32> {
    let begun = Instant::now();
    loop {
        let mut counts = Vec::new();
        for topic in [settings.commits(), settings.states()] {
            let metadata = admin.inner().fetch_metadata(Some(&topic), PATIENCE);
            let metadata = metadata.map_err(|error| fault::without_effect(&settings.name, &error))?;
            let found = metadata.topics().iter().find(|found| found.name() == topic);
            let led = found.map(|found| found.partitions().iter().filter(|one| one.leader() >= 0).count());
            counts.push((led, found.map(|found| found.partitions().len())));
        }
        match counts[..] {
            [(Some(led), Some(all)), (Some(led_too), Some(all_too))] if led == all && led_too == all_too && all > 0 => {
                if all == all_too {
                    return Ok(all as i32);
                }
                let reason = format!(
                    "topic {:?} has {all} partitions and {:?} has {all_too}; their number is for ever, and the same for both",
                    settings.commits(),
                    settings.states()
                );
                return Err(StoreError::Configuration { store: settings.name.clone(), reason });
            }
            _ if begun.elapsed() > PATIENCE => {
                let reason = "its topics have no leaders; look at the brokers".to_owned();
                return Err(StoreError::Unavailable { store: settings.name.clone(), reason });
            }
            _ => std::thread::sleep(PAUSE),
        }
    }
}

const PATIENCE: Duration = Duration::from_secs(10);
const PAUSE: Duration = Duration::from_millis(50);
