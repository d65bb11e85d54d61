//! The stores that a node's actors keep their states in.

use std::collections::BTreeMap;
use std::sync::{Arc, OnceLock};
use std::time::Duration;

use greenroom_store::url::StoreUrl;
use greenroom_store::{Journal, Store};
use greenroom_stores::Opened;
use greenroom_world::{Stage, World};
use tokio::sync::oneshot;

use crate::actor::key::ActorId;
use crate::state::Site;
use crate::state::namespace::{Namespace, NamespaceError};

/// Stores by name; the one without a name is for all kinds that name none.
#[derive(Debug)]
pub(crate) struct Stores {
    by_name: BTreeMap<String, StateStore>,
    /// The namespace of the node's states.
    namespace: Namespace,
    /// The time that an operation on a store's list of namespaces may take.
    timeout: Duration,
}

/// A store that actors keep their states in.
#[derive(Clone, Debug)]
pub(crate) struct StateStore {
    pub(crate) store: Arc<dyn Store>,
    /// The same store, if it can commit several writes at once.
    pub(crate) journal: Option<Arc<dyn Journal>>,
    /// Whether other processes can see it, as far as is known.
    pub(crate) shared: bool,
    /// The root of the node's states there, once the node has entered its namespace.
    root: Arc<OnceLock<String>>,
}

impl Stores {
    /// Stores by their names, for states in a namespace.
    pub(crate) fn new(by_name: BTreeMap<String, StateStore>, namespace: Namespace, timeout: Duration) -> Self {
        Self { by_name, namespace, timeout }
    }

    /// Enters the node's namespace in the store called `name`, if the node has not done so yet, and returns the root of its states.
    ///
    /// # Errors
    /// Why states cannot be kept there, and what helps.
    pub(crate) async fn enter(&self, name: &str) -> Result<&str, NamespaceError> {
        let store = self.known(name).map_err(NamespaceError::Refused)?;
        if let Some(root) = store.root.get() {
            return Ok(root);
        }
        let root = self.namespace.enter(&*store.store, self.timeout).await?;
        Ok(store.root.get_or_init(|| root))
    }

    /// Returns the root of the node's states in the store called `name`, or the one that they would have, and writes nothing.
    ///
    /// # Errors
    /// As for [`enter`](Self::enter).
    pub(crate) async fn root(&self, name: &str) -> Result<String, String> {
        let store = self.known(name)?;
        if let Some(root) = store.root.get() {
            return Ok(root.clone());
        }
        self.namespace.look_up(&*store.store, self.timeout).await.map_err(|error| error.to_string())
    }

    /// The place of the state called `state` of an actor, in the store called `name`.
    ///
    /// # Errors
    /// There is no such store, or the node has not entered its namespace there.
    pub(crate) fn site(&self, name: &str, id: &ActorId, state: &str) -> Result<Site, String> {
        let store = self.known(name)?;
        let root =
            store.root.get().ok_or_else(|| format!("the node has not entered its namespace in store {name:?}"))?;
        Ok(Site::new(store.store.clone(), root, id, state))
    }

    fn known(&self, name: &str) -> Result<&StateStore, String> {
        let unknown = || format!("the node has no store called {name:?}; name its URL in the node's `stores`");
        self.by_name.get(name).ok_or_else(unknown)
    }

    /// The same, for states in this namespace.
    pub(crate) fn under(self, namespace: Namespace) -> Self {
        Self { namespace, ..self }
    }

    /// The store called `name`.
    pub(crate) fn find(&self, name: &str) -> Option<&Arc<dyn Store>> {
        self.by_name.get(name).map(|found| &found.store)
    }

    /// The store called `name` as a journal, if it is one.
    pub(crate) fn journal(&self, name: &str) -> Option<&Arc<dyn Journal>> {
        self.by_name.get(name).and_then(|found| found.journal.as_ref())
    }

    /// Whether other processes can see the store called `name`.
    pub(crate) fn is_shared(&self, name: &str) -> bool {
        self.by_name.get(name).is_some_and(|found| found.shared)
    }

    /// The names there are.
    pub(crate) fn names(&self) -> impl Iterator<Item = &str> {
        self.by_name.keys().map(String::as_str).filter(|name| !name.is_empty())
    }
}

impl From<Arc<dyn Store>> for StateStore {
    fn from(store: Arc<dyn Store>) -> Self {
        Self { store, journal: None, shared: true, root: Arc::default() }
    }
}

impl From<Arc<dyn Journal>> for StateStore {
    fn from(journal: Arc<dyn Journal>) -> Self {
        Self { store: journal.clone(), journal: Some(journal), shared: true, root: Arc::default() }
    }
}

impl From<Opened> for StateStore {
    fn from(opened: Opened) -> Self {
        Self { store: opened.store, journal: opened.journal, shared: opened.shared, root: Arc::default() }
    }
}

/// Opens a store on the control thread, whose runtime lives as long as the node: the caller's may be busy, or end before.
/// Fails with the reason.
pub(crate) async fn open_store(world: &Arc<dyn World>, url: &str) -> Result<Opened, String> {
    let parsed = url.parse::<StoreUrl>().map_err(|error| error.to_string())?;
    let (open, opened) = oneshot::channel();
    let opening = async move {
        // Nobody waits if the start was given up.
        let _ = open.send(greenroom_stores::open_url(&parsed).await);
    };
    world.spawn(Stage::Control, Box::pin(opening));
    let opened = opened.await.map_err(|_| "the node's control thread has ended; start it again".to_owned())?;
    opened.map_err(|error| error.to_string())
}
