//! Room that the node's stores take on disks of its machine.

use std::sync::{Arc, Mutex, PoisonError};

use greenroom_store::{DiskUsage, Store};

use crate::here::parts::Part;

/// The node's stores, by what they are for, and what was last seen of those that are on this machine.
pub(crate) struct StoreDisks {
    stores: Vec<(String, Arc<dyn Store>)>,
    seen: Mutex<Arc<[StoreDisk]>>,
}

/// A store, as it was last seen.
#[derive(Clone, Debug)]
pub(crate) struct StoreDisk {
    /// Its purpose: `table`, `states`, `journal`, or its name in the configuration's `stores`. A file that is for several is named
    /// once, by the first.
    pub(crate) store: String,
    pub(crate) usage: DiskUsage,
}

impl Part for StoreDisks {}

impl StoreDisks {
    pub(crate) fn new(stores: Vec<(String, Arc<dyn Store>)>) -> Self {
        Self { stores, seen: Mutex::new(Arc::new([])) }
    }

    /// Asks the stores again. It blocks for as long as the file system takes to answer.
    pub(crate) fn look(&self) -> Arc<[StoreDisk]> {
        let mut seen: Vec<StoreDisk> = Vec::new();
        for (store, opened) in &self.stores {
            let Some(usage) = opened.disk_usage() else { continue };
            if !seen.iter().any(|known| known.usage.name == usage.name) {
                seen.push(StoreDisk { store: store.clone(), usage });
            }
        }
        let seen: Arc<[StoreDisk]> = seen.into();
        *self.seen.lock().unwrap_or_else(PoisonError::into_inner) = seen.clone();
        seen
    }

    /// Returns the stores as they were last seen.
    pub(crate) fn seen(&self) -> Arc<[StoreDisk]> {
        self.seen.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }
}
