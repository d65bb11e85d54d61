//! Pairs of features on two nodes: each test uses one sort of actor together with one mechanism.
//!
//! The matrix in the guide's page on guarantees names these tests.

mod machines;
mod mechanisms;
mod optimised;
mod persistent;
mod reliable;
mod spawned;
mod upgrades;
mod versioned;
mod workers;

use std::fmt::Debug;
use std::time::Duration;

use greenroom::{Builder, CallError};
use greenroom_test::{Cluster, Setup};

/// Two nodes, `a` and `b`, equipped alike.
fn pair(equip: impl Fn(Builder) -> Builder + Send + Sync + 'static) -> Setup {
    Cluster::of(2, move |builder| equip(builder.configure(|config| config.call_timeout = Duration::from_secs(5))))
}

/// Number of seeds of each test.
const SEEDS: u64 = 3;

/// Returns the reply of `call` once `accept` takes it; refused and doubtful calls are made again.
async fn until<T, E: Debug, C>(call: impl Fn() -> C, accept: impl Fn(&T) -> bool) -> T
where
    C: IntoFuture<Output = Result<T, CallError<E>>>,
{
    loop {
        match call().await {
            Ok(reply) if accept(&reply) => return reply,
            Ok(_) | Err(CallError::Refused(_) | CallError::Unknown { .. }) => {}
            Err(error) => panic!("{error:?}"),
        }
        tokio::time::sleep(Duration::from_millis(50)).await;
    }
}
