//! A server that gives every byte back, behind a relay.

use std::io::{Read, Write};
use std::net::{Shutdown, TcpListener, TcpStream};
use std::sync::Arc;
use std::thread;
use std::time::{Duration, Instant};

use greenroom_relay::{Gates, Relay};

fn echo() -> String {
    let listener = TcpListener::bind("127.0.0.1:0").expect("a free port");
    let address = listener.local_addr().expect("it is bound").to_string();
    thread::spawn(move || {
        for connection in listener.incoming().flatten() {
            thread::spawn(move || {
                let mut back = connection.try_clone()?;
                std::io::copy(&mut &connection, &mut back)?;
                back.shutdown(Shutdown::Write)
            });
        }
    });
    address
}

fn behind(relay: Relay<&'static str>) -> TcpStream {
    let listener = TcpListener::bind("127.0.0.1:0").expect("a free port");
    let address = relay.start(listener).expect("it listens");
    let connection = TcpStream::connect(address).expect("it accepts");
    connection.set_read_timeout(Some(Duration::from_secs(30))).expect("a time that is one");
    connection
}

fn says(connection: &mut TcpStream, byte: u8) -> Duration {
    let begun = Instant::now();
    connection.write_all(&[byte]).expect("it takes a byte");
    let mut back = [0];
    connection.read_exact(&mut back).expect("it comes back");
    assert_eq!(back, [byte]);
    begun.elapsed()
}

#[test]
fn every_byte_takes_a_round_trip_there_and_back_and_many_are_on_the_way_at_once() {
    let trip = Duration::from_millis(80);
    let mut connection = behind(Relay::new(echo(), Arc::default()).between("a", "b").round_trip(trip));
    for byte in 0..3 {
        let took = says(&mut connection, byte);
        assert!(took >= trip, "{took:?}");
    }
    let mut writer = connection.try_clone().expect("a second handle");
    let begun = Instant::now();
    let bytes = vec![7; 1 << 20];
    let sent = bytes.clone();
    let sender = thread::spawn(move || {
        writer.write_all(&sent).and_then(|()| writer.shutdown(Shutdown::Write)).expect("all is sent");
    });
    let mut back = Vec::new();
    connection.read_to_end(&mut back).expect("all comes back, and then the end");
    sender.join().expect("it does not panic");
    assert!(back == bytes && begun.elapsed() >= trip, "{} bytes in {:?}", back.len(), begun.elapsed());
}

#[test]
fn what_is_cut_waits_until_it_is_healed() {
    for trip in [Duration::ZERO, Duration::from_millis(20)] {
        let gates = Arc::new(Gates::default());
        let mut connection = behind(Relay::new(echo(), gates.clone()).between("a", "b").round_trip(trip));
        says(&mut connection, 1);
        gates.cut(&"a", &"b");
        connection.write_all(&[2]).expect("it takes a byte");
        connection.set_read_timeout(Some(Duration::from_millis(200))).expect("a time that is one");
        connection.read_exact(&mut [0]).expect_err("nothing comes through");
        gates.set(&"a", &"b", false);
        connection.read_exact(&mut [0]).expect_err("and nothing back");
        gates.heal(&"a", &"b");
        connection.set_read_timeout(Some(Duration::from_secs(30))).expect("a time that is one");
        let mut back = [0];
        connection.read_exact(&mut back).expect("it comes back");
        assert_eq!(back, [2]);
        says(&mut connection, 3);
    }
}

#[test]
fn a_target_that_is_not_there_ends_the_connection() {
    let listener = TcpListener::bind("127.0.0.1:0").expect("a free port");
    let nobody = listener.local_addr().expect("it is bound").to_string();
    drop(listener);
    let mut connection = behind(Relay::new(nobody, Arc::default()));
    connection.write_all(&[1]).expect("the relay takes it");
    assert_eq!(connection.read(&mut [0]).unwrap_or(0), 0);
}
