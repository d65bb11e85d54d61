//! An ownership's answers to operators.

use greenroom_protocols::delivery::{Deferred, Parked};
use tokio::sync::oneshot;

use super::admin::{self, Report, Wish};
use super::errands::subject;
use super::name::{Body, Happening, Named};
use super::owned::Owned;
use super::waiting::{self, WaitingWish, WaitingWishKind};

impl Owned {
    /// Returns a report of the partition.
    pub(super) fn report(&self) -> Report {
        let owner = self.desk.ledger.owner();
        let (answers, answers_bytes) = self.machine.kept();
        Report {
            partition: owner.partition.0,
            node: self.port.node.name().to_owned(),
            epoch: owner.epoch.0,
            actors: self.cast.len() as u64,
            waiting: self.machine.queued() as u64,
            outgoing: self.backlog(),
            parked: self.machine.parked() as u64,
            held: self.machine.held() as u64,
            answers: answers as u64,
            answers_bytes,
            answers_bytes_max: self.port.node.config().reliable.answers_bytes_max,
            commits: self.commits,
            turns: self.turns,
            commit_ms: self.last_commit.as_secs_f64() * 1000.0,
            trouble: None,
        }
    }

    /// Reads what a wish about waiting messages needs to know.
    pub(super) fn ask_waiting(&mut self, kind: WaitingWishKind, done: oneshot::Sender<Result<String, String>>) {
        self.errands.push(waiting::read(self.desk.clone(), WaitingWish { kind, done }));
    }

    /// Grants an operator's wish about the parked messages.
    pub(super) fn grant(&mut self, wish: &Wish, parked: Vec<Parked<Named, Body>>) -> Result<String, String> {
        let (event, name): (fn(_) -> _, _) = match wish {
            Wish::Retry(name) => (Happening::Retry, name),
            Wish::Drop(name) => (Happening::Drop, name),
            Wish::Parked | Wish::Actor { .. } | Wish::Waiting { .. } => return Ok(admin::shown(&parked)),
        };
        let found = parked.into_iter().find(|parked| admin::slot_name(parked.slot) == *name);
        let Some(parked) = found else {
            return Err(format!("no message is parked at {name:?}; `greenroom reliable parked` lists those that are"));
        };
        if !self.machine.is_parked(parked.slot) {
            return Err(format!(
                "the message at {name:?} is being retried or dropped already; `greenroom reliable parked` lists what is left"
            ));
        }
        let what = subject(&parked.envelope);
        self.happen(event(parked));
        Ok(what)
    }

    /// Grants an operator's wish about the messages that wait.
    pub(super) fn grant_waiting(&mut self, wish: WaitingWish, deferred: Result<Vec<Deferred<Named, Body>>, String>) {
        let partition = self.desk.ledger.owner().partition;
        let granted = deferred.and_then(|read| waiting::grant(&self.machine, partition, &wish.kind, read));
        let answer = granted.map(|(answer, event)| {
            event.into_iter().for_each(|event| self.happen(event));
            answer
        });
        // An error means that nobody waits.
        let _ = wish.done.send(answer);
    }
}
