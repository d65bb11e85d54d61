//! Activations that are to leave their node with what they hold in a host: first they leave their seat there.

use std::future::poll_fn;
use std::task::{Poll, Waker};

use bytes::Bytes;
use greenroom_protocols::host::LaneEvent;
use greenroom_wire::host::Leave;

use super::on_shard::OnShard;
use super::seats::{Place, Sits, key, remember};
use super::turn::with;
use crate::shard::{Shard, Slot};

/// How far one is that is to leave.
#[derive(Default)]
pub(super) enum Packing {
    /// It is not to leave.
    #[default]
    Stays,
    /// It leaves its seat; why what it held there is gone, if it is.
    Leaves(Result<(), String>),
    /// It has no seat.
    Left(Result<(), String>),
}

/// Has the activation whose hook this is leave its seat; what its host has let it carry: nothing, if it had no seat.
///
/// # Errors
/// Why what it held is gone: it is made anew with its next seat.
pub(super) async fn pack() -> Result<Bytes, String> {
    poll_fn(|context| {
        with(|shard, part| Some(part.poll_pack(shard, shard.current_slot()?, context.waker())))
            .unwrap_or_else(|| Poll::Ready(Err("its shard is stopping".to_owned())))
    })
    .await
}

impl Place {
    /// It leaves its seat, for good unless it is to carry what it holds: why.
    pub(super) fn leaves(&mut self, is_carry: bool) -> Leave {
        if !is_carry {
            return self.why;
        }
        self.sits = Sits::Nowhere;
        match self.packing {
            Packing::Stays => Leave::Upgraded,
            Packing::Leaves(_) | Packing::Left(_) => Leave::Migrating,
        }
    }

    /// What it held is gone, as it leaves its seat.
    pub(super) fn loses_what_it_held(&mut self, why: impl FnOnce() -> String) {
        if let Packing::Leaves(so_far @ Ok(())) = &mut self.packing {
            *so_far = Err(why());
        }
    }

    /// It has no seat.
    pub(super) fn has_packed(&mut self) {
        if let Packing::Leaves(how) = std::mem::take(&mut self.packing) {
            self.packing = Packing::Left(how);
        }
    }
}

impl OnShard {
    fn poll_pack(&self, shard: &Shard, slot: Slot, waker: &Waker) -> Poll<Result<Bytes, String>> {
        let activation = key(slot);
        let begins = match self.state.borrow_mut().places.get_mut(&activation) {
            // One that is to be made anew is nowhere when it has left.
            Some(place) if matches!(place.packing, Packing::Stays) && place.sits != Sits::Leaving => {
                place.packing = Packing::Leaves(Ok(()));
                true
            }
            _ => false,
        };
        if begins {
            self.tell(shard, LaneEvent::Carry { activation });
        }
        let mut state = self.state.borrow_mut();
        let Some(place) = state.places.get_mut(&activation) else { return Poll::Ready(Ok(Bytes::new())) };
        if let Sits::Failed(refusal) = &place.sits {
            let why = refusal.to_string();
            state.places.remove(&activation);
            return Poll::Ready(Err(why));
        }
        match std::mem::take(&mut place.packing) {
            // It is kept here too: the activation may stay after all.
            Packing::Left(how) => Poll::Ready(how.map(|()| place.carried.clone().unwrap_or_default())),
            waits => {
                place.packing = waits;
                place.hook = shard.link_here();
                remember(&mut place.wakers, waker);
                Poll::Pending
            }
        }
    }
}
