//! Looking into an actor: what it does, what waits for it, and what it did last.

use std::time::Duration;

use greenroom::prelude::*;
use greenroom::{Builder, Inspected, Inspection};

use crate::cluster::Cluster;
use crate::scenario::calm;

/// Prints for as long as it takes.
#[derive(Default, Actor)]
struct Printer {
    pages: u64,
    timer: Option<Timer>,
}

#[actor]
impl Printer {
    pub async fn print(&mut self, millis: u64) -> Result<u64, String> {
        tokio::time::sleep(Duration::from_millis(millis)).await;
        self.pages += 1;
        if millis == 13 { Err("paper jam".to_owned()) } else { Ok(self.pages) }
    }

    pub async fn pages(&self) -> u64 {
        self.pages
    }

    pub async fn ring(&mut self, cx: &Cx) {
        self.timer = cx.after(Duration::from_secs(3600), PrinterRef::me(cx).pages()).ok();
    }
}

/// Has things printed.
#[derive(Default, Actor)]
struct Clerk {}

#[actor]
impl Clerk {
    pub async fn order(&mut self, cx: &Cx, printer: String, millis: u64) -> bool {
        PrinterRef::of(cx, printer.as_str()).print(millis).await.is_ok()
    }

    pub async fn hire(&mut self, cx: &Cx) {
        cx.spawn(Clerk {});
    }
}

fn equip(builder: Builder, _: &str) -> Builder {
    builder.register::<Printer>().register::<Clerk>().configure(|config| {
        config.history.insert("printer".to_owned(), 3);
    })
}

/// What the nodes know of the actor: what the one that has it tells, and how many have it.
async fn look(cluster: &Cluster, kind: &str, key: &str) -> (Option<Inspection>, usize) {
    let (mut found, mut count) = (None, 0);
    for node in cluster.three() {
        if let Inspected::Here(inspection) = node.inspect(kind, key).await {
            assert_eq!(inspection.node, node.name());
            (found, count) = (Some(*inspection), count + 1);
        }
    }
    (found, count)
}

#[test]
fn an_actor_tells_what_it_does_and_what_waits_for_it_while_it_does_it() {
    calm(20, equip, async |cluster| {
        let [a, ..] = cluster.three();
        let orders: Vec<_> = ["ada", "bob", "eve"]
            .map(|clerk| tokio::task::spawn_local(ClerkRef::of(&a, clerk).order("hall", 2000).into_future()))
            .into_iter()
            .collect();
        tokio::time::sleep(Duration::from_millis(500)).await;
        let (found, count) = look(&cluster, "printer", "hall").await;
        let found = found.expect("it is active");
        assert_eq!((count, found.state.as_str(), found.waiting, found.turns.len()), (1, "ready", 2, 1));
        assert_eq!(found.actor, "printer/hall");
        assert!(found.epoch > 0 && found.age_seconds >= 0.4 && found.age_seconds < 1.0, "{found:?}");
        let turn = &found.turns[0];
        assert!(turn.method == "print" && !turn.read && turn.running_seconds > 0.3, "{found:?}");
        assert!(turn.left_seconds.is_some_and(|left| left > 1.0 && left < 5.0), "{found:?}");
        let mut callers: Vec<_> = found.messages.iter().filter_map(|message| message.caller.clone()).collect();
        callers.extend(turn.caller.clone());
        callers.sort();
        assert_eq!(callers, ["clerk/ada", "clerk/bob", "clerk/eve"]);
        assert!(found.messages.iter().all(|message| message.method == "print" && message.waited_seconds > 0.3));
        for order in orders {
            // The third one has waited for longer than its time.
            let _ = order.await;
        }
    });
}

#[test]
fn the_last_turns_of_a_kind_that_keeps_its_history_are_told_with_their_ends() {
    calm(20, equip, async |cluster| {
        let [a, ..] = cluster.three();
        let printer = PrinterRef::of(&a, "hall");
        for millis in [1, 2, 13] {
            let _ = printer.print(millis).await;
        }
        let slow = tokio::task::spawn_local(printer.print(400).into_future());
        tokio::time::sleep(Duration::from_millis(100)).await;
        assert_eq!(ClerkRef::of(&a, "ada").order("hall", 5).await, Ok(true));
        assert!(slow.await.is_ok());
        let found = look(&cluster, "printer", "hall").await.0.expect("it is active");
        let outcomes: Vec<_> = found.history.iter().map(|turn| turn.outcome.as_str()).collect();
        assert_eq!((found.history_len_max, outcomes), (3, vec!["error", "ok", "ok"]), "{found:?}");
        let [_, slow, last] = &found.history[..] else { panic!("{found:?}") };
        assert!(slow.took_seconds >= 0.39 && slow.queued_seconds < 0.05 && slow.caller.is_none(), "{found:?}");
        assert!(last.queued_seconds > 0.2 && last.took_seconds < 0.1, "{found:?}");
        assert_eq!(last.caller.as_deref(), Some("clerk/ada"));
        let clerk = look(&cluster, "clerk", "ada").await.0.expect("it is active");
        assert_eq!((clerk.history_len_max, clerk.history.len()), (0, 0), "nobody asked for its history");
    });
}

#[test]
fn who_only_looks_activates_nothing_and_hears_where_to_ask() {
    calm(20, equip, async |cluster| {
        assert_eq!(look(&cluster, "printer", "attic").await, (None, 0));
        let [a, ..] = cluster.three();
        PrinterRef::of(&a, "hall").ring().await.expect("nothing is wrong");
        let found = look(&cluster, "printer", "hall").await.0.expect("it is active");
        assert_eq!((found.timers, found.children.len()), (1, 0));
        ClerkRef::of(&a, "ada").hire().await.expect("nothing is wrong");
        let clerk = look(&cluster, "clerk", "ada").await.0.expect("it is active");
        assert_eq!(clerk.children.len(), 1, "{clerk:?}");
        let child = clerk.children[0].rsplit_once('/').expect("it has a key").1;
        let found = look(&cluster, "clerk", child).await;
        assert_eq!(found.1, 1, "a spawned actor is looked into like any other");
        for node in cluster.three() {
            match node.inspect("printer", "hall").await {
                Inspected::Here(here) => assert_eq!(here.node, node.name()),
                Inspected::There(other) => assert_ne!(other, node.name()),
                other => panic!("{}: {other:?}", node.name()),
            }
        }
    });
}
