//! Calls from outside: one execution for each idempotency key, and its answer for repeats.

use std::collections::BTreeMap;

use super::{Call, Recorded, Slot};

/// The answers that a partition remembers, the last [`Config::answers_max`](super::Config::answers_max) of them, and the
/// calls that run.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub(super) struct Answers<M> {
    answers_max: usize,
    recorded: BTreeMap<String, Recorded<M>>,
    order: BTreeMap<Slot, String>,
    running: BTreeMap<String, u64>,
}

/// What is known of a call's key.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub(super) enum Known<M> {
    New,
    Running,
    OtherRequest,
    Answered(Option<M>),
}

impl<M: Clone> Answers<M> {
    pub(super) fn new(answers_max: usize, recorded: Vec<Recorded<M>>) -> Self {
        let mut answers =
            Self { answers_max, recorded: BTreeMap::new(), order: BTreeMap::new(), running: BTreeMap::new() };
        recorded.into_iter().for_each(|recorded| answers.record(recorded));
        answers
    }

    pub(super) fn look(&self, call: &Call) -> Known<M> {
        let request = self.running.get(&call.key).copied();
        match (self.recorded.get(&call.key), request) {
            (Some(recorded), _) if recorded.request != call.request => Known::OtherRequest,
            (Some(Recorded { answer: Some(answer), .. }), _) => Known::Answered(answer.clone()),
            (None, Some(request)) if request != call.request => Known::OtherRequest,
            (Some(_), _) | (None, Some(_)) => Known::Running,
            (None, None) => Known::New,
        }
    }

    pub(super) fn begin(&mut self, call: &Call) {
        self.running.insert(call.key.clone(), call.request);
    }

    pub(super) fn end(&mut self, key: &str) {
        self.running.remove(key);
    }

    /// Takes in what is committed.
    pub(super) fn record(&mut self, recorded: Recorded<M>) {
        if recorded.answer.is_some() {
            self.order.insert(recorded.slot, recorded.key.clone());
        }
        self.recorded.insert(recorded.key.clone(), recorded);
    }

    /// Takes in that this was removed.
    pub(super) fn forget(&mut self, key: &str) {
        if let Some(recorded) = self.recorded.remove(key) {
            self.order.remove(&recorded.slot);
        }
    }

    /// Whether a deferred call is written down under this key.
    pub(super) fn waits(&self, key: &str) -> bool {
        self.recorded.get(key).is_some_and(|recorded| recorded.answer.is_none())
    }

    /// The keys to forget when `more` answers are recorded.
    pub(super) fn surplus(&self, more: usize) -> Vec<String> {
        let surplus = (self.order.len() + more).saturating_sub(self.answers_max);
        self.order.values().take(surplus).cloned().collect()
    }
}
