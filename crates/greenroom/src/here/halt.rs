//! Why a node has stopped.

use std::future::{Future, poll_fn};
use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};
use std::pin::pin;
use std::sync::Arc;
use std::task::Poll;

use super::Here;
use crate::node::error::Error;
use crate::shard::panic_message;

/// Why a node has stopped.
#[derive(Clone, Debug)]
pub(crate) enum Halt {
    /// In words that go on "the node has stopped:".
    Because(&'static str),
    /// A node that lives has its name, and is at this address.
    NameTaken { address: String },
}

impl Halt {
    /// The same, as what the program is told that wanted `node`.
    pub(crate) fn error(self, node: &Here) -> Error {
        match self {
            Self::Because(why) => Error::Halted { why },
            Self::NameTaken { address } => {
                let (name, cluster) = (node.name().to_owned(), node.config().cluster.clone());
                Error::NameTaken { name, cluster, address }
            }
        }
    }
}

impl Here {
    /// Runs `task`, a driver of protocols. It panics if one of them finds broken what it relies on: then the node stops, as
    /// one that went on without it would be there for others and keep none of its promises.
    pub(crate) async fn vital(self: Arc<Self>, what: &'static str, task: impl Future<Output = ()>) {
        let mut task = pin!(task);
        let ended = poll_fn(|context| match catch_unwind(AssertUnwindSafe(|| task.as_mut().poll(context))) {
            Ok(polled) => polled.map(Ok),
            Err(panic) => Poll::Ready(Err(panic)),
        });
        if let Err(panic) = ended.await {
            let message = panic_message(&*panic);
            tracing::error!(part = what, message, "a part of the node has panicked: the node stops");
            self.halt("a part of it has panicked, as its log tells");
            resume_unwind(panic);
        }
    }
}

impl From<&'static str> for Halt {
    fn from(why: &'static str) -> Self {
        Self::Because(why)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::here::node::Node;

    #[tokio::test]
    async fn a_node_one_of_whose_drivers_panics_stops_and_its_world_hears_of_the_panic() {
        let node = Node::builder().listen("127.0.0.1:0").table("memory:").start().await.unwrap();
        let driver = node.here().clone().vital("a driver", async { panic!("a promise is broken") });
        let panic = tokio::spawn(driver).await.unwrap_err().into_panic();
        assert_eq!(panic_message(&*panic), "a promise is broken");
        assert!(node.is_stopped());
        let why = node.halted().await.to_string();
        assert!(why.contains("a part of it has panicked"), "{why}");
    }
}
