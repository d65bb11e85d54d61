//! Two instances met: the loser hands over what the owner has not seen (G6).

use super::{Action, Body, ClusterId, Entry, Instance, Round, State};
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
        for call in self.calls.take_waiting() {
            self.forward(owner, call, out);
        }
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
            }
        }
    }

    pub(super) fn deactivate(&mut self, out: &mut Vec<Action<O, R, U>>) {
        self.suspended = false;
        out.extend(self.instance.take().map(Action::Deactivate));
        self.merges.clear();
    }
}
