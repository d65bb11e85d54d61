//! A node in a process of its own, which never outlives this one.

use std::io;
use std::net::{Ipv4Addr, SocketAddr, TcpListener};
use std::ops::Range;
use std::os::unix::process::CommandExt;
use std::process::{Child, Command, ExitStatus, Stdio};
use std::sync::atomic::{AtomicU32, Ordering};

use super::http::Door;

/// A running node process. It is killed when this is dropped, and by the system when this process ends in any way.
#[derive(Debug)]
pub(crate) struct NodeProcess {
    name: String,
    child: Child,
    door: Door,
}

impl NodeProcess {
    /// Starts the program that is running now as a node, with more `options`.
    pub(crate) fn start(name: &str, table: &str, shards: u32, options: &[&str]) -> Result<Self, String> {
        let address = free_address().map_err(|error| format!("no free port for the HTTP door: {error}"))?;
        let program = std::env::current_exe().map_err(|error| format!("this program has no path: {error}"))?;
        let mut command = Command::new(&program);
        command.args(["node", "--name", name, "--listen", "127.0.0.1:0", "--table", table]);
        command.args(["--http", &address.to_string(), "--shards", &shards.to_string()]);
        command.args(options);
        // A run shows figures, and its nodes' lives to who asks for them. That turns take as long as the run is meant so.
        if std::env::var_os("RUST_LOG").is_none() {
            command.env("RUST_LOG", "warn,greenroom::shard::waits=error");
        }
        // What a node says on standard output is not part of the figures.
        command.stdin(Stdio::null()).stdout(Stdio::null());
        let child = spawn_tied(&mut command).map_err(|error| format!("cannot start {}: {error}", program.display()))?;
        Ok(Self { name: name.to_owned(), child, door: Door(address) })
    }

    pub(crate) fn name(&self) -> &str {
        &self.name
    }

    pub(crate) fn door(&self) -> Door {
        self.door
    }

    pub(crate) async fn is_ready(&self) -> bool {
        self.door.answers("/readyz").await
    }

    pub(crate) fn id(&self) -> u32 {
        self.child.id()
    }

    /// How it ended, if it has.
    pub(crate) fn ended(&mut self) -> Option<ExitStatus> {
        self.child.try_wait().ok().flatten()
    }

    pub(super) fn resident_bytes(&self) -> u64 {
        resident_bytes(&self.child.id().to_string())
    }

    pub(crate) fn cpu_seconds(&self) -> f64 {
        cpu_seconds(&self.child.id().to_string())
    }
}

impl Drop for NodeProcess {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// Starts a process that the system kills when the thread that started it ends, however it ends.
pub(crate) fn spawn_tied(command: &mut Command) -> io::Result<Child> {
    let parent = std::process::id();
    let tie = move || {
        // SAFETY: both calls are async-signal-safe and touch no memory of this process.
        unsafe {
            if libc::prctl(libc::PR_SET_PDEATHSIG, libc::SIGKILL) != 0 {
                return Err(io::Error::last_os_error());
            }
            // The parent may have ended before the tie was there.
            if libc::getppid() as u32 != parent {
                return Err(io::Error::other("the parent has ended"));
            }
        }
        Ok(())
    };
    // SAFETY: between fork and exec the closure makes system calls only, and allocates on no path but that of failure,
    // where the child ends.
    unsafe { command.pre_exec(tie) }.spawn()
}

/// Resident memory of a process, by its number or `self`; 0 when it has ended.
pub(super) fn resident_bytes(process: &str) -> u64 {
    let status = std::fs::read_to_string(format!("/proc/{process}/status")).unwrap_or_default();
    let line = status.lines().find_map(|line| line.strip_prefix("VmRSS:"));
    let kib = line.and_then(|line| line.split_whitespace().next()).and_then(|kib| kib.parse::<u64>().ok());
    kib.unwrap_or(0) * 1024
}

/// Time that a process has spent on processors, by its number or `self`; 0 when it has ended.
pub(crate) fn cpu_seconds(process: &str) -> f64 {
    let stat = std::fs::read_to_string(format!("/proc/{process}/stat")).unwrap_or_default();
    // The name, second and in parentheses, may hold anything; user and system time are the 12th and 13th after it.
    let after_name = stat.rsplit_once(')').map_or("", |(_, rest)| rest);
    let ticks: u64 = after_name.split_whitespace().skip(11).take(2).filter_map(|ticks| ticks.parse::<u64>().ok()).sum();
    // SAFETY: asks for a constant of the system.
    let ticks_a_second = unsafe { libc::sysconf(libc::_SC_CLK_TCK) };
    ticks as f64 / ticks_a_second.max(1) as f64
}

/// An address that nobody listens at. Its port is none of those that the system gives to who asks for any, or to who connects: until the
/// node takes it, only somebody who wants this very one could.
pub(crate) fn free_address() -> io::Result<SocketAddr> {
    static TRIED: AtomicU32 = AtomicU32::new(0);
    let first = std::process::id().wrapping_mul(PORTS_APART);
    let mut last = io::Error::other("no port was tried");
    for _ in 0..u32::from(PORTS.end - PORTS.start) {
        let step = first.wrapping_add(TRIED.fetch_add(1, Ordering::Relaxed));
        let port = PORTS.start + (step % u32::from(PORTS.end - PORTS.start)) as u16;
        match TcpListener::bind((Ipv4Addr::LOCALHOST, port)).and_then(|listener| listener.local_addr()) {
            Ok(address) => return Ok(address),
            Err(error) => last = error,
        }
    }
    Err(last)
}

/// Below those that systems give away by themselves: Linux from 32768 on, others from 49152 on.
const PORTS: Range<u16> = 20_000..32_000;
/// Between the first ports of two processes that follow each other.
const PORTS_APART: u32 = 61;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn no_address_is_given_twice_and_none_that_the_system_may_give_to_others() {
        let given: Vec<SocketAddr> = (0..20).map(|_| free_address().expect("some port is free")).collect();
        assert!(given.iter().all(|address| PORTS.contains(&address.port())));
        assert!((1..given.len()).all(|at| !given[..at].contains(&given[at])), "{given:?}");
    }

    #[test]
    fn this_process_has_resident_memory_and_one_that_is_not_there_has_none() {
        assert!(resident_bytes("self") > 100_000);
        assert_eq!(resident_bytes("0"), 0);
        assert_eq!(cpu_seconds("0"), 0.0);
    }

    #[test]
    fn time_on_a_processor_is_counted() {
        let before = cpu_seconds("self");
        let begun = std::time::Instant::now();
        while cpu_seconds("self") <= before {
            assert!(begun.elapsed().as_secs() < 60, "a busy process uses no processor");
        }
    }

    #[test]
    fn a_tied_process_ends_with_the_thread_that_started_it() {
        let start = || spawn_tied(Command::new("sleep").arg("60"));
        let mut child = std::thread::spawn(start).join().expect("it does not panic").expect("there is a sleep");
        let status = child.wait().expect("it is our child");
        assert!(!status.success());
    }
}
