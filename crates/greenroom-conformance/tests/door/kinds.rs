//! Actors for the door's tests, and nodes that host them.

use std::time::Duration;

use greenroom::prelude::*;
use greenroom::{Builder, Failed};
use serde::{Deserialize, Serialize};

#[derive(Debug, Serialize, Deserialize)]
pub(crate) enum NoteError {
    TooLong { max: usize },
}

/// An error that says what it means.
#[derive(Debug, Serialize, Deserialize)]
pub(crate) struct TooFew {
    lines: usize,
}

impl std::fmt::Display for TooFew {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "there are \"only\" {} lines; strike fewer", self.lines)
    }
}

/// Hosted by no node.
#[derive(Default, Actor)]
pub(crate) struct Nobody {}

#[actor]
impl Nobody {
    pub async fn count(&self) -> u64 {
        0
    }
}

#[derive(Default, Actor)]
pub(crate) struct Notes {
    lines: Vec<String>,
}

#[actor]
impl Notes {
    pub async fn add(&mut self, text: String, times: u32) -> Result<usize, NoteError> {
        if text.len() > 10 {
            return Err(NoteError::TooLong { max: 10 });
        }
        for _ in 0..times {
            self.lines.push(text.clone());
        }
        Ok(self.lines.len())
    }

    pub async fn strike(&mut self, lines: usize) -> Result<(), TooFew> {
        let left = self.lines.len().checked_sub(lines).ok_or(TooFew { lines: self.lines.len() })?;
        self.lines.truncate(left);
        Ok(())
    }

    pub async fn all(&self) -> Vec<String> {
        self.lines.clone()
    }

    pub async fn size(&self, text: String) -> usize {
        text.len()
    }

    /// Calls a kind that no node hosts.
    pub async fn ask_of_nobody(&mut self, cx: &Cx) -> Result<u64, Failed> {
        Ok(NobodyRef::of(cx, "a").count().await?)
    }

    pub async fn where_is_it(&self, cx: &Cx) -> String {
        cx.node_name().to_owned()
    }

    pub async fn doze(&mut self, ms: u64) {
        tokio::time::sleep(Duration::from_millis(ms)).await;
    }

    /// What the call carries, itself and on a call of its own.
    pub async fn carried(&mut self, cx: &Cx, more: bool) -> Vec<String> {
        if more {
            return NotesRef::of(cx, format!("{}+", cx.key())).carried(false).await.unwrap();
        }
        let context = cx.context();
        let pairs = context.iter().map(|(key, value)| format!("{key}={value}"));
        let trace = cx.trace().map(|trace| format!("{trace} {}", trace.state()));
        pairs.chain(trace).collect()
    }

    /// Writes down that the client has hung up.
    pub async fn until_cancelled(&mut self, cx: &Cx) {
        cx.cancelled().await;
        self.lines.push("cancelled".to_owned());
    }

    pub async fn fall_over(&mut self) {
        panic!("as asked");
    }
}

/// Takes one message beside the one that it works on.
#[derive(Default, Actor)]
pub(crate) struct Narrow;

#[actor(mailbox = 1)]
impl Narrow {
    pub async fn doze(&mut self, ms: u64) {
        tokio::time::sleep(Duration::from_millis(ms)).await;
    }
}

/// Never gets as far as its first turn.
#[derive(Default, Actor)]
pub(crate) struct Stillborn;

#[actor]
impl Stillborn {
    async fn activated(&mut self) -> Result<(), String> {
        Err("no luck".to_owned())
    }

    pub async fn touch(&mut self) {}
}

/// A node with a door and all kinds.
pub(crate) fn node() -> Builder {
    Node::builder()
        .http("127.0.0.1:0")
        .configure(|config| config.shards = 2)
        .register::<Notes>()
        .register::<Narrow>()
        .register::<Stillborn>()
}

/// Starts `node` and gives its door's address.
pub(crate) async fn open(node: Builder) -> (Node, String) {
    let node = node.start().await.expect("a node starts");
    let address = node.http_address().expect("it has a door");
    (node, address)
}
