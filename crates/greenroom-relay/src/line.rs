//! One direction of a connection.

use std::io::{self, Read, Write};
use std::net::{Shutdown, TcpStream};
use std::sync::mpsc::{Receiver, SyncSender, sync_channel};
use std::thread;
use std::time::{Duration, Instant};

/// Hands on what is read until either side ends. Every byte is held for `hold`, and until `pass` returns.
pub(crate) fn pump(mut from: TcpStream, mut to: TcpStream, hold: Duration, pass: impl Fn() + Send + 'static) {
    if hold.is_zero() {
        let mut bytes = [0; CHUNK];
        loop {
            let read = from.read(&mut bytes);
            pass();
            let Ok(len @ 1..) = read else { break };
            if to.write_all(&bytes[..len]).is_err() {
                break;
            }
        }
    } else {
        let (on_the_way, arrives) = sync_channel(CHUNKS_MAX);
        let reader = from.try_clone();
        let sender = thread::spawn(move || reader.and_then(|reader| read(reader, hold, &on_the_way)));
        // Its end, and any error, is seen as that of the connection.
        drop(write(&mut to, &arrives, &pass));
        drop(from.shutdown(Shutdown::Read));
        drop(arrives);
        drop(sender.join());
    }
    // Both fail where the connection is gone already.
    drop(to.shutdown(Shutdown::Write));
    drop(from.shutdown(Shutdown::Read));
}

/// What arrives, and when.
type Chunk = (Instant, Vec<u8>);

fn read(mut from: TcpStream, hold: Duration, on_the_way: &SyncSender<Chunk>) -> io::Result<()> {
    let mut bytes = [0; CHUNK];
    loop {
        let len = from.read(&mut bytes)?;
        // The end is on the way as long as a byte is.
        let sent = on_the_way.send((Instant::now() + hold, bytes[..len].to_vec()));
        if len == 0 || sent.is_err() {
            return Ok(());
        }
    }
}

fn write(to: &mut TcpStream, arrives: &Receiver<Chunk>, pass: &impl Fn()) -> io::Result<()> {
    while let Ok((at, bytes)) = arrives.recv() {
        thread::sleep(at.saturating_duration_since(Instant::now()));
        pass();
        if bytes.is_empty() {
            return Ok(());
        }
        to.write_all(&bytes)?;
    }
    Ok(())
}

const CHUNK: usize = 16 << 10;
/// Chunks of one direction that are on the way: who sends more waits, as for a window.
const CHUNKS_MAX: usize = 4096;
