use std::sync::Arc;
use std::time::Duration;

use greenroom_protocols::delivery::{
    Batch, Birth, Bundle, Call, Commit, CommitId, Deferred, Delivery, Destination, Envelope, Epoch, Kept, Lane, Leaves,
    Life, Loose, Outgoing, Parked, PartitionId, Presence, Receipts, Recorded, Recovered, Sealed, Slot, Timer,
    TurnAttempt, TurnId, WaitingPlace, Write,
};
use greenroom_protocols::reminders::Wall;
use greenroom_store::memory::MemoryStore;
use greenroom_store::{Journal, Store};
use serde::{Deserialize, Serialize};

use super::*;
use crate::fields::Change;

#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Debug, Serialize, Deserialize)]
struct Actor(String, String);

impl Name for Actor {
    fn kind(&self) -> &str {
        &self.0
    }

    fn key(&self) -> &str {
        &self.1
    }
}

const BY: Duration = Duration::from_secs(1);
const NODE_A: OwnerProcess<'static> = OwnerProcess { name: "node-a", number: 7 };

fn actor(key: &str) -> Actor {
    Actor("Account".to_owned(), key.to_owned())
}

fn message(to: &str, body: u8) -> Sealed<Actor, u8> {
    Envelope { from: None, to: actor(to), birth: None, creates: false, call: None, body }.into()
}

fn slot(serial: u64) -> Slot {
    Slot { epoch: Epoch(1), serial }
}

async fn take(journal: &Arc<MemoryStore>) -> (Ledger, Recovered<Actor, u8>) {
    let place = Place::new("test", PartitionId(7));
    Ledger::take(journal.clone(), place, NODE_A, Wall(5), BY).await.expect("nothing is wrong with the journal")
}

fn unused() -> Recovered<Actor, u8> {
    Recovered { answers: Kept { earlier_since: Wall(5), ..Kept::none() }, process: 7, ..Recovered::empty(Life(5)) }
}

fn commit(ledger: &Ledger, writes: Vec<Write<Actor, u8>>, turns: Vec<TurnId>) -> Commit<Actor, u8> {
    Commit { id: CommitId(1), epoch: ledger.owner().epoch, turns, writes }
}

fn timer() -> Timer<Actor, u8> {
    let (to, delivery) = (Destination::Partition(PartitionId(2)), Delivery::AtLeastOnce);
    let outgoing = Outgoing { to, delivery, envelope: message("bob", 7) };
    Timer { due: Wall(0x10), slot: slot(5), outgoing, name: Some("bell".to_owned()) }
}

fn parked(leaves: Option<Leaves>) -> Parked<Actor, u8> {
    Parked { slot: slot(3), envelope: message("bob", 6), error: "it panicked".to_owned(), leaves }
}

fn everything() -> Vec<Write<Actor, u8>> {
    let birth = Birth { by: PartitionId(3), life: Life(1), epoch: Epoch(2), serial: 9 };
    let presence = |halted| Some(Presence { birth, number: 4, halted });
    vec![
        Write::Append { lane: Lane::Counted(PartitionId(2)), number: 1, envelope: message("bob", 1) },
        Write::Append { lane: Lane::Counted(PartitionId(2)), number: 2, envelope: message("bob", 2) },
        Write::Append { lane: Lane::Outside(0), number: 1, envelope: message("bob", 3) },
        Write::Receipts { from: PartitionId(3), life: Life(1), low: 4, above: vec![(6, 8)] },
        Write::Presence { actor: actor("ada"), presence: presence(false) },
        Write::Presence { actor: actor("old"), presence: presence(true) },
        Write::Defer(Deferred { slot: slot(1), envelope: message("ada", 4) }),
        Write::Defer(Deferred { slot: slot(2), envelope: message("ada/x", 5) }),
        Write::Park(parked(Some(Leaves::Output { lane: Lane::Outside(0), number: 1 }))),
        Write::Arm(timer()),
        Write::Record { number: 1, recorded: recorded("k/1", 7) },
        Write::Record { number: 2, recorded: recorded("k/2", 8) },
        Write::Tie { number: 1, bundle: bundle(1, vec![]) },
        Write::Forget("k/0".to_owned()),
        Write::Attempt(attempt(Some(7))),
    ]
}

fn attempt(process: Option<u64>) -> TurnAttempt {
    let place = WaitingPlace::Counted { from: PartitionId(3), life: Life(1), number: 9 };
    TurnAttempt { place, deaths: 1, process }
}

fn bundle(first: u64, holders: Vec<(u64, u64)>) -> Bundle {
    Bundle { first, marks: vec![0x0102_0304], at: Wall(9), bytes: 100, holders }
}

fn recorded(key: &str, answer: u8) -> Recorded<u8> {
    Recorded { key: key.to_owned(), request: 77, at: Wall(9), answer: Some(answer) }
}

#[tokio::test]
async fn a_cluster_is_occupied_by_all_that_would_be_missed_and_by_nothing_else() {
    let journal = MemoryStore::new();
    assert!(!is_occupied(&journal, "test", BY).await.unwrap(), "an empty journal");
    // Those that are the second of their log follow others.
    let is_second =
        |write: &Write<Actor, u8>| matches!(write, Write::Append { number: 2, .. } | Write::Record { number: 2, .. });
    for write in everything().into_iter().filter(|write| !is_second(write)) {
        let journal = Arc::new(MemoryStore::new());
        let (ledger, _) = take(&journal).await;
        let of_nobody = match &write {
            Write::Receipts { .. } | Write::Forget(_) | Write::Tie { .. } | Write::Attempt(_) => true,
            Write::Presence { presence, .. } => presence.is_some_and(|presence| presence.halted),
            _ => false,
        };
        let said = format!("{write:?}");
        assert_eq!(ledger.commit(&commit(&ledger, vec![write], vec![]), &[]).await, Outcome::Committed);
        assert_eq!(is_occupied(&*journal, "test", BY).await.unwrap(), !of_nobody, "{said}");
        assert!(!is_occupied(&*journal, "tes", BY).await.unwrap(), "of another cluster");
    }
    let journal = Arc::new(MemoryStore::new());
    let (ledger, _) = take(&journal).await;
    let changes = vec![Change { entry: String::new(), value: Some("1".into()) }];
    let fields = TurnChanges::Fields(actor("ada"), vec![FieldChanges { field: "balance".into(), changes }]);
    let of_turn = [(TurnId(1), fields)];
    assert_eq!(ledger.commit(&commit(&ledger, vec![], vec![TurnId(1)]), &of_turn).await, Outcome::Committed);
    assert!(is_occupied(&*journal, "test", BY).await.unwrap(), "an actor's state");
}

#[tokio::test]
async fn a_partition_recovers_what_its_commits_have_written() {
    let journal = Arc::new(MemoryStore::new());
    let (ledger, empty) = take(&journal).await;
    assert_eq!(empty, unused());
    assert_eq!(ledger.commit(&commit(&ledger, everything(), vec![]), &[]).await, Outcome::Committed);
    let (ledger, recovered) = take(&journal).await;
    assert_eq!(ledger.owner().epoch, Epoch(2));
    assert_eq!(recovered.lanes, [(Lane::Counted(PartitionId(2)), 0, 2), (Lane::Outside(0), 0, 1)]);
    assert_eq!(recovered.receipts, [(PartitionId(3), Receipts::from_ranges(Life(1), 4, &[(6, 8)]))]);
    assert_eq!(recovered.queued, [actor("ada"), actor("ada/x")]);
    assert_eq!(recovered.tombstones.len(), 1);
    let kept = recovered.answers;
    assert_eq!((kept.bundles.len(), kept.bundle_last, kept.last, kept.earlier.len()), (1, 1, 2, 0));
    let loose = Loose { number: 2, key: "k/2".to_owned(), at: Wall(9), bytes: kept.loose[0].bytes };
    assert_eq!(kept.loose, [loose], "what a bundle holds is not read");
    assert_eq!(ledger.recall::<u8>("k/2", &[1, 2]).await.unwrap(), Some(recorded("k/2", 8)));
    assert_eq!(ledger.recall::<u8>("k/3", &[1, 2, 3]).await.unwrap(), None);
    ledger.prune(1, 1).await.unwrap();
    assert_eq!(ledger.recall::<u8>("k/1", &[1]).await.unwrap(), None);
    let kept = take(&journal).await.1.answers;
    assert_eq!((kept.bundles.len(), kept.bundle_last, kept.last, kept.loose.len()), (0, 1, 2, 1));
    let (ledger, _) = take(&journal).await;
    let (presence, queue) = ledger.load::<Actor, u8>(&actor("ada")).await.unwrap();
    assert!(presence.is_some_and(|presence| !presence.halted));
    assert_eq!(queue, [Deferred { slot: slot(1), envelope: message("ada", 4) }], "not that of another actor");
    let (presence, _) = ledger.load::<Actor, u8>(&actor("old")).await.unwrap();
    assert!(presence.is_some_and(|presence| presence.halted));
    assert_eq!(ledger.parked::<Actor, u8>().await.unwrap()[0].error, "it panicked");
    assert_eq!(recovered.timers, [timer()]);
    assert_eq!(recovered.parked, [(slot(3), Some(Leaves::Output { lane: Lane::Outside(0), number: 1 }))]);
    let disarm = Write::Disarm { due: timer().due, slot: timer().slot };
    assert_eq!(ledger.commit(&commit(&ledger, vec![disarm], vec![]), &[]).await, Outcome::Committed);
    assert_eq!(take(&journal).await.1.timers, []);
}

#[tokio::test]
async fn a_trimmed_lane_goes_on_where_it_was() {
    let journal = Arc::new(MemoryStore::new());
    let (ledger, _) = take(&journal).await;
    ledger.commit(&commit(&ledger, everything(), vec![]), &[]).await;
    let lane = Lane::Counted(PartitionId(2));
    ledger.trim(lane, 1).await.unwrap();
    assert_eq!(ledger.page::<Actor, u8>(lane, 1, 10).await.unwrap(), [(2, message("bob", 2))]);
    assert_eq!(take(&journal).await.1.lanes[0], (lane, 1, 2));
    let (ledger, _) = take(&journal).await;
    ledger.trim(lane, 2).await.unwrap();
    assert_eq!(take(&journal).await.1.lanes[0], (lane, 2, 2));
}

#[tokio::test]
async fn nothing_of_an_earlier_owner_is_written() {
    let journal = Arc::new(MemoryStore::new());
    let (old, _) = take(&journal).await;
    let (_new, _) = take(&journal).await;
    assert_eq!(old.commit(&commit(&old, everything(), vec![]), &[]).await, Outcome::Deposed);
    assert_eq!(take(&journal).await.1, unused());
}

#[tokio::test]
async fn of_two_changes_of_a_field_the_later_one_is_written_and_a_halt_removes_all() {
    let journal = Arc::new(MemoryStore::new());
    let (ledger, _) = take(&journal).await;
    let put = |actor: Actor, field: &str, entry: &str, value: &'static str| {
        let change = Change { entry: entry.to_owned(), value: Some(value.into()) };
        TurnChanges::Fields(actor, vec![FieldChanges { field: field.to_owned().into(), changes: vec![change] }])
    };
    let changes = [
        (TurnId(1), put(actor("ada"), "words", "aa", "1")),
        (TurnId(2), put(actor("ada"), "words", "aa", "2")),
        (TurnId(3), put(actor("ada"), "highest", "", "3")),
        (TurnId(4), put(actor("eve"), "highest", "", "4")),
        (TurnId(9), put(actor("ada"), "words", "zz", "not of this commit")),
    ];
    let turns = vec![TurnId(1), TurnId(2), TurnId(3), TurnId(4)];
    assert_eq!(ledger.commit(&commit(&ledger, vec![], turns), &changes).await, Outcome::Committed);
    let entry = |name: &str, value: &'static str| (name.to_owned(), Bytes::from(value));
    let stored = ledger.fields(&actor("ada")).await.unwrap();
    let expected = [("highest".to_owned(), vec![entry("", "3")]), ("words".to_owned(), vec![entry("aa", "2")])];
    assert_eq!(stored, expected);

    let known = [("highest", ""), ("words", "aa")].map(|(field, entry)| (field.to_owned(), entry.to_owned()));
    let changes = [
        (TurnId(5), put(actor("ada"), "words", "bb", "5")),
        (TurnId(6), TurnChanges::Halted(actor("ada"), known.to_vec())),
    ];
    ledger.commit(&commit(&ledger, vec![], vec![TurnId(5), TurnId(6)]), &changes).await;
    assert_eq!(ledger.fields(&actor("ada")).await.unwrap(), []);
    assert_eq!(ledger.fields(&actor("eve")).await.unwrap().len(), 1);
}

#[tokio::test]
async fn everything_lies_where_it_always_lay() {
    let journal = Arc::new(MemoryStore::new());
    let (ledger, _) = take(&journal).await;
    ledger.commit(&commit(&ledger, everything(), vec![]), &[]).await;
    let page = journal.scan("", None, 100, BY).await.unwrap();
    let keys: Vec<_> = page.items.iter().map(|item| item.key.as_str()).collect();
    let slot = |serial| format!("0000000000000001-{serial:016x}");
    assert_eq!(
        keys,
        [
            "reliable/test/00007/attempt/counted-00003-0000000000000001-0000000000000009",
            &format!("reliable/test/00007/deferred/Account/ada%2Fx/{}", slot(2)),
            &format!("reliable/test/00007/deferred/Account/ada/{}", slot(1)),
            "reliable/test/00007/fence",
            "reliable/test/00007/halted/Account/old",
            "reliable/test/00007/lane/counted-00002",
            "reliable/test/00007/lane/outside-00000",
            &format!("reliable/test/00007/parked/{}", slot(3)),
            "reliable/test/00007/present/Account/ada",
            "reliable/test/00007/received/00003",
            &format!("reliable/test/00007/timer/0000000000000010-{}", slot(5)),
        ]
    );
    let log = journal.entries("reliable/test/00007/out/counted-00002", 1, 10, BY).await.unwrap();
    assert_eq!(log.len(), 2);
    let text = String::from_utf8_lossy(&log[0].value);
    for name in ["from", "to", "birth", "creates", "call", "body"] {
        assert!(text.contains(name), "{text:?} has names, so that fields can be added");
    }
    let receipts = &page.items[9].versioned.value;
    assert_eq!(&receipts[..], &[1, 1, 0x94, 3, 1, 4, 0x91, 0x92, 6, 8]);
    let answers = journal.entries("reliable/test/00007/answers", 1, 10, BY).await.unwrap();
    let named = |name: &str| [&[0xa0 | name.len() as u8], name.as_bytes()].concat();
    let text = |text: &str| named(text);
    let entry = [
        &[1, 1, 0x84][..],
        &[&named("key")[..], &text("k/1"), &named("request"), &[77], &named("at"), &[9], &named("answer"), &[7]]
            .concat(),
    ];
    assert_eq!(&answers[0].value[..], entry.concat());
    let bundles = journal.entries("reliable/test/00007/bundles", 1, 10, BY).await.unwrap();
    let marks = [0x91, 0xce, 1, 2, 3, 4];
    let entry = [
        &[1, 1, 0x84][..],
        &[&named("first")[..], &[1], &named("marks"), &marks, &named("at"), &[9], &named("bytes"), &[100]].concat(),
    ];
    assert_eq!(&bundles[0].value[..], entry.concat());
    let said = Write::Tie { number: 2, bundle: bundle(2, vec![(0x0506_0708, 100)]) };
    assert_eq!(ledger.commit(&commit(&ledger, vec![said], vec![]), &[]).await, Outcome::Committed);
    let bundles = journal.entries("reliable/test/00007/bundles", 2, 10, BY).await.unwrap();
    let mut entry = entry.concat();
    (entry[2], entry[9]) = (0x85, 2);
    entry.extend([&named("holders")[..], &[0x91, 0x92, 0xce, 5, 6, 7, 8, 100]].concat());
    assert_eq!(&bundles[0].value[..], entry, "whose answers they are comes behind what is always there");
    let fence = page.items.iter().find(|item| item.key.ends_with("/fence")).map(|item| &item.versioned.value);
    assert_eq!(fence.map(|fence| fence[..2].to_vec()), Some(vec![1, 2]), "no program that looks for answers elsewhere");
}

/// As format 1 had them: a recorded answer under its key, without a time; one whose call waits; and the fence.
#[tokio::test]
async fn answers_that_an_earlier_program_has_recorded_are_read_and_keep_their_time() {
    #[derive(Serialize)]
    struct Fence1 {
        epoch: u64,
        life: u64,
        owner: &'static str,
    }
    #[derive(Serialize)]
    struct Recorded1 {
        key: &'static str,
        request: u64,
        slot: Slot,
        answer: Option<Option<u8>>,
    }
    let journal = Arc::new(MemoryStore::new());
    let place = |what: &str| format!("reliable/test/00007/{what}");
    let put = async |what: &str, value: Bytes| journal.create(&place(what), value, BY).await.unwrap();
    put("fence", encode("", &Fence1 { epoch: 6, life: 3, owner: "node-a" }).unwrap()).await;
    let done = Recorded1 { key: "k/1", request: 77, slot: slot(1), answer: Some(Some(7)) };
    put("answer/k%2F1", encode("", &done).unwrap()).await;
    let waits = Recorded1 { key: "k/2", request: 78, slot: slot(2), answer: None };
    put("answer/k%2F2", encode("", &waits).unwrap()).await;
    let call = Call { key: "k/2".to_owned(), request: 78, as_written: None, recorded: true };
    let envelope = Envelope { call: Some(call.clone()), ..Envelope::clone(&message("ada", 4)) }.into();
    let deferred = Deferred { slot: slot(2), envelope };
    let (at, value) = (format!("deferred/Account/ada/0000000000000001-{:016x}", 2), encode("", &deferred).unwrap());
    put(&at, value).await;
    for now in [5, 50] {
        let taken = Ledger::take(journal.clone(), Place::new("test", PartitionId(7)), NODE_A, Wall(now), BY).await;
        let (ledger, recovered): (_, Recovered<Actor, u8>) = taken.unwrap();
        assert_eq!((ledger.life(), ledger.owner().epoch), (Life(3), Epoch(if now == 5 { 7 } else { 8 })));
        let earlier = Recorded { at: Wall::default(), ..recorded("k/1", 7) };
        assert_eq!((recovered.answers.earlier, recovered.answers.earlier_since), (vec![earlier], Wall(5)));
        assert_eq!(recovered.waiting, std::slice::from_ref(&call));
    }
    let (ledger, _) = take(&journal).await;
    let gone = vec![Write::Forget("k/1".to_owned())];
    assert_eq!(ledger.commit(&commit(&ledger, gone, vec![]), &[]).await, Outcome::Committed);
    assert_eq!(take(&journal).await.1.answers.earlier, []);
}

#[tokio::test]
async fn a_record_of_a_newer_program_is_an_error_that_says_so() {
    let journal = Arc::new(MemoryStore::new());
    journal.create("reliable/test/00007/fence", Bytes::from_static(&[1, 3, 0xc0]), BY).await.unwrap();
    let place = Place::new("test", PartitionId(7));
    let taken = Ledger::take::<Actor, u8>(journal, place, NODE_A, Wall(5), BY).await;
    let message = taken.unwrap_err().to_string();
    assert!(message.contains("format 3") && message.contains("newer program"), "{message}");
}

/// As they were written when parked messages did not say how they leave, and timers had no names.
#[derive(Serialize)]
struct OldParked {
    slot: Slot,
    envelope: Sealed<Actor, u8>,
    error: String,
}

#[derive(Serialize)]
struct OldTimer {
    due: Wall,
    slot: Slot,
    outgoing: Outgoing<Actor, u8>,
}

#[test]
fn parked_messages_and_timers_of_earlier_programs_are_read_and_others_written_as_before() {
    let Parked { slot, envelope, error, leaves } = parked(None);
    let old = encode("parked", &OldParked { slot, envelope, error }).unwrap();
    assert_eq!(decode::<Parked<Actor, u8>>("parked", &old).unwrap(), parked(leaves));
    assert_eq!(encode("parked", &parked(None)).unwrap(), old);
    let Timer { due, slot, outgoing, .. } = timer();
    let old = encode("timer", &OldTimer { due, slot, outgoing }).unwrap();
    let nameless = Timer { name: None, ..timer() };
    assert_eq!(decode::<Timer<Actor, u8>>("timer", &old).unwrap(), nameless);
    assert_eq!(encode("timer", &nameless).unwrap(), old);
}

#[test]
fn how_a_call_is_written_is_a_promise_to_journals_and_those_of_before_are_read() {
    let call = |as_written| Call { key: "k".to_owned(), request: 7, as_written, recorded: true };
    let before = b"\x01\x01\x83\xa3key\xa1k\xa7request\x07\xa8recorded\xc3";
    assert_eq!(&encode("", &call(None)).unwrap()[..], before);
    assert_eq!(decode::<Call>("", before).unwrap(), call(None));
    let golden = b"\x01\x01\x84\xa3key\xa1k\xa7request\x07\xaaas_written\x09\xa8recorded\xc3";
    assert_eq!(&encode("", &call(Some(9))).unwrap()[..], golden);
    assert_eq!(decode::<Call>("", golden).unwrap(), call(Some(9)));
}

#[test]
fn how_a_parked_message_leaves_is_a_promise_to_journals() {
    let output = encode("parked", &Leaves::Output { lane: Lane::Outside(7), number: 3 }).unwrap();
    let (to, delivery) = (Destination::Partition(PartitionId(2)), Delivery::ExactlyOnce);
    let message = encode("parked", &Leaves::Message { to, delivery }).unwrap();
    assert_eq!(&output[..], b"\x01\x01\x81\xa6Output\x82\xa4lane\x81\xa7Outside\x07\xa6number\x03");
    let golden = b"\x01\x01\x81\xa7Message\x82\xa2to\x81\xa9Partition\x02\xa8delivery\xabExactlyOnce";
    assert_eq!(&message[..], golden);
}

#[tokio::test]
async fn what_may_be_sent_may_be_deferred_and_parked_whatever_it_failed_of() {
    #[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
    struct Large(String);

    let journal: Arc<dyn Journal> = Arc::new(MemoryStore::new());
    let limit = journal.limits().value_bytes_max;
    let place = Place::new("test", PartitionId(7));
    let taken = Ledger::take::<Actor, Large>(journal, place, NODE_A, Wall(5), BY).await;
    let ledger = taken.expect("nothing is wrong with the journal").0;
    let letter = |bytes: usize| -> Sealed<Actor, Large> {
        let (from, body) = (Some(actor("ada")), Large("x".repeat(bytes)));
        Envelope { from, to: actor("bob"), birth: None, creates: false, call: None, body }.into()
    };
    let written = async |write: Write<Actor, Large>| {
        let commit = Commit { id: CommitId(1), epoch: ledger.owner().epoch, turns: vec![], writes: vec![write] };
        ledger.commit(&commit, &[]).await
    };
    // The largest that a lane takes.
    let lane = Lane::Loose(PartitionId(2));
    let mut largest = limit - 1024;
    while let Outcome::Aborted(_) = written(Write::Append { lane, number: 1, envelope: letter(largest) }).await {
        largest -= 256;
    }
    assert!(largest > limit - 4096, "little is lost by it");
    let deferred = Deferred { slot: slot(1), envelope: letter(largest) };
    assert_eq!(written(Write::Defer(deferred)).await, Outcome::Committed);
    for leaves in [None, Some(Leaves::Output { lane: Lane::Outside(u32::MAX), number: u64::MAX })] {
        let parked = Parked { slot: slot(2), envelope: letter(largest), error: "wrong ü ".repeat(10_000), leaves };
        assert_eq!(written(Write::Park(parked)).await, Outcome::Committed);
    }
}

#[tokio::test]
async fn attempts_are_recovered_handed_over_and_removed() {
    let journal = Arc::new(MemoryStore::new());
    let (ledger, _) = take(&journal).await;
    let write = vec![Write::Attempt(attempt(Some(7)))];
    assert_eq!(ledger.commit(&commit(&ledger, write, vec![]), &[]).await, Outcome::Committed);
    let (ledger, recovered) = take(&journal).await;
    assert_eq!(recovered.attempts, [attempt(Some(7))]);
    ledger.leave(vec![attempt(None)], true).await.unwrap();
    let (ledger, recovered) = take(&journal).await;
    assert_eq!(recovered.attempts, [attempt(None)], "it runs no more");
    let end = vec![Write::EndAttempt(attempt(None).place)];
    assert_eq!(ledger.commit(&commit(&ledger, end, vec![]), &[]).await, Outcome::Committed);
    assert_eq!(take(&journal).await.1.attempts, []);
}

#[tokio::test]
async fn an_owner_that_neither_left_nor_goes_on_may_have_died() {
    let journal = Arc::new(MemoryStore::new());
    let by = async |number: u64| {
        let owner = OwnerProcess { name: "node-b", number };
        let taken = Ledger::take::<Actor, u8>(journal.clone(), Place::new("test", PartitionId(7)), owner, Wall(5), BY);
        taken.await.expect("nothing is wrong with the journal")
    };
    assert!(!by(1).await.1.after_death, "there was no owner");
    assert!(!by(1).await.1.after_death, "the same process goes on");
    assert!(by(2).await.1.after_death);
    let (ledger, recovered) = by(2).await;
    assert!(recovered.after_death, "it was not over with a take that the same process repeats");
    ledger.leave(Vec::new(), true).await.unwrap();
    let (ledger, recovered) = by(3).await;
    assert!(!recovered.after_death, "it has left");
    ledger.leave(Vec::new(), false).await.unwrap();
    assert!(by(4).await.1.after_death, "a death that it knew of is not over with it");
}

#[test]
fn attempts_and_fences_are_promises_to_journals() {
    let stored = encode("attempt", &attempt(Some(7))).unwrap();
    let golden =
        b"\x01\x01\x83\xa5place\x81\xa7Counted\x83\xa4from\x03\xa4life\x01\xa6number\x09\xa6deaths\x01\xa7process\x07";
    assert_eq!(&stored[..], golden);
    let place = Place::new("test", PartitionId(7));
    let slots = "0000000000000001-0000000000000002";
    for (of, name) in [
        (attempt(None).place, "counted-00003-0000000000000001-0000000000000009".to_owned()),
        (
            WaitingPlace::Loose { from: PartitionId(3), life: Life(1), number: 9 },
            format!("loose-00003-{}", "0000000000000001-0000000000000009"),
        ),
        (WaitingPlace::Queue(slot(2)), format!("queue-{slots}")),
        (WaitingPlace::Call("a/b".to_owned()), "call-a%2Fb".to_owned()),
    ] {
        assert_eq!(place.attempt(&of), format!("reliable/test/00007/attempt/{name}"));
    }
    // A fence of an earlier program, as it was written and is read.
    #[derive(Serialize)]
    struct Fence2 {
        epoch: u64,
        life: u64,
        owner: &'static str,
        answers_since: Option<Wall>,
    }
    let old = encode("fence", &Fence2 { epoch: 6, life: 3, owner: "node-a", answers_since: Some(Wall(5)) }).unwrap();
    let fence = Fence::decode("fence", &old).unwrap();
    assert_eq!((fence.process, fence.is_left), (None, false));
    assert_eq!(&fence.encode("fence").unwrap()[2..], &old[2..], "what is not said is not written");
}

#[test]
fn batches_of_earlier_programs_do_not_say_what_was_sent_before() {
    #[derive(Serialize)]
    struct OldBatch {
        from: PartitionId,
        life: Life,
        epoch: Epoch,
        counted: bool,
        round: u32,
        floor: u64,
        first: u64,
        messages: Vec<(u64, Sealed<Actor, u8>)>,
    }
    let (from, life, epoch, messages) = (PartitionId(3), Life(1), Epoch(2), vec![(7, message("bob", 1))]);
    let old = OldBatch { from, life, epoch, counted: true, round: 0, floor: 6, first: 7, messages };
    let old = encode("batch", &old).unwrap();
    let batch: Batch<Actor, u8> = decode("batch", &old).unwrap();
    assert_eq!(batch.sent_before, None);
    assert_eq!(encode("batch", &batch).unwrap(), old);
}
