//! A disk with a store has little room left.

use std::time::Duration;

use crate::observe::findings::{Check, Facts, Found};
use crate::observe::level::Level;
use crate::observe::subject::Subject;

pub(super) const CHECK: Check = Check {
    name: "store-disk-low",
    holds: Duration::from_secs(10),
    page: "#/nodes",
    remedy: "Free room on the disk, or move the store to a larger one; once it is full, writes are refused and the cluster cannot renew its leases.",
    look,
};

fn look(facts: &Facts, out: &mut Vec<Found>) {
    for disk in facts.disks.iter().filter(|disk| disk.free_bytes < FREE_BYTES_WARN) {
        let level = if disk.free_bytes < FREE_BYTES_BAD { Level::Bad } else { Level::Warn };
        let free = disk.free_bytes >> 20;
        let title = format!("The disk with the store {} of {} has {free} MiB left", disk.store, facts.node);
        let text = format!("{} has {} MiB, and its log {} MiB.", disk.name, disk.bytes >> 20, disk.log_bytes >> 20);
        let found = Found::new(level, Subject::node(&*facts.node), title, text);
        out.push(found.with("free", disk.free_bytes as f64, "bytes").with("file", disk.bytes as f64, "bytes"));
    }
}

/// Room for a few logs.
const FREE_BYTES_WARN: u64 = 512 << 20;
/// Room for one more log.
const FREE_BYTES_BAD: u64 = 64 << 20;

#[cfg(test)]
mod tests {
    use super::*;
    use crate::observe::findings::Disk;
    use crate::observe::findings::checks::titles;

    fn free(mib: u64) -> Vec<String> {
        let disk = Disk { store: "journal".to_owned(), free_bytes: mib << 20, ..Disk::default() };
        titles(&CHECK, &Facts { node: "a".to_owned(), disks: vec![disk], ..Facts::default() })
    }

    #[test]
    fn a_disk_with_little_room_is_found() {
        assert_eq!(free(100), ["The disk with the store journal of a has 100 MiB left"]);
    }

    #[test]
    fn one_with_room_is_not() {
        assert!(free(512).is_empty());
    }
}
