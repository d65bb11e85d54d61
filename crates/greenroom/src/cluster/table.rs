//! The membership table in a store: one record for the table, one for each lease.

mod health;

use std::collections::BTreeMap;
use std::future::Future;
use std::sync::Arc;
use std::time::Duration;

use bytes::{Bytes, BytesMut};
use greenroom_protocols::membership::{Action, Etag, Event, LeaseRecord, OpId, Table};
use greenroom_protocols::node::NodeId;
use greenroom_store::{Store, StoreError, Version};
use greenroom_wire::codec::{self, Codec};
use serde::Serialize;
use serde::de::DeserializeOwned;

pub(crate) use self::health::Health;

/// A cluster's records in a store.
#[derive(Clone)]
pub(crate) struct TableStore {
    store: Arc<dyn Store>,
    prefix: String,
    timeout: Duration,
    health: Arc<Health>,
}

impl TableStore {
    pub(crate) fn new(store: Arc<dyn Store>, cluster: &str, timeout: Duration, health: Arc<Health>) -> Self {
        Self { store, prefix: prefix_of(cluster), timeout, health }
    }

    /// True if a node of `cluster` has joined it before, as far as the store can say: it counts as begun while that cannot be read.
    pub(crate) async fn is_begun(store: &dyn Store, cluster: &str, timeout: Duration) -> bool {
        let found = store.read(&table_key(&prefix_of(cluster)), timeout).await;
        found.map_or(true, |found| found.is_some())
    }

    /// What `operation` answers, noted in the store's health.
    async fn noted<T>(&self, operation: impl Future<Output = Result<T, StoreError>>) -> Result<T, StoreError> {
        let answer = operation.await;
        self.health.note(&answer);
        answer
    }

    /// Does what membership asks of its store; what came of it, if that is awaited.
    pub(crate) async fn perform(&self, action: Action) -> Option<Event> {
        match action {
            Action::ReadTable { op } => Some(self.read(op).await.unwrap_or_else(|error| failed(op, &error))),
            Action::WriteTable { op, table, expect } => Some(self.write(op, &self.table_key(), &table, expect).await),
            Action::RenewLease { op, record, expect } => {
                let key = self.lease_key(record.node);
                Some(self.write(op, &key, &record, expect).await)
            }
            Action::DeleteLease { node } => {
                let key = self.lease_key(node);
                if let Ok(Some(found)) = self.noted(self.store.read(&key, self.timeout)).await {
                    let deleted = self.noted(self.store.delete(&key, &found.version, self.timeout)).await;
                    if let Some(error) = deleted.err().filter(|error| !error.is_conflict()) {
                        tracing::warn!(%error, "a lease of a node that is gone is left; the next one who looks tries again");
                    }
                }
                None
            }
            _ => None,
        }
    }

    async fn read(&self, op: OpId) -> Result<Event, StoreError> {
        let table = match self.noted(self.store.read(&self.table_key(), self.timeout)).await? {
            Some(found) => Some((decode::<Table>(&found.value)?, etag(&found.version))),
            None => None,
        };
        let mut leases = BTreeMap::new();
        let prefix = format!("{}/lease/", self.prefix);
        let mut after: Option<String> = None;
        loop {
            let page = self.noted(self.store.scan(&prefix, after.as_deref(), PAGE_LEN, self.timeout)).await?;
            for item in &page.items {
                let record: LeaseRecord = decode(&item.versioned.value)?;
                leases.insert(record.node, (record, etag(&item.versioned.version)));
            }
            match page.next {
                Some(next) => after = Some(next.to_string()),
                None => break,
            }
        }
        Ok(Event::TableRead { op, table, leases })
    }

    async fn write<T: Serialize>(&self, op: OpId, key: &str, value: &T, expect: Option<Etag>) -> Event {
        let mut out = BytesMut::new();
        if codec::encode(Codec::MessagePack, FORMAT_VERSION, value, &mut out).is_err() {
            return Event::StoreFailed { op };
        }
        let written = match &expect {
            Some(expect) => {
                let version = Version::new(&*expect.0);
                self.noted(self.store.replace(key, out.freeze(), &version, self.timeout)).await
            }
            None => self.noted(self.store.create(key, out.freeze(), self.timeout)).await,
        };
        match written {
            Ok(version) => Event::Written { op, etag: etag(&version) },
            Err(error) if error.is_conflict() => Event::Conflict { op },
            Err(error) => failed(op, &error),
        }
    }

    fn table_key(&self) -> String {
        table_key(&self.prefix)
    }

    fn lease_key(&self, node: NodeId) -> String {
        format!("{}/lease/{:020}", self.prefix, node.0)
    }
}

/// The beginning of the names of a cluster's records.
fn prefix_of(cluster: &str) -> String {
    format!("cluster/{cluster}")
}

fn table_key(prefix: &str) -> String {
    format!("{prefix}/table")
}

fn failed(op: OpId, error: &StoreError) -> Event {
    tracing::warn!(%error, "the membership table's store failed");
    Event::StoreFailed { op }
}

fn decode<T: DeserializeOwned>(value: &Bytes) -> Result<T, StoreError> {
    codec::decode(value).map_err(|error| StoreError::Format {
        store: "the membership table".to_owned(),
        reason: format!("{error}; it was written by another version, or by something else"),
    })
}

fn etag(version: &Version) -> Etag {
    Etag(version.as_str().into())
}

/// Version of the records.
const FORMAT_VERSION: u8 = 1;
/// Leases read at once.
const PAGE_LEN: usize = 500;
