//! The smallest actor: it greets, and counts whom it has greeted.
//!
//! `cargo run --example hello`

use greenroom::prelude::*;

/// Greets who comes.
#[derive(Default, Actor)]
pub struct Greeter {
    greeted: u64,
}

#[actor]
impl Greeter {
    /// `&mut self`: one at a time.
    pub async fn greet(&mut self, name: String) -> String {
        self.greeted += 1;
        format!("Hello, {name}! You are guest number {}.", self.greeted)
    }
}

#[tokio::main]
async fn main() -> greenroom::Result<()> {
    let node = Node::builder().register::<Greeter>().start().await?;
    // Nobody creates the greeter at the front desk: it is there when it is called.
    let greeter = GreeterRef::of(&node, "front desk");
    println!("{}", greeter.greet("Ada").await?);
    println!("{}", greeter.greet("Grace").await?);
    node.stop().await;
    Ok(())
}
