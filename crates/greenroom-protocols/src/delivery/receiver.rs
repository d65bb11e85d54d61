//! The receiving side: which numbers of which lane are committed, waiting, or refused.

use std::collections::{BTreeMap, BTreeSet};

use super::{Action, Batch, Config, Epoch, Lane, Life, Ownership, PartitionId, Receipts, Reply, Sealed, Wire};
use crate::reminders::Wall;

/// Where a message came from, and what its commit must say of it.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub enum Source {
    /// A counted lane: the commit holds its receipt.
    Counted {
        /// The sending partition.
        from: PartitionId,
        /// Its life.
        life: Life,
        /// The number.
        number: u64,
    },
    /// A loose lane: acknowledged after the commit, with no record.
    Loose {
        /// The sending partition.
        from: PartitionId,
        /// Its life.
        life: Life,
        /// The number.
        number: u64,
    },
    /// A call from outside or a best-effort message: nothing.
    Uncounted,
    /// The actor's own queue: the commit removes it there.
    Queue(super::Slot),
    /// A parked message that an operator tries again: the commit removes it there.
    Parked(super::Slot),
    /// A timer that is due: the commit removes it.
    Timer {
        /// When it was due.
        due: Wall,
        /// Where it lies.
        slot: super::Slot,
    },
    /// An output that its outlet will not have: acknowledged after the commit that parks it.
    Output {
        /// The lane.
        lane: Lane,
        /// The number.
        number: u64,
    },
}

impl Source {
    /// The number in the lane from which the message came.
    pub(super) fn number(&self) -> Option<u64> {
        match self {
            Self::Counted { number, .. } | Self::Loose { number, .. } => Some(*number),
            Self::Uncounted | Self::Queue(_) | Self::Parked(_) | Self::Timer { .. } | Self::Output { .. } => None,
        }
    }
}

/// What one partition has received: for each sending partition a receive record, and a volatile mark above it (R1, R2).
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub struct Receiver {
    config: Config,
    me: PartitionId,
    life: Life,
    epoch: Epoch,
    channels: BTreeMap<PartitionId, Channel>,
}

/// What is known of one sending partition.
#[derive(Clone, PartialEq, Eq, Hash, Debug, Default)]
struct Channel {
    /// As committed.
    receipts: Receipts,
    /// The next number that is taken: all below wait for their turns or are committed.
    expected: u64,
    /// The sender's ownership, and the rounds of its two lanes.
    sender: Epoch,
    round: u32,
    loose_round: u32,
    /// Numbers of the loose lane that wait for their turns.
    loose: BTreeSet<u64>,
    /// Whether messages had to be left for lack of room.
    starved: bool,
}

impl Receiver {
    /// The receive records under a new ownership.
    pub fn new(config: Config, owner: Ownership, life: Life, receipts: &[(PartitionId, Receipts)]) -> Self {
        let channels = receipts.iter().map(|(from, receipts)| {
            let expected = receipts.low + 1;
            (*from, Channel { receipts: receipts.clone(), expected, ..Channel::default() })
        });
        Self { me: owner.partition, life, epoch: owner.epoch, channels: channels.collect(), config }
    }

    /// The receive record of `from`, as committed.
    pub fn receipts(&self, from: PartitionId) -> Receipts {
        self.channels.get(&from).map(|channel| channel.receipts.clone()).unwrap_or_default()
    }

    /// Takes in a batch, of which at most `room` messages may be queued: gives those to `taken`.
    pub fn batch<A, M>(
        &mut self,
        batch: Batch<A, M>,
        room: usize,
        taken: &mut Vec<(Source, Sealed<A, M>)>,
        out: &mut Vec<Action<A, M>>,
    ) {
        let checks = self.config.checks;
        let channel = self.channels.entry(batch.from).or_insert_with(|| Channel { expected: 1, ..Channel::default() });
        if checks.life && batch.life < channel.receipts.life {
            return;
        }
        if checks.life && batch.life > channel.receipts.life {
            // The sender has lost its journal, or is new: its numbers begin again.
            let receipts = Receipts { life: batch.life, low: batch.floor, above: BTreeSet::new() };
            *channel = Channel { expected: batch.floor + 1, receipts, ..Channel::default() };
        }
        if batch.epoch < channel.sender && checks.reply_epoch {
            return;
        }
        channel.sender = batch.epoch;
        // What the sender knows to be acknowledged is committed, unless our own journal was lost: then it is gone.
        channel.receipts.raise(batch.floor);
        channel.expected = channel.expected.max(channel.receipts.low + 1);
        let (from, life) = (batch.from, batch.life);
        let mut left = room;
        if !batch.counted {
            channel.loose_round = batch.round;
            for (number, envelope) in batch.messages {
                if left > 0 && channel.loose.insert(number) {
                    left -= 1;
                    taken.push((Source::Loose { from, life, number }, envelope));
                }
            }
            return;
        }
        channel.round = batch.round;
        let mut tell = batch.messages.is_empty();
        let mut refused = batch.messages.is_empty() && batch.first > channel.expected;
        for (number, envelope) in batch.messages {
            let known = channel.receipts.has(number) || (number < channel.expected && checks.high_water_mark);
            if known && (checks.counted_creation || !envelope.creates) {
                tell = true;
                channel.expected = channel.expected.max(if number == channel.expected { number + 1 } else { 0 });
                continue;
            }
            if number > channel.expected {
                (tell, refused) = (true, true);
                if !checks.refuse_gaps {
                    // As printed in Listing 6: what is not the expected number is dropped and acknowledged.
                    channel.receipts.above.insert(number);
                }
                break;
            }
            if left == 0 || number > channel.receipts.low + self.config.window {
                channel.starved = true;
                tell = true;
                break;
            }
            left -= 1;
            channel.expected = channel.expected.max(number + 1);
            taken.push((Source::Counted { from, life, number }, envelope));
        }
        while channel.receipts.has(channel.expected) {
            channel.expected += 1;
        }
        if !checks.acknowledge_after_commit {
            channel.receipts.raise(channel.expected - 1);
            tell = true;
        }
        debug_assert!(channel.receipts.low < channel.expected, "what is committed is expected");
        if tell {
            self.reply(from, left, refused, out);
        }
    }

    /// The receive record of `from` once `numbers` of its life `life` are committed too; `None` if that life is over.
    pub(super) fn with(&self, from: PartitionId, life: Life, numbers: &BTreeSet<u64>) -> Option<Receipts> {
        let channel = self.channels.get(&from)?;
        (channel.receipts.life == life || !self.config.checks.life).then(|| {
            let mut receipts = channel.receipts.clone();
            numbers.iter().for_each(|number| receipts.add(*number));
            receipts
        })
    }

    /// Takes in that receive records are committed, and acknowledges.
    pub(super) fn committed<A, M>(
        &mut self,
        counted: &BTreeMap<(PartitionId, Life), BTreeSet<u64>>,
        loose: &BTreeMap<(PartitionId, Life), BTreeSet<u64>>,
        room: usize,
        out: &mut Vec<Action<A, M>>,
    ) {
        for ((from, life), numbers) in counted {
            // The record may have grown since the commit was formed: it is added to, not replaced.
            if let Some(receipts) = self.with(*from, *life, numbers) {
                let channel = self.channels.get_mut(from).expect("a record was just given for it");
                debug_assert!(
                    numbers.last().is_none_or(|last| *last < channel.expected),
                    "what was not taken is committed"
                );
                debug_assert!(channel.receipts.low <= receipts.low, "what is committed falls back");
                channel.receipts = receipts;
                channel.expected = channel.expected.max(channel.receipts.low + 1);
                self.reply(*from, room, false, out);
            }
        }
        for ((from, life), numbers) in loose {
            let Some(channel) = self.channels.get_mut(from) else { continue };
            numbers.iter().for_each(|number| _ = channel.loose.remove(number));
            let reply = Reply {
                counted: false,
                round: channel.loose_round,
                low: 0,
                above: super::records::ranges(numbers),
                expected: 0,
                limit: numbers.last().copied().unwrap_or_default() + self.config.window.min(room as u64),
                ..self.standing(*from, room, false)
            };
            if reply.to_life == *life || !self.config.checks.life {
                out.push(Action::Send { to: *from, wire: Wire::Reply(reply) });
            }
        }
        let starved: Vec<PartitionId> =
            self.channels.iter().filter(|(_, channel)| channel.starved).map(|(from, _)| *from).collect();
        for from in starved {
            if room > 0 {
                self.channels.get_mut(&from).expect("the key was just listed").starved = false;
                self.reply(from, room, false, out);
            }
        }
    }

    fn reply<A, M>(&self, from: PartitionId, room: usize, refused: bool, out: &mut Vec<Action<A, M>>) {
        out.push(Action::Send { to: from, wire: Wire::Reply(self.standing(from, room, refused)) });
    }

    /// What may be said of the counted lane from `from`.
    fn standing(&self, from: PartitionId, room: usize, refused: bool) -> Reply {
        let channel = &self.channels[&from];
        let low = channel.receipts.low;
        Reply {
            from: self.me,
            life: self.life,
            epoch: self.epoch,
            to_life: channel.receipts.life,
            to_epoch: channel.sender,
            counted: true,
            round: channel.round,
            low,
            above: channel.receipts.ranges(),
            expected: channel.expected,
            refused,
            limit: (low + self.config.window).min(channel.expected - 1 + room as u64),
        }
    }
}
