//! Timers: calls that an activation makes later, as long as it lasts.

use std::fmt;
use std::time::Duration;

use crate::actor::call::Call;
use crate::actor::cx::Cx;
use crate::actor::error::Refusal;
use crate::actor::interface::{Interface, Method};
use crate::shard::mail::arguments;
use crate::shard::timers::NewTimer;
use crate::shard::{Item, Shard, ShardPort};

/// A timer of an activation, made by [`Cx::after`] or [`Cx::every`].
///
/// Dropping the handle lets the timer go on; it ends with its activation, or when it is [cancelled](Timer::cancel).
pub struct Timer {
    home: ShardPort,
    number: u64,
}

impl Timer {
    /// Ends the timer: no tick of it begins any more, not even one that waits for its turn already.
    pub fn cancel(self) {
        let number = self.number;
        self.at_home(move |shard| shard.cancel_timer(number));
    }

    /// Lets the timer tick `delay` from now instead of when it was to tick, and from then on as before. One that has
    /// ticked its only time ticks once more; one whose activation has ended does not.
    pub fn rearm(&self, delay: Duration) {
        let number = self.number;
        self.at_home(move |shard| shard.rearm_timer(number, delay));
    }

    /// Does `work` on the shard of the timer's activation: at once if that is where we are, as inside of turns.
    fn at_home(&self, work: impl FnOnce(&Shard) + Send + 'static) {
        let home = self.home;
        Shard::with(|shard| match shard {
            Some(shard) if shard.id() == home.id => work(shard),
            // A shard that is gone has no timers.
            _ => drop(home.push(Item::Run(Box::new(work)))),
        });
    }
}

impl Drop for Timer {
    fn drop(&mut self) {
        let number = self.number;
        self.at_home(move |shard| shard.detach_timer(number));
    }
}

impl fmt::Debug for Timer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("Timer").field(&self.number).finish()
    }
}

impl Cx {
    /// Makes `call` once, `delay` from now, unless the activation ends before:
    /// `cx.after(delay, ChatRoomRef::me(cx).close())`.
    ///
    /// A call to the actor itself is a turn like any other, of this very activation: it waits until no turn excludes it.
    /// A call to another actor is sent one-way. Timers do not keep an activation from being idle.
    ///
    /// # Errors
    /// [`Refusal`]: the activation has too many timers, the arguments cannot be encoded, or this is no turn of the actor.
    pub fn after<M: Method>(&self, delay: Duration, call: Call<M>) -> Result<Timer, Refusal> {
        self.timer(delay, None, call)
    }

    /// Makes `call` once in each `period`, for the first time one `period` from now, as long as the activation lasts; as
    /// [`after`](Self::after) otherwise. A period is at least a millisecond.
    ///
    /// Ticks never pile up: while one waits for its turn or runs, the next ones wait to be due. What has been missed
    /// then comes as one tick, late, which says so: [`Cx::tick`].
    ///
    /// # Errors
    /// As for [`after`](Self::after).
    pub fn every<M: Method>(&self, period: Duration, call: Call<M>) -> Result<Timer, Refusal> {
        let period = period.max(PERIOD_MIN);
        self.timer(period, Some(period), call)
    }

    fn timer<M: Method>(&self, delay: Duration, period: Option<Duration>, call: Call<M>) -> Result<Timer, Refusal> {
        if self.port.node.kinds().is_reliable(self.id.kind) {
            let message =
                "what a reliable actor does later is part of its turn's commit: write `call.after(delay).send()`";
            return Err(Refusal::Invalid { field: String::new(), message: message.to_owned() });
        }
        let (target, method) = call.into_parts();
        let arguments = arguments(method)?;
        Shard::with(|shard| {
            let shard = shard.ok_or_else(outside)?;
            let own = target.id == self.id;
            let call = NewTimer {
                target: (!own).then_some(target),
                method: M::INDEX,
                method_name: M::Interface::METHODS[usize::from(M::INDEX)].name,
                arguments,
                period,
            };
            let number = shard.add_timer(&self.id, delay, call).ok_or_else(outside)??;
            Ok(Timer { home: shard.here(), number })
        })
    }
}

fn outside() -> Refusal {
    let message = "timers are made in a turn or hook of their actor, by its own `cx`".to_owned();
    Refusal::Invalid { field: String::new(), message }
}

/// Shorter periods would be no more than the clock's own steps.
const PERIOD_MIN: Duration = Duration::from_millis(1);
