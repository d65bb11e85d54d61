//! A journal on a disk that fills up, under reliable actors on real nodes: clear errors, nothing lost, and service again when
//! there is room.

use std::fs::File;
use std::io::Write;
use std::process::Command;
use std::time::{Duration, Instant};

use serde_json::json;
use tempfile::TempDir;

use crate::bank::Bank;
use crate::nodes::Nodes;

/// A small disk of its own; its file system goes with it.
struct SmallDisk(TempDir);

impl SmallDisk {
    /// `None`, said loudly, where nobody may mount one.
    fn mount() -> Option<Self> {
        let folder = TempDir::with_prefix("greenroom-small-").expect("a temporary directory");
        let mut mount = Command::new("mount");
        mount.args(["-t", "tmpfs", "-o", "size=4m", "tmpfs"]).arg(folder.path());
        let mounted = mount.output().is_ok_and(|output| output.status.success());
        if !mounted {
            eprintln!("SKIPPED: mount is not permitted, so no disk was filled; run the tests as root");
            return None;
        }
        Some(Self(folder))
    }

    /// Leaves no room.
    fn fill(&self) {
        let mut ballast = File::create(self.0.path().join("ballast")).expect("a file");
        for block in [64 << 10, 512, 1] {
            while ballast.write_all(&vec![0x5A; block]).is_ok() {}
        }
    }

    fn empty(&self) {
        std::fs::remove_file(self.0.path().join("ballast")).expect("it is there");
    }
}

impl Drop for SmallDisk {
    fn drop(&mut self) {
        // Lazily: the nodes' processes may just be ending.
        let _ = Command::new("umount").arg("-l").arg(self.0.path()).output();
    }
}

#[test]
fn a_full_disk_under_the_journal_loses_nothing_and_service_comes_back_with_room() {
    let _machine = crate::alone();
    let Some(disk) = SmallDisk::mount() else { return };
    let journal = disk.0.path().join("journal.db");
    let nodes = Nodes::with_journal_at(2, &format!("sqlite:{}", journal.display()));
    let bank = Bank::new(nodes.doors());
    let pay = |order: &str| {
        let arguments = json!({ "order": order, "to": "2", "amount": 1 });
        bank.call(0, 1, "pay", &arguments, Some(order))
    };
    let insist = |order: &str| {
        let begun = Instant::now();
        loop {
            match pay(order) {
                Some(left) => return left,
                None => assert!(begun.elapsed() < HANG, "{order} is not answered:\n{}", nodes.said()),
            }
        }
    };
    for order in 0..ORDERS {
        insist(&format!("before-{order}"));
    }
    disk.fill();
    let begun = Instant::now();
    let mut refused = None;
    // What the journal's file has room for is still taken.
    for order in 0.. {
        let order = format!("while-{order}");
        if pay(&order).is_none() {
            refused = Some(order);
            break;
        }
        assert!(begun.elapsed() < HANG, "the disk is not full");
    }
    let said = nodes.said();
    assert!(said.contains("full") && said.contains("free or add space"), "the log names the remedy:\n{said}");
    disk.empty();
    let refused = refused.expect("one was not answered");
    insist(&refused);
    insist("after");
    let begun = Instant::now();
    let (money, paid, got) = loop {
        let books = bank.books();
        if books.1 == books.2 {
            break books;
        }
        assert!(begun.elapsed() < HANG, "what was paid does not arrive: {books:?}");
        std::thread::sleep(Duration::from_millis(200));
    };
    assert_eq!(money, 0, "money is neither lost nor made");
    assert!(paid.len() >= ORDERS + 2 && paid.values().chain(got.values()).all(|times| *times == 1), "{paid:?}");
    let named = |order: &str| paid.keys().any(|name| name.contains(order));
    assert!(named(&refused) && named("after") && named("before-0"), "what was answered is there");
}

const ORDERS: usize = 10;
const HANG: Duration = Duration::from_secs(60);
