//! The reminders that an actor has: listing and cancelling.

use std::sync::Arc;
use std::time::{Duration, UNIX_EPOCH};

use futures_util::FutureExt;
use greenroom_protocols::reminders::{GRACE, Want};

use super::change;
use super::error::ReminderError;
use super::reminder::{ReminderInfo, check_name, patience};
use super::rows::{self, ReminderId};
use crate::actor::cx::{Cx, Scope};
use crate::actor::key::ActorId;
use crate::here::Here;
use crate::here::node::Node;
use crate::here::port::Port;
use crate::shard::holdback::holdback;

/// The reminders of one actor: [`Cx::reminders`] and [`Node::reminders_of`].
#[derive(Clone, Debug)]
pub struct Reminders {
    port: Arc<Port>,
    id: ActorId,
}

impl Cx {
    /// The actor's reminders.
    pub fn reminders(&self) -> Reminders {
        Reminders { port: self.port().clone(), id: self.id().clone() }
    }
}

impl Node {
    /// The reminders of the actor that a reference names: `node.reminders_of(room.id())`.
    pub fn reminders_of(&self, id: &ActorId) -> Reminders {
        Reminders { port: self.port().clone(), id: id.clone() }
    }
}

impl Reminders {
    /// What there is, by name.
    ///
    /// # Errors
    /// [`ReminderError::Unavailable`].
    pub fn list(&self) -> impl Future<Output = Result<Vec<ReminderInfo>, ReminderError>> + Send {
        self.read().boxed()
    }

    async fn read(&self) -> Result<Vec<ReminderInfo>, ReminderError> {
        let node = &self.port.node;
        let (kind, key) = (self.id.kind.name(), &*self.id.key);
        let prefix = node.calendar().keys().records_of(kind, key);
        let left = patience(&self.port).since(node.world().now());
        let found = list(node, &prefix, left, usize::MAX).await?;
        Ok(found.into_iter().filter(|(id, _)| id.is_of(kind, key)).map(|(_, info)| info).collect())
    }

    /// Cancels the reminder called `name`; whether there was one.
    ///
    /// Once this is answered, no turn of it begins any more, not even one that was on its way.
    ///
    /// # Errors
    /// [`ReminderError`].
    ///
    /// # Cancel safety
    /// Dropping the future leaves the outcome unknown.
    pub fn cancel<'a>(&'a self, name: &'a str) -> impl Future<Output = Result<bool, ReminderError>> + Send + 'a {
        self.remove(name).boxed()
    }

    async fn remove(&self, name: &str) -> Result<bool, ReminderError> {
        let invalid = |reason| ReminderError::Invalid { name: name.to_owned(), reason };
        check_name(name).map_err(invalid)?;
        if holdback().is_some() {
            let why = "it would be cancelled before the turn of the reliable actor is committed; send a message to an actor of \
                       another kind, which cancels it";
            return Err(invalid(why.to_owned()));
        }
        let id = ReminderId::new(&self.id, name);
        let want = Want::Cancel { until: self.port.node.wall() + GRACE };
        Ok(change::change(&self.port.node, &id, want, patience(&self.port)).await?.existed)
    }
}

/// Cancels a reminder of an actor whose kind need not be known here; whether there was one.
#[cfg(feature = "http")]
pub(crate) async fn cancel(node: &Arc<Here>, kind: &str, key: &str, name: &str) -> Result<bool, ReminderError> {
    let id = ReminderId { kind: kind.to_owned(), key: key.to_owned(), name: name.to_owned() };
    let want = Want::Cancel { until: node.wall() + GRACE };
    let until = node.world().now() + node.config().store_timeout;
    Ok(change::change(node, &id, want, until).await?.existed)
}

/// Lets a reminder tick that is parked or late, at once if it is due: registers it anew as it is. False if there is none.
#[cfg(feature = "http")]
pub(crate) async fn retry(node: &Arc<Here>, kind: &str, key: &str, name: &str) -> Result<bool, ReminderError> {
    let id = ReminderId { kind: kind.to_owned(), key: key.to_owned(), name: name.to_owned() };
    let unavailable = |reason: String| ReminderError::Unavailable { name: name.to_owned(), reason };
    let store = node.calendar().store(node).map_err(unavailable)?;
    let row = store.read(&node.calendar().keys().record(&id), node.config().store_timeout).await;
    let Some(row) = row.map_err(|error| unavailable(error.to_string()))? else { return Ok(false) };
    let record = rows::read_record(&row).map_err(unavailable)?.1.record;
    let Ok(plan) = record.plan else { return Ok(false) };
    let want = Want::Set { registration: node.world().random(), due: record.due, plan };
    let until = node.world().now() + node.config().store_timeout;
    change::change(node, &id, want, until).await.map(|ended| ended.existed)
}

/// At most `max` of the reminders whose records begin with `prefix`.
pub(crate) async fn list(
    node: &Arc<Here>,
    prefix: &str,
    timeout: Duration,
    max: usize,
) -> Result<Vec<(ReminderId, ReminderInfo)>, ReminderError> {
    let unavailable = |reason: String| ReminderError::Unavailable { name: String::new(), reason };
    let store = node.calendar().store(node).map_err(unavailable)?;
    let mut found = Vec::new();
    let mut after: Option<String> = None;
    loop {
        let page = store.scan(prefix, after.as_deref(), PAGE, timeout).await;
        let page = page.map_err(|error| unavailable(error.to_string()))?;
        for item in &page.items {
            let read = rows::read_record(&item.versioned);
            let (id, record) = read.map_err(|why| unavailable(format!("{}: {why}", item.key)))?;
            let Ok(plan) = &record.record.plan else { continue };
            if found.len() >= max {
                return Ok(found);
            }
            let info = ReminderInfo {
                actor: format!("{}/{}", id.kind, id.key),
                name: id.name.clone(),
                method: plan.0.method.clone(),
                schedule: plan.0.schedule.clone(),
                due: UNIX_EPOCH + Duration::from_millis(record.record.due.0),
                deaths: record.record.attempt.map_or(0, |attempt| attempt.deaths),
                is_parked: record.record.is_parked(),
            };
            found.push((id, info));
        }
        match page.next {
            Some(next) => after = Some(next),
            None => return Ok(found),
        }
    }
}

const PAGE: usize = 200;
