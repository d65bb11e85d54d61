//! Ending an actor without waiting for its turn.

use crate::actor::interface::Why;
use crate::shard::{Item, Shard};

impl Shard {
    /// Kills an actor of this shard once no turn is on the stack: what is being polled cannot be dropped.
    pub(super) fn kill_soon(&self, number: u64) {
        self.run_apart(Item::Run(Box::new(move |shard| shard.kill_now(number))));
    }

    fn kill_now(&self, number: u64) {
        let Some(activation) = self.numbered(number) else { return };
        // The end of its last turn is its own.
        activation.clone().end(self, Why::Killed);
        self.drop_turns(activation.slot());
    }
}
