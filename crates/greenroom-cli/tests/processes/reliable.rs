//! Every node killed again and again, over one journal: money moves once.

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::{Duration, Instant};

use serde_json::{Value, json};

use crate::nodes::Nodes;

/// Wallets, as a client of the doors sees them.
struct Bank {
    doors: Vec<String>,
    agent: ureq::Agent,
    stopped: AtomicBool,
    orders: AtomicU64,
    repeats: AtomicU64,
}

impl Bank {
    fn new(doors: Vec<String>) -> Self {
        let config = ureq::Agent::config_builder().timeout_global(Some(PATIENCE)).http_status_as_error(false);
        let (stopped, orders, repeats) = (AtomicBool::new(false), AtomicU64::new(0), AtomicU64::new(0));
        Self { doors, agent: config.build().into(), stopped, orders, repeats }
    }

    /// The answer of a wallet, if there is one.
    fn call(&self, door: usize, wallet: u64, method: &str, arguments: &Value, key: Option<&str>) -> Option<Value> {
        let door = &self.doors[door % self.doors.len()];
        let mut request = self.agent.post(format!("http://{door}/wallet/{wallet}/{method}"));
        request = request.header("greenroom-timeout", "3s").header("content-type", "application/json");
        if let Some(key) = key {
            request = request.header("idempotency-key", key);
        }
        let mut answer = request.send(arguments.to_string()).ok()?;
        let body = answer.body_mut().read_to_string().ok()?;
        (answer.status() == 200).then(|| serde_json::from_str(&body).expect("an answer is JSON"))
    }

    /// Makes payments until it is stopped, each again until it is answered.
    fn drive(&self, client: u64) {
        let mut dice = client + 1;
        while !self.stopped.load(Ordering::Relaxed) {
            dice = dice.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
            let (from, to, amount) = (dice >> 33, dice >> 43, (dice >> 53) % 100 + 1);
            let order = format!("order {}", self.orders.fetch_add(1, Ordering::Relaxed));
            let arguments = json!({ "order": order, "to": (to % WALLETS).to_string(), "amount": amount });
            let begun = Instant::now();
            let mut door = from as usize;
            while self.call(door, from % WALLETS, "pay", &arguments, Some(&order)).is_none() {
                assert!(begun.elapsed() < HANG, "{order} is not answered for too long");
                self.repeats.fetch_add(1, Ordering::Relaxed);
                door += 1;
                std::thread::sleep(Duration::from_millis(50));
            }
        }
    }

    /// Balances, and how often each order was paid and got.
    fn books(&self) -> (i64, BTreeMap<String, u64>, BTreeMap<String, u64>) {
        let (mut money, mut paid, mut got) = (0, BTreeMap::new(), BTreeMap::new());
        for wallet in 0..WALLETS {
            let begun = Instant::now();
            let shown = loop {
                match self.call(0, wallet, "look", &json!({}), None) {
                    Some(shown) => break shown,
                    None => assert!(begun.elapsed() < HANG, "wallet {wallet} does not answer"),
                }
            };
            money += shown["balance"].as_i64().expect("it has a balance");
            for (field, orders) in [("paid", &mut paid), ("got", &mut got)] {
                for entry in shown[field].as_array().expect("it is a list") {
                    *orders.entry(entry[0].to_string()).or_insert(0) += entry[1].as_u64().expect("it is a number");
                }
            }
        }
        (money, paid, got)
    }
}

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
    let mut nodes = Nodes::with_journal(3);
    let bank = Bank::new(nodes.doors());
    let mut kills = 0;
    std::thread::scope(|threads| {
        // If this fails, the clients end too.
        let _stops = Stops(&bank.stopped);
        for client in 0..CLIENTS {
            let bank = &bank;
            threads.spawn(move || bank.drive(client));
        }
        let begun = Instant::now();
        while begun.elapsed() < lasting() {
            std::thread::sleep(Duration::from_secs(3));
            nodes.kill(kills % nodes.count());
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
    let (orders, repeats) = (bank.orders.load(Ordering::Relaxed), bank.repeats.load(Ordering::Relaxed));
    println!("{orders} payments, {repeats} calls made again, {kills} kills: {money} made or lost");
    assert_eq!(money, 0, "money is neither lost nor made");
    assert_eq!(paid.len() as u64, orders, "each order was answered, so it was carried out");
    assert_eq!(paid, got, "what was paid has arrived");
    let twice: Vec<_> = paid.iter().filter(|(_, times)| **times != 1).collect();
    assert!(twice.is_empty(), "paid more than once: {twice:?}");
    assert!(orders > 100, "hardly anything was done: {orders}");
}

const WALLETS: u64 = 20;
const CLIENTS: u64 = 6;
const PATIENCE: Duration = Duration::from_secs(10);
/// Far more than it takes until a killed node's partitions are owned again.
const HANG: Duration = Duration::from_secs(60);
