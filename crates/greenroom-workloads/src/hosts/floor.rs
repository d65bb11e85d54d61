//! The bare echo: frames of a length, a number and a payload on a Unix socket, each answered under its number.

use std::io::{self, Read, Write};
use std::os::unix::net::{UnixListener, UnixStream};
use std::time::{Duration, Instant};

use serde::Serialize;

use super::caller::TEXT;
use super::program::Program;
use super::{Echoed, WARM, in_flight, scratch};
use crate::driver::Plan;
use crate::report::{Record, Report};

/// Calls of the plan's SDK's bare echo for `time`, as many in flight as the plan has.
pub(super) async fn run(plan: &Plan, time: Duration) -> Result<Echoed, String> {
    let scratch = scratch(plan)?;
    let path = scratch.path().join("floor.sock");
    let failed = |error: io::Error| format!("the floor of this host: {error}");
    let listener = UnixListener::bind(&path).map_err(failed)?;
    listener.set_nonblocking(true).map_err(failed)?;
    let mut program = Program::start(plan, "floor", &format!("unix:{}", path.display()), scratch.path())?;
    let mut stream = loop {
        match listener.accept() {
            Ok((stream, _)) => break stream,
            Err(error) if error.kind() == io::ErrorKind::WouldBlock => {}
            Err(error) => return Err(failed(error)),
        }
        program.is_there()?;
        tokio::time::sleep(LOOK_AGAIN).await;
    };
    stream.set_nonblocking(false).map_err(failed)?;
    calls(&mut stream, in_flight(plan), WARM).map_err(failed)?;
    program.timed(async { calls(&mut stream, in_flight(plan), time).map_err(failed) }).await
}

#[derive(Serialize)]
struct Arguments {
    text: &'static str,
    n: u64,
}

/// Calls that go out as their predecessors are answered, a batch a round.
fn calls(stream: &mut UnixStream, in_flight: u32, time: Duration) -> io::Result<Report> {
    let end = Instant::now() + time;
    let mut record = Record::begin();
    let mut begun = vec![Instant::now(); in_flight as usize];
    let mut batch = Vec::new();
    for number in 0..in_flight {
        call(&mut batch, number, 0)?;
    }
    stream.write_all(&batch)?;
    let (mut buffer, mut read, mut open, mut n) = (vec![0; BUFFER_LEN], 0, in_flight, 0);
    while open > 0 {
        let more = stream.read(&mut buffer[read..])?;
        if more == 0 {
            return Err(io::ErrorKind::UnexpectedEof.into());
        }
        read += more;
        let now = Instant::now();
        let mut at = 0;
        batch.clear();
        while let Some((number, next)) = answer(&buffer[at..read])? {
            at += next;
            let begun = begun.get_mut(number as usize).ok_or(io::ErrorKind::InvalidData)?;
            record.count(1);
            record.time(now - *begun);
            if now >= end {
                open -= 1;
                continue;
            }
            n += 1;
            *begun = now;
            call(&mut batch, number, n)?;
        }
        buffer.copy_within(at..read, 0);
        read -= at;
        stream.write_all(&batch)?;
    }
    Ok(record.end())
}

fn call(batch: &mut Vec<u8>, number: u32, n: u64) -> io::Result<()> {
    let payload = rmp_serde::to_vec_named(&Arguments { text: TEXT, n }).map_err(io::Error::other)?;
    batch.extend_from_slice(&(4 + payload.len() as u32).to_le_bytes());
    batch.extend_from_slice(&number.to_le_bytes());
    batch.extend_from_slice(&payload);
    Ok(())
}

/// The number of the first answer in `bytes`, and where the next one begins; `None` if it is not all there.
fn answer(bytes: &[u8]) -> io::Result<Option<(u32, usize)>> {
    let Some((length, rest)) = bytes.split_first_chunk() else { return Ok(None) };
    let length = u32::from_le_bytes(*length) as usize;
    if !(5..=BUFFER_LEN / 2).contains(&length) {
        return Err(io::Error::other(format!("an answer of {length} bytes")));
    }
    match rest.get(..length).and_then(|frame| frame.split_first_chunk()) {
        Some((number, _)) => Ok(Some((u32::from_le_bytes(*number), 4 + length))),
        None => Ok(None),
    }
}

const BUFFER_LEN: usize = 64 << 10;
/// Between two looks whether the program has come.
const LOOK_AGAIN: Duration = Duration::from_millis(5);
