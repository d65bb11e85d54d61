//! One actor's machine, and what waits for it.

use std::collections::BTreeMap;
use std::sync::Arc;

use greenroom_protocols::gsi::{self, CallId, Round, Verdict};
use greenroom_protocols::node::NodeId;
use greenroom_world::Timestamp;

use super::super::Geo;
use super::super::letter::{Action, Body, Event, Machine, Message};
use super::super::quiet::{Reading, Stillness};
use super::{Effect, Presence};
use crate::cluster::directory::Entry;
use crate::cluster::{ControlMessage, Order};
use crate::shard::raw::RawParcel;

/// One actor's machine.
pub(super) struct Held {
    pub(super) machine: Box<Machine>,
    pub(super) due: Option<Timestamp>,
    /// Calls that came in here and have not ended.
    pub(super) calls: BTreeMap<CallId, RawParcel>,
    /// Set while the activation is to end.
    pub(super) ending: Option<Ending>,
    pub(super) touched: Timestamp,
    /// When the last instance here has ended.
    pub(super) left: Timestamp,
    /// As the range has it, at `touched`.
    pub(super) stillness: Stillness,
    /// Where the actor will be, if this cluster may activate it.
    pub(super) host: Option<NodeId>,
    pub(super) reading: Option<Box<Reading>>,
}

/// Why an activation is to end.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Ending {
    /// Another cluster owns the actor.
    Suspend(Round),
    /// This cluster leaves.
    Release(Round),
    /// The machine has given it up already.
    Deactivate,
}

impl Held {
    pub(super) fn new(machine: Machine, now: Timestamp, stillness: Stillness) -> Self {
        Self {
            machine: Box::new(machine),
            due: None,
            calls: BTreeMap::new(),
            ending: None,
            touched: now,
            left: Timestamp::default(),
            stillness,
            host: None,
            reading: None,
        }
    }

    fn is_without_instance(&self) -> bool {
        self.machine.instance().is_none() && self.ending.is_none()
    }

    /// Notes what a message says of instances, before the machine takes it in.
    pub(super) fn hears(
        &mut self,
        now: Timestamp,
        here: Presence,
        from: gsi::ClusterId,
        message: &Message,
        quiet: bool,
    ) {
        if here != Presence::Absent {
            self.left = now;
        }
        if let (Body::Answer { round, verdict: Verdict::Pass { .. }, .. }, true) = (&message.body, quiet)
            && let Some(reading) = &mut self.reading
        {
            reading.passed(from, *round);
        }
    }

    fn send(&mut self, geo: &Arc<Geo>, key: &Entry, to: gsi::ClusterId, message: Message) {
        let quiet = match &message.body {
            Body::Ask { round, .. } => {
                self.read_early(geo, key, *round, to);
                false
            }
            Body::Answer { verdict: Verdict::Pass { .. }, .. } => {
                let is_quiet = self.is_without_instance() && self.stillness.is_quiet(self.touched, self.left);
                is_quiet || !geo.config().checks.quiet
            }
            _ => false,
        };
        geo.send_quiet(to, key, message, quiet);
    }

    /// Has the actor's states read while its round asks `to`.
    fn read_early(&mut self, geo: &Arc<Geo>, key: &Entry, round: Round, to: gsi::ClusterId) {
        let away = self.machine.home().is_some_and(|home| home != geo.me());
        if self.reading.as_ref().is_none_or(|reading| !reading.is_of(round)) {
            self.reading = None;
            if let Some(host) = self.host.filter(|_| self.is_without_instance() && !away) {
                let token = geo.world.random();
                self.reading = Some(Box::new(Reading::begin(self.touched, round, host, token)));
                geo.order(Order::Say(host, ControlMessage::ReadEarly { key: key.clone(), token }));
            }
        }
        if let Some(reading) = &mut self.reading {
            reading.asked(to);
        }
    }

    /// Does what the machine wants.
    pub(super) fn perform(
        &mut self,
        geo: &Arc<Geo>,
        key: &Entry,
        action: Action,
        events: &mut Vec<Event>,
        out: &mut Vec<Effect>,
    ) {
        match action {
            Action::Send(to, message) => self.send(geo, key, to, message),
            Action::Activate { instance, doubtful } => {
                self.reading.take_if(|reading| doubtful || !reading.won(instance));
                self.ending = None;
                geo.counts().activated(doubtful);
                out.extend((!doubtful).then_some(Effect::Owned));
            }
            // A reload follows, which tells the host.
            Action::Settle(_) => self.ending = None,
            Action::Resume(_) => self.ending = None,
            Action::Reload(_) => out.push(Effect::Reload),
            Action::Run { origin, call } if origin == geo.me() => {
                if let Some(parcel) = self.calls.remove(&call.id) {
                    geo.waits(-1);
                    geo.deliver(parcel);
                }
            }
            Action::Run { origin, call } => geo.run(origin, key, call),
            Action::End(id, end) => {
                if let Some(parcel) = self.calls.remove(&id) {
                    geo.waits(-1);
                    geo.end(parcel, end, self.machine.silent());
                }
            }
            Action::Suspend(instance) => {
                geo.counts().duplicate_found();
                self.ending = Some(Ending::Suspend(instance));
                out.push(Effect::End { leaving: false });
            }
            Action::Merge { from, number, .. } => {
                geo.counts().merged();
                events.push(Event::Merged { from, number });
            }
            Action::Release(instance) => {
                self.ending = Some(Ending::Release(instance));
                out.push(Effect::End { leaving: true });
            }
            Action::Deactivate(_) => {
                geo.counts().duplicate_ended();
                self.ending = Some(Ending::Deactivate);
                out.push(Effect::End { leaving: false });
            }
            Action::FetchConfiguration(epoch) => geo.wants_list(epoch.0),
        }
    }
}
