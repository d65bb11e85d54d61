//! What every store and journal promises.

use greenroom_store_conformance::{Harness, journal, store};

use super::*;

#[tokio::test]
async fn kafka_is_a_store_and_a_journal() {
    let Some(kafka) = broker() else { return };
    let (one, other) = (open(&kafka.url()).await, open(&kafka.url()).await);
    store::all(&Harness::new(one).also(other).value_bytes_max(VALUE_BYTES_MAX)).await;
    // One more that knows nothing yet, and checkpoints in the middle of it all.
    let url = named(&kafka, "journal", "&checkpoint_kib=64");
    journal::all(&[open(&url).await, open(&url).await]).await;
}
