//! The claims about networks, on the smallest engine behind one: an honest client keeps them, others do not.

mod engine;

use std::sync::Arc;

use engine::{Client, Manner};
use greenroom_store_conformance::{Relay, network};

/// The relay, a client of that manner through it, and an honest one beside it.
async fn stage(manner: Manner) -> (Relay, Arc<Client>, Arc<Client>) {
    let addr = engine::serve().await;
    let relay = Relay::start(addr).unwrap();
    let through = Client::open(relay.addr(), manner);
    (relay, Arc::new(through), Arc::new(Client::open(addr, Manner::Honest)))
}

/// What the claim panics with; this fails if it does not.
async fn complaint(claim: impl Future<Output = ()> + Send + 'static) -> String {
    let panic = tokio::spawn(claim).await.expect_err("the claim holds, although the promise is broken").into_panic();
    panic.downcast_ref::<String>().cloned().expect("it panics with a message")
}

#[tokio::test]
async fn an_honest_client_keeps_every_claim_about_networks() {
    let (relay, through, direct) = stage(Manner::Honest).await;
    network::store(&relay, through.clone(), direct.clone()).await;
    network::journal(&relay, through, direct).await;
}

#[tokio::test]
async fn a_client_that_denies_what_may_have_happened_is_found() {
    let (relay, through, direct) = stage(Manner::Denying).await;
    let claim =
        async move { network::an_unanswered_write_is_unknown_or_was_not_applied(&relay, &*through, &*direct).await };
    let said = complaint(claim).await;
    assert!(said.contains("has changed after all"), "{said}");
}

#[tokio::test]
async fn a_client_that_repeats_a_commit_by_itself_is_found() {
    let (relay, through, direct) = stage(Manner::Insistent).await;
    let claim =
        async move { network::commits_survive_cuts_without_loss_or_repetition(&relay, through, &*direct).await };
    let said = complaint(claim).await;
    assert!(said.contains("it was said not to be applied"), "{said}");
}

#[tokio::test]
async fn a_client_that_waits_for_ever_is_found() {
    let (relay, through, _direct) = stage(Manner::Patient).await;
    let claim = network::a_silent_engine_is_given_up_in_time(&relay, &*through);
    let waited = tokio::time::timeout(std::time::Duration::from_secs(6), claim).await;
    assert!(waited.is_err(), "it was given up although nobody answered");
}
