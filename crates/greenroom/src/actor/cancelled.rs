//! The end of a caller's wait, as its callee sees it.

use std::fmt;
use std::pin::Pin;
use std::task::{Context, Poll};

use greenroom_world::{BoxFuture, Timestamp};

use crate::shard::Shard;
use crate::shard::cancel::CallKey;

/// Resolves when nobody waits for the current turn any more: see [`Cx::cancelled`](crate::Cx::cancelled).
#[must_use = "it does nothing until it is awaited"]
pub struct Cancelled {
    asked: Option<Asked>,
}

struct Asked {
    key: CallKey,
    /// The number by which the shard knows who asks; none of a turn that nobody waits for.
    asker: Option<u64>,
    deadline: Option<BoxFuture<()>>,
}

impl Cancelled {
    pub(crate) fn new() -> Self {
        Self { asked: None }
    }
}

impl Asked {
    fn new(shard: &Shard) -> Self {
        let deadline = shard.current_deadline();
        let world = shard.port().node.world();
        let deadline = (deadline != Timestamp::NEVER).then(|| world.sleep_until(deadline));
        Self { key: shard.current_call(), asker: None, deadline }
    }

    fn poll(&mut self, shard: &Shard, context: &mut Context<'_>) -> Poll<()> {
        if self.key.is_none() {
            self.key = shard.current_call();
        }
        if shard.caller_is_below() {
            // The call has a name once the caller has left the stack: look again then.
            context.waker().wake_by_ref();
        }
        if shard.is_cancelled(self.key) {
            return Poll::Ready(());
        }
        if !self.key.is_none() {
            self.asker = Some(shard.ask_for_cancel(self.key, self.asker, context.waker()));
        }
        match &mut self.deadline {
            Some(deadline) => deadline.as_mut().poll(context),
            None => Poll::Pending,
        }
    }
}

impl Future for Cancelled {
    type Output = ();

    fn poll(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<()> {
        Shard::with(|shard| match shard {
            Some(shard) => self.asked.get_or_insert_with(|| Asked::new(shard)).poll(shard, context),
            None => Poll::Pending,
        })
    }
}

impl Drop for Cancelled {
    fn drop(&mut self) {
        if let Some(Asked { key, asker: Some(asker), .. }) = self.asked {
            Shard::with(|shard| {
                if let Some(shard) = shard {
                    shard.forget_asker(key, asker);
                }
            });
        }
    }
}

impl fmt::Debug for Cancelled {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Cancelled")
    }
}
