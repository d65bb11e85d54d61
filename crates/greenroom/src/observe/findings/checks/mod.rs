//! The checks, a file each.

mod address_unreachable;
mod busy_shard;
mod certificate_ends;
mod clocks_apart;
mod cluster_silent;
mod deadlock;
mod deliveries_failed;
mod doubtful;
mod lease_short;
mod long_turn;
mod mailbox_waits;
mod member_joining;
mod member_silent;
mod memory_full;
mod method_failing;
mod no_host;
mod operations_refused;
mod parked;
mod reminders_failed;
mod reminders_late;
mod reminders_refused;
mod saves_in_conflict;
mod saves_slow;
mod settings_differ;
mod shedding;
mod store_disk_low;
mod store_log_grows;
mod stuck_shard;
mod table_failing;
mod versions_mixed;

use super::Check;

/// All of them.
pub(super) const CHECKS: &[Check] = &[
    address_unreachable::CHECK,
    busy_shard::CHECK,
    certificate_ends::CHECK,
    cluster_silent::CHECK,
    clocks_apart::CHECK,
    deadlock::CHECK,
    deliveries_failed::CHECK,
    doubtful::CHECK,
    lease_short::CHECK,
    long_turn::CHECK,
    mailbox_waits::CHECK,
    member_joining::CHECK,
    member_silent::CHECK,
    memory_full::CHECK,
    method_failing::CHECK,
    no_host::CHECK,
    operations_refused::CHECK,
    parked::CHECK,
    reminders_failed::CHECK,
    reminders_late::CHECK,
    reminders_refused::CHECK,
    saves_in_conflict::CHECK,
    saves_slow::CHECK,
    settings_differ::CHECK,
    shedding::CHECK,
    store_disk_low::CHECK,
    store_log_grows::CHECK,
    stuck_shard::CHECK,
    table_failing::CHECK,
    versions_mixed::CHECK,
];

/// What `check` finds in these facts: the titles.
#[cfg(test)]
fn titles(check: &Check, facts: &super::Facts) -> Vec<String> {
    let mut found = Vec::new();
    (check.look)(facts, &mut found);
    found.into_iter().map(|found| found.title).collect()
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;
    use crate::observe::findings::Facts;

    #[test]
    fn of_nothing_nothing_is_found() {
        for check in CHECKS {
            assert!(titles(check, &Facts::default()).is_empty(), "{}", check.name);
        }
    }

    #[test]
    fn each_check_has_a_name_of_its_own_a_remedy_and_a_paragraph_in_the_guide() {
        let guide = include_str!("../../../../../../docs/guide/findings.md");
        let names: BTreeSet<&str> = CHECKS.iter().map(|check| check.name).collect();
        assert_eq!(names.len(), CHECKS.len());
        for check in CHECKS {
            assert!(
                guide.contains(&format!("\n## {}\n", check.name)),
                "{} is not in docs/guide/findings.md",
                check.name
            );
            assert!(check.remedy.ends_with('.') && check.page.starts_with("#/"), "{}", check.name);
        }
        for heading in guide.lines().filter_map(|line| line.strip_prefix("## ")) {
            assert!(names.contains(heading) || heading.contains(' '), "{heading} is no check");
        }
    }
}
