//! A topic that takes outputs.

use greenroom_store::{Outlet, Output};
use rdkafka::consumer::{BaseConsumer, Consumer};
use rdkafka::message::{Headers, Message};
use rdkafka::{Offset, TopicPartitionList};

use super::*;

#[tokio::test]
async fn an_output_is_there_with_its_key() {
    let Some(kafka) = broker() else { return };
    let url = format!("kafka://127.0.0.1:{}/invoices", kafka.port());
    let StoreUrl::Kafka(remote) = url.parse().unwrap() else { panic!("{url}") };
    let settings = Settings::of_topic(&remote).unwrap();
    let admin: rdkafka::admin::AdminClient<rdkafka::client::DefaultClientContext> =
        clients::common(&settings).create().unwrap();
    let topic = rdkafka::admin::NewTopic::new("invoices", 1, rdkafka::admin::TopicReplication::Fixed(1));
    admin.create_topics(&[topic], &rdkafka::admin::AdminOptions::new()).await.unwrap();
    let outlet = KafkaTopic::open_remote(&remote).unwrap();
    let output = |n: u32| Output::new(format!("key {n}"), "account/ada".to_owned(), format!("{{\"n\":{n}}}").into());
    for n in 0..3 {
        outlet.deliver(output(n)).await.unwrap();
    }
    let mut config = clients::common(&settings);
    let consumer: BaseConsumer = config.set("group.id", "reader").create().unwrap();
    let mut list = TopicPartitionList::new();
    list.add_partition_offset("invoices", 0, Offset::Beginning).unwrap();
    consumer.assign(&list).unwrap();
    for n in 0..3 {
        let message = consumer.poll(BY).expect("there is one more").unwrap();
        let header = message.headers().expect("it has some").get(0);
        assert_eq!((header.key, header.value), ("idempotency-key", Some(format!("key {n}").as_bytes())));
        assert_eq!(message.key(), Some(&b"account/ada"[..]));
        assert_eq!(message.payload(), Some(format!("{{\"n\":{n}}}").as_bytes()));
    }
}
