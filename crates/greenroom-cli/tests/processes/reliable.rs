//! Every node killed again and again, over one journal: money moves once.

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use greenroom::{ActorId, Kind};
use greenroom_protocols::delivery;
use serde_json::Value;

use crate::bank::{Bank, HANG, PATIENCE};
use crate::nodes::Nodes;

/// Says that it is over, however that came.
struct Stops<'a>(&'a AtomicBool);

impl Drop for Stops<'_> {
    fn drop(&mut self) {
        self.0.store(true, Ordering::Relaxed);
    }
}

/// How long the loop lasts: `GREENROOM_KILL_SECONDS`, or what suits every run of the tests.
fn lasting() -> Duration {
    let seconds = std::env::var("GREENROOM_KILL_SECONDS").ok();
    let seconds = seconds.map(|text| text.parse().expect("GREENROOM_KILL_SECONDS is a number of seconds"));
    Duration::from_secs(seconds.unwrap_or(20))
}

#[test]
fn each_payment_is_made_once_when_nodes_are_killed_in_a_loop() {
    let _machine = crate::alone();
    each_payment_is_made_once("sqlite", Nodes::with_journal(3), |_| {});
}

#[cfg(feature = "postgres")]
#[test]
fn each_payment_is_made_once_over_postgres_when_nodes_and_server_are_killed() {
    let _machine = crate::alone();
    let Some(mut server) = crate::postgres::durable() else { return };
    let nodes = Nodes::with_journal_at(3, &server.url());
    each_payment_is_made_once("postgres", nodes, |kills| {
        if kills % SERVER_EVERY == 1 {
            server.kill();
            server.restart().expect("it starts again");
        }
    });
}

#[cfg(feature = "kafka")]
#[test]
fn each_payment_is_made_once_over_kafka_when_nodes_and_broker_are_killed() {
    let _machine = crate::alone();
    let Some(mut broker) = greenroom_engines::unless_missing(greenroom_engines::Kafka::start()) else { return };
    let nodes = Nodes::with_journal_at(3, &format!("{}&checkpoint_kib=64", broker.url()));
    each_payment_is_made_once("kafka", nodes, |kills| {
        if kills % SERVER_EVERY == 1 {
            broker.kill();
            broker.restart().expect("it starts again");
        }
    });
}

/// Clients pay while a node is killed every three seconds, and `trouble` is made after each; then the books are balanced.
fn each_payment_is_made_once(journal: &str, mut nodes: Nodes, mut trouble: impl FnMut(usize)) {
    let bank = Bank::new(nodes.doors());
    let (mut kills, mut dice) = (0, 1_usize);
    std::thread::scope(|threads| {
        // If this fails, the clients end too.
        let _stops = Stops(&bank.stopped);
        for client in 0..CLIENTS {
            let bank = &bank;
            threads.spawn(move || bank.drive(client));
        }
        let begun = Instant::now();
        // On a busy machine it takes longer until there is something to check.
        let is_enough = || bank.orders.load(Ordering::Relaxed) >= PAYMENTS_MIN || begun.elapsed() > HANG;
        while begun.elapsed() < lasting() || !is_enough() {
            std::thread::sleep(Duration::from_secs(3));
            dice = dice.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
            nodes.kill((dice >> 33) % nodes.count());
            trouble(kills);
            kills += 1;
            std::thread::sleep(Duration::from_millis(200));
            nodes.revive();
        }
        nodes.all_ready();
    });
    nodes.all_anew();
    let begun = Instant::now();
    let (money, paid, got) = loop {
        let books = bank.books();
        if books.1 == books.2 || begun.elapsed() > HANG {
            break books;
        }
        std::thread::sleep(Duration::from_millis(200));
    };
    let [orders, repeats, untrue, silence] =
        [&bank.orders, &bank.repeats, &bank.untrue, &bank.silence].map(|count| count.load(Ordering::Relaxed));
    let lost =
        orders.saturating_sub(paid.len() as u64) + paid.keys().filter(|order| !got.contains_key(*order)).count() as u64;
    let doubled = paid.values().chain(got.values()).filter(|times| **times != 1).count();
    println!(
        "{journal}: {orders} payments, {repeats} calls made again, {kills} kills: lost {lost}, doubled {doubled}, money {money}, \
         answers that changed {untrue}, longest silence {silence} ms"
    );
    assert_eq!(money, 0, "money is neither lost nor made");
    assert_eq!(paid.len() as u64, orders, "each order was answered, so it was carried out");
    assert_eq!(paid, got, "what was paid has arrived");
    assert_eq!((lost, doubled), (0, 0), "each order is paid once and got once");
    assert_eq!(untrue, 0, "an answer is the same when it is asked for again");
    assert!(orders >= PAYMENTS_MIN, "hardly anything was done: {orders}");
}

/// The node that owns each partition, asked at one of the doors.
fn owners(agent: &ureq::Agent, door: &str) -> BTreeMap<u64, String> {
    let answer = agent.get(format!("http://{door}/-/reliable")).call();
    let body = answer.ok().and_then(|mut answer| answer.body_mut().read_to_string().ok()).unwrap_or_default();
    let shown: Value = serde_json::from_str(&body).unwrap_or_default();
    let rows = shown["partitions"].as_array().cloned().unwrap_or_default();
    let owner = |row: &Value| Some((row["partition"].as_u64()?, row["node"].as_str()?.to_owned()));
    rows.iter().filter_map(owner).collect()
}

/// Where each partition belongs, by the names of the nodes alone.
fn homes(names: &[String]) -> BTreeMap<u64, String> {
    let hash = |name: &String| ActorId::new(Kind::intern("node"), name.as_str()).expect("a key").stable_hash();
    let hashes: Vec<u64> = names.iter().map(hash).collect();
    let homes = delivery::homes(&hashes, PARTITIONS);
    (0..).zip(homes).map(|(partition, node)| (partition, names[node].clone())).collect()
}

#[test]
fn a_node_that_comes_back_gets_its_partitions_again() {
    let _machine = crate::alone();
    let mut nodes = Nodes::with_journal(3);
    let agent: ureq::Agent = ureq::Agent::config_builder().timeout_global(Some(PATIENCE)).build().into();
    let door = nodes.doors().swap_remove(0);
    let until_home = |names: &[String]| {
        let begun = Instant::now();
        let homes = homes(names);
        loop {
            let owners = owners(&agent, &door);
            if owners == homes {
                return;
            }
            assert!(begun.elapsed() < HANG, "partitions are not where they belong: {owners:?} instead of {homes:?}");
            std::thread::sleep(Duration::from_millis(500));
        }
    };
    let names: Vec<String> = (0..nodes.count()).map(|place| nodes.name(place)).collect();
    until_home(&names);
    nodes.kill(2);
    until_home(&names[..2]);
    nodes.revive();
    nodes.all_ready();
    until_home(&names);
}

/// As the nodes are told.
const PARTITIONS: u32 = 16;
const CLIENTS: u64 = 6;
/// Payments without which a loop shows nothing.
const PAYMENTS_MIN: u64 = 40;
/// Kills of nodes from one of the journal's server to the next.
#[cfg(any(feature = "postgres", feature = "kafka"))]
const SERVER_EVERY: usize = 4;
