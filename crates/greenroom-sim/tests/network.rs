//! What the simulated network does to bytes.

mod echo;

use std::cell::Cell;
use std::io::ErrorKind;
use std::rc::Rc;
use std::time::Duration;

use echo::{CONTROL, ESSENTIAL, USER, ask, calm, classify, frame, millis, read_frame, secs, start_echo};
use greenroom_sim::{Faults, Sim, seeds};
use greenroom_world::World;
use tokio::io::{AsyncReadExt, AsyncWriteExt};

#[test]
fn an_echo_takes_two_delays_of_virtual_time() {
    seeds("echo", 50, |seed| {
        let faults = Faults { delay: millis(30)..millis(40), ..calm() };
        Sim::builder().seed(seed).faults(faults).run(|sim| async move {
            start_echo(&sim, "b");
            let a = sim.node("a");
            let mut stream = a.connect("b:7000").await.unwrap();
            assert!((60..=82).contains(&sim.now().as_millis()), "connecting took {:?}", sim.now());
            let before = sim.now();
            assert_eq!(ask(&a, &mut *stream, USER, 7, secs(1)).await.unwrap(), 7);
            let took = (sim.now() - before).as_millis();
            assert!((60..=82).contains(&took), "the echo took {took} ms");
        });
    });
}

#[test]
fn nobody_listening_is_refused_and_a_picked_port_can_be_reached() {
    Sim::builder().faults(calm()).run(|sim| async move {
        let (a, b) = (sim.node("a"), sim.node("b"));
        assert_eq!(a.connect("b:1").await.err().unwrap().kind(), ErrorKind::ConnectionRefused);
        assert_eq!(a.connect("nowhere:1").await.err().unwrap().kind(), ErrorKind::ConnectionRefused);
        let mut door = b.listen("127.0.0.1:0").await.unwrap();
        let address = door.address();
        assert!(address.starts_with("b:"), "{address}");
        assert_eq!(b.listen(&address).await.err().unwrap().kind(), ErrorKind::AddrInUse);
        let _from_a = a.connect(&address).await.unwrap();
        assert!(door.accept().await.unwrap().1.starts_with("a:"));
        let _from_b = b.connect(&address.replace("b:", "localhost:")).await.unwrap();
        assert!(door.accept().await.unwrap().1.starts_with("b:"));
    });
}

#[test]
fn a_cut_holds_bytes_back_and_healing_delivers_them() {
    seeds("cut", 50, |seed| {
        Sim::builder().seed(seed).faults(calm()).run(|sim| async move {
            start_echo(&sim, "b");
            let a = sim.node("a");
            let mut stream = a.connect("b:7000").await.unwrap();
            sim.partition(&["a"], &["b", "c"]);
            let late = ask(&a, &mut *stream, USER, 1, secs(2)).await.unwrap_err();
            assert_eq!(late.kind(), ErrorKind::TimedOut);
            stream.write_all(&frame(USER, 2)).await.unwrap();
            sim.heal();
            let healed = sim.now();
            assert_eq!(read_frame(&mut *stream).await.unwrap(), (USER, 1));
            assert_eq!(read_frame(&mut *stream).await.unwrap(), (USER, 2));
            assert!(sim.now() - healed < millis(20));
        });
    });
}

#[test]
fn a_network_that_is_calm_again_loses_nothing() {
    let faults = Faults { user_loss: 1.0, ..calm() };
    Sim::builder().faults(faults).classify(classify).run(|sim| async move {
        start_echo(&sim, "b");
        let a = sim.node("a");
        let mut stream = a.connect("b:7000").await.unwrap();
        let lost = ask(&a, &mut *stream, USER, 1, secs(2)).await.unwrap_err();
        assert_eq!(lost.kind(), ErrorKind::TimedOut);
        sim.calm();
        assert_eq!(ask(&a, &mut *stream, USER, 2, secs(2)).await.unwrap(), 2);
    });
}

#[test]
fn a_long_cut_resets_connections_and_lets_nobody_connect() {
    seeds("long cut", 50, |seed| {
        Sim::builder().seed(seed).faults(calm()).run(|sim| async move {
            start_echo(&sim, "b");
            let a = sim.node("a");
            let mut stream = a.connect("b:7000").await.unwrap();
            // The way back alone is cut: the echo is lost, and no handshake completes.
            sim.cut("b", "a");
            let began = sim.now();
            stream.write_all(&frame(USER, 1)).await.unwrap();
            assert_eq!(a.connect("b:7000").await.err().unwrap().kind(), ErrorKind::TimedOut);
            let error = read_frame(&mut *stream).await.unwrap_err();
            assert!([ErrorKind::TimedOut, ErrorKind::ConnectionReset].contains(&error.kind()), "{error}");
            assert!((secs(5)..secs(21)).contains(&(sim.now() - began)));
            sim.heal();
            let mut stream = a.connect("b:7000").await.unwrap();
            assert_eq!(ask(&a, &mut *stream, USER, 2, secs(1)).await.unwrap(), 2);
        });
    });
}

/// What of `kind` arrives of 300 frames with an essential one after each ten, under loss, repetition and reordering.
fn arrivals(seed: u64, kind: u8) -> Vec<(u8, u32)> {
    let faults = Faults {
        delay: millis(1)..millis(50),
        user_loss: 0.1,
        control_loss: 0.1,
        control_duplication: 0.1,
        reordering: 0.5,
        ..calm()
    };
    Sim::builder().seed(seed).faults(faults).classify(classify).run(move |sim| async move {
        let (a, b) = (sim.node("a"), sim.node("b"));
        let mut door = b.listen("b:1").await.unwrap();
        let mut stream = a.connect("b:1").await.unwrap();
        for number in 0..300 {
            stream.write_all(&frame(kind, number)).await.unwrap();
            if number % 10 == 9 {
                stream.write_all(&frame(ESSENTIAL, number)).await.unwrap();
            }
        }
        drop(stream);
        let (mut stream, _) = door.accept().await.unwrap();
        let mut arrived = Vec::new();
        while let Ok(frame) = read_frame(&mut *stream).await {
            arrived.push(frame);
        }
        arrived
    })
}

#[test]
fn only_control_frames_are_duplicated_and_essential_ones_are_barriers() {
    for seed in 0..20 {
        for kind in [USER, CONTROL] {
            let arrived = arrivals(seed, kind);
            let essential: Vec<u32> = arrived.iter().filter(|got| got.0 == ESSENTIAL).map(|got| got.1).collect();
            assert_eq!(essential, (9..300).step_by(10).collect::<Vec<u32>>(), "all, and in order");
            let others: Vec<u32> = arrived.iter().filter(|got| got.0 == kind).map(|got| got.1).collect();
            let mut distinct = others.clone();
            distinct.sort();
            assert_ne!(distinct, others, "some overtake others");
            distinct.dedup();
            assert!((240..300).contains(&distinct.len()), "some are lost: {}", distinct.len());
            assert_eq!(distinct.len() < others.len(), kind == CONTROL, "only control frames come twice");
            for (at, (got, number)) in arrived.iter().enumerate() {
                let barriers = arrived[..at].iter().filter(|got| got.0 == ESSENTIAL).count() as u32;
                assert!(*got == ESSENTIAL || barriers >= number / 10, "{number} came before an essential frame");
            }
        }
    }
}

#[test]
fn raw_bytes_come_whole_and_in_order_under_all_faults() {
    let faults = Faults { user_loss: 0.5, control_loss: 0.5, reordering: 1.0, ..Faults::rough() };
    let faults = Faults { connection_life: None, ..faults };
    let heard = Sim::builder().seed(3).faults(faults).run(|sim| async move {
        let (a, b) = (sim.node("a"), sim.node("b"));
        let mut door = b.listen("b:80").await.unwrap();
        a.spawn_local("client", async move {
            let a = sim.node("a");
            let mut stream = a.connect("b:80").await.unwrap();
            stream.write_all(b"GET /").await.unwrap();
            for line in 0..100 {
                tokio::time::sleep(millis(3)).await;
                stream.write_all(format!("{line},").as_bytes()).await.unwrap();
            }
            stream.shutdown().await.unwrap();
            read_to_its_end(&mut *stream).await;
        });
        let (mut stream, _) = door.accept().await.unwrap();
        let mut heard = String::new();
        stream.read_to_string(&mut heard).await.unwrap();
        heard
    });
    let expected: String = (0..100).map(|line| format!("{line},")).collect();
    assert_eq!(heard, format!("GET /{expected}"));
}

async fn read_to_its_end(stream: &mut dyn greenroom_world::Stream) {
    let mut rest = Vec::new();
    stream.read_to_end(&mut rest).await.ok();
}

#[test]
fn a_writer_waits_for_its_reader_and_a_frame_beyond_the_buffer_still_passes() {
    let faults = Faults { send_buffer_bytes: 1000, ..calm() };
    Sim::builder().faults(faults).run(|sim| async move {
        let (a, b) = (sim.node("a"), sim.node("b"));
        let mut door = b.listen("b:1").await.unwrap();
        let mut stream = a.connect("b:1").await.unwrap();
        let (mut reader, _) = door.accept().await.unwrap();
        let written = Rc::new(Cell::new(0));
        let counter = written.clone();
        a.spawn_local("writer", async move {
            for number in 0..1000 {
                stream.write_all(&frame(USER, number)).await.unwrap();
                counter.set(number);
            }
            let mut big = vec![1; 100_004];
            big[..4].copy_from_slice(&100_000_u32.to_le_bytes());
            stream.write_all(&big).await.unwrap();
        });
        tokio::time::sleep(secs(5)).await;
        assert_eq!(written.get(), 1000 / 9, "the writer must wait");
        for number in 0..1000 {
            assert_eq!(read_frame(&mut *reader).await.unwrap(), (USER, number));
        }
        let mut rest = Vec::new();
        reader.read_to_end(&mut rest).await.unwrap();
        assert_eq!(rest.len(), 100_004);
    });
}

#[test]
fn connections_end_when_their_time_has_come() {
    let faults = Faults { connection_life: Some(secs(2)..secs(4)), ..calm() };
    Sim::builder().faults(faults).run(|sim| async move {
        start_echo(&sim, "b");
        let mut stream = sim.node("a").connect("b:7000").await.unwrap();
        let error = read_frame(&mut *stream).await.unwrap_err();
        assert_eq!(error.kind(), ErrorKind::ConnectionReset);
        assert!((secs(2)..Duration::from_millis(4_100)).contains(&sim.now()));
    });
}

#[test]
fn writing_to_a_closed_end_is_answered_by_a_reset() {
    Sim::builder().faults(calm()).run(|sim| async move {
        let (a, b) = (sim.node("a"), sim.node("b"));
        let mut door = b.listen("b:1").await.unwrap();
        let mut stream = a.connect("b:1").await.unwrap();
        drop(door.accept().await.unwrap());
        let mut end = Vec::new();
        assert_eq!(stream.read_to_end(&mut end).await.unwrap(), 0);
        stream.write_all(&frame(USER, 1)).await.unwrap();
        tokio::time::sleep(millis(100)).await;
        let error = stream.write_all(&frame(USER, 2)).await.unwrap_err();
        assert_eq!(error.kind(), ErrorKind::ConnectionReset);
    });
}
