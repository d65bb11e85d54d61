//! The stores of a simulated cluster: they outlive its nodes.

use std::sync::Arc;

use greenroom::Builder;
use greenroom_sim::{Sim, SimStore};
use greenroom_store::memory::MemoryStore;

/// Where a cluster keeps its membership table, its states and its reliable actors. Each store is a machine of the simulated
/// world, with its faults, that nodes can be cut off from.
#[derive(Clone)]
pub struct Stores {
    table: SimStore,
    states: Option<SimStore>,
    journal: Option<SimStore>,
    names: Arc<[String]>,
}

impl Stores {
    /// Three stores in memory, on machines called `table`, `states` and `journal`. Kinds that name a store for their states, one
    /// of `names`, have them in `states` as well.
    pub fn new(sim: &Sim, names: &[String]) -> Self {
        let journal = |name| SimStore::journal(sim, name, Arc::new(MemoryStore::new()));
        Self {
            table: SimStore::new(sim, "table", Arc::new(MemoryStore::new())).aside(),
            states: Some(journal("states")),
            journal: Some(journal("journal")),
            names: names.into(),
        }
    }

    /// One store for the membership table and for states, and no journal.
    pub fn table(table: SimStore) -> Self {
        Self { table, states: None, journal: None, names: Arc::default() }
    }

    /// The membership table.
    pub(crate) fn of_members(&self) -> &SimStore {
        &self.table
    }

    /// The states of persistent actors and versioned states.
    pub(crate) fn of_states(&self) -> &SimStore {
        self.states.as_ref().unwrap_or(&self.table)
    }

    /// The journal of reliable actors, if there is one.
    pub(crate) fn of_turns(&self) -> Option<&SimStore> {
        self.journal.as_ref()
    }

    /// Whether a machine is called so.
    pub(crate) fn has(&self, name: &str) -> bool {
        [Some(&self.table), self.states.as_ref(), self.journal.as_ref()].iter().flatten().any(|one| one.name() == name)
    }

    /// Has the node called `node` use them; the journal only if it is to.
    pub(crate) fn equip(&self, builder: Builder, node: &str, journal: bool) -> Builder {
        let mut builder = builder.store(self.table.seen_by(node));
        if let Some(states) = &self.states {
            for name in self.names.iter().map(String::as_str).chain([""]) {
                builder = builder.state_journal(name, states.journal_seen_by(node));
            }
        }
        match &self.journal {
            Some(found) if journal => builder.journal_store(found.journal_seen_by(node)),
            _ => builder,
        }
    }
}
