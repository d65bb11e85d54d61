//! Crashes at a moment: what is done by then is done, and nothing else.

use std::time::Duration;

use greenroom_test::Moment;

use crate::actors::{BookRef, CounterRef, LedgerRef, RelayRef, cluster, reliable_cluster};

const SECOND: Duration = Duration::from_secs(1);

/// Has the node of a book die at its third save; what its caller was told last, and what the book holds afterwards.
fn third_save(moment: Moment, entries: u64) {
    cluster(2).seeds(20, move |cluster| async move {
        let (a, b) = (cluster.node("a"), cluster.node("b"));
        cluster.crash_at("b", moment, 3);
        let book = BookRef::of(&b, "visitors");
        assert_eq!((book.enter().await, book.enter().await), (Ok(1), Ok(2)), "the first two are none of its business");
        assert!(cluster.is_up("b"));
        let told = BookRef::of(&a, "visitors").enter().by(SECOND * 5).await;
        assert!(told.is_err(), "nobody heard of the third: {told:?}");
        assert!(!cluster.is_up("b"));
        let found = cluster.eventually(|| BookRef::of(&a, "visitors").entries()).await;
        assert_eq!(found, entries);
    });
}

#[test]
fn before_its_third_save_a_node_has_saved_twice() {
    third_save(Moment::BeforeSave, 2);
}

#[test]
fn after_its_third_save_a_node_has_saved_thrice_and_told_nobody() {
    third_save(Moment::AfterSave, 3);
}

/// Has the only node die at a commit; what its ledger holds when it is up again.
fn second_entry(moment: Moment, entries: u64) {
    reliable_cluster(1).seeds(20, move |cluster| async move {
        let a = cluster.node("a");
        assert_eq!(LedgerRef::of(&a, "main").enter().await, Ok(1));
        // What the partitions commit for themselves is over by then.
        tokio::time::sleep(SECOND * 30).await;
        cluster.crash_at("a", moment, 1);
        let told = LedgerRef::of(&a, "main").enter().by(SECOND * 5).await;
        assert!(told.is_err(), "nobody heard of the second: {told:?}");
        assert!(!cluster.is_up("a"));
        cluster.start("a").await;
        let found = cluster.eventually(|| LedgerRef::of(&cluster.node("a"), "main").entries()).await;
        assert_eq!(found, entries);
    });
}

#[test]
fn before_a_commit_nothing_of_the_turn_is_there() {
    second_entry(Moment::BeforeCommit, 1);
}

#[test]
fn after_a_commit_the_turn_is_there_and_nobody_was_told() {
    second_entry(Moment::AfterCommit, 2);
}

/// Has a node die at its second message to a counter on another one; what the counter has counted by then.
fn second_message(moment: Moment, counted: u64) {
    cluster(2).seeds(20, move |cluster| async move {
        let (a, b) = (cluster.node("a"), cluster.node("b"));
        // Both are where they are first called.
        assert_eq!(CounterRef::of(&a, "letters").add().await, Ok(1));
        let relay = RelayRef::of(&b, "post");
        relay.pass("letters".to_owned()).await.unwrap();
        tokio::time::sleep(SECOND).await;
        cluster.crash_at("b", moment, 1);
        let _ = relay.pass("letters".to_owned()).by(SECOND).await;
        cluster.until_down("b").await;
        tokio::time::sleep(SECOND).await;
        assert_eq!(CounterRef::of(&a, "letters").add().await, Ok(counted + 1));
    });
}

#[test]
fn before_it_sends_a_message_it_has_not_arrived() {
    second_message(Moment::BeforeSend, 2);
}

#[test]
fn after_it_sent_a_message_it_has_arrived() {
    second_message(Moment::AfterSend, 3);
}

#[test]
fn a_node_that_has_died_before_a_save_saves_nothing_more() {
    cluster(2).seeds(20, |cluster| async move {
        let b = cluster.node("b");
        for book in 0..BOOKS {
            assert_eq!(BookRef::of(&b, book).enter().await, Ok(1));
        }
        cluster.crash_at("b", Moment::BeforeSave, 1);
        for book in 0..BOOKS {
            BookRef::of(&b, book).enter().send();
        }
        cluster.until_down("b").await;
        for book in 0..BOOKS {
            let found = cluster.eventually(|| BookRef::of(&cluster.node("a"), book).entries()).await;
            assert_eq!(found, 1, "book {book}");
        }
    });
}

#[test]
fn a_node_that_has_died_before_a_message_sends_nothing_more() {
    cluster(2).seeds(20, |cluster| async move {
        let (a, b) = (cluster.node("a"), cluster.node("b"));
        assert_eq!(CounterRef::of(&a, "letters").add().await, Ok(1));
        for relay in 0..BOOKS {
            RelayRef::of(&b, relay).pass("letters".to_owned()).await.unwrap();
        }
        tokio::time::sleep(SECOND).await;
        cluster.crash_at("b", Moment::BeforeSend, 1);
        for relay in 0..BOOKS {
            RelayRef::of(&b, relay).pass("letters".to_owned()).send();
        }
        cluster.until_down("b").await;
        tokio::time::sleep(SECOND).await;
        assert_eq!(CounterRef::of(&a, "letters").add().await, Ok(BOOKS + 2));
    });
}

/// So many that several act in one breath.
const BOOKS: u64 = 5;

#[test]
fn a_moment_kills_once_and_the_node_starts_again() {
    cluster(2).seeds(10, |cluster| async move {
        let a = cluster.node("a");
        cluster.crash_at("b", Moment::BeforeSave, 1);
        let _ = BookRef::of(&cluster.node("b"), "guests").enter().by(SECOND).await;
        cluster.until_down("b").await;
        cluster.start("b").await;
        cluster.settled().await;
        let entered = cluster.eventually(|| BookRef::of(&cluster.node("b"), "guests").enter()).await;
        assert_eq!(entered, 1);
        assert_eq!(a.members(), ["a", "b"]);
    });
}

#[test]
fn whichever_moment_kills_a_node_a_message_of_a_reliable_actor_comes_once() {
    reliable_cluster(3).seeds(30, |cluster| async move {
        let mut random = cluster.sim().random();
        let moment =
            [Moment::BeforeCommit, Moment::AfterCommit, Moment::BeforeSend, Moment::AfterSend][random.index(4)];
        cluster.crash_at("b", moment, 1 + random.below(20));
        for number in 0..10 {
            let pass = || {
                let way = LedgerRef::of(&cluster.any(), format!("from {number}")).pass_on("to".to_owned());
                way.idempotent(&number.to_string()).by(SECOND)
            };
            cluster.eventually(pass).await;
        }
        let mut found = 0;
        for _ in 0..100 {
            found = cluster.eventually(|| LedgerRef::of(&cluster.any(), "to").entries()).await;
            if found >= 10 {
                break;
            }
            tokio::time::sleep(SECOND / 10).await;
        }
        assert_eq!(found, 10);
    });
}
