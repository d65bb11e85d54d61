//! Who waits for a partition's answers.

use std::collections::BTreeMap;

use greenroom_protocols::delivery::Call;
use tokio::sync::oneshot;

use super::answers::Answered;
use super::cast::unpacked;
use super::name::{Body, Letter};
use crate::actor::error::Refusal;

/// The callers that wait, by their calls' keys.
#[derive(Default)]
pub(super) struct Callers {
    waiting: BTreeMap<String, Vec<Caller>>,
    /// How many there are of each principal, `None` for who comes without one.
    of: BTreeMap<Option<String>, usize>,
}

struct Caller {
    /// The hashes of its request.
    request: (u64, Option<u64>),
    principal: Option<String>,
    told: oneshot::Sender<Answered>,
}

impl Caller {
    /// True if it waits for the answer to `call`, and not to another request under its key.
    fn asks_for(&self, call: &Call) -> bool {
        self.request.0 == call.request
            || self.request.1 == Some(call.request)
            || call.as_written == Some(self.request.0)
    }
}

impl Callers {
    /// Lets a caller wait, unless as many of its principal do as may.
    ///
    /// # Errors
    /// The caller, and what to tell it.
    pub(super) fn enter(
        &mut self,
        letter: &Letter,
        told: oneshot::Sender<Answered>,
    ) -> Result<(), (oneshot::Sender<Answered>, Refusal)> {
        let Some(call) = &letter.call else { return Ok(()) };
        let principal = principal(letter);
        let count = self.of.entry(principal.clone()).or_default();
        if *count >= OF_PRINCIPAL_MAX {
            let queue = "what one principal may have waiting in a partition of reliable actors".to_owned();
            return Err((told, Refusal::Overloaded { queue, bound: OF_PRINCIPAL_MAX as u64 }));
        }
        *count += 1;
        self.waiting.entry(call.key.clone()).or_default().push(Caller {
            request: (call.request, call.as_written),
            principal,
            told,
        });
        Ok(())
    }

    /// Answers all who wait for a call, and nobody who uses its key for another request.
    pub(super) fn answer(&mut self, call: &Call, answered: &Answered) {
        let waiting = self.waiting.remove(&call.key).unwrap_or_default();
        let (told, others): (Vec<_>, Vec<_>) = waiting.into_iter().partition(|caller| caller.asks_for(call));
        if !others.is_empty() {
            self.waiting.insert(call.key.clone(), others);
        }
        for caller in told {
            self.leave(&caller.principal);
            // An error means that the caller has gone.
            let _ = caller.told.send(answered.clone());
        }
    }

    /// Takes in that callers of this key have gone; whether nobody waits for it any more.
    pub(super) fn gone(&mut self, key: &str) -> bool {
        let (gone, waiting): (Vec<_>, Vec<_>) =
            self.waiting.remove(key).unwrap_or_default().into_iter().partition(|caller| caller.told.is_closed());
        gone.iter().for_each(|caller| self.leave(&caller.principal));
        let nobody = waiting.is_empty();
        if !nobody {
            self.waiting.insert(key.to_owned(), waiting);
        }
        nobody
    }

    /// Answers everybody.
    pub(super) fn answer_all(&mut self, answered: &Answered) {
        for caller in std::mem::take(self).waiting.into_values().flatten() {
            // An error means that the caller has gone.
            let _ = caller.told.send(answered.clone());
        }
    }

    fn leave(&mut self, principal: &Option<String>) {
        if let Some(count) = self.of.get_mut(principal) {
            *count -= 1;
            if *count == 0 {
                self.of.remove(principal);
            }
        }
    }
}

/// On whose behalf a message is.
fn principal(letter: &Letter) -> Option<String> {
    let Body::Call { carried, .. } = &letter.body else { return None };
    unpacked(carried.as_ref()).principal.map(|principal| principal.id().into_owned())
}

/// Callers of one principal that may wait in one partition: a quarter of what it takes, so that others always find room.
const OF_PRINCIPAL_MAX: usize = 16_384;

#[cfg(test)]
mod tests {
    use super::super::name::{Named, Payload};
    use super::*;

    fn letter(key: &str) -> Letter {
        let to = Named { kind: "account".into(), key: "a".into() };
        let body = Body::Call { method: "pay".into(), arguments: Payload::default(), carried: None };
        let call = Some(Call { key: key.to_owned(), request: 1, as_written: None, recorded: false });
        Letter { from: None, to, birth: None, creates: false, call, body }
    }

    #[test]
    fn a_principal_has_its_share_and_gets_it_back() {
        let mut callers = Callers::default();
        let mut waits = Vec::new();
        for n in 0..OF_PRINCIPAL_MAX {
            let (told, wait) = oneshot::channel();
            assert!(callers.enter(&letter(&format!("{}", n / 2)), told).is_ok());
            waits.push(wait);
        }
        let (told, _wait) = oneshot::channel();
        let Err((told, refusal)) = callers.enter(&letter("x"), told) else { panic!("there is no room") };
        assert!(matches!(refusal, Refusal::Overloaded { .. }));

        drop(waits.remove(0));
        assert!(!callers.gone("0"), "another one waits for the same call");
        assert!(callers.enter(&letter("x"), told).is_ok());
        let of = |key: &str, request| Call { key: key.to_owned(), request, as_written: None, recorded: false };
        callers.answer(&of("0", 2), &Answered::OtherRequest);
        assert!(waits[0].try_recv().is_err(), "only who used the key for another request is told so");
        callers.answer(&of("0", 1), &Answered::Busy);
        assert!(matches!(waits.remove(0).try_recv(), Ok(Answered::Busy)));
        assert!(callers.gone("0"));
        callers.answer_all(&Answered::Lost);
        assert!(waits.into_iter().all(|mut wait| matches!(wait.try_recv(), Ok(Answered::Lost))));
        assert!(callers.waiting.is_empty() && callers.of.is_empty());
    }
}
