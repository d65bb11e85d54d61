//! Crashes, pauses, clocks and virtual time.

mod echo;

use std::cell::{Cell, RefCell};
use std::io::ErrorKind;
use std::rc::Rc;

use echo::{USER, ask, calm, frame, millis, read_frame, secs, start_echo};
use greenroom_sim::{Exclusive, Faults, Sim, expect_violation, seeds};
use greenroom_world::{Stage, World};
use tokio::io::AsyncWriteExt;

#[test]
fn a_crash_drops_tasks_at_once_and_resets_connections() {
    seeds("crash", 50, |seed| {
        Sim::builder().seed(seed).faults(calm()).run(|sim| async move {
            start_echo(&sim, "b");
            let (a, b) = (sim.node("a"), sim.node("b"));
            let held = Rc::new(());
            let holds = held.clone();
            b.spawn_local("holder", async move {
                let _holds = holds;
                std::future::pending().await
            });
            let mut stream = a.connect("b:7000").await.unwrap();
            sim.crash("b");
            assert_eq!(Rc::strong_count(&held), 1, "the task is gone when crash returns");
            assert!(b.is_dead() && !sim.is_alive("b"));
            let error = read_frame(&mut *stream).await.unwrap_err();
            assert_eq!(error.kind(), ErrorKind::ConnectionReset);
            assert_eq!(a.connect("b:7000").await.err().unwrap().kind(), ErrorKind::ConnectionRefused);
            start_echo(&sim, "b");
            assert_eq!(sim.node("b").incarnation(), 2);
            let mut stream = a.connect("b:7000").await.unwrap();
            assert_eq!(ask(&a, &mut *stream, USER, 1, secs(1)).await.unwrap(), 1);
        });
    });
}

#[test]
fn a_node_can_crash_itself_in_the_middle_of_a_task() {
    Sim::builder().faults(calm()).run(|sim| async move {
        let node = sim.node("a");
        let reached = Rc::new(Cell::new(0));
        let (count, own) = (reached.clone(), sim.clone());
        node.spawn_local("suicide", async move {
            own.crash("a");
            count.set(1);
            tokio::task::yield_now().await;
            count.set(2);
        });
        tokio::time::sleep(secs(1)).await;
        assert_eq!(reached.get(), 1, "it runs to its next await and no further");
        let count = reached.clone();
        node.spawn_local("ghost", async move { count.set(3) });
        tokio::time::sleep(secs(1)).await;
        assert_eq!(reached.get(), 1, "a dead node starts nothing");
    });
}

#[test]
fn a_silent_crash_is_noticed_only_after_the_restart() {
    seeds("silent crash", 50, |seed| {
        let faults = Faults { silent_crash: 1.0, ..calm() };
        Sim::builder().seed(seed).faults(faults).run(|sim| async move {
            start_echo(&sim, "b");
            let a = sim.node("a");
            let mut stream = a.connect("b:7000").await.unwrap();
            sim.crash("b");
            assert_eq!(ask(&a, &mut *stream, USER, 1, secs(5)).await.unwrap_err().kind(), ErrorKind::TimedOut);
            assert_eq!(a.connect("b:7000").await.err().unwrap().kind(), ErrorKind::TimedOut);
            start_echo(&sim, "b");
            assert_eq!(read_frame(&mut *stream).await.unwrap_err().kind(), ErrorKind::ConnectionReset);
        });
    });
}

#[test]
fn a_pause_stops_tasks_but_neither_clock_nor_connections() {
    seeds("pause", 50, |seed| {
        Sim::builder().seed(seed).faults(calm()).run(|sim| async move {
            start_echo(&sim, "b");
            let (a, b) = (sim.node("a"), sim.node("b"));
            let ticks = Rc::new(Cell::new(0));
            let counter = ticks.clone();
            b.spawn_local("ticker", async move {
                loop {
                    tokio::time::sleep(millis(100)).await;
                    counter.set(counter.get() + 1);
                }
            });
            let mut stream = a.connect("b:7000").await.unwrap();
            sim.pause("b");
            let (before, clock) = (ticks.get(), b.now());
            for number in 0..10 {
                stream.write_all(&frame(USER, number)).await.unwrap();
                tokio::time::sleep(secs(1)).await;
            }
            assert_eq!(ticks.get(), before);
            assert!(b.now().since(clock) > millis(9_800));
            sim.resume("b");
            for number in 0..10 {
                assert_eq!(read_frame(&mut *stream).await.unwrap(), (USER, number));
            }
            tokio::time::sleep(secs(1)).await;
            assert!(ticks.get() > before);
        });
    });
}

#[test]
fn clocks_differ_by_offset_and_drift_and_wake_by_their_own_time() {
    Sim::builder().seed(5).faults(calm()).deadline(secs(2000)).run(|sim| async move {
        let (a, b) = (sim.node("a"), sim.node("b"));
        let begin = [a.now(), b.now()];
        assert_ne!(begin[0], begin[1]);
        tokio::time::sleep(secs(1000)).await;
        let passed = [a.now().since(begin[0]), b.now().since(begin[1])];
        assert_ne!(passed[0], passed[1], "they drift apart");
        assert!(passed.iter().all(|passed| (secs(990)..=secs(1010)).contains(passed)), "{passed:?}");
        let at = a.now() + secs(100);
        a.sleep_until(at).await;
        assert!(a.now() >= at && a.now().since(at) <= millis(2));
    });
}

#[test]
fn shards_may_hold_what_is_not_send() {
    Sim::builder().faults(calm()).run(|sim| async move {
        let (tell, told) = tokio::sync::oneshot::channel();
        let body = Box::new(move || {
            let local = Rc::new(RefCell::new(Some(tell)));
            Box::pin(async move {
                tokio::time::sleep(secs(3600 / 10)).await;
                local.take().unwrap().send(7).unwrap();
            }) as greenroom_world::LocalFuture
        });
        sim.node("a").start_shard("shard-0".into(), body).unwrap();
        assert_eq!(told.await.unwrap(), 7);
        assert!(sim.now() >= secs(360), "virtual time passed");
    });
}

#[test]
#[should_panic(expected = "no progress: 1001 polls at virtual time 1s and no time passes; last was spinner of a")]
fn a_busy_loop_is_named() {
    Sim::builder().faults(calm()).polls_max(1000).run(|sim| async move {
        tokio::time::sleep(secs(1)).await;
        sim.node("a").spawn_local("spinner", async {
            loop {
                tokio::task::yield_now().await;
            }
        });
        std::future::pending::<()>().await;
    });
}

#[test]
#[should_panic(expected = "no end: the scenario still runs at virtual time 60s")]
fn a_deadlock_is_an_end_and_not_a_hang() {
    Sim::builder().faults(calm()).deadline(secs(60)).run(|_| std::future::pending::<()>());
}

#[test]
#[should_panic(expected = "boom")]
fn a_panic_in_a_node_fails_the_run() {
    Sim::builder().faults(calm()).run(|sim| async move {
        sim.node("a").spawn(Stage::Door, Box::pin(async { panic!("boom") }));
        tokio::time::sleep(secs(1)).await;
    });
}

/// Two nodes take turns at one actor for a while each, without any agreement unless `agreed`.
fn two_hosts(seed: u64, agreed: bool) {
    Sim::builder().seed(seed).faults(calm()).run(move |sim| async move {
        let exclusive = Exclusive::strict(&sim);
        for (number, name) in ["a", "b"].into_iter().enumerate() {
            let (exclusive, mut random) = (exclusive.clone(), sim.random());
            sim.node(name).spawn_local("host", async move {
                for turn in 0..10 {
                    let slot = if agreed { millis(1000 * (2 * turn + number as u64)) } else { millis(0) };
                    tokio::time::sleep(slot.max(random.within(&(millis(0)..millis(2000))))).await;
                    let _inside = exclusive.enter("actor", name, 1);
                    tokio::time::sleep(millis(50)).await;
                    if agreed {
                        return;
                    }
                }
            });
        }
        tokio::time::sleep(secs(30)).await;
        assert!(exclusive.entries() >= 2);
    });
}

#[test]
fn the_exclusive_check_finds_an_overlap_with_its_trace() {
    let found = expect_violation("two hosts", 200, |seed| two_hosts(seed, false));
    assert!(found.what.contains("enters actor"), "{}", found.what);
    assert!(found.trace.last().is_some_and(|line| line.contains("violated")), "{:?}", found.trace);
}

#[test]
fn an_older_epoch_may_linger_but_not_start() {
    let run = |newer_first: bool, fenced: bool| {
        std::panic::catch_unwind(|| {
            Sim::builder().faults(calm()).run(move |sim| async move {
                let exclusive = if fenced { Exclusive::fenced(&sim) } else { Exclusive::strict(&sim) };
                let epochs = if newer_first { [2, 1] } else { [1, 2] };
                let _first = exclusive.enter("actor", "a", epochs[0]);
                let _second = exclusive.enter("actor", "b", epochs[1]);
                tokio::task::yield_now().await;
            });
        })
    };
    assert!(run(false, true).is_ok());
    assert!(run(true, true).is_err());
    assert!(run(false, false).is_err());
}
