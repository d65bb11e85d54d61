//! Registers, their callers, and the history of what these were told.

use std::cell::RefCell;
use std::collections::BTreeMap;
use std::fmt::Debug;
use std::rc::Rc;
use std::time::Duration;

use greenroom::CallError;
use greenroom::prelude::*;
use greenroom_sim::Sim;
use greenroom_sim::history::registers::{Asked, Keeps, Operation, Stamped, Succession, Told, check};
use serde::{Deserialize, Serialize};

use crate::cluster::Cluster;

/// A register that begins anew with each activation.
#[derive(Default, Actor)]
pub(crate) struct Fleeting {
    count: u64,
    value: u64,
}

/// Epoch, count and value.
type Answer = (u64, u64, u64);

#[actor]
impl Fleeting {
    /// Takes `value` and gives the one before; in between, others would be seen.
    pub async fn swap(&mut self, cx: &Cx, value: u64) -> Answer {
        let (count, before) = (self.count + 1, self.value);
        tokio::time::sleep(Duration::from_millis(value % 10)).await;
        (self.count, self.value) = (count, value);
        (cx.epoch(), count, before)
    }

    pub async fn read(&self, cx: &Cx) -> Answer {
        (cx.epoch(), self.count, self.value)
    }

    pub async fn leave(&mut self, cx: &Cx) {
        cx.deactivate();
    }
}

/// A register that is kept.
#[derive(Default, Serialize, Deserialize, Actor)]
pub(crate) struct Kept {
    count: u64,
    value: u64,
}

#[actor(persistent)]
impl Kept {
    /// As of [`Fleeting`].
    pub async fn swap(&mut self, cx: &Cx, value: u64) -> Result<Answer, StateError> {
        let (count, before) = (self.count + 1, self.value);
        tokio::time::sleep(Duration::from_millis(value % 10)).await;
        (self.count, self.value) = (count, value);
        cx.save(self).await?;
        Ok((cx.epoch(), count, before))
    }

    pub async fn read(&self, cx: &Cx) -> Answer {
        (cx.epoch(), self.count, self.value)
    }

    pub async fn leave(&mut self, cx: &Cx) {
        cx.deactivate();
    }
}

/// A register's name: whether it is kept, and its number.
type Name = (bool, usize);

/// What all callers asked and were told. Clones are the same.
#[derive(Clone)]
pub(crate) struct Histories {
    sim: Sim,
    /// So many registers of each kind.
    registers: usize,
    all: Rc<RefCell<BTreeMap<Name, Vec<Operation>>>>,
    values: Rc<RefCell<u64>>,
    closed: Rc<RefCell<bool>>,
}

impl Histories {
    pub(crate) fn new(sim: &Sim, registers: usize) -> Self {
        let (all, values, closed) = (Rc::default(), Rc::default(), Rc::default());
        Self { sim: sim.clone(), registers, all, values, closed }
    }

    /// Swaps, reads and, if `leaves`, sends registers away from the node called `name`, until [`Histories::close`].
    pub(crate) fn call_from(&self, cluster: &Cluster, name: &'static str, leaves: bool) {
        let (this, cluster, mut random) = (self.clone(), cluster.clone(), self.sim.random());
        self.sim.spawn(async move {
            while !*this.closed.borrow() {
                tokio::time::sleep(random.within(&(Duration::from_millis(5)..Duration::from_millis(150)))).await;
                let register = (random.chance(0.5), random.index(this.registers));
                let Some(node) = cluster.node(name) else { continue };
                match random.index(20) {
                    0 if leaves && register.0 => drop(KeptRef::of(&node, register.1).leave().by(PATIENCE).await),
                    0 if leaves => drop(FleetingRef::of(&node, register.1).leave().by(PATIENCE).await),
                    0..=5 => this.ask(&node, register, Asked::Read).await,
                    _ => {
                        let value = this.next_value();
                        this.ask(&node, register, Asked::Swap(value)).await;
                    }
                }
            }
        });
    }

    fn next_value(&self) -> u64 {
        *self.values.borrow_mut() += 1;
        *self.values.borrow()
    }

    /// Ends all callers once their calls are over.
    pub(crate) fn close(&self) {
        *self.closed.borrow_mut() = true;
    }

    async fn ask(&self, node: &Node, register: Name, asked: Asked) {
        // In doubt until more is known: a caller that is gone with its node hears no more.
        let (caller, begun) = (node.name().to_owned(), self.sim.now());
        let operation = Operation { caller, begun, ended: begun, asked, told: Told::Doubt };
        let place = {
            let mut all = self.all.borrow_mut();
            let history = all.entry(register).or_default();
            history.push(operation);
            history.len() - 1
        };
        let told = match (register, asked) {
            ((false, key), Asked::Swap(value)) => told(FleetingRef::of(node, key).swap(value).by(PATIENCE).await),
            ((false, key), Asked::Read) => told(FleetingRef::of(node, key).read().by(PATIENCE).await),
            ((true, key), Asked::Swap(value)) => match KeptRef::of(node, key).swap(value).by(PATIENCE).await {
                Err(CallError::Actor(StateError::Unknown { .. })) => Told::Doubt,
                other => told(other),
            },
            ((true, key), Asked::Read) => told(KeptRef::of(node, key).read().by(PATIENCE).await),
        };
        let mut all = self.all.borrow_mut();
        let operation = &mut all.get_mut(&register).expect("it was begun")[place];
        (operation.ended, operation.told) = (self.sim.now(), told);
    }

    /// Checks every register's history, and gives how often one without a store began anew and how many calls were answered.
    ///
    /// # Panics
    /// With what is wrong, and the operations that show it.
    pub(crate) fn check(&self) -> (usize, usize) {
        let (mut successions, mut answered) = (0, 0);
        for (register, history) in self.all.borrow().iter() {
            let keeps = if register.0 { Keeps::Everything } else { Keeps::Nothing };
            let found: Vec<Succession> = check(history, keeps).unwrap_or_else(|offence| {
                let shown = offence.operations.iter().map(|place| format!("\n  {}", history[*place]));
                panic!("register {register:?}: {}:{}", offence.what, shown.collect::<String>())
            });
            successions += if register.0 { 0 } else { found.len() };
            answered += history.iter().filter(|operation| matches!(operation.told, Told::Answer(_))).count();
        }
        (successions, answered)
    }
}

fn told<E: Debug>(answer: Result<Answer, CallError<E>>) -> Told {
    match answer {
        Ok((epoch, count, value)) => Told::Answer(Stamped { epoch, count, value }),
        Err(CallError::Unknown(_)) => Told::Doubt,
        Err(_) => Told::Not,
    }
}

const PATIENCE: Duration = Duration::from_secs(2);
