//! Bounds of what the owners of other partitions write, which no owner of this build or an earlier one exceeds.

use super::{Batch, PartitionId, Reply, Sealed, Wire};

/// A message from the owner of another partition that is out of bounds. The sender is at fault, and nothing has changed.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug, thiserror::Error)]
#[non_exhaustive]
pub enum OutOfBounds {
    /// It names a partition that the cluster does not have.
    #[error("it names the partition {}, and the cluster has {partitions} partitions", partition.0)]
    Partition {
        /// The partition that it names.
        partition: PartitionId,
        /// The partitions of the cluster.
        partitions: u32,
    },
    /// A number is higher than any message ever gets.
    #[error("it has the number {0}, and the numbers of messages end at {NUMBER_MAX}")]
    Number(u64),
    /// A range ends before it begins, or before the range in front of it.
    #[error("its ranges of acknowledged numbers do not rise at {0}")]
    Unordered(u64),
    /// It acknowledges more single numbers than a receiver keeps.
    #[error("it acknowledges more than {ACKNOWLEDGED_MAX} numbers above those that are acknowledged in a row")]
    Acknowledged,
}

impl<A, M> Wire<A, M> {
    /// Checks each number that the sender chose, in a cluster of so many partitions. After that neither a sum of such a number and a
    /// window nor a loop over a range of them gets out of hand.
    ///
    /// # Errors
    /// The first number that is out of bounds.
    pub fn check(&self, partitions: u32) -> Result<(), OutOfBounds> {
        let exists = |partition: PartitionId| match partition.0 < partitions {
            true => Ok(()),
            false => Err(OutOfBounds::Partition { partition, partitions }),
        };
        let message = |envelope: &Sealed<A, M>| envelope.birth.map_or(Ok(()), |birth| exists(birth.by));
        match self {
            Self::Batch(Batch { from, floor, first, messages, sent_before, .. }) => {
                exists(*from)?;
                number(*floor)?;
                number(*first)?;
                sent_before.map_or(Ok(()), number)?;
                messages.iter().try_for_each(|(at, envelope)| number(*at).and_then(|()| message(envelope)))
            }
            Self::Reply(Reply { from, low, above, expected, limit, .. }) => {
                exists(*from)?;
                [*low, *expected, *limit].into_iter().try_for_each(number)?;
                ranges(above)
            }
            Self::Single(envelope) => message(envelope),
            Self::Ask { from, birth } => exists(*from).and_then(|()| exists(birth.by)),
            Self::Standing { from, birth, committed, .. } => {
                exists(*from)?;
                exists(birth.by)?;
                number(*committed)
            }
        }
    }
}

fn number(number: u64) -> Result<(), OutOfBounds> {
    if number > NUMBER_MAX { Err(OutOfBounds::Number(number)) } else { Ok(()) }
}

/// Checks that ranges rise, and that they hold few numbers together.
fn ranges(ranges: &[(u64, u64)]) -> Result<(), OutOfBounds> {
    let (mut before, mut numbers) = (0, 0);
    for (first, last) in ranges {
        number(*last)?;
        if first > last || *first <= before {
            return Err(OutOfBounds::Unordered(*first));
        }
        numbers += last - first + 1;
        before = *last;
        if numbers > ACKNOWLEDGED_MAX {
            return Err(OutOfBounds::Acknowledged);
        }
    }
    Ok(())
}

/// Highest number of a message: at a million messages a second it lasts for 146,000 years.
pub const NUMBER_MAX: u64 = 1 << 62;
/// Most numbers that one reply acknowledges above its low-water mark; a receiver keeps fewer than its window, 4096, and one commit
/// holds at most 1024 turns.
pub const ACKNOWLEDGED_MAX: u64 = 65_536;

#[cfg(test)]
mod tests;
