//! Timers of reliable actors: a part of the turn's commit, as its messages are.

use std::sync::Arc;
use std::time::UNIX_EPOCH;

use greenroom_protocols::reminders::Wall;

use super::takings::{Takings, takings};
use crate::actor::cx::Cx;
use crate::actor::error::Refusal;
use crate::actor::interface::Method;
use crate::shard::Shard;
use crate::shard::holdback::Unsent;
use crate::time::{Reminder, When, check_name};

impl<M: Method> Reminder<M> {
    /// Lets a reliable actor send the call when it is due. The timer is part of the turn's commit, and so is its end of the
    /// message: it is sent once, whatever crashes. No timer is shorter than the commit that begins it. With a
    /// [name](Self::named) it takes the place of the actor's timer of that name, and can be
    /// [cancelled](crate::Cx::cancel_timer).
    ///
    /// The call must be one of a reliable actor, and the reminder one of [`after`](crate::Call::after) or
    /// [`at`](crate::Call::at): for what comes again, let the turn that it begins send the next one. With anything else, the
    /// turn fails. Outside of turns of reliable actors nothing happens but a warning in the log: `.await` the reminder there.
    pub fn send(self) {
        send(self.call.into_unsent(), self.when, self.name);
    }
}

impl Cx {
    /// Cancels this reliable actor's timer called `name`, with the turn's commit: `.after(delay).named(name).send()` made it.
    /// Its message is not sent any more, unless that has happened already: what has left is not called back, so let the
    /// state say what is still wanted. There need not be such a timer.
    ///
    /// Outside of turns of reliable actors it does nothing.
    pub fn cancel_timer(&self, name: &str) {
        if let Some(takings) = takings() {
            takings.cancel(name);
        }
    }
}

fn send(message: Unsent, when: When, name: Option<String>) {
    let Some(takings) = takings() else {
        let method = message.method;
        return tracing::warn!(method, "a reminder is sent by a turn of a reliable actor, or awaited; it is not made");
    };
    if let Err(refusal) = keep_back(&takings, message, when, name) {
        takings.fail(refusal.to_string());
    }
}

fn keep_back(takings: &Arc<Takings>, message: Unsent, when: When, name: Option<String>) -> Result<(), Refusal> {
    Shard::with(|shard| {
        let shard = shard.ok_or(Refusal::Unbound)?;
        let now = takings.time(shard.port().node.wall());
        let due = match when {
            When::After(delay) => now + delay,
            When::At(time) => Wall(0) + time.duration_since(UNIX_EPOCH).unwrap_or_default(),
            _ => {
                let message = "a reliable actor's timer fires once: use `.after(delay).send()`, and let the turn that it \
                               begins send the next one";
                return Err(Refusal::Invalid { field: String::new(), message: message.to_owned() });
            }
        };
        if let Some(name) = &name {
            check_name(name).map_err(|message| Refusal::Invalid { field: String::new(), message })?;
        }
        takings.send_at(shard, message, due, name)
    })
}
