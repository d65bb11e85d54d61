//! The write-ahead log of a store grows.

use std::time::Duration;

use crate::observe::findings::{Check, Facts, Found};
use crate::observe::level::Level;
use crate::observe::subject::Subject;

pub(super) const CHECK: Check = Check {
    name: "store-log-grows",
    holds: Duration::from_secs(10),
    page: "#/nodes",
    remedy: "End what reads the file for long: a shell such as `sqlite3`, a backup that hangs, or a process that was stopped; the log is \
             copied into the file and begins anew once nobody reads an old state of it.",
    look,
};

fn look(facts: &Facts, out: &mut Vec<Found>) {
    for disk in facts.disks.iter().filter(|disk| disk.log_bytes > LOG_BYTES_USUAL) {
        let title = format!("The log of the store {} of {} has {} MiB", disk.store, facts.node, disk.log_bytes >> 20);
        let text = format!(
            "{} was last copied whole into its file {} s ago; until then the log takes room and slows reads.",
            disk.name,
            disk.since_checkpoint.as_secs()
        );
        let found = Found::new(Level::Warn, Subject::node(&*facts.node), title, text);
        out.push(found.with("log", disk.log_bytes as f64, "bytes").with("free", disk.free_bytes as f64, "bytes"));
    }
}

/// Four times of what is kept of a log that begins anew.
const LOG_BYTES_USUAL: u64 = 256 << 20;

#[cfg(test)]
mod tests {
    use super::*;
    use crate::observe::findings::Disk;
    use crate::observe::findings::checks::titles;

    fn log(mib: u64) -> Vec<String> {
        let disk = Disk { store: "table".to_owned(), log_bytes: mib << 20, ..Disk::default() };
        titles(&CHECK, &Facts { node: "a".to_owned(), disks: vec![disk], ..Facts::default() })
    }

    #[test]
    fn a_log_that_is_not_copied_is_found() {
        assert_eq!(log(257), ["The log of the store table of a has 257 MiB"]);
    }

    #[test]
    fn one_of_the_usual_size_is_not() {
        assert!(log(96).is_empty());
    }
}
