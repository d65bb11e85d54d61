//! What a shard keeps for reliable actors: references to partitions.

use std::cell::RefCell;
use std::collections::BTreeMap;

use greenroom_protocols::delivery::PartitionId;

use super::partition::PartitionsRef;
use crate::actor::reference::Ref;
use crate::shard::Shard;
use crate::shard::parts::ShardPart;

/// A shard's part.
#[derive(Default)]
pub(super) struct Hall {
    partitions: RefCell<BTreeMap<PartitionId, PartitionsRef>>,
    #[cfg(feature = "rehearsal")]
    company: std::rc::Rc<super::company::Company>,
}

#[cfg(feature = "rehearsal")]
impl Hall {
    /// The actors that are explored.
    pub(super) fn company(&self) -> &std::rc::Rc<super::company::Company> {
        &self.company
    }
}

impl ShardPart for Hall {}

impl Shard {
    /// What this shard keeps for reliable actors.
    pub(super) fn hall(&self) -> &Hall {
        self.part()
    }

    /// The way to a partition, which learns where that is.
    pub(super) fn partition(&self, partition: PartitionId) -> PartitionsRef {
        let mut known = self.hall().partitions.borrow_mut();
        let made = || Ref::made(partition.0.to_string().into(), Some(self.port().clone())).into();
        known.entry(partition).or_insert_with(made).clone()
    }
}
