//! The cluster at a glance, and its stage, for a program.

use futures_util::FutureExt;
use serde_json::Value;

use super::Node;
use crate::observe::look::Whom;
use crate::observe::overview::overview;
use crate::observe::stage::TOP_MAX;
use crate::observe::stage::cluster::stage;

impl Node {
    /// The cluster at a glance, as `GET /-/overview` says it: its nodes and what each says of itself, and what happened in the last
    /// `seconds`, at most an hour. At most 32 nodes are asked, each for half a second; those that gave no answer are in `silent`, with
    /// why. It activates no actor and runs no code of yours.
    ///
    /// ```
    /// # use greenroom::prelude::*;
    /// # #[derive(Default, Actor)]
    /// # pub struct Room;
    /// # #[actor]
    /// # impl Room { pub async fn read(&self) {} }
    /// # #[tokio::main(flavor = "current_thread")]
    /// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// let node = Node::builder().register::<Room>().start().await?;
    /// RoomRef::of(&node, "lobby").read().await?;
    /// let seen = node.overview(60).await;
    /// assert_eq!(seen["clusters"][0]["nodes"][0]["status"], "active");
    /// # node.stop().await;
    /// # Ok(())
    /// # }
    /// ```
    pub fn overview(&self, seconds: u32) -> impl Future<Output = Value> + Send {
        let here = self.here().clone();
        async move { overview(&here, seconds.clamp(1, SECONDS_MAX), &Whom::All).await }.boxed()
    }

    /// Who is on the stage of the cluster, as `GET /-/stage` says it: how many actors of which kinds each thread has, the `top` hottest of
    /// them (at most 2000), who of them talks with whom, and who has moved. Nodes are asked as for [`overview`](Self::overview); their
    /// shards are, too, each for what it has counted and sampled.
    pub fn stage(&self, top: usize) -> impl Future<Output = Value> + Send {
        let here = self.here().clone();
        async move { stage(&here, top.min(TOP_MAX), &Whom::All).await }.boxed()
    }
}

/// So much of the past is kept, in seconds.
const SECONDS_MAX: u32 = 3_600;
