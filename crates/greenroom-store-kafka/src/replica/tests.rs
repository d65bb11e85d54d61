use greenroom_store::Commit;

use super::*;

const ME: Id = Id { writer: 1, serial: 0 };

fn commit(commit: &Commit) -> Command {
    Command { id: ME, order: Order::commit(commit) }
}

fn order(order: Order) -> Command {
    Command { id: ME, order }
}

/// Carries out `commands`, at successive offsets.
fn after(replica: &mut Replica, commands: impl IntoIterator<Item = Command>) {
    for command in commands {
        let offset = replica.next;
        replica.apply(offset, 1, command);
    }
}

/// What is restored of the records of checkpoints, in the order in which they were written.
fn restored(checkpoints: &[Vec<(RecordKey, Option<Record>)>]) -> Replica {
    let (mut replica, mut entries) = (Replica::default(), BTreeMap::new());
    for (key, record) in checkpoints.iter().flatten() {
        let key = RecordKey::decode(&key.encode()).unwrap();
        let record = record.as_ref().map(|record| Record::decode(&key, &record.encode()).unwrap());
        match (&key, &record) {
            (RecordKey::Entry(name, position), Some(Record::Entry(value))) => {
                entries.insert((name.clone(), *position), value.clone());
            }
            (RecordKey::Entry(name, position), None) => _ = entries.remove(&(name.clone(), *position)),
            _ => replica.restore(key, record),
        }
    }
    replica.restore_entries(entries);
    replica
}

/// A checkpoint of the claim that has just been made.
fn checkpoint(replica: &Replica) -> Vec<(RecordKey, Option<Record>)> {
    let mut records = replica.unsaved();
    let claim = replica.claim().unwrap().offset;
    records.push((RecordKey::Checkpoint, Some(Record::Checkpoint { claim })));
    records
}

fn seen(replica: &Replica) -> String {
    let logs: Vec<_> = ["a", "b"].map(|log| (replica.end(log), replica.entries(log, 1, 100))).into();
    format!("{:?} {:?} {logs:?}", replica.next, replica.scan("", None, 100))
}

#[test]
fn what_is_restored_of_checkpoints_is_what_was_there() {
    let mut replica = Replica::default();
    after(
        &mut replica,
        [
            commit(&Commit::new().put("x", "1".into()).put("y", "2".into()).append("a", "A".into())),
            commit(&Commit::new().append("a", "B".into()).append("b", "C".into())),
            order(Order::Claim),
        ],
    );
    let first = checkpoint(&replica);
    assert_eq!(seen(&restored(std::slice::from_ref(&first))), seen(&replica));
    let claim = replica.claim().unwrap().offset;
    after(
        &mut replica,
        [
            commit(&Commit::new().put("z", "of the time between claim and checkpoint".into())),
            order(Order::Checkpointed { claim }),
            commit(&Commit::new().remove("x").put("y", "3".into()).append("b", "D".into())),
            order(Order::Trim { log: "a".to_owned(), through: 2 }),
            order(Order::Claim),
        ],
    );
    let second = checkpoint(&replica);
    let both = restored(&[first, second.clone()]);
    assert_eq!(seen(&both), seen(&replica));
    assert_eq!(both.end("a"), 3, "a position is never given twice");
    assert!(second.iter().all(|(key, _)| *key != RecordKey::Entry("b".to_owned(), 1)), "it is in the first one");
}

#[test]
fn a_claim_whose_checkpoint_nobody_knows_of_leaves_nothing_wrong() {
    let mut replica = Replica::default();
    after(&mut replica, [commit(&Commit::new().append("a", "A".into()).put("x", "1".into())), order(Order::Claim)]);
    // It was written, and its writer died before it could say so.
    let first = checkpoint(&replica);
    after(
        &mut replica,
        [
            order(Order::Trim { log: "a".to_owned(), through: 1 }),
            commit(&Commit::new().remove("x")),
            order(Order::Claim),
            order(Order::Checkpointed { claim: 1 }),
        ],
    );
    assert!(replica.claim().is_some(), "the later claim stands");
    let mut at_claim = Replica::default();
    after(&mut at_claim, [commit(&Commit::new().append("a", "A".into()).put("x", "1".into())), order(Order::Claim)]);
    after(
        &mut at_claim,
        [
            order(Order::Trim { log: "a".to_owned(), through: 1 }),
            commit(&Commit::new().remove("x")),
            order(Order::Claim),
        ],
    );
    let both = restored(&[first, checkpoint(&at_claim)]);
    assert_eq!(seen(&both), seen(&at_claim));
}

#[test]
fn a_condition_that_fails_changes_nothing_for_anybody() {
    let mut replica = Replica::default();
    after(&mut replica, [commit(&Commit::new().put("fence", "1".into()))]);
    let fence = replica.read("fence").unwrap().version;
    after(&mut replica, [commit(&Commit::new().replace("fence", "2".into(), &fence))]);
    let late = replica.apply(2, 1, commit(&Commit::new().hold("fence", &fence).put("x", "1".into())));
    assert!(matches!(late, Carried::Committed(Err(StoreError::Conflict { .. }))), "{late:?}");
    assert!(replica.read("x").is_none() && replica.unsaved().len() == 1);
}
