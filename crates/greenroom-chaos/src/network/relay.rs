//! A relay: it hands connections on, and holds back what passes where a gate is shut, as a network does that loses packets
//! until it is mended.

use std::io::{Read, Write};
use std::net::{Shutdown, TcpListener, TcpStream};
use std::sync::Arc;
use std::thread;

use super::End;
use super::gates::Gates;

/// From the first bytes of a connection, between whom it is.
pub(super) type Between = Arc<dyn Fn(&[u8]) -> Option<(End, End)> + Send + Sync>;

/// Hands on what connects to `listener` to `target`, until this process ends.
pub(super) fn start(listener: TcpListener, target: String, gates: Arc<Gates>, between: Between) {
    thread::spawn(move || {
        for connection in listener.incoming().flatten() {
            let (target, gates, between) = (target.clone(), gates.clone(), between.clone());
            thread::spawn(move || hand_on(connection, &target, &gates, &between));
        }
    });
}

/// Errors of either side end both: that is what they would see of each other.
fn hand_on(mut caller: TcpStream, target: &str, gates: &Arc<Gates>, between: &Between) {
    let mut first = [0; CHUNK];
    let Ok(len @ 1..) = caller.read(&mut first) else { return };
    let ends = between(&first[..len]);
    if let Some((from, to)) = ends {
        gates.pass(from, to);
    }
    let Ok(mut callee) = TcpStream::connect(target) else { return };
    let halves = (caller.try_clone(), callee.try_clone());
    let (Ok(caller_too), Ok(callee_too)) = halves else { return };
    drop((caller.set_nodelay(true), callee.set_nodelay(true)));
    if callee.write_all(&first[..len]).is_err() {
        return;
    }
    let back = gates.clone();
    let back_ends = ends.map(|(from, to)| (to, from));
    thread::spawn(move || pump(callee_too, caller_too, &back, back_ends));
    pump(caller, callee, gates, ends);
}

fn pump(mut from: TcpStream, mut to: TcpStream, gates: &Gates, ends: Option<(End, End)>) {
    let mut bytes = [0; CHUNK];
    loop {
        let read = from.read(&mut bytes);
        if let Some((from, to)) = ends {
            gates.pass(from, to);
        }
        let Ok(len @ 1..) = read else { break };
        if to.write_all(&bytes[..len]).is_err() {
            break;
        }
    }
    // Both fail where the connection is gone already.
    drop(to.shutdown(Shutdown::Write));
    drop(from.shutdown(Shutdown::Read));
}

const CHUNK: usize = 16 << 10;
