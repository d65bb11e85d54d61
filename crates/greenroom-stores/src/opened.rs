//! A store that has been opened, whichever it is.

use std::fmt;
use std::sync::Arc;

use greenroom_store::{Journal, Store};

/// An open store, and what there is to know of it.
#[non_exhaustive]
pub struct Opened {
    /// Its URL, without a password: for messages.
    pub name: String,
    /// The store.
    pub store: Arc<dyn Store>,
    /// The same store as a journal, if it can commit several writes at once.
    pub journal: Option<Arc<dyn Journal>>,
    /// Whether other processes can see it.
    pub shared: bool,
    /// What an acknowledged write survives, in words.
    pub survives: String,
    syncs: Option<Box<dyn Fn() -> DeviceSyncs + Send + Sync>>,
}

/// How much was committed, and what it cost the device.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct DeviceSyncs {
    /// Commits and single writes that changed something.
    pub commits: u64,
    /// Times that the device was told to make something durable.
    pub syncs: u64,
}

impl Opened {
    /// A store that is no journal.
    pub(crate) fn store(name: &impl fmt::Display, store: Arc<dyn Store>, survives: impl fmt::Display) -> Self {
        let (name, survives) = (name.to_string(), survives.to_string());
        Self { name, store, journal: None, shared: true, survives, syncs: None }
    }

    /// A store that is a journal too.
    pub(crate) fn journal<J: Journal>(name: &impl fmt::Display, journal: J, survives: impl fmt::Display) -> Self {
        let journal = Arc::new(journal);
        Self { journal: Some(journal.clone()), ..Self::store(name, journal, survives) }
    }

    /// The same, seen by this process alone.
    pub(crate) fn private(self) -> Self {
        Self { shared: false, ..self }
    }

    /// The same, with a way to count syncs.
    #[cfg(feature = "sqlite")]
    pub(crate) fn counting(self, syncs: impl Fn() -> DeviceSyncs + Send + Sync + 'static) -> Self {
        Self { syncs: Some(Box::new(syncs)), ..self }
    }

    /// What this process has committed since it opened the store, and with how many device syncs; `None` where the
    /// engine syncs in a process of its own.
    pub fn device_syncs(&self) -> Option<DeviceSyncs> {
        self.syncs.as_ref().map(|count| count())
    }
}

impl fmt::Debug for Opened {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut shown = f.debug_struct("Opened");
        shown.field("name", &self.name).field("journal", &self.journal.is_some());
        shown.field("shared", &self.shared).field("survives", &self.survives).finish()
    }
}
