//! One kind in several versions, nodes that host one of them each, and what has run where.

use std::cell::RefCell;
use std::collections::BTreeMap;
use std::rc::Rc;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use greenroom::Why;
use greenroom::prelude::*;
use greenroom_sim::{Exclusive, Faults, Sim, seeds, test_name};

use crate::cluster::{Cluster, sim};

/// What a till answers: its node, the version that it is of, and the operation.
pub(super) type Answer = (String, u16, u64);

/// What has run, in order: the actor, the version of its activation, and the operation.
pub(super) type Ran = (String, u16, u64);

/// What all tills of a run share.
#[derive(Clone)]
pub(super) struct Book {
    ran: Arc<Mutex<Vec<Ran>>>,
    ends: Arc<Mutex<Vec<(String, Why)>>>,
    watch: Exclusive,
}

fn lock<T>(shared: &Mutex<T>) -> MutexGuard<'_, T> {
    shared.lock().unwrap_or_else(PoisonError::into_inner)
}

impl Book {
    pub(super) fn ran(&self) -> Vec<Ran> {
        lock(&self.ran).clone()
    }

    /// Why activations of the actor have ended.
    pub(super) fn ends(&self, actor: &str) -> Vec<Why> {
        lock(&self.ends).iter().filter(|(ended, _)| ended == actor).map(|(_, why)| *why).collect()
    }

    /// Fails if an operation has run more than once.
    pub(super) fn at_most_once(&self) {
        let mut counts: BTreeMap<u64, usize> = BTreeMap::new();
        for (_, _, operation) in self.ran() {
            *counts.entry(operation).or_default() += 1;
        }
        counts.retain(|_, count| *count > 1);
        assert!(counts.is_empty(), "operations that ran more than once: {counts:?}");
    }

    async fn serve(&self, cx: &Cx, version: u16, operation: u64) -> Answer {
        let inside = self.watch.enter(&cx.id().to_string(), cx.node_name(), cx.epoch());
        tokio::time::sleep(Duration::from_millis(operation % 3)).await;
        lock(&self.ran).push((cx.key().to_string(), version, operation));
        drop(inside);
        (cx.node_name().to_owned(), version, operation)
    }

    fn end(&self, cx: &Cx, why: Why) {
        lock(&self.ends).push((cx.key().to_string(), why));
    }
}

macro_rules! till {
    ($name:ident, $version:literal, [$($options:tt)*], { $($more:tt)* }) => {
        pub(super) struct $name(pub(super) Book);

        impl Actor for $name {}

        #[actor($($options)*)]
        impl $name {
            pub async fn serve(&mut self, cx: &Cx, operation: u64) -> Answer {
                self.0.serve(cx, $version, operation).await
            }

            $($more)*

            async fn deactivating(&mut self, cx: &Cx, why: Why) {
                self.0.end(cx, why);
            }
        }
    };
}

till!(Till, 1, [kind = "till"], {});
till!(TillTwo, 2, [kind = "till", interface = 2], {
    pub async fn refund(&mut self, cx: &Cx, operation: u64) -> Answer {
        self.0.serve(cx, 2, operation).await
    }
});
till!(TillThree, 3, [kind = "till", interface = 3, compatible = 3], {});
// Whoever wrote this one has forgotten to give the interface a new version.
till!(TillUnsaid, 1, [kind = "till"], {
    pub async fn refund(&mut self, cx: &Cx, operation: u64) -> Answer {
        self.0.serve(cx, 1, operation).await
    }
});
till!(Clerk, 1, [kind = "clerk", workers = 2], {});
till!(ClerkTwo, 2, [kind = "clerk", workers = 2, interface = 2], {});

/// The version that a node hosts, by its name; nodes that are not named host none.
pub(super) type Hosting = Rc<RefCell<BTreeMap<String, u16>>>;

/// A call of a till by a caller of this version.
pub(super) async fn serve(node: &Node, version: u16, key: &str, operation: u64) -> Result<Answer, CallError> {
    match version {
        1 => TillRef::of(node, key).serve(operation).await,
        2 => TillTwoRef::of(node, key).serve(operation).await,
        _ => TillThreeRef::of(node, key).serve(operation).await,
    }
}

/// Runs `scenario` under so many seeds, over these nodes, each of which hosts a version of tills.
#[track_caller]
pub(super) fn with_tills<F>(
    count: u64,
    faults: Faults,
    nodes: &'static [(&'static str, u16)],
    scenario: impl Fn(Cluster, Hosting, Book) -> F + Sync,
) where
    F: Future<Output = ()> + 'static,
{
    seeds(&test_name(), count, |seed| {
        sim(seed, faults.clone()).deadline(Duration::from_secs(600)).run(|of: Sim| {
            let book = Book { ran: Arc::default(), ends: Arc::default(), watch: Exclusive::strict(&of) };
            let hosting: Hosting =
                Rc::new(RefCell::new(nodes.iter().map(|(name, version)| ((*name).to_owned(), *version)).collect()));
            let (theirs, hosted) = (book.clone(), hosting.clone());
            let cluster = Cluster::new(&of, move |builder, name| {
                let book = theirs.clone();
                match hosted.borrow().get(name).copied().unwrap_or(NOTHING) {
                    1 => {
                        let clerks = book.clone();
                        builder.register_with(move |_| Till(book.clone())).register_with(move |_| Clerk(clerks.clone()))
                    }
                    2 => {
                        let clerks = book.clone();
                        builder
                            .register_with(move |_| TillTwo(book.clone()))
                            .register_with(move |_| ClerkTwo(clerks.clone()))
                    }
                    3 => builder.register_with(move |_| TillThree(book.clone())),
                    _ => builder,
                }
            });
            let scenario = scenario(cluster.clone(), hosting, book);
            async move {
                let names: Vec<&str> = nodes.iter().map(|(name, _)| *name).collect();
                cluster.start_all(&names).await;
                scenario.await;
            }
        });
    });
}

/// The version of a node that hosts no tills, but calls them.
pub(super) const NOTHING: u16 = 0;
