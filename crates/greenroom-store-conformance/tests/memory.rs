//! The suite on the store that needs nothing, and the suite's own tools.

use std::sync::Arc;

use greenroom_store::memory::MemoryStore;
use greenroom_store::{Journal, Store};
use greenroom_store_conformance::{Harness, journal, store};

#[tokio::test]
async fn memory_keeps_every_claim_about_stores() {
    let memory: Arc<dyn Store> = Arc::new(MemoryStore::new());
    let bytes_max = greenroom_store::memory::VALUE_BYTES_MAX;
    store::all(&Harness::new(memory.clone()).also(memory).value_bytes_max(bytes_max)).await;
}

#[tokio::test]
async fn memory_keeps_every_claim_about_journals() {
    let memory: Arc<dyn Journal> = Arc::new(MemoryStore::new());
    journal::all(&[memory.clone(), memory]).await;
}
