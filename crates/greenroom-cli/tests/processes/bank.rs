//! Clients that move money between wallets through the doors of nodes, and say what came of it.

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::{Duration, Instant};

use serde_json::{Value, json};

/// Wallets, as a client of the doors sees them.
pub(crate) struct Bank {
    doors: Vec<String>,
    agent: ureq::Agent,
    begun: Instant,
    pub(crate) stopped: AtomicBool,
    /// Payments that were begun; each client ends its last one before it stops.
    pub(crate) orders: AtomicU64,
    /// Calls that were made again, as there was no answer.
    pub(crate) repeats: AtomicU64,
    /// Answers that were another one when they were asked for again.
    pub(crate) untrue: AtomicU64,
    /// When the last payment was answered, and the longest time without any, in milliseconds.
    answered: AtomicU64,
    pub(crate) silence: AtomicU64,
}

impl Bank {
    pub(crate) fn new(doors: Vec<String>) -> Self {
        let config = ureq::Agent::config_builder().timeout_global(Some(PATIENCE)).http_status_as_error(false);
        Self {
            doors,
            agent: config.build().into(),
            begun: Instant::now(),
            stopped: AtomicBool::new(false),
            orders: AtomicU64::new(0),
            repeats: AtomicU64::new(0),
            untrue: AtomicU64::new(0),
            answered: AtomicU64::new(0),
            silence: AtomicU64::new(0),
        }
    }

    /// The answer of a wallet, if there is one.
    pub(crate) fn call(
        &self,
        door: usize,
        wallet: u64,
        method: &str,
        arguments: &Value,
        key: Option<&str>,
    ) -> Option<Value> {
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
    pub(crate) fn drive(&self, client: u64) {
        let mut dice = client + 1;
        while !self.stopped.load(Ordering::Relaxed) {
            dice = dice.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
            let (from, to, amount) = (dice >> 33, dice >> 43, (dice >> 53) % 100 + 1);
            let number = self.orders.fetch_add(1, Ordering::Relaxed);
            let order = format!("order {number}");
            let arguments = json!({ "order": order, "to": (to % WALLETS).to_string(), "amount": amount });
            let left = self.insist(from as usize, from % WALLETS, &arguments, &order);
            let now = self.begun.elapsed().as_millis() as u64;
            let before = self.answered.swap(now, Ordering::Relaxed);
            self.silence.fetch_max(now.saturating_sub(before), Ordering::Relaxed);
            if number.is_multiple_of(ASKED_AGAIN_EVERY)
                && self.insist(from as usize + 1, from % WALLETS, &arguments, &order) != left
            {
                self.untrue.fetch_add(1, Ordering::Relaxed);
            }
        }
    }

    /// The answer to a payment, asked for at one door after the other until there is one.
    fn insist(&self, mut door: usize, from: u64, arguments: &Value, order: &str) -> Value {
        let begun = Instant::now();
        loop {
            if let Some(left) = self.call(door, from, "pay", arguments, Some(order)) {
                return left;
            }
            assert!(begun.elapsed() < HANG, "{order} is not answered for too long");
            self.repeats.fetch_add(1, Ordering::Relaxed);
            door += 1;
            std::thread::sleep(Duration::from_millis(50));
        }
    }

    /// Balances, and how often each order was paid and got.
    pub(crate) fn books(&self) -> (i64, BTreeMap<String, u64>, BTreeMap<String, u64>) {
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

const WALLETS: u64 = 20;
/// One payment in so many is asked for again when it is answered.
const ASKED_AGAIN_EVERY: u64 = 8;
pub(crate) const PATIENCE: Duration = Duration::from_secs(10);
/// Far more than it takes until a killed node's partitions are owned again, and its journal's server answers.
pub(crate) const HANG: Duration = Duration::from_secs(120);
