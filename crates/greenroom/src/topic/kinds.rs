//! Kinds that subscribe as a whole: every actor of the kind gets the events of the topic that has its key.

use std::collections::BTreeMap;
use std::marker::PhantomData;
use std::sync::Arc;

use greenroom_world::BoxFuture;
use serde::de::DeserializeOwned;
use serde_json::Value;

use super::deliver::Try;
use super::shown::{Active, TOPICS_SHOWN};
use crate::actor::call::Call;
use crate::actor::error::Refusal;
use crate::actor::interface::Method;
use crate::actor::key::{Key, check};
use crate::here::Here;
use crate::here::node::Node;
use crate::here::parts::Part;
use crate::observe::failure_counts::FailureCounts;

/// Delivers a topic's events to the actor that has the topic's key.
pub(crate) trait KindSubscription: Send + Sync {
    /// The actor's key: what the topic's name has behind the first slash.
    fn key(&self, topic: &Key) -> Key;

    /// Calls it once.
    fn deliver(&self, node: &Node, key: &Key, event: &str) -> BoxFuture<Try>;
}

/// The kinds that subscribe, by the first part of the topics' names.
#[derive(Default)]
pub(crate) struct KindSubscriptions {
    by_namespace: BTreeMap<String, Vec<Arc<dyn KindSubscription>>>,
    /// The topics of this node.
    pub(crate) active: Active,
    /// Events that this node did not deliver to a subscriber, which no caller hears of.
    pub(crate) failed: FailureCounts,
}

impl KindSubscriptions {
    pub(crate) fn insert(&mut self, namespace: String, subscription: Arc<dyn KindSubscription>) {
        self.by_namespace.entry(namespace).or_default().push(subscription);
    }

    /// Whether the events of `topic` can come to the kinds that subscribe to it.
    ///
    /// # Errors
    /// [`Refusal::InvalidKey`]: no actor has the key that its name gives them.
    pub(crate) fn check(&self, topic: &Key) -> Result<(), Refusal> {
        self.of(topic).iter().try_for_each(|subscription| {
            let Err(Refusal::InvalidKey { message }) = check(&subscription.key(topic)) else { return Ok(()) };
            let why =
                "a kind subscribes to such topics, and what is behind the first `/` of their names is its actors' key";
            Err(Refusal::InvalidKey { message: format!("{message} ({why})") })
        })
    }

    /// Those that get the events of `topic`.
    pub(crate) fn of(&self, topic: &Key) -> Vec<Arc<dyn KindSubscription>> {
        let namespace = topic.split_once('/').map(|(namespace, _)| namespace);
        namespace.and_then(|namespace| self.by_namespace.get(namespace)).cloned().unwrap_or_default()
    }
}

impl Part for KindSubscriptions {
    fn shows(&self, what: &str, by: &Value) -> Option<Value> {
        (what == TOPICS_SHOWN).then(|| self.active.show(by))
    }
}

impl Here {
    /// The kinds that subscribe to topics.
    pub(crate) fn topics(&self) -> &KindSubscriptions {
        self.part()
    }
}

/// A kind's subscription, by a function that makes the call.
pub(crate) struct ByCall<E, F>(F, PhantomData<fn(E)>);

impl<E, F> ByCall<E, F> {
    pub(crate) fn new(call: F) -> Arc<Self> {
        Arc::new(Self(call, PhantomData))
    }
}

impl<E, F, M> KindSubscription for ByCall<E, F>
where
    E: DeserializeOwned + 'static,
    F: Fn(&Node, Key, E) -> Call<M> + Send + Sync + 'static,
    M: Method,
{
    fn key(&self, topic: &Key) -> Key {
        topic.split_once('/').map_or_else(|| topic.clone(), |(_, key)| Key::from(key))
    }

    fn deliver(&self, node: &Node, key: &Key, event: &str) -> BoxFuture<Try> {
        match serde_json::from_str(event) {
            Ok(event) => {
                let call = (self.0)(node, key.clone(), event);
                Box::pin(async move { Try::of(call.await) })
            }
            Err(error) => {
                let why = format!("the event is not what the kind subscribes to: {error}");
                Box::pin(async move { Try::Hopeless(why) })
            }
        }
    }
}
