//! Faults at random, for as long as a scenario wants.

use std::ops::Range;
use std::time::Duration;

use tokio::time::sleep;

use crate::random::Random;
use crate::sim::Sim;
use crate::store::SimStore;

/// A kind of fault that a nemesis commits.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub enum Fault {
    /// A node crashes and is restarted a while later.
    Crash,
    /// A node is paused for longer than a lease, and goes on.
    Pause,
    /// The nodes are split in two groups, the store on one of the sides, and healed.
    Partition,
    /// One link is cut, one way, and healed.
    OneWay,
    /// The store does not serve anyone for a while.
    StoreOutage,
    /// The connections between two nodes are reset.
    Reset,
}

/// Commits seeded faults against some nodes, at least one, and undoes them all before it ends.
pub struct Nemesis {
    sim: Sim,
    nodes: Vec<String>,
    menu: Vec<Fault>,
    restart: Option<Restart>,
    store: Option<SimStore>,
    pause: Range<Duration>,
    lasting: Range<Duration>,
    gap: Range<Duration>,
    down_max: usize,
    random: Random,
    undo: Vec<(Duration, Undo)>,
    acts: Vec<String>,
}

/// Starts the node of that name.
type Restart = Box<dyn FnMut(&str)>;

enum Undo {
    Restart(String),
    Resume(String),
    Heal,
    StoreBack,
}

impl Nemesis {
    /// Commits pauses, partitions, one-way cuts and resets; and crashes once [`Nemesis::restart`] is told, outages once
    /// [`Nemesis::store`] is.
    pub fn new(sim: &Sim, nodes: &[&str]) -> Self {
        let menu = if nodes.len() > 1 {
            vec![Fault::Pause, Fault::Partition, Fault::OneWay, Fault::Reset]
        } else {
            vec![Fault::Pause]
        };
        Self {
            sim: sim.clone(),
            nodes: nodes.iter().map(|name| (*name).to_owned()).collect(),
            menu,
            restart: None,
            store: None,
            pause: Duration::from_secs(1)..Duration::from_secs(20),
            lasting: Duration::from_millis(500)..Duration::from_secs(15),
            gap: Duration::from_millis(200)..Duration::from_secs(8),
            down_max: (nodes.len().saturating_sub(1) / 2).max(1),
            random: sim.random(),
            undo: Vec::new(),
            acts: Vec::new(),
        }
    }

    /// How to start a node again after its crash: called with its name.
    pub fn restart(mut self, restart: impl FnMut(&str) + 'static) -> Self {
        self.restart = Some(Box::new(restart));
        self.menu.push(Fault::Crash);
        self
    }

    /// The store to take away at times.
    pub fn store(mut self, store: &SimStore) -> Self {
        self.store = Some(store.clone());
        self.menu.push(Fault::StoreOutage);
        self
    }

    /// Pauses last from half to three times this; 20 s at most by default.
    pub fn lease(mut self, lease: Duration) -> Self {
        self.pause = lease / 2..lease * 3;
        self
    }

    /// How long crashes, cuts and outages last.
    pub fn lasting(mut self, lasting: Range<Duration>) -> Self {
        self.lasting = lasting;
        self
    }

    /// Time between two faults, which may overlap.
    pub fn gap(mut self, gap: Range<Duration>) -> Self {
        self.gap = gap;
        self
    }

    /// Most nodes that are crashed or paused at once; a minority by default, but at least one.
    pub fn down_max(mut self, down_max: usize) -> Self {
        self.down_max = down_max;
        self
    }

    /// Commits only these kinds of fault, of those that it could.
    pub fn only(mut self, faults: &[Fault]) -> Self {
        self.menu.retain(|fault| faults.contains(fault));
        self
    }

    /// Commits faults for `duration`, undoes what is left, and returns what it did.
    ///
    /// # Panics
    /// When there is no kind of fault that it may commit.
    pub async fn run(mut self, duration: Duration) -> Vec<String> {
        assert!(!self.menu.is_empty(), "the nemesis may do nothing");
        self.menu.sort();
        let until = self.sim.now() + duration;
        let first = self.random.within(&self.gap.clone()).min(duration / 2);
        let mut next = self.sim.now() + first;
        loop {
            let undo = self.undo.iter().map(|(at, _)| *at).min().unwrap_or(Duration::MAX);
            let at = next.min(undo).min(until);
            sleep(at.saturating_sub(self.sim.now())).await;
            let now = self.sim.now();
            self.undo_until(now);
            if now >= until {
                break;
            }
            if now >= next {
                self.act(now);
                next = now + self.random.within(&self.gap.clone()).max(Duration::from_millis(1));
            }
        }
        self.undo_until(Duration::MAX);
        self.acts
    }

    /// Commits one fault that is possible now, if any is.
    fn act(&mut self, now: Duration) {
        let mut menu = self.menu.clone();
        self.random.shuffle(&mut menu);
        if let Some(act) = menu.into_iter().find_map(|fault| self.commit(now, fault)) {
            self.acts.push(format!("{:.3} {act}", now.as_secs_f64()));
        }
    }

    fn commit(&mut self, now: Duration, fault: Fault) -> Option<String> {
        let end = now + self.random.within(&self.lasting.clone());
        let cut = self.undo.iter().any(|(_, undo)| matches!(undo, Undo::Heal));
        match fault {
            Fault::Crash => {
                let node = self.upright()?;
                self.sim.crash(&node);
                self.undo.push((end, Undo::Restart(node.clone())));
                Some(format!("crash {node}"))
            }
            Fault::Pause => {
                let node = self.upright()?;
                let end = now + self.random.within(&self.pause.clone());
                self.sim.pause(&node);
                self.undo.push((end, Undo::Resume(node.clone())));
                Some(format!("pause {node}"))
            }
            Fault::Partition if !cut && self.nodes.len() > 1 => {
                let mut names = self.nodes.clone();
                self.random.shuffle(&mut names);
                let (one, other) = names.split_at(1 + self.random.index(names.len() - 1));
                let mut sides = [one.to_vec(), other.to_vec()];
                if let Some(store) = &self.store {
                    sides[self.random.index(2)].push(store.name().to_owned());
                }
                let [one, other] = sides.each_ref().map(|side| side.iter().map(String::as_str).collect::<Vec<_>>());
                self.sim.partition(&one, &other);
                self.undo.push((end, Undo::Heal));
                Some(format!("partition {one:?} from {other:?}"))
            }
            Fault::OneWay if !cut => {
                let (from, to) = self.two()?;
                self.sim.cut(&from, &to);
                self.undo.push((end, Undo::Heal));
                Some(format!("cut {from} -> {to}"))
            }
            Fault::StoreOutage => {
                let store = self.store.as_ref().filter(|store| store.serves())?;
                store.serve(false);
                self.undo.push((end, Undo::StoreBack));
                Some("store outage".into())
            }
            Fault::Reset => {
                let (one, other) = self.two()?;
                self.sim.reset(&one, &other);
                Some(format!("reset {one} - {other}"))
            }
            Fault::Partition | Fault::OneWay => None,
        }
    }

    /// A node that lives and runs, unless too many do not.
    fn upright(&mut self) -> Option<String> {
        let fine = |name: &&String| self.sim.is_alive(name) && !self.sim.is_paused(name);
        let upright: Vec<&String> = self.nodes.iter().filter(fine).collect();
        if self.nodes.len() - upright.len() >= self.down_max {
            return None;
        }
        self.random.pick(&upright).map(|name| (*name).clone())
    }

    fn two(&mut self) -> Option<(String, String)> {
        let mut names = self.nodes.clone();
        self.random.shuffle(&mut names);
        let mut names = names.into_iter();
        Some((names.next()?, names.next()?))
    }

    fn undo_until(&mut self, now: Duration) {
        let (due, later) = std::mem::take(&mut self.undo).into_iter().partition(|(at, _)| *at <= now);
        self.undo = later;
        for (_, undo) in due {
            match undo {
                Undo::Restart(node) => {
                    if let Some(restart) = &mut self.restart {
                        restart(&node);
                    }
                }
                Undo::Resume(node) => self.sim.resume(&node),
                Undo::Heal => self.sim.heal(),
                Undo::StoreBack => self.store.iter().for_each(|store| store.serve(true)),
            }
        }
    }
}
