//! A bank: money moves by messages between accounts, and none of it is lost or made.

use std::sync::Arc;
use std::time::Duration;

use greenroom::prelude::*;
use greenroom_store::memory::MemoryStore;

#[derive(Default, Actor)]
pub(crate) struct Account {
    balance: Register<i64>,
    history: Map<String, i64>,
    transfers: u64,
    #[volatile]
    turns: u64,
}

#[actor(reliable)]
impl Account {
    pub async fn open(&mut self, amount: i64) {
        self.balance.set(amount);
    }

    /// Gives the balance that is left.
    pub async fn transfer(&mut self, cx: &Cx, to: String, amount: i64) -> Result<i64, String> {
        self.turns += 1;
        let left = *self.balance.get() - amount;
        if left < 0 {
            return Err("not so much".to_owned());
        }
        self.balance.set(left);
        self.transfers += 1;
        self.history.insert(to.clone(), amount);
        AccountRef::of(cx, to).deposit(amount).send();
        Ok(left)
    }

    pub async fn deposit(&mut self, amount: i64) {
        *self.balance.get_mut() += amount;
    }

    pub async fn look(&self) -> (i64, u64, u64, u64) {
        (*self.balance.get(), self.transfers, self.history.len() as u64, self.turns)
    }

    pub async fn fail(&mut self, cx: &Cx, to: String) {
        self.balance.set(0);
        AccountRef::of(cx, to).deposit(1_000_000).send();
        panic!("on purpose");
    }

    pub async fn close(&mut self, cx: &Cx) {
        cx.halt();
    }
}

async fn node(journal: &Arc<MemoryStore>, name: &str, table: &str) -> Node {
    let builder = Node::builder().name(name).table(table).register::<Account>().journal_store(journal.clone());
    builder.configure(|config| (config.reliable.partitions, config.shards) = (4, 2)).start().await.expect("it starts")
}

async fn settled(node: &Node, key: &str, balance: i64) {
    for _ in 0..500 {
        if AccountRef::of(node, key).look().await.expect("it answers").0 == balance {
            return;
        }
        tokio::time::sleep(Duration::from_millis(10)).await;
    }
    panic!("{key} has {:?}, not {balance}", AccountRef::of(node, key).look().await);
}

#[tokio::test]
async fn money_moves_by_messages_that_leave_with_their_turns_commit() {
    let journal = Arc::new(MemoryStore::new());
    let node = node(&journal, "a", "memory:").await;
    AccountRef::of(&node, "ada").open(100).await.unwrap();
    let left = AccountRef::of(&node, "ada").transfer("bob".to_owned(), 30).await.unwrap();
    assert_eq!(left, 70);
    settled(&node, "bob", 30).await;
    let error = AccountRef::of(&node, "ada").transfer("bob".to_owned(), 300).await.unwrap_err();
    assert_eq!(error, CallError::Actor("not so much".to_owned()));
    assert_eq!(AccountRef::of(&node, "ada").look().await.unwrap(), (70, 1, 1, 2));
    node.stop().await;
}

#[tokio::test]
async fn what_a_failed_turn_did_is_undone_and_what_it_sent_never_leaves() {
    let journal = Arc::new(MemoryStore::new());
    let node = node(&journal, "a", "memory:").await;
    AccountRef::of(&node, "ada").open(100).await.unwrap();
    let error = AccountRef::of(&node, "ada").fail("bob".to_owned()).await.unwrap_err();
    assert!(matches!(&error, CallError::Refused(Refusal::NotCommitted { message }) if message.contains("on purpose")));
    assert!(error.to_string().starts_with("nothing has changed"), "{error}");
    assert_eq!(AccountRef::of(&node, "ada").look().await.unwrap().0, 100);
    assert_eq!(AccountRef::of(&node, "bob").look().await.unwrap().0, 0);
    node.stop().await;
}

#[tokio::test]
async fn an_actor_is_what_its_journal_says_on_the_next_node() {
    let journal = Arc::new(MemoryStore::new());
    let first = node(&journal, "a", "memory:").await;
    AccountRef::of(&first, "ada").open(100).await.unwrap();
    AccountRef::of(&first, "ada").transfer("bob".to_owned(), 30).await.unwrap();
    settled(&first, "bob", 30).await;
    first.stop().await;
    let second = node(&journal, "b", "memory:").await;
    assert_eq!(AccountRef::of(&second, "ada").look().await.unwrap(), (70, 1, 1, 0), "volatile fields are reset");
    settled(&second, "bob", 30).await;
    second.stop().await;
}

#[tokio::test]
async fn a_halted_actor_leaves_nothing_and_begins_anew() {
    let journal = Arc::new(MemoryStore::new());
    let node = node(&journal, "a", "memory:").await;
    AccountRef::of(&node, "ada").open(100).await.unwrap();
    AccountRef::of(&node, "ada").transfer("bob".to_owned(), 30).await.unwrap();
    AccountRef::of(&node, "ada").close().await.unwrap();
    assert_eq!(AccountRef::of(&node, "ada").look().await.unwrap(), (0, 0, 0, 0));
    node.stop().await;
}
