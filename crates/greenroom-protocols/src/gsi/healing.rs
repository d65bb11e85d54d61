//! Two instances met: the loser hands over what the owner has not seen (G6), and the owner's instance reloads (G9).
//!
//! An instance that ends in doubt meets nobody, and what it has saved is as new to the owner. Its entry therefore goes on asking,
//! without an instance and without making one, until an owner has heard of it or every cluster has passed.

use super::{Action, Body, ClusterId, Entry, Instance, Mode, Round, State};
use crate::time::Timestamp;

/// A hand-over under way.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub(super) struct Handing<U> {
    pub(super) to: Instance,
    pub(super) number: Round,
    /// Known once the instance has stopped.
    pub(super) unseen: Option<U>,
    pub(super) resend_at: Timestamp,
    pub(super) silent_at: Timestamp,
}

impl<O: Clone, R, U: Clone> Entry<O, R, U> {
    /// Takes `owner` for the owner, and hands it the instance here.
    pub(super) fn cache(&mut self, now: Timestamp, owner: Instance, out: &mut Vec<Action<O, R, U>>) {
        self.state = State::Cached(owner);
        self.again_at = None;
        if let Some(instance) = self.instance {
            if self.config.checks.hand_over {
                self.suspended = true;
                self.last.0 += 1;
                let (number, silent_at) = (self.last, now + self.config.silent_after);
                self.handing = Some(Handing { to: owner, number, unseen: None, resend_at: now, silent_at });
                out.push(Action::Suspend(instance));
            } else {
                self.deactivate(out);
            }
        }
        self.forward_waiting(out);
    }

    /// True while calls wait for a hand-over: the owner has not read what the instance here has saved.
    pub(super) fn holds_calls(&self) -> bool {
        self.handing.is_some() && self.config.checks.reload
    }

    /// Sends waiting calls to the owner, if one is known and has taken in what was here.
    pub(super) fn forward_waiting(&mut self, out: &mut Vec<Action<O, R, U>>) {
        if let State::Cached(owner) = self.state
            && !self.holds_calls()
        {
            for call in self.calls.take_waiting() {
                self.forward(owner, call, out);
            }
        }
    }

    /// Has the instance here read its stored state again (G9).
    pub(super) fn reload(&self, instance: Round, out: &mut Vec<Action<O, R, U>>) {
        if self.config.checks.reload {
            out.push(Action::Reload(instance));
        }
    }

    /// Plans the report of an instance that ends in doubt: an owner elsewhere has not seen what it saved.
    pub(super) fn plan_report(&mut self, now: Timestamp) {
        let in_doubt = self.config.mode == Mode::Optimistic && !matches!(self.state, State::Owned(_));
        if in_doubt && self.config.checks.reload {
            self.report_at = Some(now + self.config.rerun_every);
        }
    }

    /// Asks on behalf of an instance that has ended in doubt.
    pub(super) fn report_if_due(&mut self, now: Timestamp, out: &mut Vec<Action<O, R, U>>) {
        if self.report_at.is_some_and(|at| at <= now) && self.is_blank() && !self.is_recovering() {
            self.report_at = (!self.is_out()).then(|| now + self.config.rerun_every);
            if self.report_at.is_some() {
                self.start_round(now, out);
            }
        }
    }

    /// True if nothing but a report needs an answer: no instance is to be made for it.
    pub(super) fn only_reports(&self) -> bool {
        let is_wanted = self.instance.is_some() || self.calls.is_waiting() || self.config.home.is_some();
        self.report_at.is_some() && !is_wanted
    }

    pub(super) fn suspended(&mut self, now: Timestamp, instance: Round, unseen: U, out: &mut Vec<Action<O, R, U>>) {
        if self.instance == Some(instance)
            && let Some(handing) = &mut self.handing
        {
            handing.unseen = Some(unseen);
            handing.silent_at = now + self.config.silent_after;
            self.hand_over(now, out);
        }
    }

    pub(super) fn hand_over(&mut self, now: Timestamp, out: &mut Vec<Action<O, R, U>>) {
        let Some(handing) = &mut self.handing else { return };
        handing.resend_at = now + self.config.resend_after;
        let (to, number) = (handing.to, handing.number);
        if let Some(unseen) = handing.unseen.clone() {
            self.send(to.cluster, Body::HandOver { to, number, unseen }, out);
        }
    }

    /// Takes in what a loser hands over, once.
    pub(super) fn handed(
        &mut self,
        from: ClusterId,
        to: Instance,
        number: Round,
        unseen: U,
        out: &mut Vec<Action<O, R, U>>,
    ) {
        match self.merges.get(&from) {
            _ if self.recovering => {}
            Some((last, true)) if *last == number => self.send(from, Body::HandedOver { number }, out),
            Some((last, _)) if *last == number || last.follows(number) => {}
            _ if self.state != State::Owned(to.round) => self.send(from, Body::NotOwner { number }, out),
            _ => {
                self.merges.insert(from, (number, false));
                out.push(Action::Merge { from, number, unseen });
                self.reload(to.round, out);
            }
        }
    }

    pub(super) fn deactivate(&mut self, out: &mut Vec<Action<O, R, U>>) {
        self.suspended = false;
        out.extend(self.instance.take().map(Action::Deactivate));
        self.merges.clear();
    }
}
