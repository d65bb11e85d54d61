//! Versions of stored states that the table puts into force.

use proptest::prelude::*;

use super::super::plan::Planner;
use super::super::sightings::Sightings;
use super::*;
use crate::state_versions::StateVersions;

fn room(reads: u8) -> Vec<KindInfo> {
    let states = [("self".to_owned(), StateVersions { reads, writes: 1 })].into();
    vec![KindInfo { name: "room".to_owned(), states, ..KindInfo::default() }]
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 128, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn the_version_in_force_is_the_last_that_all_nodes_read_which_host_the_kind_or_are_about_to(
        others in proptest::collection::vec((0u8..3, any::<bool>(), 1u8..5), 1..6),
    ) {
        let me = NodeId(1);
        let row = |(status, draining, reads): (u8, bool, u8)| {
            let status = [Status::Joining, Status::Active, Status::Dead][usize::from(status)];
            let mut row = Row::joining(Member { kinds: room(reads), draining, ..Member::default() }, Duration::ZERO);
            row.member.status = status;
            row
        };
        let mut table = Table { version: 7, next_node: 100, ..Table::default() };
        table.rows = (2..).map(NodeId).zip(others.into_iter().map(row)).collect();
        table.rows.insert(me, row((1, false, 4)));
        let (config, sightings, suspected) = (Config::default(), Sightings::default(), BTreeMap::new());
        let planner = Planner { now: Timestamp::default(), config: &config, sightings: &sightings, suspected: &suspected };
        let next = planner.tend(&table, me, &room(4), false).unwrap_or(table);
        let hosts = next.rows.values().filter(|row| row.member.status != Status::Dead && !row.member.draining);
        let least = hosts.map(|row| row.member.kinds[0].states["self"].reads).min();
        prop_assert_eq!(Some(next.states.of("room", "self")), least);
    }
}
