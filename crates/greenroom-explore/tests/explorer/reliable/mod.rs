//! Reliable actors: their commits are steps, and what is committed is delivered exactly once, whatever crashes.

#[path = "../../../../greenroom/examples/pool_server/actors.rs"]
#[expect(unreachable_pub, reason = "it is the example's own")]
mod example;
mod ledger;
mod pools;
