//! Registering and cancelling: the thin loop around the machine.

use std::sync::Arc;
use std::time::Duration;

use greenroom_protocols::reminders::{Answer, Change, Ended, Hint, HintName, Position, Step, Wall, Want};
use greenroom_store::{Store, StoreError};
use greenroom_world::Timestamp;

use super::error::ReminderError;
use super::rows::{self, ReminderId};
use super::schedule::Planned;
use crate::here::Here;
use crate::pids::key::is_reserved;

/// Brings about what is wanted of the reminder `id`, until `until`.
pub(super) async fn change(
    node: &Arc<Here>,
    id: &ReminderId,
    want: Want<Planned>,
    until: Timestamp,
) -> Result<Ended, ReminderError> {
    #[cfg(feature = "rehearsal")]
    crate::shard::rehearsal::note_lasting();
    if matches!(want, Want::Set { .. }) && is_reserved(&id.key) {
        return Err(invalid(id, OF_SPAWNED.to_owned()));
    }
    let store = node.calendar().store(node).map_err(|reason| invalid(id, reason))?;
    let mut change = Change::new(want);
    let mut last = "the time was up before the store had answered".to_owned();
    let mut marked = false;
    loop {
        if let Step::Done(ended) = change.step() {
            node.calendar().made(id.range(), ended.wake);
            #[cfg(feature = "rehearsal")]
            crate::shard::rehearsal::forget_ticks((&id.kind, &id.key), &id.name);
            return Ok(*ended);
        }
        let left = until.since(node.world().now());
        let over = if left.is_zero() {
            Some(last.clone())
        } else if !node.fence_open() {
            Some("this node's lease has run out".to_owned())
        } else {
            None
        };
        if let Some(reason) = over {
            let name = id.name.clone();
            return Err(match change.is_in_doubt() {
                true => ReminderError::Unknown { name, reason },
                false => ReminderError::Unavailable { name, reason },
            });
        }
        let stepped = async {
            if !marked {
                node.calendar().mark_used(node, &*store, left).await?;
                marked = true;
            }
            step(node, &*store, id, change.step(), left).await
        };
        match stepped.await {
            Ok(answer) => change.answer(answer),
            Err(error) if error.is_permanent() && !change.is_in_doubt() => {
                return Err(invalid(id, error.to_string()));
            }
            Err(error) => {
                last = error.to_string();
                change.answer(Answer::Failed);
                tokio::time::sleep(PAUSE.min(left)).await;
            }
        }
    }
}

async fn step(
    node: &Arc<Here>,
    store: &dyn Store,
    id: &ReminderId,
    step: &Step<Planned>,
    left: Duration,
) -> Result<Answer<Planned>, StoreError> {
    let keys = node.calendar().keys();
    let key = keys.record(id);
    Ok(match step {
        Step::Read => match store.read(&key, left).await? {
            None => Answer::Read(None),
            Some(row) => match rows::read_record(&row) {
                Ok((_, found)) => Answer::Read(Some(found)),
                Err(reason) => return Err(StoreError::Format { store: key, reason }),
            },
        },
        Step::CreateHint { wake, expected } => {
            let hint = Hint { of: id.clone(), expected: expected.clone() };
            Answer::Hint(create_hint(node, store, *wake, &hint, left).await?)
        }
        Step::Write { record, expected } => {
            let row = rows::write_record(id, record);
            let written = match expected {
                None => store.create(&key, row, left).await,
                Some(expected) => store.replace(&key, row, &rows::version(expected), left).await,
            };
            match written {
                Err(error) if !error.is_conflict() => return Err(error),
                Ok(_) => Answer::Written,
                Err(_) => Answer::Failed,
            }
        }
        Step::DropHint(hint) => {
            // The range's owner removes it in its time if this does not.
            let key = keys.hint(id.range(), hint.at);
            let _ = store.delete(&key, &rows::version(&hint.tag), left).await;
            Answer::Dropped
        }
        Step::Done(_) => Answer::Dropped,
    })
}

/// Creates a hint under a number that no other has.
pub(super) async fn create_hint(
    node: &Arc<Here>,
    store: &dyn Store,
    wake: Wall,
    hint: &Hint<ReminderId>,
    timeout: Duration,
) -> Result<HintName, StoreError> {
    let at = Position { wake: wake.min(Wall::PARKED), nonce: node.world().random() };
    let key = node.calendar().keys().hint(hint.of.range(), at);
    let version = store.create(&key, rows::write_hint(hint), timeout).await?;
    Ok(HintName { at, tag: rows::tag(&version) })
}

fn invalid(id: &ReminderId, reason: String) -> ReminderError {
    ReminderError::Invalid { name: id.name.clone(), reason }
}

/// Between two tries.
const PAUSE: Duration = Duration::from_millis(50);

/// Reason for which reminders of spawned actors are refused: they would outlive their actor.
const OF_SPAWNED: &str = "a spawned actor has no reminders, as its key ends with its activation; set a timer by `cx.after(..)`, or \
                          a reminder of the virtual actor that spawned it";
