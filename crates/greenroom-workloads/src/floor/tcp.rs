//! Loopback between two processes: blocking sockets, no runtime.

use std::io::{self, BufRead, BufReader, Read, Write};
use std::net::{Ipv4Addr, SocketAddr, TcpListener, TcpStream};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use crate::cluster::spawn_tied;
use crate::report;

/// What the other end does with what it reads.
#[derive(Clone, Copy, PartialEq, Eq, Debug, clap::ValueEnum)]
pub enum Peer {
    /// Sends it back.
    Echo,
    /// Counts frames, and says how many there were when there are no more.
    Sink,
}

/// The other end of the connections.
pub(super) struct OtherEnd {
    address: SocketAddr,
    process: Option<Child>,
}

impl OtherEnd {
    /// Starts the program that is running now as the other end.
    pub(super) fn process(peer: Peer) -> io::Result<Self> {
        let name = match peer {
            Peer::Echo => "echo",
            Peer::Sink => "sink",
        };
        let mut command = Command::new(std::env::current_exe()?);
        command.args(["bench", "floor", "--peer", name]).stdin(Stdio::null()).stdout(Stdio::piped());
        let mut child = spawn_tied(&mut command)?;
        let mut line = String::new();
        if let Some(output) = child.stdout.take() {
            BufReader::new(output).read_line(&mut line)?;
        }
        let address = line.trim().parse();
        let end = Self { address: address.unwrap_or(SocketAddr::from(([0; 4], 0))), process: Some(child) };
        if end.address.port() == 0 {
            return Err(io::Error::other(format!("the other end said {line:?} instead of its address")));
        }
        Ok(end)
    }

    /// Starts a thread as the other end.
    #[cfg(test)]
    pub(super) fn thread(peer: Peer) -> io::Result<Self> {
        let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0))?;
        let address = listener.local_addr()?;
        std::thread::spawn(move || answer(&listener, peer));
        Ok(Self { address, process: None })
    }

    fn connect(&self) -> io::Result<TcpStream> {
        let stream = TcpStream::connect(self.address)?;
        stream.set_nodelay(true)?;
        Ok(stream)
    }
}

impl Drop for OtherEnd {
    fn drop(&mut self) {
        if let Some(child) = &mut self.process {
            let _ = child.kill();
            let _ = child.wait();
        }
    }
}

/// Serves one connection as the other end, having printed the address.
pub(crate) fn serve(peer: Peer) -> io::Result<()> {
    let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0))?;
    println!("{}", listener.local_addr()?);
    answer(&listener, peer)
}

fn answer(listener: &TcpListener, peer: Peer) -> io::Result<()> {
    let (mut stream, _) = listener.accept()?;
    stream.set_nodelay(true)?;
    let mut buffer = vec![0; BUFFER_LEN];
    let mut len = 0u64;
    loop {
        let read = stream.read(&mut buffer)?;
        match peer {
            _ if read == 0 => break,
            Peer::Echo => stream.write_all(&buffer[..read])?,
            Peer::Sink => len += read as u64,
        }
    }
    if peer == Peer::Sink {
        stream.write_all(&(len / FRAME_LEN as u64).to_be_bytes())?;
    }
    Ok(())
}

/// Round trips of one frame, one in flight: nanoseconds and counts.
pub(super) fn round_trip(end: &OtherEnd, time: Duration) -> io::Result<Vec<(u64, u64)>> {
    let mut stream = end.connect()?;
    let mut frame = [0; FRAME_LEN];
    let mut latency = report::histogram();
    let begun = Instant::now();
    while begun.elapsed() < time {
        let sent = Instant::now();
        stream.write_all(&frame)?;
        stream.read_exact(&mut frame)?;
        report::add(&mut latency, sent.elapsed().as_nanos() as u64, 1);
    }
    Ok(report::buckets(&latency))
}

/// Frames that went there and back a second, with [`IN_FLIGHT`] in flight.
pub(super) fn pipelined(end: &OtherEnd, time: Duration) -> io::Result<f64> {
    let mut stream = end.connect()?;
    let frames = vec![0; FRAME_LEN * IN_FLIGHT];
    let mut buffer = vec![0; BUFFER_LEN];
    let (mut answered, mut partial) = (0, 0);
    stream.write_all(&frames)?;
    let begun = Instant::now();
    while begun.elapsed() < time {
        partial += stream.read(&mut buffer)?;
        let whole = partial / FRAME_LEN;
        partial %= FRAME_LEN;
        answered += whole;
        stream.write_all(&frames[..whole * FRAME_LEN])?;
    }
    Ok(answered as f64 / begun.elapsed().as_secs_f64())
}

/// Frames a second that the other end has read, sent [`IN_FLIGHT`] a write.
pub(super) fn one_way(end: &OtherEnd, time: Duration) -> io::Result<f64> {
    let mut stream = end.connect()?;
    let frames = vec![0; FRAME_LEN * IN_FLIGHT];
    let begun = Instant::now();
    while begun.elapsed() < time {
        stream.write_all(&frames)?;
    }
    stream.shutdown(std::net::Shutdown::Write)?;
    let mut count = [0; 8];
    stream.read_exact(&mut count)?;
    Ok(u64::from_be_bytes(count) as f64 / begun.elapsed().as_secs_f64())
}

const FRAME_LEN: usize = 64;
const IN_FLIGHT: usize = 64;
const BUFFER_LEN: usize = 64 << 10;
