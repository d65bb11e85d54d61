//! The sending side: one partition's outbox.

use std::collections::{BTreeMap, BTreeSet};

use super::outgoing::{BatchMessages, LaneState};
use super::{Action, Config, Epoch, Lane, Life, Ownership, PartitionId, Reply, Sealed, WaitingPlace};
use crate::time::Timestamp;

/// The lanes of one partition's outbox: what is committed and not yet acknowledged, and what of it was sent (R3, R7).
///
/// A message is given its number when the commit that holds it is formed, and leaves when that commit is applied.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub struct Sender<A, M> {
    config: Config,
    me: PartitionId,
    life: Life,
    epoch: Epoch,
    lanes: BTreeMap<Lane, LaneState<A, M>>,
}

impl<A: Clone + Ord, M: Clone> Sender<A, M> {
    /// The outbox under a new ownership, from the first and last numbers of its logs, and the numbers of outputs that are
    /// parked; asks for their entries.
    pub fn new(
        config: Config,
        owner: Ownership,
        life: Life,
        (lanes, parked): (&[(Lane, u64, u64)], impl Iterator<Item = (Lane, u64)>),
        now: Timestamp,
        out: &mut Vec<Action<A, M>>,
    ) -> Self {
        let lanes = lanes.iter().map(|(lane, before, last)| (*lane, LaneState::recovered(*lane, *before, *last)));
        let mut lanes: BTreeMap<_, _> = lanes.collect();
        let mut passed = BTreeSet::new();
        for (lane, number) in parked {
            if let Some(state) = lanes.get_mut(&lane) {
                let state: &mut LaneState<A, M> = state;
                state.acknowledge(0, &[(number, number)]);
                passed.insert(lane);
            }
        }
        let mut sender = Self { config, me: owner.partition, life, epoch: owner.epoch, lanes };
        for lane in passed {
            sender.trim(now, lane, out);
        }
        sender.pump_all(now, out);
        sender
    }

    /// The last number that is committed in `lane`.
    pub fn committed_in(&self, lane: Lane) -> u64 {
        self.lanes.get(&lane).map_or(0, |state| state.committed)
    }

    /// Takes in entries whose commit is applied, with their numbers, and sends what may leave.
    pub fn committed(&mut self, now: Timestamp, entries: Vec<(Lane, u64, Sealed<A, M>)>, out: &mut Vec<Action<A, M>>) {
        let mut touched = Vec::new();
        for (lane, number, envelope) in entries {
            let state = self.lanes.entry(lane).or_insert_with(|| LaneState::recovered(lane, 0, 0));
            state.append(&self.config, number, envelope);
            if touched.last() != Some(&lane) {
                touched.push(lane);
            }
        }
        touched.sort_unstable();
        touched.dedup();
        for lane in touched {
            self.pump(now, lane, out);
        }
    }

    /// Takes in what a receiver says of a lane.
    pub fn replied(&mut self, now: Timestamp, reply: &Reply, out: &mut Vec<Action<A, M>>) {
        let checks = self.config.checks;
        let ours = reply.to_life == self.life && reply.to_epoch == self.epoch;
        let lane = if reply.counted { Lane::Counted(reply.from) } else { Lane::Loose(reply.from) };
        let Some(state) = self.lanes.get_mut(&lane).filter(|_| ours || !checks.reply_epoch) else { return };
        if state.replied(&self.config, now, reply) {
            self.trim(now, lane, out);
            self.pump(now, lane, out);
        }
    }

    /// Takes in that a plug has delivered an output.
    pub fn delivered(&mut self, now: Timestamp, lane: Lane, number: u64, out: &mut Vec<Action<A, M>>) {
        if self.lanes.get_mut(&lane).is_some_and(|state| state.take_back(number).is_some()) {
            self.done(now, lane, number, false, out);
        }
    }

    /// Takes in that a plug will not deliver an output, which is to be parked; `None` if it was not handed over.
    pub fn refused(&mut self, lane: Lane, number: u64) -> Option<Sealed<A, M>> {
        self.lanes.get_mut(&lane)?.take_back(number)
    }

    /// Takes in that an output that was refused is parked.
    pub fn parked(&mut self, now: Timestamp, lane: Lane, number: u64, out: &mut Vec<Action<A, M>>) {
        self.done(now, lane, number, true, out);
    }

    /// Hands an output over that was refused and could not be parked.
    pub fn again(&mut self, now: Timestamp, lane: Lane, number: u64, out: &mut Vec<Action<A, M>>) {
        if let Some(state) = self.lanes.get_mut(&lane) {
            state.again(number);
            self.pump(now, lane, out);
        }
    }

    fn done(&mut self, now: Timestamp, lane: Lane, number: u64, unwanted: bool, out: &mut Vec<Action<A, M>>) {
        if let Some(state) = self.lanes.get_mut(&lane) {
            state.done(number, unwanted);
            self.trim(now, lane, out);
            self.pump(now, lane, out);
        }
    }

    /// Takes in entries that were read from the log.
    pub fn paged(
        &mut self,
        now: Timestamp,
        lane: Lane,
        entries: Vec<(u64, Sealed<A, M>)>,
        out: &mut Vec<Action<A, M>>,
    ) {
        if let Some(state) = self.lanes.get_mut(&lane) {
            state.paged(&self.config, now, entries);
            self.pump(now, lane, out);
        }
    }

    /// Sends again what has been silent for too long, and trims what has been acknowledged for long.
    pub fn tick(&mut self, now: Timestamp, out: &mut Vec<Action<A, M>>) {
        if self.lanes.values().any(|state| state.is_untidy(now)) {
            // All at once: they share a write.
            for (lane, state) in &mut self.lanes {
                let trimmed = state.trim(&self.config, now, true);
                out.extend(trimmed.map(|through| Action::Trim { lane: *lane, through }));
            }
        }
        for lane in self.lanes.keys().copied().collect::<Vec<_>>() {
            let state = self.lanes.get_mut(&lane).expect("the key was just listed");
            let reads_again = state.reads_again(now);
            if !state.silent(&self.config, now) {
                if reads_again {
                    self.pump(now, lane, out);
                }
                continue;
            }
            if !self.pump(now, lane, out) {
                self.probe(lane, out);
            }
        }
    }

    /// When this wants a [`tick`](Self::tick).
    pub fn deadline(&self) -> Option<Timestamp> {
        self.lanes.values().filter_map(LaneState::deadline).min()
    }

    /// For each lane: entries that wait for an acknowledgement, and how many of them are in memory.
    pub fn backlog(&self) -> impl Iterator<Item = (Lane, u64, usize)> + '_ {
        self.lanes.iter().map(|(lane, state)| (*lane, state.committed - state.acked, state.entries.len()))
    }

    /// The messages in memory that other partitions have not acknowledged: their partition, and their place there.
    pub fn unacknowledged(&self) -> impl Iterator<Item = (PartitionId, WaitingPlace, &Sealed<A, M>)> {
        let (from, life) = (self.me, self.life);
        self.lanes.iter().flat_map(move |(lane, state)| {
            state.unacknowledged().filter_map(move |(number, envelope)| match *lane {
                Lane::Counted(to) => Some((to, WaitingPlace::Counted { from, life, number }, envelope)),
                Lane::Loose(to) => Some((to, WaitingPlace::Loose { from, life, number }, envelope)),
                Lane::Outside(_) => None,
            })
        })
    }

    fn pump_all(&mut self, now: Timestamp, out: &mut Vec<Action<A, M>>) {
        for lane in self.lanes.keys().copied().collect::<Vec<_>>() {
            self.pump(now, lane, out);
        }
    }

    /// Sends what may be sent of `lane`, and reads what is missing; whether anything was sent.
    fn pump(&mut self, now: Timestamp, lane: Lane, out: &mut Vec<Action<A, M>>) -> bool {
        let mut sent = false;
        while let Some(state) = self.lanes.get_mut(&lane) {
            if let Some((from, limit)) = state.page(&self.config) {
                out.push(Action::Page { lane, from, limit });
            }
            if let Lane::Outside(_) = lane {
                let life = self.life;
                let outputs = state.hand_over(&self.config);
                out.extend(outputs.into_iter().map(|(number, envelope, patient)| Action::Output {
                    life,
                    lane,
                    number,
                    envelope,
                    patient,
                }));
                break;
            }
            let batch = state.take(&self.config, now);
            let Some(first) = batch.messages.first().map(|(number, _)| *number) else { break };
            sent = true;
            if let Lane::Counted(to) | Lane::Loose(to) = lane {
                self.send(lane, to, first, batch, out);
            }
        }
        sent
    }

    /// Asks a silent receiver where it is.
    fn probe(&self, lane: Lane, out: &mut Vec<Action<A, M>>) {
        if let Lane::Counted(to) | Lane::Loose(to) = lane {
            let none = BatchMessages { messages: Vec::new(), sent_before: 0 };
            self.send(lane, to, self.lanes[&lane].next, none, out);
        }
    }

    fn send(
        &self,
        lane: Lane,
        to: PartitionId,
        first: u64,
        BatchMessages { messages, sent_before }: BatchMessages<A, M>,
        out: &mut Vec<Action<A, M>>,
    ) {
        let state = &self.lanes[&lane];
        let batch = super::Batch {
            from: self.me,
            life: self.life,
            epoch: self.epoch,
            counted: matches!(lane, Lane::Counted(_)),
            round: state.round,
            floor: state.acked,
            first,
            messages,
            sent_before: Some(sent_before),
        };
        out.push(Action::Send { to, wire: super::Wire::Batch(batch) });
    }

    fn trim(&mut self, now: Timestamp, lane: Lane, out: &mut Vec<Action<A, M>>) {
        // What an outlet has would be sent to it again by the next owner, and no receiver's record would drop it.
        let at_once = matches!(lane, Lane::Outside(_));
        let trimmed = self.lanes.get_mut(&lane).and_then(|state| {
            let tidies = at_once && state.acked == state.committed;
            state.trim(&self.config, now, tidies)
        });
        out.extend(trimmed.map(|through| Action::Trim { lane, through }));
    }
}
