//! At most one at a time: the check behind "an actor has one activation".

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex};

use crate::shared::lock;
use crate::sim::Sim;

/// Records who is inside what, and fails the run when two are inside at once. Clones share their records.
#[derive(Clone)]
pub struct Exclusive {
    sim: Sim,
    overlap: Overlap,
    state: Arc<Mutex<State>>,
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Overlap {
    Never,
    /// With one of an older epoch, which was suspended and will finish fenced.
    ByNewerEpoch,
}

#[derive(Default)]
struct State {
    inside: BTreeMap<String, Vec<Inside>>,
    newest: BTreeMap<String, u64>,
    entries: u64,
}

struct Inside {
    entry: u64,
    node: String,
    epoch: u64,
}

/// Stands for being inside; leaves when dropped, as it is by a crash.
#[must_use = "dropping it leaves at once"]
pub struct Entered {
    exclusive: Exclusive,
    actor: String,
    entry: u64,
}

impl Exclusive {
    /// Two are never inside at once, whatever their epochs.
    pub fn strict(sim: &Sim) -> Self {
        Self { sim: sim.clone(), overlap: Overlap::Never, state: Arc::default() }
    }

    /// One of an older epoch may still be inside, suspended, when one of a newer epoch enters; the other way round never.
    pub fn fenced(sim: &Sim) -> Self {
        Self { overlap: Overlap::ByNewerEpoch, ..Self::strict(sim) }
    }

    /// `node` begins to act as `actor` under `epoch`.
    ///
    /// A violation fails the run by [`Sim::violated`]: another is inside, or one of a newer epoch was.
    pub fn enter(&self, actor: &str, node: &str, epoch: u64) -> Entered {
        let mut state = lock(&self.state);
        let newest = state.newest.entry(actor.to_owned()).or_insert(epoch);
        if *newest > epoch {
            self.sim.violated(format!("{node} enters {actor} under epoch {epoch} after epoch {newest} was seen"));
        }
        *newest = epoch.max(*newest);
        state.entries += 1;
        let entry = state.entries;
        let inside = state.inside.entry(actor.to_owned()).or_default();
        for other in inside.iter() {
            if self.overlap == Overlap::Never || other.epoch >= epoch {
                self.sim.violated(format!(
                    "{node} enters {actor} under epoch {epoch} while {} is inside under epoch {}",
                    other.node, other.epoch
                ));
            }
        }
        inside.push(Inside { entry, node: node.to_owned(), epoch });
        Entered { exclusive: self.clone(), actor: actor.to_owned(), entry }
    }

    /// How often anyone entered: a check that saw nothing proves nothing.
    pub fn entries(&self) -> u64 {
        lock(&self.state).entries
    }
}

impl Drop for Entered {
    fn drop(&mut self) {
        let mut state = lock(&self.exclusive.state);
        if let Some(inside) = state.inside.get_mut(&self.actor) {
            inside.retain(|one| one.entry != self.entry);
        }
    }
}
