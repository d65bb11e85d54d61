//! Single keys under load, their histories examined.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Instant;

use bytes::Bytes;
use greenroom_store::{Applied, Result, Store, StoreError, Version};

use crate::dice::Dice;
use crate::elsewhere::side_by_side;
use crate::history::{self, Operation, What};
use crate::plain::parse;
use crate::{BY, Harness};

/// Callers on threads and openings of their own read, create, replace and delete few keys at random: for each key there
/// is one order of all operations that explains every answer and respects who had finished before who began.
pub async fn single_keys_are_linearizable_under_load(harness: &Harness) {
    let clients = harness.openings.iter().cycle().take(CLIENTS).cloned().enumerate();
    let histories = side_by_side(clients.map(|(n, store)| move || Client::new(n as u64, store).work())).await;
    for key in 0..KEYS {
        let of_key = histories.iter().flatten().filter(|(on, _)| *on == key).map(|(_, operation)| operation.clone());
        history::check(of_key.collect()).unwrap_or_else(|error| panic!("key load/{key}: {error}"));
    }
}

/// One caller, with what it has last seen of each key.
struct Client {
    number: u64,
    store: Arc<dyn Store>,
    dice: Dice,
    seen: BTreeMap<u64, (u64, Version)>,
    history: Vec<(u64, Operation)>,
}

impl Client {
    fn new(number: u64, store: Arc<dyn Store>) -> Self {
        Self { number, store, dice: Dice::new(number + 10), seen: BTreeMap::new(), history: Vec::new() }
    }

    async fn work(mut self) -> Vec<(u64, Operation)> {
        for n in 0..OPERATIONS {
            self.dice.dawdle().await;
            let key = self.dice.below(KEYS);
            // Unlike any other caller's values, and never nothing.
            self.step(key, 1 + self.number + n * CLIENTS as u64).await;
        }
        self.history
    }

    async fn step(&mut self, key: u64, value: u64) {
        let (store, name) = (self.store.clone(), format!("load/{key}"));
        let bytes = || Bytes::from(value.to_string());
        let call = Instant::now();
        match (self.dice.below(10), self.seen.get(&key).cloned()) {
            (0, _) | (1..5, None) => {
                let written = store.create(&name, bytes(), BY).await;
                self.wrote(key, call, None, Some(value), written.map(Some));
            }
            (1..5, Some((from, version))) => {
                let written = store.replace(&name, bytes(), &version, BY).await;
                self.wrote(key, call, Some(from), Some(value), written.map(Some));
            }
            (5, Some((from, version))) => {
                let written = store.delete(&name, &version, BY).await;
                self.wrote(key, call, Some(from), None, written.map(|()| None));
            }
            _ => {
                let found = store.read(&name, BY).await.unwrap_or_else(|error| panic!("{name} is to be read: {error}"));
                let found = found.map(|found| (parse(&found.value), found.version));
                self.note(key, call, Some(Instant::now()), What::Read(found.as_ref().map(|(value, _)| *value)));
                self.saw(key, found);
            }
        }
    }

    fn wrote(&mut self, key: u64, call: Instant, from: Option<u64>, to: Option<u64>, written: Result<Option<Version>>) {
        let answer = Instant::now();
        match written {
            Ok(version) => {
                self.note(key, call, Some(answer), What::Write { from, to, applied: true });
                self.saw(key, to.zip(version));
            }
            Err(StoreError::Conflict { .. }) => {
                self.note(key, call, Some(answer), What::Write { from, to, applied: false });
                self.saw(key, None);
            }
            Err(error) => {
                if error.applied() == Applied::Maybe {
                    self.note(key, call, None, What::Write { from, to, applied: true });
                }
                self.saw(key, None);
            }
        }
    }

    fn note(&mut self, key: u64, call: Instant, answer: Option<Instant>, what: What) {
        self.history.push((key, Operation { what, call, answer }));
    }

    fn saw(&mut self, key: u64, found: Option<(u64, Version)>) {
        match found {
            Some(found) => drop(self.seen.insert(key, found)),
            None => drop(self.seen.remove(&key)),
        }
    }
}

const CLIENTS: usize = 8;
const KEYS: u64 = 3;
const OPERATIONS: u64 = 80;
