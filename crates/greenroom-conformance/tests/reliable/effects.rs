//! What a turn does to others, in the commit of its changes: creations, timers, messages of each delivery, context.

use std::sync::Arc;
use std::time::Duration;

use greenroom::prelude::*;
use greenroom_store::memory::MemoryStore;

/// Makes others.
#[derive(Default, Actor)]
struct Parent {
    children: Queue<ChildRef>,
    news: Queue<String>,
}

#[actor(reliable)]
impl Parent {
    pub async fn bear(&mut self, cx: &Cx, name: String) -> ChildRef {
        let child = Child::create(cx);
        child.named(name, ParentRef::me(cx)).send();
        self.children.push(child.clone());
        child
    }

    pub async fn bear_and_fail(&mut self, cx: &Cx) {
        let child = ChildRef::create(cx);
        child.named("nobody", ParentRef::me(cx)).send();
        panic!("on purpose");
    }

    pub async fn hear(&mut self, news: String) {
        self.news.push(news);
    }

    pub async fn remind(&mut self, cx: &Cx, what: String, ms: u64) {
        ParentRef::me(cx).hear(what).after(Duration::from_millis(ms)).send();
    }

    pub async fn remind_by_name(&mut self, cx: &Cx, name: String, what: String, ms: u64) {
        ParentRef::me(cx).hear(what).after(Duration::from_millis(ms)).named(name).send();
    }

    pub async fn remind_no_more(&mut self, cx: &Cx, name: String) {
        cx.cancel_timer(&name);
    }

    pub async fn remind_badly(&mut self, cx: &Cx) {
        ParentRef::me(cx).hear("a slash").after(Duration::ZERO).named("a/b").send();
    }

    pub async fn remind_and_fail(&mut self, cx: &Cx) {
        ParentRef::me(cx).hear("of what never was").after(Duration::ZERO).send();
        panic!("on purpose");
    }

    pub async fn remind_each_day(&mut self, cx: &Cx) {
        ParentRef::me(cx).hear("daily").every(Duration::from_secs(86_400)).send();
    }

    pub async fn pass_on(&mut self, cx: &Cx, to: ParentRef) {
        to.hear(format!("exactly {}", cx.context().get("tenant").unwrap_or("none"))).send();
        to.tell_tenant().at_least_once().send();
        to.tell_tenant().with("tenant", "mine").best_effort().send();
    }

    pub async fn tell_tenant(&mut self, cx: &Cx) {
        self.news.push(format!("tenant {}", cx.context().get("tenant").unwrap_or("none")));
    }

    pub async fn forget(&mut self, cx: &Cx) {
        self.news.pop();
        cx.halt();
    }

    pub async fn news(&self) -> Vec<String> {
        self.news.iter().cloned().collect()
    }
}

/// Made by others.
#[derive(Default, Actor)]
struct Child {
    name: String,
}

#[actor(reliable)]
impl Child {
    pub async fn named(&mut self, name: String, parent: ParentRef) {
        parent.hear(format!("{name} lives")).send();
        self.name = name;
    }

    pub async fn name(&self) -> String {
        self.name.clone()
    }

    pub async fn go(&mut self, cx: &Cx) {
        cx.halt();
    }
}

async fn node(journal: &Arc<MemoryStore>) -> Node {
    let builder = Node::builder().register::<Parent>().register::<Child>().journal_store(journal.clone());
    builder.configure(|config| config.reliable.partitions = 4).start().await.expect("it starts")
}

async fn news(parent: &ParentRef, count: usize) -> Vec<String> {
    for _ in 0..500 {
        let news = parent.news().await.expect("it answers");
        if news.len() >= count {
            return news;
        }
        tokio::time::sleep(Duration::from_millis(10)).await;
    }
    panic!("{:?} instead of {count}", parent.news().await);
}

#[tokio::test]
async fn an_actor_that_a_turn_creates_lives_until_it_halts_and_never_again() {
    let journal = Arc::new(MemoryStore::new());
    let first = node(&journal).await;
    let parent = ParentRef::of(&first, "p");
    let ada = parent.bear("ada").await.unwrap();
    let bob = parent.bear("bob").await.unwrap();
    assert_ne!(ada.key(), bob.key(), "each has a key of its own");
    assert_eq!(news(&parent, 2).await.len(), 2);
    assert_eq!(ada.bind(&first).name().await.unwrap(), "ada");
    ada.bind(&first).go().await.unwrap();
    let error = ada.bind(&first).name().await.unwrap_err().to_string();
    assert!(error.contains("has halted"), "{error}");
    first.stop().await;
    let second = node(&journal).await;
    assert!(ada.bind(&second).name().await.is_err(), "nor on the next node");
    assert_eq!(bob.bind(&second).name().await.unwrap(), "bob");
    let cy = ParentRef::of(&second, "p").bear("cy").await.unwrap();
    assert!(cy.key() != ada.key() && cy.key() != bob.key(), "no key is given twice");
    second.stop().await;
}

#[tokio::test]
async fn what_a_failed_turn_created_never_was() {
    let journal = Arc::new(MemoryStore::new());
    let node = node(&journal).await;
    let parent = ParentRef::of(&node, "p");
    parent.bear_and_fail().await.unwrap_err();
    parent.bear("ada").await.unwrap();
    assert_eq!(news(&parent, 1).await, ["ada lives"]);
    let made_up = ChildRef::of(&node, "@0.1.1.1");
    assert!(made_up.name().await.is_err(), "a key that nobody was given is nobody's");
    node.stop().await;
}

#[tokio::test]
async fn a_timer_is_part_of_the_commit_and_fires_on_the_next_node() {
    let journal = Arc::new(MemoryStore::new());
    let first = node(&journal).await;
    let parent = ParentRef::of(&first, "p");
    parent.remind_and_fail().await.unwrap_err();
    parent.remind("of this", 30).await.unwrap();
    assert_eq!(news(&parent, 1).await, ["of this"]);
    parent.remind("of that", 400).await.unwrap();
    first.stop().await;
    let second = node(&journal).await;
    let parent = ParentRef::of(&second, "p");
    assert_eq!(news(&parent, 2).await, ["of this", "of that"]);
    tokio::time::sleep(Duration::from_millis(100)).await;
    assert_eq!(news(&parent, 2).await.len(), 2, "it fires once");
    let error = parent.remind_each_day().await.unwrap_err().to_string();
    assert!(error.contains("fires once") && error.contains(".after(delay).send()"), "{error}");
    second.stop().await;
}

#[tokio::test]
async fn context_flows_along_messages_of_each_delivery() {
    let journal = Arc::new(MemoryStore::new());
    let node = node(&journal).await;
    ParentRef::of(&node, "a").pass_on(ParentRef::of(&node, "b")).with("tenant", "theirs").await.unwrap();
    let mut heard = news(&ParentRef::of(&node, "b"), 3).await;
    heard.sort_unstable();
    assert_eq!(heard, ["exactly theirs", "tenant mine", "tenant theirs"]);
    node.stop().await;
}

#[tokio::test]
async fn what_a_turn_removes_before_it_halts_is_gone_too() {
    let journal = Arc::new(MemoryStore::new());
    let first = node(&journal).await;
    let parent = ParentRef::of(&first, "p");
    for text in ["one", "two"] {
        parent.hear(text).await.unwrap();
    }
    parent.forget().await.unwrap();
    first.stop().await;
    let second = node(&journal).await;
    assert_eq!(ParentRef::of(&second, "p").news().await.unwrap(), [""; 0]);
    second.stop().await;
}

#[tokio::test]
async fn a_timer_is_cancelled_or_replaced_by_its_name() {
    let builder = Node::builder().journal("memory:").register::<Parent>().register::<Child>();
    let node = builder.start().await.expect("it starts");
    let parent = ParentRef::of(&node, "ada");
    parent.remind_by_name("cancelled", "of what was cancelled", 4_000).await.unwrap();
    parent.remind_by_name("replaced", "of what was replaced", 4_000).await.unwrap();
    parent.remind_no_more("cancelled").await.unwrap();
    parent.remind_by_name("replaced", "of what took its place", 1).await.unwrap();
    parent.remind_no_more("unknown").await.unwrap();
    parent.remind("the last", 5_000).await.unwrap();
    loop {
        let news = parent.news().await.unwrap();
        if news.last().is_some_and(|last| last == "the last") {
            assert_eq!(news, ["of what took its place", "the last"]);
            break;
        }
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
    let said = parent.remind_badly().await.expect_err("no name has a slash").to_string();
    assert!(said.contains("without slashes"), "{said}");
    node.stop().await;
}
