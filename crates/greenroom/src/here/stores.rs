//! The stores that a node's actors keep their states in.

use std::collections::BTreeMap;
use std::sync::Arc;

use greenroom_store::url::StoreUrl;
use greenroom_store::{Journal, Store};
use greenroom_stores::Opened;
use greenroom_world::{Stage, World};
use tokio::sync::oneshot;

/// Stores by name; the one without a name is for all kinds that name none.
#[derive(Debug)]
pub(crate) struct Stores(BTreeMap<String, StateStore>);

/// A store that actors keep their states in.
#[derive(Clone, Debug)]
pub(crate) struct StateStore {
    pub(crate) store: Arc<dyn Store>,
    /// The same store, if it can commit several writes at once.
    pub(crate) journal: Option<Arc<dyn Journal>>,
    /// Whether other processes can see it, as far as is known.
    pub(crate) shared: bool,
}

impl Stores {
    pub(crate) fn new(named: BTreeMap<String, StateStore>) -> Self {
        Self(named)
    }

    /// The store called `name`.
    pub(crate) fn find(&self, name: &str) -> Option<&Arc<dyn Store>> {
        self.0.get(name).map(|found| &found.store)
    }

    /// The store called `name` as a journal, if it is one.
    pub(crate) fn journal(&self, name: &str) -> Option<&Arc<dyn Journal>> {
        self.0.get(name).and_then(|found| found.journal.as_ref())
    }

    /// Whether other processes can see the store called `name`.
    pub(crate) fn is_shared(&self, name: &str) -> bool {
        self.0.get(name).is_some_and(|found| found.shared)
    }

    /// The names there are.
    pub(crate) fn names(&self) -> impl Iterator<Item = &str> {
        self.0.keys().map(String::as_str).filter(|name| !name.is_empty())
    }
}

impl From<Arc<dyn Store>> for StateStore {
    fn from(store: Arc<dyn Store>) -> Self {
        Self { store, journal: None, shared: true }
    }
}

impl From<Arc<dyn Journal>> for StateStore {
    fn from(journal: Arc<dyn Journal>) -> Self {
        Self { store: journal.clone(), journal: Some(journal), shared: true }
    }
}

impl From<Opened> for StateStore {
    fn from(opened: Opened) -> Self {
        Self { store: opened.store, journal: opened.journal, shared: opened.shared }
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
