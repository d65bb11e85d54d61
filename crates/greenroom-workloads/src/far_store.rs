//! A store as it is seen from afar.

use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use futures_util::FutureExt;
use futures_util::future::BoxFuture;
use greenroom_store::{Page, Result, Store, Version, Versioned};

/// A store that is one round trip away: half of it passes before an access begins, the other half before its answer is there.
/// For engines within the process, which no relay can be put before.
#[derive(Debug)]
pub struct FarStore {
    store: Arc<dyn Store>,
    half: Duration,
}

impl FarStore {
    /// `store`, as it is seen from `round_trip` away.
    pub fn new(store: Arc<dyn Store>, round_trip: Duration) -> Self {
        Self { store, half: round_trip / 2 }
    }

    fn held<'a, T>(&'a self, access: BoxFuture<'a, Result<T>>) -> BoxFuture<'a, Result<T>>
    where
        T: Send + 'a,
    {
        async move {
            tokio::time::sleep(self.half).await;
            let answer = access.await;
            tokio::time::sleep(self.half).await;
            answer
        }
        .boxed()
    }
}

impl Store for FarStore {
    fn read<'a>(&'a self, key: &'a str, timeout: Duration) -> BoxFuture<'a, Result<Option<Versioned>>> {
        self.held(self.store.read(key, timeout))
    }

    fn create<'a>(&'a self, key: &'a str, value: Bytes, timeout: Duration) -> BoxFuture<'a, Result<Version>> {
        self.held(self.store.create(key, value, timeout))
    }

    fn replace<'a>(
        &'a self,
        key: &'a str,
        value: Bytes,
        expected: &'a Version,
        timeout: Duration,
    ) -> BoxFuture<'a, Result<Version>> {
        self.held(self.store.replace(key, value, expected, timeout))
    }

    fn delete<'a>(&'a self, key: &'a str, expected: &'a Version, timeout: Duration) -> BoxFuture<'a, Result<()>> {
        self.held(self.store.delete(key, expected, timeout))
    }

    fn scan<'a>(
        &'a self,
        prefix: &'a str,
        after: Option<&'a str>,
        limit: usize,
        timeout: Duration,
    ) -> BoxFuture<'a, Result<Page>> {
        self.held(self.store.scan(prefix, after, limit, timeout))
    }
}

#[cfg(test)]
mod tests {
    use std::time::Instant;

    use greenroom_store::memory::MemoryStore;

    use super::*;

    #[tokio::test]
    async fn an_access_takes_a_round_trip_and_begins_half_way() {
        let (near, trip, by) = (Arc::new(MemoryStore::new()), Duration::from_millis(60), Duration::from_secs(5));
        let far = FarStore::new(near.clone(), trip);
        let begun = Instant::now();
        let mut create = far.create("key", Bytes::from_static(b"value"), by);
        let early = tokio::time::timeout(trip / 4, &mut create).await;
        assert!(early.is_err() && near.read("key", by).await.expect("it reads").is_none(), "it is on its way");
        create.await.expect("nothing is there");
        assert!(begun.elapsed() >= trip);
        assert!(far.read("key", by).await.expect("it reads").is_some());
    }
}
