//! Outputs: they leave after the commit, at least once, with a key that tells repeats.

use std::collections::BTreeSet;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use greenroom::prelude::*;
use greenroom_store::memory::MemoryStore;
use greenroom_store::{Outlet, Output, Undelivered};

#[derive(Default, Actor)]
struct Shop {
    sold: Register<u64>,
}

#[actor(reliable)]
impl Shop {
    pub async fn sell(&mut self, cx: &Cx, count: u64) -> Result<u64, String> {
        for _ in 0..count {
            *self.sold.get_mut() += 1;
            cx.output("invoices", self.sold.get()).map_err(|error| error.to_string())?;
        }
        Ok(*self.sold.get())
    }

    pub async fn fail(&mut self, cx: &Cx) {
        *self.sold.get_mut() += 1;
        cx.output("invoices", "never").expect("there is such an outlet");
        panic!("on purpose");
    }

    pub async fn misname(&mut self, cx: &Cx) -> String {
        cx.output("invoice", &1).map_or_else(|error| error.to_string(), |()| "it is taken".to_owned())
    }
}

/// Remembers what came, and is closed for so many first, and for some for ever.
#[derive(Debug, Default)]
struct Office {
    refusals: AtomicU64,
    /// Whose outputs it never takes.
    closed_for: &'static str,
    came: Mutex<Vec<(String, String, String)>>,
}

impl Outlet for Office {
    fn deliver(&self, output: Output) -> futures_util::future::BoxFuture<'_, Result<(), Undelivered>> {
        Box::pin(async move {
            let body = String::from_utf8(output.body.to_vec()).expect("JSON is text");
            let never = output.from == self.closed_for;
            self.came.lock().unwrap().push((output.key, output.from, body));
            if never {
                return Err(Undelivered::Unavailable("the office is closed to you".to_owned()));
            }
            let refused = self.refusals.fetch_update(Ordering::Relaxed, Ordering::Relaxed, |left| left.checked_sub(1));
            if refused.is_ok() { Err(Undelivered::Unavailable("the office is closed".to_owned())) } else { Ok(()) }
        })
    }
}

impl Office {
    fn came(&self) -> Vec<(String, String, String)> {
        self.came.lock().unwrap().clone()
    }

    /// The bodies by key, each once, in the order in which they came first.
    fn told_apart(&self) -> Vec<String> {
        let mut keys = BTreeSet::new();
        self.came().into_iter().filter(|(key, ..)| keys.insert(key.clone())).map(|(_, _, body)| body).collect()
    }
}

async fn node(journal: &Arc<MemoryStore>, office: &Arc<Office>) -> Node {
    let builder = Node::builder().register::<Shop>().journal_store(journal.clone()).outlet("invoices", office.clone());
    builder.configure(|config| (config.reliable.partitions, config.shards) = (2, 1)).start().await.expect("it starts")
}

async fn until(what: &str, mut is_so: impl FnMut() -> bool) {
    let begun = std::time::Instant::now();
    while !is_so() {
        assert!(begun.elapsed() < Duration::from_secs(60), "{what}");
        tokio::time::sleep(Duration::from_millis(5)).await;
    }
}

fn numbers(upto: u64) -> Vec<String> {
    (1..=upto).map(|n| n.to_string()).collect()
}

#[tokio::test]
async fn outputs_of_an_actor_arrive_in_their_order_and_those_of_a_failed_turn_never() {
    let (journal, office) = (Arc::default(), Arc::new(Office::default()));
    let node = node(&journal, &office).await;
    let shop = ShopRef::of(&node, "corner");
    assert_eq!(shop.sell(20).await, Ok(20));
    shop.fail().await.expect_err("it panics");
    assert_eq!(shop.sell(10).await, Ok(30));
    until("all come", || office.came().len() >= 30).await;
    let bodies: Vec<String> = office.came().into_iter().map(|(_, _, body)| body).collect();
    assert_eq!(bodies, numbers(30));
    assert!(office.came().iter().all(|(_, from, _)| from == "shop/corner"));
    node.stop().await;
}

#[tokio::test]
async fn an_output_that_is_refused_comes_again_under_its_key_also_from_the_next_owner() {
    let (journal, office) = (Arc::default(), Arc::new(Office::default()));
    office.refusals.store(u64::MAX, Ordering::Relaxed);
    let first = node(&journal, &office).await;
    assert_eq!(ShopRef::of(&first, "corner").sell(3).await, Ok(3));
    until("it is tried twice", || office.came().len() >= 2).await;
    first.stop().await;
    let tried = office.came();
    assert!(tried.iter().all(|one| *one == tried[0]), "the second output waits for the first: {tried:?}");
    office.refusals.store(1, Ordering::Relaxed);
    let second = node(&journal, &office).await;
    until("all come", || office.told_apart().len() == 3).await;
    assert_eq!(office.told_apart(), numbers(3));
    assert_eq!(ShopRef::of(&second, "corner").sell(1).await, Ok(4));
    until("the next one comes", || office.told_apart().len() == 4).await;
    second.stop().await;
    let last = office.came().len();
    let third = node(&journal, &office).await;
    assert_eq!(ShopRef::of(&third, "corner").sell(1).await, Ok(5));
    until("the next one comes", || office.told_apart().len() == 5).await;
    assert_eq!(office.came().len(), last + 1, "what was delivered is not sent again");
    third.stop().await;
}

#[tokio::test]
async fn an_output_that_its_outlet_does_not_take_keeps_only_its_own_actors_waiting() {
    let (journal, office) = (Arc::default(), Arc::new(Office { closed_for: "shop/corner", ..Office::default() }));
    let node = node(&journal, &office).await;
    assert_eq!(ShopRef::of(&node, "corner").sell(400).await, Ok(400));
    // One is in its partition.
    let others = ["a", "b", "c", "d", "e"];
    for other in others {
        assert_eq!(ShopRef::of(&node, other).sell(200).await, Ok(200));
    }
    let of = |from: &str| {
        let came = office.came().into_iter().filter(|(_, other, _)| other == from);
        came.map(|(_, _, body)| body).collect::<Vec<_>>()
    };
    for other in others {
        until("all of the others' come", || of(&format!("shop/{other}")).len() >= 200).await;
        assert_eq!(of(&format!("shop/{other}")), numbers(200), "in their order");
    }
    assert!(of("shop/corner").iter().all(|body| body == "1"), "its own wait");
    node.stop().await;
}

#[tokio::test]
async fn an_outlet_that_is_not_there_is_named_beside_those_that_are() {
    let (journal, office) = (Arc::default(), Arc::new(Office::default()));
    let node = node(&journal, &office).await;
    let said = ShopRef::of(&node, "corner").misname().await.expect("it answers");
    assert!(said.contains("\"invoice\"") && said.contains("\"invoices\""), "{said}");
    node.stop().await;
    let wrong = Node::builder().configure(|config| {
        config.reliable.outlets.insert("x".to_owned(), "ftp://host".to_owned());
    });
    let error = wrong.start().await.map(drop).expect_err("it is no outlet").to_string();
    assert!(error.contains("outlet \"x\""), "{error}");
}

/// As much of an HTTP server as a hook needs: gives what it was asked, refuses the first.
fn hook() -> (u16, std::sync::mpsc::Receiver<String>) {
    use std::io::{Read, Write};

    let listener = std::net::TcpListener::bind("127.0.0.1:0").expect("a free port");
    let port = listener.local_addr().expect("it is bound").port();
    let (told, asked) = std::sync::mpsc::channel();
    std::thread::spawn(move || {
        for (n, stream) in listener.incoming().enumerate() {
            let Ok(mut stream) = stream else { return };
            let mut request = Vec::new();
            let mut bytes = [0; 1024];
            while !String::from_utf8_lossy(&request).contains("\r\n\r\n1") {
                let read = stream.read(&mut bytes).expect("a request");
                request.extend_from_slice(&bytes[..read]);
            }
            let status = if n == 0 { "503 Service Unavailable" } else { "204 No Content" };
            let _ = stream.write_all(format!("HTTP/1.1 {status}\r\ncontent-length: 0\r\n\r\n").as_bytes());
            if told.send(String::from_utf8_lossy(&request).into_owned()).is_err() {
                return;
            }
        }
    });
    (port, asked)
}

#[tokio::test]
async fn a_hook_is_posted_to_until_it_says_yes() {
    let (port, asked) = hook();
    let node = Node::builder().register::<Shop>().journal("memory:").configure(|config| {
        config.reliable.outlets.insert("invoices".to_owned(), format!("http://127.0.0.1:{port}/new"));
    });
    let node = node.start().await.expect("it starts");
    assert_eq!(ShopRef::of(&node, "corner").sell(1).await, Ok(1));
    let (first, second) =
        tokio::task::spawn_blocking(move || (asked.recv().unwrap(), asked.recv().unwrap())).await.expect("both come");
    for request in [&first, &second] {
        assert!(request.starts_with("POST /new HTTP/1.1\r\n") && request.ends_with("\r\n\r\n1"), "{request}");
        assert!(request.contains("greenroom-actor: shop/corner"), "{request}");
    }
    let key =
        |request: &str| request.lines().find_map(|line| line.strip_prefix("idempotency-key: ").map(str::to_owned));
    assert!(key(&first).is_some() && key(&first) == key(&second), "{first} {second}");
    node.stop().await;
}
