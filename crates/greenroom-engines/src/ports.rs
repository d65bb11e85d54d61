//! Loopback ports that belong to one process of tests until it ends.

use std::collections::BTreeMap;
use std::fs::File;
use std::net::{Ipv4Addr, TcpListener};
use std::ops::Range;
use std::sync::Mutex;

/// Below the ports that the system itself gives: to listeners that name none, and to the near end of each connection.
const RANGE: Range<u16> = 10_000..32_768;

/// Each port given, with the lock that keeps it.
static GIVEN: Mutex<BTreeMap<u16, File>> = Mutex::new(BTreeMap::new());

/// A port of 127.0.0.1 that nobody listens at, and that nobody else is given while this process runs: a server that
/// is killed finds it free when it starts again, however many test programs run beside this one.
///
/// # Panics
///
/// If the machine has none, or no folder for temporary files.
pub fn free_port() -> u16 {
    let folder = std::env::temp_dir().join("greenroom-ports");
    std::fs::create_dir_all(&folder).expect("a folder for temporary files");
    let mut given = GIVEN.lock().expect("no test panicked while it was given a port");
    // Programs that run side by side begin apart, and so seldom try what another has.
    let places = u32::from(RANGE.end - RANGE.start);
    let first = std::process::id().wrapping_mul(257) % places;
    let candidates = (0..places).map(|step| RANGE.start + u16::try_from((first + step) % places).expect("a port"));
    for port in candidates.filter(|port| !given.contains_key(port)).collect::<Vec<_>>() {
        let kept = File::create(folder.join(port.to_string())).ok().filter(|file| file.try_lock().is_ok());
        if let Some(kept) = kept
            && TcpListener::bind((Ipv4Addr::LOCALHOST, port)).is_ok()
        {
            given.insert(port, kept);
            return port;
        }
    }
    let Range { start, end } = RANGE;
    panic!("no loopback port from {start} to {} is free, or {} cannot be written", end - 1, folder.display());
}

/// The address of a [`free_port`], as `host:port`.
///
/// # Panics
///
/// As [`free_port`].
pub fn free_address() -> String {
    format!("127.0.0.1:{}", free_port())
}

#[cfg(test)]
mod tests {
    use std::process::Command;

    use super::*;

    /// Makes the test's program give one port, and say it, when it starts itself.
    const ANOTHER: &str = "GREENROOM_ANOTHER_PROGRAM";

    #[test]
    fn a_port_is_given_once_within_a_program_and_beside_others() {
        let mine: Vec<u16> = (0..8).map(|_| free_port()).collect();
        if std::env::var_os(ANOTHER).is_some() {
            println!("\nports {mine:?}");
            return;
        }
        let distinct: std::collections::BTreeSet<_> = mine.iter().collect();
        assert_eq!(distinct.len(), mine.len());
        assert!(mine.iter().all(|port| RANGE.contains(port)));
        for port in &mine {
            let lock = File::create(std::env::temp_dir().join("greenroom-ports").join(port.to_string())).unwrap();
            assert!(lock.try_lock().is_err(), "{port} is kept");
        }
        let name = "ports::tests::a_port_is_given_once_within_a_program_and_beside_others";
        let mut other = Command::new(std::env::current_exe().unwrap());
        let said = other.args([name, "--exact", "--nocapture"]).env(ANOTHER, "1").output().unwrap();
        let said = String::from_utf8(said.stdout).unwrap();
        let given = said.lines().find_map(|line| line.strip_prefix("ports ")).expect("it says its ports");
        let given: Vec<u16> = given.trim_matches(['[', ']']).split(", ").map(|port| port.parse().unwrap()).collect();
        assert!(given.iter().all(|port| !mine.contains(port)), "{given:?} beside {mine:?}");
    }
}
