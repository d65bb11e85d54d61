//! A printer that can take only so much, and callers who mind.
//!
//! ```console
//! cargo run -p greenroom --example overload
//! ```

use std::time::Duration;

use greenroom::prelude::*;

/// Prints one page at a time; two more may wait.
#[derive(Default, Actor)]
pub struct Printer {
    pages: u64,
}

#[actor(mailbox = 2)]
impl Printer {
    /// Prints a page, and answers how many there are.
    pub async fn print(&mut self, text: String) -> u64 {
        tokio::time::sleep(Duration::from_millis(20 + text.len() as u64)).await;
        self.pages += 1;
        self.pages
    }
}

#[tokio::main]
async fn main() -> greenroom::Result<()> {
    let node = Node::builder().register::<Printer>().start().await?;
    let printer = PrinterRef::of(&node, "hall");

    // Ten at once: those that are refused come back by themselves.
    let pages: Vec<_> = (0..10).map(|page| tokio::spawn(printer.print(format!("page {page}")).into_future())).collect();
    for page in pages {
        println!("printed as number {:?}", page.await.expect("no caller panics"));
    }

    // Who says so is told at once.
    let pages: Vec<_> = (0..5).map(|_| tokio::spawn(printer.print("again").once().into_future())).collect();
    for page in pages {
        match page.await.expect("no caller panics") {
            Ok(number) => println!("printed as number {number}"),
            Err(error) => println!("{error}"),
        }
    }

    // And who has no time hears what kept the printer.
    printer.print("x".repeat(1_000)).send();
    tokio::time::sleep(Duration::from_millis(50)).await;
    if let Err(error) = printer.print("urgent").by(Duration::from_millis(300)).await {
        println!("{error}");
    }
    node.stop().await;
    Ok(())
}
