//! Turns that somebody follows as they end, and how they went.

use std::cell::RefCell;
use std::collections::VecDeque;
use std::time::Duration;

use super::Shard;
use super::beside::is_beside;
use super::late::HOOK;
use super::samples::Known;
use super::turns::{Frame, TurnId};
use crate::actor::error::Refusal;
use crate::actor::key::ActorId;
use crate::here::meter::Class;
use crate::here::samples::{Sample, cut};
use crate::here::tail::Ended;

/// Turns that have failed and not ended, while somebody follows.
#[derive(Default)]
pub(super) struct Failing(RefCell<VecDeque<(TurnId, Class, String)>>);

impl Shard {
    /// Whether somebody follows the shard's turns.
    #[inline]
    pub(super) fn is_followed(&self) -> bool {
        self.gauges().tail().is_open()
    }

    /// Tells of each turn that begins from now on.
    pub(crate) fn begin_to_tell(&self) {
        self.metering.time_next();
    }

    /// Takes in that a turn has failed, which goes on or is about to end.
    pub(super) fn note_failing(&self, frame: &Frame, class: Class, error: &dyn Fn() -> String) {
        if self.is_followed() {
            let mut failing = self.metering.failing.0.borrow_mut();
            if failing.len() == FAILING_MAX {
                failing.pop_front();
            }
            failing.push_back((frame.id, class, error()));
        }
    }

    /// Tells those who follow of a turn that has ended.
    #[cold]
    pub(super) fn tell_followers(&self, frame: &Frame, took: Duration, known: Option<&Known>) {
        let (actor, method) = (frame.activation.id(), frame.job.get().method);
        if method == HOOK.method || is_beside(actor) {
            return;
        }
        let mut failing = self.metering.failing.0.borrow_mut();
        let at = failing.iter().position(|(id, ..)| *id == frame.id);
        let (failed, error) = at.and_then(|at| failing.remove(at)).map(|(_, class, error)| (class, error)).unzip();
        drop(failing);
        let ended = Ended { actor, method: self.method_name(actor, method), ran: took, failed };
        self.gauges().tail().note(self.now(), ended, || {
            let sample = self.told_of(frame, known);
            Sample { ran: Some(took), failed, error: error.clone(), ..sample }
        });
    }

    /// Tells those who follow of a message that was refused where its actor is.
    pub(super) fn tell_of_refused(&self, actor: &ActorId, method: u16, refusal: &Refusal, queued: Option<Duration>) {
        let failed = Some(refusal.into());
        let ended = Ended { actor, method: self.method_name(actor, method), ran: Duration::ZERO, failed };
        self.gauges().tail().note(self.now(), ended, || {
            let sample = self.sample_of(actor.clone(), method);
            Sample { queued, failed, error: Some(cut(&refusal.to_string())), ..sample }
        });
    }

    fn method_name(&self, actor: &ActorId, method: u16) -> &'static str {
        let methods = self.port.node.kinds().methods_of(actor.kind.name());
        methods.get(usize::from(method)).map_or("other", |method| method.name)
    }
}

/// Turns that have failed and not ended which are told as failed.
const FAILING_MAX: usize = 64;
