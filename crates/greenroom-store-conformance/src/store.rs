//! What every [`Store`](greenroom_store::Store) promises.

mod keys;
mod load;
mod scans;
mod single;
mod together;
mod values;

pub use keys::*;
pub use load::*;
pub use scans::*;
pub use single::*;
pub use together::*;
pub use values::*;

pub use crate::plain::increment;

use crate::Harness;

/// Runs every claim, one after another.
pub async fn all(harness: &Harness) {
    let store = harness.first();
    a_created_value_is_read_back_with_its_version(store).await;
    creating_twice_conflicts(store).await;
    a_replace_with_a_stale_version_conflicts_and_changes_nothing(store).await;
    an_absent_key_is_neither_replaced_nor_deleted(store).await;
    a_delete_with_a_stale_version_is_refused(store).await;
    versions_are_not_reused_after_delete_and_create(store).await;
    equal_values_get_different_versions(store).await;
    a_foreign_version_conflicts(store).await;
    without_time_left_a_call_answers_at_once_and_honestly(store).await;
    odd_keys_are_kept_apart(store).await;
    impossible_keys_are_refused_by_name(store).await;
    scans_page_in_key_order(store).await;
    a_scan_goes_on_after_a_key_that_is_gone(store).await;
    a_scan_of_large_values_ends_its_pages_early_and_misses_none(store).await;
    a_scan_meets_what_stays_once_whatever_comes_and_goes(harness).await;
    large_and_empty_values_come_back_whole(store).await;
    values_up_to_the_limit_fit_and_larger_ones_are_refused(harness).await;
    what_one_opening_writes_the_others_read_at_once(harness).await;
    concurrent_increments_lose_none(harness).await;
    of_concurrent_creates_one_wins(harness).await;
    single_keys_are_linearizable_under_load(harness).await;
}
