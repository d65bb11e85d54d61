//! PoolServer, the case study of RSM §5: pools of resources whose provider fails and loses them.
//!
//! ```sh
//! cargo run -p greenroom --example pool_server
//! curl -d '{"size": 3}' -H 'Idempotency-Key: 1' localhost:7070/pool/ada/create_pool
//! curl -d '{"size": 5}' localhost:7070/pool/ada/resize
//! curl -d '{}' localhost:7070/pool/ada/look
//! curl -d '{"place": 0}' localhost:7070/provider/cloud/lose
//! curl -d '{}' localhost:7070/pool/ada/delete
//! ```
//!
//! Kill it whenever you like and start it again: it goes on where it was.

mod actors;

pub use actors::{Pool, PoolError, PoolRef, Provider, ProviderRef, Resource};
use greenroom::prelude::*;

#[tokio::main]
async fn main() -> greenroom::Result<()> {
    let file = std::env::temp_dir().join("greenroom-pools.db");
    let node = Node::builder().journal(format!("sqlite:{}", file.display())).http("127.0.0.1:7070");
    let node = node.register::<Pool>().register::<Resource>().register::<Provider>().start().await?;
    ProviderRef::of(&node, "cloud").refuse(4).await?;
    println!("pools are at http://127.0.0.1:7070/pool/NAME/look; their journal is {}", file.display());
    node.run_until_ctrl_c().await
}
