//! The stores that a node's actors keep their states in.

use std::collections::BTreeMap;
use std::sync::Arc;

use greenroom_store::Store;

/// Stores by name; the one without a name is for all kinds that name none.
#[derive(Debug)]
pub(crate) struct Stores(BTreeMap<String, Arc<dyn Store>>);

impl Stores {
    pub(super) fn new(named: BTreeMap<String, Arc<dyn Store>>) -> Self {
        Self(named)
    }

    /// The store called `name`.
    pub(crate) fn find(&self, name: &str) -> Option<&Arc<dyn Store>> {
        self.0.get(name)
    }

    /// The names there are.
    pub(super) fn names(&self) -> impl Iterator<Item = &str> {
        self.0.keys().map(String::as_str).filter(|name| !name.is_empty())
    }
}
