//! A node's topics as who looks sees them.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, Weak};

use serde_json::{Value, json};

use super::hub::{Figures, Hub};
use crate::actor::key::Key;

/// The topics that are active on a node, by their names.
#[derive(Default)]
pub(crate) struct Active(Mutex<BTreeMap<Key, Weak<Hub>>>);

impl Active {
    /// Takes in one whose activation begins.
    pub(crate) fn begin(&self, name: &Key, hub: &Arc<Hub>) {
        let mut all = self.lock();
        // Those that have ended go when the number has doubled.
        if all.len().is_power_of_two() {
            all.retain(|_, hub| hub.strong_count() > 0);
        }
        all.insert(name.clone(), Arc::downgrade(hub));
    }

    /// Those whose names begin with `by.prefix` and stand behind `by.after`, `by.limit` of them and one more, in the order of their names.
    pub(crate) fn show(&self, by: &Value) -> Value {
        let text = |name: &str| by[name].as_str().unwrap_or_default();
        let (prefix, after) = (text("prefix"), text("after"));
        let limit = by["limit"].as_u64().unwrap_or_default() as usize;
        let all = self.lock();
        let from = Key::from(prefix.max(after));
        let found =
            all.range(from..).take_while(|(name, _)| name.starts_with(prefix)).filter(|(name, _)| &***name > after);
        let found = found.filter_map(|(name, hub)| Some((name, hub.upgrade()?.figures())));
        found.take(limit + 1).map(|(name, figures)| told(name, figures)).collect()
    }

    fn lock(&self) -> MutexGuard<'_, BTreeMap<Key, Weak<Hub>>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

fn told(name: &Key, Figures { subscribers, waiting, missed, holding, published }: Figures) -> Value {
    json!({
        "topic": &**name, "subscribers": subscribers, "waiting": waiting, "missed": missed, "holding": holding, "published": published,
    })
}

/// What topics are called among what features show.
pub(crate) const TOPICS_SHOWN: &str = "topics";

#[cfg(test)]
mod tests {
    use super::*;
    use crate::stream::backlog::Backlog;

    #[test]
    fn topics_are_shown_by_their_names_and_those_that_have_ended_are_not() {
        let (active, backlog) = (Active::default(), Backlog::new(1 << 20));
        let hubs: Vec<_> =
            ["prices/eu", "prices/us", "news", "prices"].map(|name| (name, Hub::new(1, backlog.clone()))).into();
        hubs.iter().for_each(|(name, hub)| active.begin(&Key::from(*name), hub));
        let names = |by: Value| -> Vec<String> {
            let shown = active.show(&by);
            shown.as_array().unwrap().iter().map(|one| one["topic"].as_str().unwrap().to_owned()).collect()
        };
        assert_eq!(names(json!({ "prefix": "prices/", "limit": 9 })), ["prices/eu", "prices/us"]);
        assert_eq!(
            names(json!({ "prefix": "", "after": "news", "limit": 1 })),
            ["prices", "prices/eu"],
            "one more than wanted"
        );
        drop(hubs);
        assert!(names(json!({ "prefix": "", "limit": 9 })).is_empty());
    }
}
