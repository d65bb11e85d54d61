//! Reminders as users make them: on the one call value.

use std::future::IntoFuture;
use std::pin::Pin;
use std::sync::Arc;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use greenroom_protocols::reminders::{Wall, Want};

use super::change;
#[cfg(feature = "cron")]
use super::cron;
use super::error::ReminderError;
use super::rows::{ReminderId, WALL_MAX};
use super::schedule::{Planned, Schedule, Task};
use crate::actor::call::Call;
use crate::actor::interface::{Interface, Method};
use crate::actor::key::ActorId;
use crate::here::port::Port;
use crate::shard::Shard;
use crate::shard::holdback::holdback;
use crate::shard::mail::arguments;

/// A reminder that has not been registered yet: `.await` it.
///
/// From then on the call is made when it is due, although the actor sleeps or its node dies, until its turn has run: at
/// least once for each due time. Due times that were missed, as no node was there, come as one late tick, which says so:
/// [`Cx::tick`](crate::Cx::tick). It replaces the actor's reminder of the same name.
#[must_use = "a reminder is registered when it is awaited"]
pub struct Reminder<M: Method> {
    pub(crate) call: Call<M>,
    pub(crate) when: When,
    pub(crate) name: Option<String>,
}

/// When a reminder is due.
pub(crate) enum When {
    After(Duration),
    Every(Duration),
    At(SystemTime),
    #[cfg(feature = "cron")]
    Cron(String),
}

impl<M: Method> Call<M> {
    /// A [`Reminder`]: the call is made once, `delay` from now.
    pub fn after(self, delay: Duration) -> Reminder<M> {
        Reminder::new(self, When::After(delay))
    }

    /// A [`Reminder`]: the call is made once in each `period`, for the first time one `period` from now.
    pub fn every(self, period: Duration) -> Reminder<M> {
        Reminder::new(self, When::Every(period))
    }

    /// A [`Reminder`]: the call is made once, at `time` by the nodes' wall clocks; at once if that has passed.
    pub fn at(self, time: SystemTime) -> Reminder<M> {
        Reminder::new(self, When::At(time))
    }

    /// A [`Reminder`]: the call is made at the times that `pattern` names, in UTC: `0 9 * * 1-5` is nine o'clock on working
    /// days. It has five fields, minute, hour, day of the month, month and day of the week.
    #[cfg(feature = "cron")]
    pub fn cron(self, pattern: impl Into<String>) -> Reminder<M> {
        Reminder::new(self, When::Cron(pattern.into()))
    }
}

impl<M: Method> Reminder<M> {
    fn new(call: Call<M>, when: When) -> Self {
        Self { call, when, name: None }
    }

    /// The reminder's name among those of its actor; without it, the method's. For a timer of a reliable actor, what that
    /// actor [cancels](crate::Cx::cancel_timer) it by; without it, nothing does.
    pub fn named(mut self, name: impl Into<String>) -> Self {
        self.name = Some(name.into());
        self
    }

    fn prepare(self) -> Result<(Arc<Port>, ReminderId, Want<Planned>), ReminderError> {
        let method = M::Interface::METHODS[usize::from(M::INDEX)].name;
        let name = self.name.unwrap_or_else(|| method.to_owned());
        let invalid = |reason: String| ReminderError::Invalid { name: name.clone(), reason };
        check_name(&name).map_err(invalid)?;
        if holdback().is_some() {
            let why =
                "it would be registered before the turn of the reliable actor is committed; write `.after(..).send()`";
            return Err(invalid(why.to_owned()));
        }
        let (target, method_of) = self.call.into_parts();
        let here = || Shard::with(|shard| shard.map(|shard| shard.port().clone()));
        let port = target.port.clone().or_else(here);
        let port = port.ok_or_else(|| invalid("its reference is bound to no node; use `bind(&node)`".to_owned()))?;
        let arguments = arguments(method_of).map_err(|refusal| invalid(refusal.to_string()))?;
        let now = port.node.wall();
        let (due, schedule) = plan(self.when, now).map_err(invalid)?;
        let task = Task { method: method.to_owned(), arguments: arguments.to_vec(), schedule };
        let registration = port.node.world().random();
        let want = Want::Set { registration, due, plan: Planned(Arc::new(task)) };
        let id = ReminderId::new(&target.id, &name);
        Ok((port, id, want))
    }
}

/// When a reminder is due for the first time.
pub(crate) enum FirstDue {
    After(Duration),
    /// By the wall clock; at once if that has passed.
    At(Wall),
}

/// Registers a reminder of the actor `of` by its parts: `task` is done when it is due `first`.
///
/// # Errors
/// [`ReminderError`].
pub(crate) async fn register(
    port: &Port,
    of: &ActorId,
    name: &str,
    first: FirstDue,
    task: Task,
) -> Result<(), ReminderError> {
    let invalid = |reason: String| ReminderError::Invalid { name: name.to_owned(), reason };
    check_name(name).map_err(invalid)?;
    let due = match first {
        FirstDue::After(delay) => {
            check_time(delay).map_err(invalid)?;
            port.node.wall() + delay
        }
        FirstDue::At(due) => due,
    };
    check_due(due).map_err(invalid)?;
    if let Schedule::Every(period) = task.schedule {
        check_time(period).map_err(invalid)?;
    }
    let registration = port.node.world().random();
    let want = Want::Set { registration, due, plan: Planned(Arc::new(task)) };
    change::change(&port.node, &ReminderId::new(of, name), want, patience(port)).await.map(drop)
}

impl<M: Method> IntoFuture for Reminder<M> {
    type Output = Result<(), ReminderError>;
    type IntoFuture = Registering;

    fn into_future(self) -> Registering {
        let prepared = self.prepare();
        Registering(Box::pin(async move {
            let (port, id, want) = prepared?;
            let until = patience(&port);
            change::change(&port.node, &id, want, until).await.map(drop)
        }))
    }
}

/// A reminder being registered.
///
/// # Cancel safety
/// Dropping it leaves the outcome unknown.
pub struct Registering(Pin<Box<dyn Future<Output = Result<(), ReminderError>> + Send>>);

impl Future for Registering {
    type Output = Result<(), ReminderError>;

    fn poll(mut self: Pin<&mut Self>, context: &mut std::task::Context<'_>) -> std::task::Poll<Self::Output> {
        self.0.as_mut().poll(context)
    }
}

/// Until when a change may take: the node's time for stores, and no more than is left of the turn's.
pub(super) fn patience(port: &Port) -> greenroom_world::Timestamp {
    let limit = port.node.config().store_timeout;
    let left = Shard::with(|shard| shard.and_then(Shard::time_left));
    port.node.world().now() + left.map_or(limit, |left| left.min(limit))
}

fn plan(when: When, now: Wall) -> Result<(Wall, Schedule), String> {
    let (due, schedule) = match when {
        When::After(delay) => {
            check_time(delay)?;
            (now + delay, Schedule::Once)
        }
        When::Every(period) => {
            check_time(period)?;
            (now + period, Schedule::Every(period))
        }
        When::At(time) => {
            let since = time.duration_since(UNIX_EPOCH).unwrap_or_default();
            (Wall(0) + since, Schedule::Once)
        }
        #[cfg(feature = "cron")]
        When::Cron(pattern) => {
            cron::check(&pattern)?;
            let schedule = Schedule::Cron(pattern);
            let due = schedule.next(now).ok_or("no time fits its cron pattern any more")?;
            (due, schedule)
        }
    };
    check_due(due)?;
    Ok((due, schedule))
}

/// Refuses a delay or period that is shorter than a reminder's may be.
fn check_time(time: Duration) -> Result<(), String> {
    match time < PERIOD_MIN {
        true => Err(format!("{time:?} is less than a second; use a timer (`cx.after`, `cx.every`) for that")),
        false => Ok(()),
    }
}

fn check_due(due: Wall) -> Result<(), String> {
    match due > WALL_MAX {
        true => Err("it is due too far in the future: beyond the year 10000".to_owned()),
        false => Ok(()),
    }
}

/// Checks a reminder's name.
pub(crate) fn check_name(name: &str) -> Result<(), String> {
    if name.is_empty() || name.len() > NAME_LEN_MAX || name.chars().any(|c| c == '/' || c.is_control()) {
        return Err(format!("a name has 1 to {NAME_LEN_MAX} bytes, without slashes and control characters"));
    }
    Ok(())
}

/// What a list of an actor's reminders says of one.
#[derive(Clone, PartialEq, Eq, Debug)]
#[non_exhaustive]
pub struct ReminderInfo {
    /// The actor.
    pub actor: String,
    /// The reminder's name among the actor's.
    pub name: String,
    /// The method that it calls.
    pub method: String,
    /// When it is due again.
    pub schedule: Schedule,
    /// When it is due next.
    pub due: SystemTime,
    /// Processes that have died during turns of the tick that is due.
    pub deaths: u32,
    /// True if its tick is given up, as turns of it have taken down too many processes: it ticks again once it is registered anew.
    pub is_parked: bool,
}

/// The shortest time of a reminder.
const PERIOD_MIN: Duration = Duration::from_secs(1);
/// Longest name of a reminder, in bytes.
const NAME_LEN_MAX: usize = greenroom_wire::limit::REMINDER_NAME_LEN_MAX;
