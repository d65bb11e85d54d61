use std::collections::BTreeSet;

use proptest::prelude::*;

use super::super::{
    Action, Birth, Call, Commit, Config, Envelope, Epoch, Event, Life, Outcome, Ownership, Partition, Receipts,
    Recovered, TurnId,
};
use super::*;
use crate::reminders::Wall;
use crate::time::Timestamp;

type Machine = Partition<u8, u8>;

/// A partition of a cluster of four that knows a sender, and that waits for an acknowledgement by a receiver.
fn machine() -> Machine {
    let config = Config { partitions: 4, ..Config::default() };
    let owner = Ownership { partition: PartitionId(0), epoch: Epoch(2) };
    let receipts = Receipts { life: Life(5), low: 3, above: BTreeSet::from([6]) };
    let recovered = Recovered {
        lanes: vec![(super::super::Lane::Counted(PartitionId(1)), 2, 9)],
        receipts: vec![(PartitionId(1), receipts)],
        ..Recovered::empty(Life(5))
    };
    Partition::recover(config, owner, recovered, (Timestamp::default(), Wall(0)), &mut Vec::new())
}

/// Lets everything happen that `event` leads to: actors are read, turns end, commits are applied.
fn settle(machine: &mut Machine, event: Event<u8, u8>) -> Vec<OutOfBounds> {
    let (mut events, mut refused) = (vec![event], Vec::new());
    while let Some(event) = events.pop() {
        let mut out = Vec::new();
        machine.handle(Timestamp::default(), event, &mut out);
        for action in out {
            match action {
                Action::Load(actor) => events.push(Event::Loaded { actor, presence: None, queue: Vec::new() }),
                Action::Run { turn, .. } => events.push(ended(turn)),
                Action::Commit(Commit { id, .. }) => events.push(Event::Committed(id)),
                Action::Refuse(reason) => refused.push(reason),
                _ => {}
            }
        }
    }
    refused
}

fn ended(turn: TurnId) -> Event<u8, u8> {
    Event::Ended { turn, outcome: Outcome::Done(Default::default()) }
}

fn message(birth: Option<Birth>, creates: bool, call: Option<Call>) -> Sealed<u8, u8> {
    Sealed::new(Envelope { from: None, to: 7, birth, creates, call, body: 1 })
}

fn batch(floor: u64, first: u64, numbers: &[u64]) -> Wire<u8, u8> {
    Wire::Batch(Batch {
        from: PartitionId(1),
        life: Life(5),
        epoch: Epoch(1),
        counted: true,
        round: 0,
        floor,
        first,
        messages: numbers.iter().map(|number| (*number, message(None, false, None))).collect(),
        sent_before: Some(0),
    })
}

fn reply(low: u64, above: Vec<(u64, u64)>) -> Wire<u8, u8> {
    Wire::Reply(Reply {
        from: PartitionId(1),
        life: Life(5),
        epoch: Epoch(1),
        to_life: Life(5),
        to_epoch: Epoch(2),
        counted: true,
        round: 0,
        low,
        above,
        expected: 1,
        refused: false,
        limit: 9,
    })
}

#[test]
fn a_batch_that_acknowledges_all_numbers_there_are_is_refused_and_changes_nothing() {
    let mut machine = machine();
    let before = machine.clone();
    let refused = settle(&mut machine, Event::Arrived(batch(u64::MAX, u64::MAX, &[])));
    assert_eq!(refused, [OutOfBounds::Number(u64::MAX)]);
    assert!(machine == before);
    let refused = settle(&mut machine, Event::Arrived(batch(3, 4, &[4, NUMBER_MAX + 1])));
    assert_eq!(refused, [OutOfBounds::Number(NUMBER_MAX + 1)]);
    assert!(machine == before, "none of its messages is taken");
    assert_eq!(settle(&mut machine, Event::Arrived(batch(3, 4, &[4, 5]))), []);
    assert_eq!(machine.receiver().receipts(PartitionId(1)).low, 6);
}

#[test]
fn a_partition_that_the_cluster_does_not_have_neither_sends_nor_gets_anything() {
    let unknown = PartitionId(4);
    let refusal = OutOfBounds::Partition { partition: unknown, partitions: 4 };
    let birth = Birth { by: unknown, life: Life(1), epoch: Epoch(1), serial: 1 };
    let Wire::Batch(mut of_unknown) = batch(0, 1, &[1]) else { unreachable!("it is one") };
    of_unknown.from = unknown;
    for wire in [
        Wire::Batch(of_unknown),
        Wire::Single(message(Some(birth), false, None)),
        Wire::Ask { from: unknown, birth: Birth { by: PartitionId(0), ..birth } },
        Wire::Ask { from: PartitionId(1), birth },
        Wire::Standing { from: unknown, life: Life(1), birth, committed: 1 },
    ] {
        let mut machine = machine();
        let before = machine.clone();
        assert_eq!(settle(&mut machine, Event::Arrived(wire)), [refusal]);
        assert!(machine == before);
    }
}

#[test]
fn acknowledged_ranges_rise_and_hold_few_numbers() {
    let check = |above: Vec<(u64, u64)>| reply(1, above).check(4);
    assert_eq!(check(vec![(3, 3), (5, 9), (10, 10)]), Ok(()));
    assert_eq!(check(vec![(1 << 40, (1 << 40) + ACKNOWLEDGED_MAX - 1)]), Ok(()), "numbers of a loose channel are high");
    assert_eq!(check(vec![(3, 3), (3, 4)]), Err(OutOfBounds::Unordered(3)));
    assert_eq!(check(vec![(5, 4)]), Err(OutOfBounds::Unordered(5)));
    assert_eq!(check(vec![(1, ACKNOWLEDGED_MAX + 1)]), Err(OutOfBounds::Acknowledged));
    assert_eq!(check(vec![(1, u64::MAX)]), Err(OutOfBounds::Number(u64::MAX)));
}

fn any_number() -> impl Strategy<Value = u64> {
    prop_oneof![
        0u64..12,
        Just(NUMBER_MAX - 1),
        Just(NUMBER_MAX),
        Just(NUMBER_MAX + 1),
        Just(u64::MAX - 1),
        Just(u64::MAX),
        any::<u64>(),
    ]
}

fn any_partition() -> impl Strategy<Value = PartitionId> {
    prop_oneof![0u32..6, Just(u32::MAX)].prop_map(PartitionId)
}

fn any_birth() -> impl Strategy<Value = Birth> {
    (any_partition(), any_number(), any_number(), any_number()).prop_map(|(by, life, epoch, serial)| Birth {
        by,
        life: Life(life),
        epoch: Epoch(epoch),
        serial,
    })
}

fn any_message() -> impl Strategy<Value = Sealed<u8, u8>> {
    let call = (any_number(), any::<bool>()).prop_map(|(request, recorded)| Call {
        key: (request % 3).to_string(),
        request,
        as_written: None,
        recorded,
    });
    (proptest::option::of(any_birth()), any::<bool>(), proptest::option::of(call), 0u8..3)
        .prop_map(|(birth, creates, call, to)| Sealed::new(Envelope { from: None, to, birth, creates, call, body: 1 }))
}

prop_compose! {
    fn any_batch()(
        from in any_partition(), (life, epoch) in (any_number(), any_number()), counted in any::<bool>(),
        round in any::<u32>(), (floor, first) in (any_number(), any_number()),
        messages in proptest::collection::vec((any_number(), any_message()), 0..4),
    ) -> Wire<u8, u8> {
        let (life, epoch, sent_before) = (Life(life), Epoch(epoch), None);
        Wire::Batch(Batch { from, life, epoch, counted, round, floor, first, messages, sent_before })
    }
}

prop_compose! {
    fn any_reply()(
        from in any_partition(), (life, epoch) in (any_number(), any_number()), to_life in prop_oneof![Just(5), any_number()],
        to_epoch in prop_oneof![Just(2), any_number()], (counted, refused) in (any::<bool>(), any::<bool>()),
        round in 0u32..2, (low, expected, limit) in (any_number(), any_number(), any_number()),
        above in proptest::collection::vec((any_number(), any_number()), 0..3),
    ) -> Wire<u8, u8> {
        Wire::Reply(Reply {
            from, life: Life(life), epoch: Epoch(epoch), to_life: Life(to_life), to_epoch: Epoch(to_epoch), counted, round, low,
            above, expected, refused, limit,
        })
    }
}

fn any_wire() -> impl Strategy<Value = Wire<u8, u8>> {
    prop_oneof![
        4 => any_batch(),
        2 => any_reply(),
        1 => any_message().prop_map(Wire::Single),
        1 => (any_partition(), any_birth()).prop_map(|(from, birth)| Wire::Ask { from, birth }),
        1 => (any_partition(), any_number(), any_birth(), any_number())
            .prop_map(|(from, life, birth, committed)| Wire::Standing { from, life: Life(life), birth, committed }),
    ]
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 512, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn whatever_numbers_come_a_partition_neither_panics_nor_spins(wires in proptest::collection::vec(any_wire(), 1..8)) {
        let mut machine = machine();
        for wire in wires {
            let refused = wire.check(4).is_err();
            let found = settle(&mut machine, Event::Arrived(wire));
            prop_assert_eq!(!found.is_empty(), refused);
            settle(&mut machine, Event::Tick);
        }
    }
}
