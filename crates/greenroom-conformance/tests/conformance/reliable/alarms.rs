//! Timers fire once, created actors live once, and messages that promise less keep what they promise, whatever crashes.

use std::cell::Cell;
use std::collections::BTreeMap;
use std::rc::Rc;
use std::time::Duration;

use greenroom::prelude::*;
use greenroom_sim::seeds;

use super::{NODES, PATIENCE, Trial, eventually, faults, through_a_bad_day};
use crate::cluster::{Cluster, sim};

/// Rings later, by a timer of its own and by a bell that it makes for it.
#[derive(Default, Actor)]
pub(super) struct Alarm {
    armed: Map<u64, u64>,
    rung: Map<u64, u64>,
    struck: Map<u64, u64>,
    echoes: Map<u64, u64>,
}

#[actor(reliable, idle = "3s")]
impl Alarm {
    pub async fn arm(&mut self, cx: &Cx, id: u64, ms: u64) {
        count(&mut self.armed, id);
        AlarmRef::of(cx, (id + 1) % ALARMS).ring(id).after(Duration::from_millis(ms)).send();
        let bell = Bell::create(cx);
        bell.hang(AlarmRef::me(cx)).send();
        bell.strike(id).after(Duration::from_millis(ms / 2)).send();
    }

    pub async fn ring(&mut self, id: u64) {
        count(&mut self.rung, id);
    }

    pub async fn struck(&mut self, id: u64) {
        count(&mut self.struck, id);
    }

    pub async fn echo(&mut self, id: u64) {
        count(&mut self.echoes, id);
    }

    pub async fn look(&self) -> [Vec<(u64, u64)>; 4] {
        [&self.armed, &self.rung, &self.struck, &self.echoes]
            .map(|map| map.iter().map(|(id, times)| (*id, *times)).collect())
    }
}

fn count(map: &mut Map<u64, u64>, id: u64) {
    let times = map.get(&id).copied().unwrap_or(0) + 1;
    map.insert(id, times);
}

/// Strikes once and is no more.
#[derive(Default, Actor)]
pub(super) struct Bell {
    alarm: Register<Option<AlarmRef>>,
}

#[actor(reliable, idle = "3s", start = "Lying")]
impl Bell {
    #[on(hang, state = "Lying")]
    async fn hang(&mut self, cx: &Cx, alarm: AlarmRef) {
        self.alarm.set(Some(alarm));
        cx.jump("Hanging");
    }

    /// A timer may overtake what came before it.
    #[on(strike, state = "Hanging", defer = "Lying")]
    async fn strike(&mut self, cx: &Cx, id: u64) {
        if let Some(alarm) = self.alarm.get() {
            alarm.struck(id).send();
            alarm.echo(id).at_least_once().send();
        }
        cx.halt();
    }
}

fn alarms(seed: u64) {
    sim(seed, faults()).deadline(Duration::from_secs(900)).run(|sim| async move {
        let left = Rc::new(Cell::new(0));
        let of = left.clone();
        let cluster = through_a_bad_day(&sim, Trial::default(), move |cluster, name| {
            of.set(of.get() + 1);
            let place = NODES.iter().position(|node| *node == name).unwrap_or(0) as u64;
            cluster.sim.spawn(arm(cluster.clone(), place, of.clone()));
        })
        .await;
        while left.get() > 0 {
            tokio::time::sleep(Duration::from_millis(100)).await;
        }
        let until = sim.now() + Duration::from_secs(60);
        let once: BTreeMap<u64, u64> = (0..NODES.len() as u64 * EACH).map(|id| (id, 1)).collect();
        loop {
            let mut all = [BTreeMap::new(), BTreeMap::new(), BTreeMap::new(), BTreeMap::new()];
            for alarm in 0..ALARMS {
                let seen = eventually(&sim, &cluster, |node| AlarmRef::of(node, alarm).look().by(PATIENCE)).await;
                all.iter_mut().zip(seen).for_each(|(all, seen)| all.extend(seen));
            }
            let [armed, rung, struck, echoes] = &all;
            assert_eq!(armed, &once, "each was armed once");
            assert!(rung.values().chain(struck.values()).all(|times| *times == 1), "once: {rung:?} {struck:?}");
            if (rung, struck) == (&once, &once) && echoes.len() == once.len() {
                return;
            }
            assert!(sim.now() < until, "not all have rung: {all:?}");
            tokio::time::sleep(Duration::from_millis(200)).await;
        }
    });
}

/// Arms alarms through the day, each until there is an answer.
async fn arm(cluster: Cluster, place: u64, left: Rc<Cell<u64>>) {
    let sim = cluster.sim.clone();
    let mut random = sim.random();
    for number in 0..EACH {
        let (id, ms) = (place * EACH + number, random.index(8000) as u64);
        let key = id.to_string();
        eventually(&sim, &cluster, |node| AlarmRef::of(node, id % ALARMS).arm(id, ms).idempotent(&key).by(PATIENCE))
            .await;
        tokio::time::sleep(Duration::from_millis(random.index(3000) as u64)).await;
    }
    left.set(left.get() - 1);
}

#[test]
fn timers_fire_once_and_created_actors_live_once_whatever_crashes() {
    seeds("timers_fire_once_and_created_actors_live_once_whatever_crashes", 8, alarms);
}

const ALARMS: u64 = 4;
/// By each node.
const EACH: u64 = 8;
