//! Methods that block: the actor goes to a thread of the pool, and comes back whatever happens there.

use std::collections::HashMap;
use std::sync::mpsc::{Receiver, Sender, channel};
use std::sync::{LazyLock, Mutex};
use std::time::Duration;

use greenroom::PoolSize;
use greenroom::prelude::*;
use tokio::time::timeout;

use super::node;

/// What closes a method's way out, by the test's number for it.
static GATES: LazyLock<Mutex<HashMap<u64, Receiver<()>>>> = LazyLock::new(Mutex::default);

/// A gate for a method to wait at.
fn gate(number: u64) -> Sender<()> {
    let (open, gate) = channel();
    GATES.lock().unwrap().insert(number, gate);
    open
}

/// Counts its visitors, one of whom may stay for long.
#[derive(Default, Actor)]
struct Hall {
    visitors: u64,
}

#[actor]
impl Hall {
    /// Blocks its thread until somebody opens the gate.
    #[blocking]
    pub fn stay(&mut self, gate: u64) -> Result<u64, String> {
        let gate = GATES.lock().unwrap().remove(&gate).ok_or("there is no such gate")?;
        gate.recv().map_err(|gone| gone.to_string())?;
        self.visitors += 1;
        Ok(self.visitors)
    }

    pub async fn pass(&mut self) -> u64 {
        self.visitors += 1;
        self.visitors
    }
}

/// A node of one shard and one thread for what blocks, behind which one may wait.
async fn narrow() -> Node {
    let narrow = |config: &mut greenroom::Config| {
        config.shards = 1;
        config.threads.blocking = PoolSize::Fixed(1);
        config.threads.blocking_len_max = 1;
    };
    node(|builder| builder.register::<Hall>().configure(narrow)).await
}

/// Until the pool's figure has this value.
async fn until(node: &Node, name: &str, value: u64) {
    let now = || {
        let figures = node.figures();
        figures.iter().find(|figure| figure.name() == name).expect("the pool says it").value() as u64
    };
    let reached = async {
        while now() != value {
            tokio::task::yield_now().await;
        }
    };
    timeout(PATIENCE, reached).await.unwrap_or_else(|_| panic!("{name} is to be {value}, and is {}", now()));
}

#[tokio::test]
async fn others_of_its_shard_go_on_and_what_is_sent_to_it_waits() {
    let (node, open) = (narrow().await, gate(1));
    let [one, other] = ["one", "other"].map(|key| HallRef::of(&node, key));
    assert_eq!(one.pass().await, Ok(1));
    let stays = tokio::spawn(one.stay(1).by(PATIENCE).into_future());
    until(&node, "greenroom_blocking_begun_total", 1).await;
    let follows = tokio::spawn(one.pass().by(PATIENCE).into_future());
    assert_eq!(other.pass().await, Ok(1));
    open.send(()).unwrap();
    assert_eq!((stays.await.unwrap(), follows.await.unwrap()), (Ok(2), Ok(3)));
    assert_eq!(one.stay(1).await, Err(CallError::Actor("there is no such gate".to_owned())));
}

#[tokio::test]
async fn a_method_that_never_began_is_refused_and_its_actor_is_what_it_was() {
    let (node, open) = (narrow().await, gate(2));
    let [stays, waits, refused] = ["stays", "waits", "refused"].map(|key| HallRef::of(&node, key));
    assert_eq!((waits.pass().await, refused.pass().await), (Ok(1), Ok(1)));
    let staying = tokio::spawn(stays.stay(2).by(PATIENCE).into_future());
    until(&node, "greenroom_blocking_begun_total", 1).await;
    let waiting = tokio::spawn(waits.stay(3).by(Duration::from_secs(1)).into_future());
    until(&node, "greenroom_blocking_waiting", 1).await;
    let full = refused.stay(4).once().await.unwrap_err();
    let CallError::Refused(Refusal::Overloaded { bound: 1, .. }) = &full else { panic!("{full:?}") };
    assert!(full.to_string().contains("what blocks"), "{full}");
    let late = waiting.await.unwrap().unwrap_err();
    assert!(matches!(late, CallError::Refused(Refusal::Expired(_))), "{late:?}");
    open.send(()).unwrap();
    assert_eq!(staying.await.unwrap(), Ok(1));
    assert_eq!((waits.pass().await, refused.pass().await), (Ok(2), Ok(2)));
}

/// Far longer than anything here takes.
const PATIENCE: Duration = Duration::from_secs(60);
