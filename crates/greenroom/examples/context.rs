//! What comes with a call: context that flows along, an interceptor that asks for it, and a turn that stops when nobody
//! waits any more.

use std::time::Duration;

use greenroom::prelude::*;
use greenroom::{CallInfo, Interceptor};

/// Writes reports, page by page.
#[derive(Default, Actor)]
pub struct Writer {
    pages: u64,
}

#[actor]
impl Writer {
    /// Writes until it is done, or nobody waits for it any more.
    pub async fn write(&mut self, cx: &Cx, pages: u64) -> u64 {
        while self.pages < pages && !cx.is_cancelled() {
            tokio::time::sleep(Duration::from_millis(1)).await;
            self.pages += 1;
        }
        self.pages
    }

    /// What is written.
    pub async fn pages(&self) -> u64 {
        self.pages
    }

    /// For whom it works.
    pub async fn client(&self, cx: &Cx) -> Option<String> {
        cx.context().get("client").map(str::to_owned)
    }
}

/// Passes questions on.
#[derive(Default, Actor)]
pub struct Desk {}

#[actor]
impl Desk {
    /// Whom the writer believes to work for, when asked by the desk.
    pub async fn ask(&self, cx: &Cx, writer: String) -> Option<String> {
        WriterRef::of(cx, writer).client().await.ok().flatten()
    }
}

/// Refuses work that is for nobody.
pub struct Clients;

impl Interceptor for Clients {
    fn incoming(&self, call: &mut CallInfo<'_>) -> Result<(), Refusal> {
        match call.context().get("client") {
            Some(_) => Ok(()),
            None => Err(Refusal::Denied { message: "say for whom: set `client`".to_owned() }),
        }
    }
}

#[tokio::main]
async fn main() -> greenroom::Result<()> {
    let node = Node::builder().register::<Writer>().register::<Desk>().intercept_kind("desk", Clients).start().await?;
    let desk = DeskRef::of(&node, "front");
    println!("for nobody: {:?}", desk.ask("ada").await);
    println!("for Grace: {:?}", desk.ask("ada").with("client", "Grace").await);

    let writer = WriterRef::of(&node, "ada");
    let patience = Duration::from_millis(100);
    let written = tokio::time::timeout(patience, writer.write(1_000_000).into_future()).await;
    println!("within {patience:?}: {written:?}; written until then: {:?}", writer.pages().await);
    node.stop().await;
    Ok(())
}
