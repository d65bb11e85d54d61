//! A cache that loads each thing once, however many ask for it at the same time.

// anchor: recipe
use std::pin::Pin;
use std::sync::Arc;
use std::time::Duration;

use greenroom::prelude::*;
use tokio::time::Instant;

/// Where things come from.
pub trait Origin: Send + Sync + 'static {
    /// Loads the thing of that name.
    fn load(&self, name: String) -> Pin<Box<dyn Future<Output = Result<String, String>> + Send>>;
}

/// A thing, by its name as key. Its memory is free again when nobody has asked for ten minutes.
pub struct Cached {
    origin: Arc<dyn Origin>,
    loaded: Option<(Instant, String)>,
}

impl Actor for Cached {}

impl Cached {
    /// Not loaded yet. Give it to the node: `register_with(move |_| Cached::of(origin.clone()))`.
    pub fn of(origin: Arc<dyn Origin>) -> Self {
        Self { origin, loaded: None }
    }
}

#[actor(idle = "10m")]
impl Cached {
    /// The thing, at most a minute old. The first caller loads it; those who come meanwhile wait, and get the same.
    pub async fn get(&mut self, cx: &Cx) -> Result<String, String> {
        if let Some((at, thing)) = &self.loaded
            && at.elapsed() < FRESH
        {
            return Ok(thing.clone());
        }
        let thing = self.origin.load(cx.key().to_string()).await?;
        self.loaded = Some((Instant::now(), thing.clone()));
        Ok(thing)
    }

    /// What is known has changed: the next caller loads it.
    pub async fn forget(&mut self) {
        self.loaded = None;
    }
}

const FRESH: Duration = Duration::from_secs(60);
// end: recipe

#[cfg(test)]
mod tests {
    use std::sync::atomic::{AtomicU32, Ordering};

    use greenroom_test::Cluster;

    use super::*;

    #[derive(Default)]
    struct Slow(AtomicU32);

    impl Origin for Slow {
        fn load(&self, name: String) -> Pin<Box<dyn Future<Output = Result<String, String>> + Send>> {
            let loads = self.0.fetch_add(1, Ordering::Relaxed) + 1;
            Box::pin(async move {
                tokio::time::sleep(Duration::from_secs(1)).await;
                Ok(format!("{name}, load {loads}"))
            })
        }
    }

    #[test]
    fn ten_callers_at_three_nodes_load_once() {
        for seed in 0..10 {
            let origin = Arc::new(Slow::default());
            let register = move |builder: greenroom::Builder| {
                let origin = origin.clone();
                builder.register_with(move |_| Cached::of(origin.clone()))
            };
            Cluster::of(3, register).run(seed, |cluster| async move {
                let nodes = ["a", "b", "c"].map(|name| cluster.node(name));
                let page = |call: usize| CachedRef::of(&nodes[call % 3], "page");
                let calls = (0..10).map(page).map(|page| tokio::spawn(async move { page.get().await }));
                for call in calls.collect::<Vec<_>>() {
                    assert_eq!(call.await.expect("it ends"), Ok("page, load 1".to_owned()));
                }
                tokio::time::sleep(FRESH).await;
                let page = CachedRef::of(&nodes[0], "page");
                assert_eq!(page.get().await, Ok("page, load 2".to_owned()));
            });
        }
    }
}
