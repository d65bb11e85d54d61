//! A rate limiter: a bucket of tokens for each client.

// anchor: recipe
use std::time::Duration;

use greenroom::prelude::*;
use tokio::time::Instant;

/// The tokens of one client, by the client's name as key. It lives in memory alone: a bucket that is forgotten is a full one.
#[derive(Actor)]
pub struct Bucket {
    tokens: f64,
    filled: Instant,
}

impl Default for Bucket {
    fn default() -> Self {
        Self { tokens: TOKENS_MAX, filled: Instant::now() }
    }
}

#[actor(idle = "1m")]
impl Bucket {
    /// Takes `count` tokens, or tells in how many milliseconds there are so many.
    pub async fn take(&mut self, count: u32) -> Result<(), u64> {
        let now = Instant::now();
        let new = (now - self.filled).as_secs_f64() * TOKENS_PER_SECOND;
        self.tokens = (self.tokens + new).min(TOKENS_MAX);
        self.filled = now;
        let missing = f64::from(count) - self.tokens;
        if missing > 0.0 {
            return Err(Duration::from_secs_f64(missing / TOKENS_PER_SECOND).as_millis() as u64 + 1);
        }
        self.tokens -= f64::from(count);
        Ok(())
    }
}

/// What a client may do at once.
const TOKENS_MAX: f64 = 10.0;

/// What it may do for ever.
const TOKENS_PER_SECOND: f64 = 2.0;
// end: recipe

#[cfg(test)]
mod tests {
    use greenroom_test::Cluster;

    use super::*;

    #[test]
    fn ten_at_once_and_then_two_a_second_whatever_node_is_asked() {
        Cluster::of(3, |builder| builder.register::<Bucket>()).seeds(10, |cluster| async move {
            for call in 0..10 {
                let node = cluster.node(["a", "b", "c"][call % 3]);
                BucketRef::of(&node, "ada").take(1).await.expect("there are ten");
            }
            let node = cluster.node("a");
            let bucket = BucketRef::of(&node, "ada");
            let Err(CallError::Actor(wait_ms)) = bucket.take(1).await else { panic!("there are no more") };
            tokio::time::sleep(Duration::from_millis(wait_ms)).await;
            bucket.take(1).await.expect("there is one again");
            BucketRef::of(&node, "bob").take(10).await.expect("bob has a bucket of his own");
        });
    }
}
