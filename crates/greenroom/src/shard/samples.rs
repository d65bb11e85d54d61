//! Which of a shard's turns are kept for a look: those that fail, and the slowest.

use std::time::Duration;

use greenroom_world::Timestamp;

use super::Shard;
use super::beside::is_beside;
use super::chain::Link;
use super::late::HOOK;
use super::turns::Frame;
use crate::actor::error::Refusal;
use crate::actor::key::ActorId;
use crate::here::meter::Class;
use crate::here::samples::{Sample, cut};

/// What the slab knew of a turn that has ended: when it began, and who waits for it.
pub(super) type Known = (Timestamp, Link);

impl Shard {
    /// Keeps the turn of `frame`, which has ended, if it is among the slowest, and tells those who follow.
    #[inline]
    pub(super) fn look_at_ended(&self, frame: &Frame, took: Duration, known: Option<&Known>) {
        if self.metering.bar.get().is_passed(took, self.now()) {
            self.sample_slow(frame, took, known);
        }
        if self.is_followed() {
            self.tell_followers(frame, took, known);
        }
    }

    #[cold]
    fn sample_slow(&self, frame: &Frame, took: Duration, known: Option<&Known>) {
        if frame.job.get().method == HOOK.method || is_beside(frame.activation.id()) {
            return;
        }
        let sample = Sample { ran: Some(took), ..self.told_of(frame, known) };
        self.metering.bar.set(self.gauges().samples().note_slow(sample));
    }

    /// Keeps the turn of `frame`, which failed.
    pub(super) fn sample_failed(&self, frame: &Frame, class: Class, known: Option<&Known>, error: &dyn Fn() -> String) {
        let samples = self.gauges().samples();
        if samples.takes_failure(self.now()) {
            let sample = self.told_of(frame, known);
            samples.note_failure(Sample { failed: Some(class), error: Some(error()), ..sample });
        }
    }

    /// Keeps a message that was refused where its actor is.
    pub(super) fn sample_refused(&self, id: &ActorId, method: u16, refusal: &Refusal) {
        let queued = match refusal {
            Refusal::Expired(spent) => spent.queued,
            _ => None,
        };
        if self.is_followed() {
            self.tell_of_refused(id, method, refusal, queued);
        }
        let samples = self.gauges().samples();
        if !samples.takes_failure(self.now()) {
            return;
        }
        let (failed, error) = (Some(refusal.into()), Some(cut(&refusal.to_string())));
        samples.note_failure(Sample { queued, failed, error, ..self.sample_of(id.clone(), method) });
    }

    /// What is known of the turn of `frame`, which runs or has just ended.
    pub(super) fn told_of(&self, frame: &Frame, known: Option<&Known>) -> Sample {
        let (began, caller) = match known {
            Some((began, link)) => (Some(*began), self.awaited_by(link)),
            None if frame.entered.get() => {
                let turns = self.turns.borrow();
                let turn = turns.find(frame.id);
                (turn.map(|turn| turn.began), turn.and_then(|turn| self.awaited_by(&turn.link)))
            }
            None => (None, self.caller_of(frame)),
        };
        let began = if frame.timed == Timestamp::NEVER { began } else { Some(frame.timed) };
        let trace = frame.baggage().and_then(|baggage| baggage.trace.as_ref()).map(|trace| trace.trace_hex());
        let ran = began.map(|began| self.clock().since(began));
        let sample = self.sample_of(frame.activation.id().clone(), frame.job.get().method);
        Sample { caller, ran, trace, ..sample }
    }

    pub(super) fn sample_of(&self, actor: ActorId, method: u16) -> Sample {
        let (noted, at) = (self.now(), self.port.node.wall());
        Sample {
            noted,
            at,
            actor,
            method,
            caller: None,
            queued: None,
            ran: None,
            failed: None,
            error: None,
            trace: None,
        }
    }

    /// Who waits for a turn that the slab does not know.
    fn caller_of(&self, frame: &Frame) -> Option<String> {
        let link = frame.link.take();
        let caller = match &link {
            Some(link) => self.awaited_by(link),
            // SAFETY: the frame below is on this stack, under `frame`, which runs or has just ended.
            None => unsafe { frame.below.get().as_ref() }.map(|below| below.activation.id().to_string()),
        };
        frame.link.set(link);
        caller
    }
}
