//! What every [`Journal`] promises beyond [`Store`](greenroom_store::Store).

mod bounds;
mod conditions;
mod fences;
mod logs;
mod together;

pub use bounds::*;
pub use conditions::*;
pub use fences::*;
pub use logs::*;
pub use together::*;

use std::sync::Arc;

use greenroom_store::{Commit, Committed, Entry, Journal};

use crate::BY;

/// Runs every claim, one after another, on one opening of a journal or on several. The claims of
/// [`store::all`](crate::store::all) are for the same provider too.
pub async fn all(openings: &[Arc<dyn Journal>]) {
    let journal = &*openings[0];
    a_commit_applies_all_of_itself(journal).await;
    a_commit_of_nothing_does_nothing(journal).await;
    a_condition_that_fails_leaves_nothing_and_is_named(journal).await;
    writes_without_conditions_apply_whatever_is_there(journal).await;
    a_held_key_keeps_its_version(journal).await;
    versions_of_commits_are_not_reused(journal).await;
    a_key_that_occurs_twice_is_refused(journal).await;
    impossible_names_are_refused(journal).await;
    a_commit_at_the_limits_is_applied_and_one_over_them_refused(journal).await;
    positions_start_at_one_and_rise_by_one(journal).await;
    logs_are_read_in_pages_from_anywhere(journal).await;
    large_entries_come_back_whole_in_bounded_pages(journal).await;
    trimmed_positions_are_gone_and_never_given_again(journal).await;
    logs_and_keys_of_one_name_are_apart(journal).await;
    odd_log_names_are_kept_apart(journal).await;
    transfers_between_keys_conserve_their_sum(openings).await;
    readers_see_all_of_a_commit_or_nothing(openings).await;
    concurrent_appends_are_gapless_and_each_is_there_once(openings).await;
    commits_and_single_writes_of_one_key_exclude_each_other(openings).await;
    commits_that_hold_one_fence_do_not_refuse_each_other(openings).await;
    a_deposed_owner_commits_nothing_more(openings).await;
}

async fn commit(journal: &dyn Journal, commit: Commit) -> Committed {
    let name = commit.name().to_owned();
    journal.commit(commit, BY).await.unwrap_or_else(|error| panic!("the commit of {name:?} is to be applied: {error}"))
}

/// All entries of `log` from `from` on, in pages of `limit`.
pub(crate) async fn entries(journal: &dyn Journal, log: &str, mut from: u64, limit: usize) -> Vec<Entry> {
    let mut all: Vec<Entry> = Vec::new();
    loop {
        let page = journal.entries(log, from, limit, BY).await.expect("entries of a good name are read");
        assert!(page.len() <= limit, "{} entries where {limit} were asked for", page.len());
        let Some(last) = page.last() else { return all };
        from = last.position + 1;
        all.extend(page);
    }
}

/// The texts of all entries of `log`, which must be at the positions from `first` on without a gap.
pub(crate) async fn texts(journal: &dyn Journal, log: &str, first: u64) -> Vec<String> {
    let entries = entries(journal, log, 1, 1000).await;
    let positions: Vec<u64> = entries.iter().map(|entry| entry.position).collect();
    assert_eq!(positions, (first..first + entries.len() as u64).collect::<Vec<_>>(), "of log {log:?}");
    let text = |entry: Entry| String::from_utf8(entry.value.into()).expect("it was written as text");
    entries.into_iter().map(text).collect()
}
