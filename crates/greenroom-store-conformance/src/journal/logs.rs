//! Logs: order, pages, trimming, names.

use bytes::Bytes;
use greenroom_store::journal::ENTRIES_BYTES_MAX;
use greenroom_store::{Commit, Journal};

use super::{commit, entries, texts};
use crate::BY;
use crate::dice::Dice;
use crate::plain::{create, read, scan};

/// Each log counts for itself, from one on, and its end is the next position.
pub async fn positions_start_at_one_and_rise_by_one(journal: &dyn Journal) {
    assert_eq!(journal.end("rise/a", BY).await, Ok(1), "a log that never had an entry");
    assert_eq!(journal.entries("rise/a", 1, 10, BY).await, Ok(vec![]));
    for n in 1..=5 {
        let both = Commit::new().append("rise/a", n.to_string().into()).append("rise/b", "x".into());
        assert_eq!(commit(journal, both.append("rise/b", "y".into())).await.positions, [n, 2 * n - 1, 2 * n]);
        assert_eq!(journal.end("rise/a", BY).await, Ok(n + 1));
    }
    assert_eq!(texts(journal, "rise/a", 1).await, ["1", "2", "3", "4", "5"]);
    assert_eq!(texts(journal, "rise/b", 1).await.concat(), "xyxyxyxyxy");
}

/// From any position, in pages of any size, the entries come in order; behind the end there are none.
pub async fn logs_are_read_in_pages_from_anywhere(journal: &dyn Journal) {
    let thirty = (1..=30).fold(Commit::new(), |all, n| all.append("pages/a", n.to_string().into()));
    commit(journal, thirty).await;
    for (from, limit) in [(0, 7), (1, 1), (1, 1000), (17, 4), (30, 1), (31, 5), (1000, 5), (u64::MAX / 4, 5)] {
        let positions: Vec<u64> =
            entries(journal, "pages/a", from, limit).await.iter().map(|entry| entry.position).collect();
        assert_eq!(positions, (from.max(1)..31).collect::<Vec<_>>(), "from {from} in pages of {limit}");
    }
    let clamped = journal.entries("pages/a", 1, 0, BY).await.expect("a limit of nothing is one of one");
    assert_eq!(clamped.len(), 1);
    assert_eq!(journal.entries("pages/a", 1, usize::MAX, BY).await.map(|all| all.len()), Ok(30));
}

/// Entries are bytes, up to the limit of a value; an answer is bounded by bytes, and holds at least one.
pub async fn large_entries_come_back_whole_in_bounded_pages(journal: &dyn Journal) {
    let bytes = journal.limits().value_bytes_max.min(ENTRIES_BYTES_MAX / 3);
    let value = Bytes::from(Dice::new(6).bytes(bytes));
    let count = ENTRIES_BYTES_MAX / bytes + 3;
    for _ in 0..count {
        commit(journal, Commit::new().append("large/a", value.clone())).await;
    }
    let empty = Commit::new().append("large/a", Bytes::new());
    commit(journal, empty).await;
    let page = journal.entries("large/a", 1, 1000, BY).await.expect("a page");
    let sum: usize = page.iter().map(|entry| entry.value.len()).sum();
    assert!(!page.is_empty() && sum <= ENTRIES_BYTES_MAX + bytes, "a page of {sum} bytes");
    let all = entries(journal, "large/a", 1, 1000).await;
    let (last, large) = all.split_last().expect("it has entries");
    assert!(last.value.is_empty() && large.len() == count && large.iter().all(|entry| entry.value == value));
}

/// Trimming takes the first entries, may be repeated, and may go beyond the end; positions go on where they were.
pub async fn trimmed_positions_are_gone_and_never_given_again(journal: &dyn Journal) {
    let append = || Commit::new().append("trim/a", "x".into());
    journal.trim("trim/a", 5, BY).await.expect("a log without entries may be trimmed");
    assert_eq!(commit(journal, append()).await.positions, [1]);
    for expected in 2..=10 {
        assert_eq!(commit(journal, append()).await.positions, [expected]);
    }
    for (through, first) in [(0, 1), (3, 4), (3, 4), (2, 4), (7, 8)] {
        journal.trim("trim/a", through, BY).await.expect("it may be trimmed");
        assert_eq!(texts(journal, "trim/a", first).await.len(), 11 - first as usize, "through {through}");
        assert_eq!(journal.end("trim/a", BY).await, Ok(11));
    }
    assert_eq!(journal.entries("trim/a", 1, 1, BY).await.map(|page| page[0].position), Ok(8));
    for through in [1000, u64::MAX] {
        journal.trim("trim/a", through, BY).await.expect("it may be trimmed beyond its end");
        assert_eq!(journal.entries("trim/a", 1, 10, BY).await, Ok(vec![]));
    }
    assert_eq!(journal.end("trim/a", BY).await, Ok(11));
    assert_eq!(commit(journal, append()).await.positions, [11], "a trimmed position was given again");
    assert_eq!(texts(journal, "trim/a", 11).await, ["x"]);
}

/// A log is no key: neither reads nor scans meet it, and a key of its name is another thing.
pub async fn logs_and_keys_of_one_name_are_apart(journal: &dyn Journal) {
    commit(journal, Commit::new().append("apart/a", "entry".into())).await;
    assert_eq!(read(journal, "apart/a").await, None);
    let version = create(journal, "apart/a", "value").await;
    commit(journal, Commit::new().append("apart/a", "more".into())).await;
    assert_eq!(read(journal, "apart/a").await, Some(("value".into(), version.clone())));
    assert_eq!(scan(journal, "apart/", 10).await, ["apart/a"]);
    journal.delete("apart/a", &version, BY).await.expect("the version is current");
    assert_eq!(texts(journal, "apart/a", 1).await, ["entry", "more"]);
    assert!(scan(journal, "", 1000).await.iter().all(|key| key != "apart/a" && !key.contains("rise/")));
}

/// The name of a log is itself and no other; one may be the beginning of another.
pub async fn odd_log_names_are_kept_apart(journal: &dyn Journal) {
    let longest = "l".repeat(greenroom_store::key::KEY_BYTES_MAX);
    let names = ["odd", "odd/", "odd//", "odd/1", "ODD", "odd ", "%", "_", "日本", "odd\n", "'", "\\", "é", "e\u{301}"];
    let names: Vec<&str> = names.into_iter().chain([&*longest]).collect();
    let one_each = names.iter().fold(Commit::new(), |all, name| all.append(*name, Bytes::from(name.to_string())));
    assert_eq!(commit(journal, one_each).await.positions, vec![1; names.len()]);
    for name in names {
        assert_eq!(texts(journal, name, 1).await, [name]);
        journal.trim(name, 1, BY).await.expect("it may be trimmed");
    }
}
