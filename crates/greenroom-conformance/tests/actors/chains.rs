//! Calls that call: references in messages, chains, cycles.

use greenroom::prelude::*;

use super::node;

#[derive(Default, Actor)]
struct Link {
    value: u64,
}

#[actor]
impl Link {
    /// Calls down the list; the last one answers.
    pub async fn pass(&mut self, cx: &Cx, mut rest: Vec<String>) -> Result<u64, String> {
        self.value += 1;
        match rest.pop() {
            None => Ok(1),
            Some(next) => match LinkRef::of(cx, next).pass(rest).await {
                Ok(depth) => Ok(depth + 1),
                Err(CallError::Actor(said)) => Err(said),
                Err(error) => Err(error.to_string()),
            },
        }
    }

    /// The same by reads.
    pub async fn look(&self, cx: &Cx, mut rest: Vec<String>) -> Result<u64, String> {
        match rest.pop() {
            None => Ok(self.value),
            Some(next) => LinkRef::of(cx, next).look(rest).await.map_err(|error| error.to_string()),
        }
    }

    /// A read that asks for a write of whoever is next.
    pub async fn look_then_pass(&self, cx: &Cx, rest: Vec<String>) -> Result<u64, String> {
        LinkRef::of(cx, "b").pass(rest).await.map_err(|error| error.to_string())
    }

    /// Calls whom it is told to, by a reference that came in the message.
    pub async fn call(&mut self, other: LinkRef) -> u64 {
        other.look(vec![]).await.unwrap_or(99)
    }
}

async fn links() -> Node {
    node(|builder| builder.register::<Link>()).await
}

fn list(keys: &[&str]) -> Vec<String> {
    keys.iter().rev().map(|key| (*key).to_owned()).collect()
}

#[tokio::test]
async fn a_chain_of_calls_comes_back() {
    let node = links().await;
    let keys: Vec<String> = (0..60).map(|key| key.to_string()).collect();
    assert_eq!(LinkRef::of(&node, "first").pass(keys).await, Ok(61));
}

#[tokio::test]
async fn a_chain_that_would_wait_for_itself_is_refused_at_once_and_named() {
    let node = links().await;
    let Err(CallError::Actor(said)) = LinkRef::of(&node, "a").pass(list(&["b", "c", "a"])).await else {
        panic!("it cannot succeed")
    };
    assert!(said.contains("link/a -> link/b -> link/c -> link/a"), "{said}");
    assert_eq!(LinkRef::of(&node, "a").pass(vec![]).await, Ok(1), "nobody is stuck");
}

#[tokio::test]
async fn an_actor_that_calls_itself_is_a_cycle_of_one() {
    let node = links().await;
    let Err(CallError::Actor(said)) = LinkRef::of(&node, "a").pass(list(&["a"])).await else { panic!("it deadlocks") };
    assert!(said.contains("link/a -> link/a"), "{said}");
}

#[tokio::test]
async fn reads_may_come_back_to_where_they_began() {
    let node = links().await;
    assert_eq!(LinkRef::of(&node, "a").look(list(&["b", "a", "b"])).await, Ok(0));
}

#[tokio::test]
async fn a_write_that_waits_for_the_read_that_waits_for_it_is_a_cycle() {
    let node = links().await;
    let ended = LinkRef::of(&node, "a").look_then_pass(list(&["a"])).await;
    let Err(CallError::Actor(said)) = ended else { panic!("it deadlocks: {ended:?}") };
    assert!(said.contains("link/a -> link/b -> link/a"), "{said}");
}

#[tokio::test]
async fn a_reference_in_a_message_works_where_it_arrives() {
    let node = links().await;
    let called = LinkRef::of(&node, "called");
    called.pass(vec![]).await.unwrap();
    assert_eq!(LinkRef::of(&node, "caller").call(called).await, Ok(1));
}

#[tokio::test]
async fn a_reference_that_is_bound_to_nothing_says_so() {
    let node = links().await;
    let text = serde_json::to_string(&LinkRef::of(&node, "x")).unwrap();
    assert_eq!(text, "\"x\"");
    let unbound: LinkRef = serde_json::from_str(&text).unwrap();
    assert_eq!(unbound.pass(vec![]).await, Err(CallError::Refused(Refusal::Unbound)));
    assert_eq!(unbound.bind(&node).pass(vec![]).await, Ok(1));
}
