//! Calls that no instance here runs at once: waiting for an owner, travelling, or away at one.

use std::collections::BTreeMap;

use super::inquiry::{Conclusion, Inquiry};
use super::{Action, Body, Call, CallId, Carried, ClusterId, End, Entry, Instance, Refusal, State};
use crate::time::Timestamp;

/// The calls of an entry, except those that a round carries.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub(super) struct Calls<O> {
    /// Run nowhere yet.
    waiting: Vec<Call<O>>,
    /// May have been run by the instance given, or by one unknown.
    away: BTreeMap<CallId, (Call<O>, Option<Instance>)>,
}

impl<O> Default for Calls<O> {
    fn default() -> Self {
        Self { waiting: Vec::new(), away: BTreeMap::new() }
    }
}

impl<O> Calls<O> {
    pub(super) fn is_empty(&self) -> bool {
        self.waiting.is_empty() && self.away.is_empty()
    }

    pub(super) fn is_waiting(&self) -> bool {
        !self.waiting.is_empty()
    }

    pub(super) fn take_waiting(&mut self) -> Vec<Call<O>> {
        std::mem::take(&mut self.waiting)
    }

    pub(super) fn deadline(&self) -> Option<Timestamp> {
        let away = self.away.values().map(|(call, _)| call.deadline);
        self.waiting.iter().map(|call| call.deadline).chain(away).min()
    }

    /// Puts calls that surely ran nowhere before those that came later.
    fn wait_again(&mut self, mut calls: Vec<Call<O>>) {
        calls.append(&mut self.waiting);
        self.waiting = calls;
    }

    /// What a round carried that was given up: its results may still come.
    pub(super) fn carried_away(&mut self, carried: Vec<Call<O>>) {
        self.away.extend(carried.into_iter().map(|call| (call.id, (call, None))));
    }

    /// Ends the calls that wait: a cluster is silent without which none may run.
    pub(super) fn refuse<R, U>(&mut self, out: &mut Vec<Action<O, R, U>>) {
        out.extend(self.waiting.drain(..).map(|call| Action::End(call.id, End::Refused(Refusal::Unreachable))));
    }

    /// Ends the calls that are away at `cluster`, or waits with them anew if they may be repeated.
    pub(super) fn lost<R, U>(&mut self, cluster: ClusterId, out: &mut Vec<Action<O, R, U>>) {
        let there = |at: &mut (Call<O>, Option<Instance>)| at.1.is_some_and(|at| at.cluster == cluster);
        for (id, (call, _)) in self.away.extract_if(.., |_, at| there(at)) {
            if call.repeatable {
                self.waiting.push(call);
            } else {
                out.push(Action::End(id, End::Unknown));
            }
        }
    }

    /// Ends the calls whose deadline has come; the instance that left one of them unanswered.
    pub(super) fn expire<R, U>(&mut self, now: Timestamp, out: &mut Vec<Action<O, R, U>>) -> Option<Instance> {
        for call in self.waiting.extract_if(.., |call| call.deadline <= now) {
            out.push(Action::End(call.id, End::Refused(Refusal::Unreachable)));
        }
        let mut unanswered = None;
        for (id, (_, at)) in self.away.extract_if(.., |_, (call, _)| call.deadline <= now) {
            out.push(Action::End(id, End::Unknown));
            unanswered = at.or(unanswered);
        }
        unanswered
    }
}

impl<O: Clone, R, U: Clone> Entry<O, R, U> {
    /// Runs a call here, forwards it, or lets it wait for a round.
    pub(super) fn call(&mut self, now: Timestamp, call: Call<O>, out: &mut Vec<Action<O, R, U>>) {
        match self.state {
            State::Cached(owner) if !self.holds_calls() => self.forward(owner, call, out),
            _ if self.running().is_some() => self.run(call, out),
            _ if self.is_out() && !self.is_joining() && !self.is_recovering() => {
                out.push(Action::End(call.id, End::Refused(Refusal::Draining)));
            }
            _ if self.calls.waiting.len() >= self.config.calls_max => {
                out.push(Action::End(call.id, End::Refused(Refusal::Full)));
            }
            _ => {
                self.calls.waiting.push(call);
                self.progress(now, out);
            }
        }
    }

    pub(super) fn run(&self, call: Call<O>, out: &mut Vec<Action<O, R, U>>) {
        assert!(self.running().is_some(), "a call is run by no instance");
        let call = Carried { id: call.id, operation: call.operation };
        out.push(Action::Run { origin: self.me, call });
    }

    pub(super) fn forward(&mut self, to: Instance, call: Call<O>, out: &mut Vec<Action<O, R, U>>) {
        if self.calls.away.len() >= self.config.calls_max {
            out.push(Action::End(call.id, End::Refused(Refusal::Full)));
            return;
        }
        let carried = Carried { id: call.id, operation: call.operation.clone() };
        let before = self.calls.away.insert(call.id, (call, Some(to)));
        assert!(before.is_none(), "a call is away already");
        self.send(to.cluster, Body::Forward { to, call: carried }, out);
    }

    /// Runs a forwarded call if the instance that it is for is still the owned one (G8).
    pub(super) fn forwarded(
        &mut self,
        from: ClusterId,
        to: Instance,
        call: Carried<O>,
        out: &mut Vec<Action<O, R, U>>,
    ) {
        let here = self.state == State::Owned(to.round) && to.cluster == self.me;
        if here || !self.config.checks.ownership && self.running().is_some() {
            out.push(Action::Run { origin: from, call });
        } else {
            self.send(from, Body::NotHere { to, call: call.id }, out);
        }
    }

    pub(super) fn not_here(&mut self, now: Timestamp, to: Instance, id: CallId, out: &mut Vec<Action<O, R, U>>) {
        let forwarded = self.calls.away.extract_if(id..=id, |_, (_, at)| *at == Some(to));
        let calls: Vec<Call<O>> = forwarded.map(|(_, (call, _))| call).collect();
        if self.state == State::Cached(to) && self.instance().is_none() {
            self.state = State::Invalid;
        }
        for call in calls {
            self.call(now, call, out);
        }
    }

    pub(super) fn result(&mut self, call: CallId, result: R, out: &mut Vec<Action<O, R, U>>) {
        if self.calls.away.remove(&call).is_some() || self.take_carried(call) {
            out.push(Action::End(call, End::Result(result)));
        }
    }

    /// Decides what becomes of the calls that a round carried.
    pub(super) fn dispose(&mut self, inquiry: Inquiry<O>, conclusion: Conclusion, out: &mut Vec<Action<O, R, U>>) {
        if inquiry.is_declined() || !self.config.checks.declined {
            self.calls.wait_again(inquiry.carried);
        } else if inquiry.is_running() {
            let Conclusion::Elsewhere(owner) = conclusion else { return self.calls.carried_away(inquiry.carried) };
            let away = inquiry.carried.into_iter().map(|call| (call.id, (call, Some(owner))));
            self.calls.away.extend(away);
        } else {
            let (repeatable, once): (Vec<_>, Vec<_>) = inquiry.carried.into_iter().partition(|call| call.repeatable);
            out.extend(once.into_iter().map(|call| Action::End(call.id, End::Unknown)));
            self.calls.wait_again(repeatable);
        }
    }
}
