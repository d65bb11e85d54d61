//! The list of clusters in this cluster's own membership table: an acknowledged list outlasts a restart of all nodes there.

use std::sync::Arc;
use std::time::Duration;

use greenroom_store::{Store, StoreError, Version, Versioned};

use super::Clusters;
use super::listing::{self, Stored};

/// The place of the list in the membership table.
pub(crate) struct AcceptedList {
    store: Arc<dyn Store>,
    key: String,
    timeout: Duration,
}

impl AcceptedList {
    /// The place in the table that `store` has of the cluster `name`.
    pub(crate) fn new(store: Arc<dyn Store>, name: &str, timeout: Duration) -> Self {
        Self { store, key: format!("cluster/{name}/clusters"), timeout }
    }

    /// The list that a node starts with that would start with `given`, and true if it is known to be in force.
    ///
    /// # Errors
    /// Why the table was not read, and what helps.
    pub(crate) async fn first(&self, given: Clusters) -> Result<(Clusters, bool), String> {
        Ok(match self.read().await? {
            Some((stored, _)) if !given.quorum().replaces(&stored.list.quorum(), false) => {
                (stored.list, stored.in_force)
            }
            _ => (given, false),
        })
    }

    /// Writes `list`, unless the table holds one that it does not replace. Returns the list that the table holds then.
    ///
    /// # Errors
    /// Why the table was not read or written. It may have been written.
    pub(super) async fn accept(&self, list: &Clusters, in_force: bool) -> Result<Stored, String> {
        loop {
            let found = self.read().await?;
            let version = match &found {
                Some((stored, _)) if stored.list == *list && (stored.in_force || !in_force) => {
                    return Ok(stored.clone());
                }
                Some((stored, _))
                    if stored.list != *list && !list.quorum().replaces(&stored.list.quorum(), in_force) =>
                {
                    return Ok(stored.clone());
                }
                found => found.as_ref().map(|(_, version)| version),
            };
            let value = listing::encoded(list, in_force)?;
            let written = match version {
                Some(version) => self.store.replace(&self.key, value, version, self.timeout).await,
                None => self.store.create(&self.key, value, self.timeout).await,
            };
            match written {
                Ok(_) => return Ok(Stored { list: list.clone(), in_force }),
                // Another node of this cluster was faster: its list is read.
                Err(StoreError::Conflict { .. }) => {}
                Err(error) => return Err(self.failed(&error)),
            }
        }
    }

    async fn read(&self) -> Result<Option<(Stored, Version)>, String> {
        let found = self.store.read(&self.key, self.timeout).await.map_err(|error| self.failed(&error))?;
        let Some(Versioned { value, version }) = found else { return Ok(None) };
        let stored = listing::decoded(&value).map_err(|error| {
            format!(
                "the membership table has no list of clusters under {:?} ({error}); remove that record while no node of the cluster runs",
                self.key
            )
        })?;
        Ok(Some((stored, version)))
    }

    fn failed(&self, error: &StoreError) -> String {
        format!("the list of clusters in the membership table is not reached: {error}")
    }
}
