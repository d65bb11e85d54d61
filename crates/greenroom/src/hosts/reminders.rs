//! Reminders of actors in hosts.

use std::time::{Duration, SystemTime, UNIX_EPOCH};

use greenroom_protocols::reminders::Wall;
use serde::Serialize;

use crate::actor::cx::Cx;
use crate::actor::error::{Doubt, Failure, Refusal};
use crate::time::{FirstDue, ReminderError, Schedule, Task, register};

/// A reminder, as a host hears of it.
#[derive(Serialize)]
pub(super) struct Listed {
    name: String,
    method: String,
    /// Milliseconds since 1970.
    due_ms: u64,
    every_ms: Option<u64>,
    /// A cron pattern, of one that was set in another language.
    cron: Option<String>,
}

/// What a reminder is to do.
pub(super) struct Wish {
    pub(super) name: String,
    pub(super) method: String,
    pub(super) arguments: Vec<u8>,
    /// Milliseconds from now; of hosts that do not say it, `due_ms` counts.
    pub(super) after_ms: Option<u64>,
    pub(super) due_ms: u64,
    pub(super) every_ms: Option<u64>,
}

/// Sets a reminder of the actor.
///
/// # Errors
/// It cannot be, or may not be stored.
pub(super) async fn set(cx: &Cx, wish: Wish) -> Result<(), Failure> {
    let Wish { name, method, arguments, after_ms, due_ms, every_ms } = wish;
    let name = if name.is_empty() { method.clone() } else { name };
    let schedule = every_ms.map_or(Schedule::Once, |every| Schedule::Every(Duration::from_millis(every)));
    let task = Task { method, arguments, schedule };
    let at = FirstDue::At(Wall(due_ms));
    let first = after_ms.map_or(at, |after| FirstDue::After(Duration::from_millis(after)));
    register(&cx.port, &cx.id, &name, first, task).await.map_err(failure)
}

/// Cancels a reminder; whether there was one.
pub(super) async fn cancel(cx: &Cx, name: &str) -> Result<bool, Failure> {
    cx.reminders().cancel(name).await.map_err(failure)
}

/// The actor's reminders.
pub(super) async fn list(cx: &Cx) -> Result<Vec<Listed>, Failure> {
    let found = cx.reminders().list().await.map_err(failure)?;
    let listed = found.into_iter().map(|info| Listed {
        name: info.name,
        method: info.method,
        due_ms: millis(info.due),
        every_ms: match info.schedule {
            Schedule::Every(period) => Some(period.as_millis() as u64),
            _ => None,
        },
        cron: pattern(&info.schedule),
    });
    Ok(listed.collect())
}

#[cfg(feature = "cron")]
fn pattern(schedule: &Schedule) -> Option<String> {
    match schedule {
        Schedule::Cron(pattern) => Some(pattern.clone()),
        _ => None,
    }
}

#[cfg(not(feature = "cron"))]
fn pattern(_: &Schedule) -> Option<String> {
    None
}

fn millis(time: SystemTime) -> u64 {
    time.duration_since(UNIX_EPOCH).map_or(0, |since| since.as_millis() as u64)
}

fn failure(error: ReminderError) -> Failure {
    match error {
        ReminderError::Invalid { name, reason } => {
            let message = format!("reminder {name:?} cannot be: {reason}");
            Refusal::Invalid { field: String::new(), message }.into()
        }
        error => Doubt::Unsaved { message: error.to_string() }.into(),
    }
}
