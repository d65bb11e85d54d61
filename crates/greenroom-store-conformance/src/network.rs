//! What a provider promises of an engine behind a network that loses, delays and breaks.
//!
//! Each claim gets the [`Relay`], the store opened `through` it, and the same store opened on the engine's own address,
//! `direct`, which tells what has really happened.

mod breaks;
mod silence;

pub use breaks::*;
pub use silence::*;

use std::sync::Arc;
use std::time::Duration;

use greenroom_store::{Journal, Store};

use crate::{Relay, plain};

/// Runs every claim about stores, one after another.
pub async fn store(relay: &Relay, through: Arc<dyn Store>, direct: Arc<dyn Store>) {
    a_slow_network_changes_nothing_but_time(relay, &*through).await;
    a_silent_engine_is_given_up_in_time(relay, &*through).await;
    an_unanswered_write_is_unknown_or_was_not_applied(relay, &*through, &*direct).await;
    a_write_that_comes_late_never_replaces_its_successor(relay, &*through, &*direct).await;
    a_broken_connection_is_replaced(relay, &*through).await;
    an_engine_out_of_reach_is_named_and_used_again_when_it_is_back(relay, &*through).await;
    increments_survive_cuts_without_loss_or_repetition(relay, through, &*direct).await;
}

/// Runs every claim about journals, one after another; those of [`store`] are for the same provider too.
pub async fn journal(relay: &Relay, through: Arc<dyn Journal>, direct: Arc<dyn Journal>) {
    an_unanswered_commit_is_applied_whole_or_not_at_all(relay, &*through, &*direct).await;
    commits_survive_cuts_without_loss_or_repetition(relay, through, &*direct).await;
}

/// Ends all faults and waits until the provider works again.
async fn recover(relay: &Relay, through: &dyn Store) {
    relay.heal();
    let healed = std::time::Instant::now();
    while let Err(error) = through.read("recovered", PATIENCE).await {
        assert!(healed.elapsed() < RECOVERY_MAX, "{:?} after the network was healed: {error}", healed.elapsed());
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
}

/// Waits until whatever was held up has arrived and had its effect.
async fn settle(direct: &dyn Store) {
    tokio::time::sleep(SETTLED).await;
    plain::read(direct, "settled").await;
}

/// The timeout of calls that will not be answered.
const PATIENCE: Duration = Duration::from_millis(400);

/// How much later than its timeout a call may answer: much, on a busy machine.
const LATE_MAX: Duration = Duration::from_secs(3);

/// Longest time from the network's healing until a provider works again.
const RECOVERY_MAX: Duration = Duration::from_secs(15);

/// Within this time what the relay delivers late has its effect.
const SETTLED: Duration = Duration::from_millis(500);
