//! Reminders: at their time, though the actor sleeps and nodes die.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::{Arc, Mutex};
use std::time::{Duration, UNIX_EPOCH};

use greenroom::prelude::*;
use greenroom::{ReminderError, Schedule};
use greenroom_sim::{Faults, Nemesis, Sim, SimStore, seeds};

use crate::cluster::{Cluster, sim};
use crate::scenario::NODES;

/// One turn of a tick: whose, due when and begun when (in milliseconds of the simulation), and what it says.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Debug)]
struct Ring {
    key: String,
    due: u64,
    at: u64,
    late: u64,
    missed: u64,
    node: String,
}

/// All turns of ticks, in order.
#[derive(Clone, Default)]
struct Rings(Arc<Mutex<Vec<Ring>>>);

impl Rings {
    fn all(&self) -> Vec<Ring> {
        self.0.lock().unwrap().clone()
    }

    fn of(&self, key: &str) -> Vec<Ring> {
        self.all().into_iter().filter(|ring| ring.key == key).collect()
    }
}

struct Alarm {
    sim: Sim,
    rings: Rings,
}

impl Actor for Alarm {}

#[actor(idle = "2s", placement = "random")]
impl Alarm {
    pub async fn once(&mut self, cx: &Cx, millis: u64) -> Result<(), ReminderError> {
        AlarmRef::me(cx).ring("by itself").after(Duration::from_millis(millis)).named("once").await
    }

    pub async fn every(&mut self, cx: &Cx, millis: u64) -> Result<(), ReminderError> {
        AlarmRef::me(cx).ring("by itself").every(Duration::from_millis(millis)).named("every").await
    }

    /// Rings, and takes `millis` for that.
    pub async fn ring_long(&mut self, cx: &Cx, millis: u64) {
        self.ring(cx, "by itself".to_owned()).await;
        tokio::time::sleep(Duration::from_millis(millis)).await;
    }

    pub async fn ring(&mut self, cx: &Cx, by: String) -> u64 {
        assert_eq!(by, "by itself", "arguments come as they were given");
        let tick = cx.tick().expect("a reminder calls it");
        let due = tick.due.duration_since(UNIX_EPOCH).unwrap() - ORIGIN;
        let at = self.sim.now();
        self.rings.0.lock().unwrap().push(Ring {
            key: cx.key().to_string(),
            due: due.as_millis() as u64,
            at: at.as_millis() as u64,
            late: tick.late_by.as_millis() as u64,
            missed: tick.missed,
            node: cx.node_name().to_owned(),
        });
        7
    }

    /// Cancels in a turn, and gives the time at which that was acknowledged.
    pub async fn cancel(&mut self, cx: &Cx, name: String) -> Result<(bool, u64), ReminderError> {
        let existed = cx.reminders().cancel(&name).await?;
        Ok((existed, self.sim.now().as_millis() as u64))
    }

    /// Takes long, with the reminder due meanwhile, and then cancels.
    pub async fn work_and_cancel(&mut self, cx: &Cx, millis: u64) -> Result<bool, ReminderError> {
        tokio::time::sleep(Duration::from_millis(millis)).await;
        cx.reminders().cancel("once").await
    }
}

/// Where the simulation's calendar begins.
const ORIGIN: Duration = Duration::from_secs(1_767_225_600);

/// A cluster of alarms that keep their reminders beside the membership table.
fn cluster(sim: &Sim, rings: &Rings) -> Cluster {
    let states = std::rc::Rc::new(std::cell::OnceCell::<SimStore>::new());
    let (of, rings, sim_of) = (states.clone(), rings.clone(), sim.clone());
    let cluster = Cluster::new(sim, move |builder, name| {
        let (sim, rings) = (sim_of.clone(), rings.clone());
        let states = of.get().expect("no node starts before the cluster is there").seen_by(name);
        builder.register_with(move |_| Alarm { sim: sim.clone(), rings: rings.clone() }).state_store("", states)
    });
    assert!(states.set(cluster.store.clone()).is_ok(), "nobody else sets it");
    cluster
}

/// Runs `scenario` in a world that loses nothing.
fn calm<F: Future<Output = ()> + 'static>(name: &str, count: u64, scenario: fn(Cluster, Rings) -> F) {
    seeds(name, count, |seed| {
        sim(seed, Faults::none()).deadline(Duration::from_secs(900)).run(|sim| async move {
            let rings = Rings::default();
            let cluster = cluster(&sim, &rings);
            cluster.start_all(NODES).await;
            scenario(cluster, rings).await;
        });
    });
}

async fn pause(millis: u64) {
    tokio::time::sleep(Duration::from_millis(millis)).await;
}

#[test]
fn a_reminder_fires_though_its_actor_sleeps() {
    calm("a_reminder_fires_though_its_actor_sleeps", 20, |cluster, rings| async move {
        let [a, ..] = cluster.three();
        for key in 0..10 {
            AlarmRef::of(&a, key).once(10_000 + key * 100).await.unwrap();
        }
        pause(8_000).await;
        assert_eq!((a.activations(), rings.all().len()), (0, 0), "all are asleep");
        pause(4_000).await;
        assert_eq!(rings.all().len(), 10, "{:?}", rings.all());
        assert!(rings.all().iter().all(|ring| ring.late < 500 && ring.missed == 0), "{:?}", rings.all());
        pause(60_000).await;
        assert_eq!(rings.all().len(), 10, "once");
    });
}

#[test]
fn a_periodic_reminder_fires_once_for_each_due_time() {
    calm("a_periodic_reminder_fires_once_for_each_due_time", 10, |cluster, rings| async move {
        let [a, ..] = cluster.three();
        AlarmRef::of(&a, "p").every(3_000).await.unwrap();
        pause(31_500).await;
        let rings = rings.of("p");
        assert_eq!(rings.len(), 10, "{rings:?}");
        assert!(rings.windows(2).all(|two| two[1].due - two[0].due == 3_000 && two[0].late < 500), "{rings:?}");
    });
}

#[test]
fn a_periodic_reminder_does_not_drift_though_its_turns_take_long() {
    calm("a_periodic_reminder_does_not_drift_though_its_turns_take_long", 5, |cluster, rings| async move {
        let [a, ..] = cluster.three();
        AlarmRef::of(&a, "p").ring_long(700).every(Duration::from_secs(1)).await.unwrap();
        pause(300_500).await;
        let rings = rings.of("p");
        assert!((299..=300).contains(&rings.len()), "{}", rings.len());
        let first = rings[0].due;
        for (number, ring) in rings.iter().enumerate() {
            assert_eq!((ring.due, ring.missed), (first + 1_000 * number as u64, 0));
            assert!(ring.at - ring.due < 300, "{ring:?}");
        }
    });
}

#[test]
fn a_one_shot_reminder_fires_once_though_every_node_dies_in_turn() {
    calm("a_one_shot_reminder_fires_once_though_every_node_dies_in_turn", 10, |cluster, rings| async move {
        let [a, ..] = cluster.three();
        for key in 0..30 {
            AlarmRef::of(&a, key).once(2_000).await.unwrap();
        }
        pause(5_000).await;
        for node in NODES {
            cluster.sim.crash(node);
            pause(15_000).await;
            cluster.start(node).await;
            pause(5_000).await;
        }
        pause(120_000).await;
        let rung: BTreeSet<_> = rings.all().into_iter().map(|ring| ring.key).collect();
        assert_eq!((rung.len(), rings.all().len()), (30, 30));
    });
}

#[test]
fn reminders_survive_the_restart_of_the_whole_cluster() {
    calm("reminders_survive_the_restart_of_the_whole_cluster", 10, |cluster, rings| async move {
        let [a, b, _] = cluster.three();
        for key in 0..10 {
            // Due before it is there again, and after.
            AlarmRef::of(&a, format!("early{key}").as_str()).once(10_000).await.unwrap();
            AlarmRef::of(&b, format!("late{key}").as_str()).once(100_000).await.unwrap();
            let gone = AlarmRef::of(&b, format!("gone{key}").as_str());
            gone.once(100_000).await.unwrap();
            assert_eq!(gone.cancel("once").await.map(|(existed, _)| existed), Ok(true));
        }
        for node in NODES {
            cluster.sim.crash(node);
        }
        pause(30_000).await;
        let back = cluster.sim.now().as_millis() as u64;
        cluster.start_all(NODES).await;
        pause(15_000).await;
        let early = rings.all();
        assert_eq!(early.len(), 10, "{early:?}");
        assert!(early.iter().all(|ring| ring.at < back + 15_000 && ring.late > 10_000), "{early:?}");
        pause(90_000).await;
        let all = rings.all();
        assert_eq!(all.len(), 20, "{all:?}");
        assert!(all.iter().all(|ring| !ring.key.starts_with("gone")), "{all:?}");
        assert!(all[10..].iter().all(|ring| ring.late < 1_000), "{all:?}");
    });
}

#[test]
fn reminders_can_be_set_from_outside_at_a_time_and_by_a_cron_pattern() {
    calm("reminders_can_be_set_from_outside_at_a_time_and_by_a_cron_pattern", 10, |cluster, rings| async move {
        let [a, b, _] = cluster.three();
        let at = UNIX_EPOCH + ORIGIN + Duration::from_secs(60);
        AlarmRef::of(&a, "at").ring("by itself").at(at).await.unwrap();
        AlarmRef::of(&b, "past").ring("by itself").at(UNIX_EPOCH + ORIGIN).await.unwrap();
        AlarmRef::of(&b, "cron").ring("by itself").cron("* * * * *").named("minutely").await.unwrap();
        let listed = a.reminders_of(AlarmRef::of(&a, "cron").id()).list().await.unwrap();
        assert_eq!(listed[0].schedule, Schedule::Cron("* * * * *".to_owned()));
        assert_eq!((listed[0].name.as_str(), listed[0].method.as_str()), ("minutely", "ring"));
        while cluster.sim.now() < Duration::from_secs(190) {
            pause(1_000).await;
        }
        let due = |key| rings.of(key).iter().map(|ring| ring.due).collect::<Vec<_>>();
        assert_eq!(due("at"), [60_000]);
        assert_eq!(due("past"), [0]);
        assert_eq!(due("cron"), [60_000, 120_000, 180_000]);
    });
}

#[test]
fn what_is_no_reminder_is_refused_with_the_reason() {
    calm("what_is_no_reminder_is_refused_with_the_reason", 2, |cluster, _| async move {
        let [a, ..] = cluster.three();
        let alarm = AlarmRef::of(&a, "x");
        let short = alarm.ring("").every(Duration::from_millis(999)).await.unwrap_err().to_string();
        assert!(short.contains("less than a second; use a timer"), "{short}");
        let cron = alarm.ring("").cron("every day").await.unwrap_err().to_string();
        assert!(cron.contains("is no cron pattern"), "{cron}");
        let name = alarm.ring("").after(Duration::from_secs(1)).named("a/b").await.unwrap_err().to_string();
        assert!(name.contains("without slashes"), "{name}");
    });
}

#[test]
fn a_reminder_of_the_same_name_replaces_the_one_before() {
    calm("a_reminder_of_the_same_name_replaces_the_one_before", 10, |cluster, rings| async move {
        let [a, ..] = cluster.three();
        let alarm = AlarmRef::of(&a, "r");
        for millis in [3_000, 4_000, 20_000] {
            alarm.once(millis).await.unwrap();
        }
        pause(15_000).await;
        assert_eq!(rings.all(), []);
        assert_eq!(a.reminders_of(alarm.id()).list().await.unwrap().len(), 1);
        pause(7_000).await;
        assert_eq!(rings.all().len(), 1);
        assert_eq!(a.reminders_of(alarm.id()).list().await.unwrap(), [], "it is over");
    });
}

#[test]
fn no_turn_of_a_reminder_begins_after_it_was_cancelled_not_even_one_that_waits() {
    calm("no_turn_of_a_reminder_begins_after_it_was_cancelled", 20, |cluster, rings| async move {
        let [a, b, _] = cluster.three();
        let alarm = AlarmRef::of(&a, "c");
        alarm.once(2_000).await.unwrap();
        // The tick comes while the turn runs that cancels it, and waits for its turn.
        assert_eq!(alarm.work_and_cancel(4_000).by(Duration::from_secs(5)).await, Ok(true));
        alarm.every(1_000).await.unwrap();
        pause(5_500).await;
        let ticked = rings.all().len();
        assert!((4..=6).contains(&ticked), "{ticked}");
        // From outside, by another node.
        assert_eq!(b.reminders_of(alarm.id()).cancel("every").await, Ok(true));
        let ticked = rings.all().len();
        pause(10_000).await;
        assert_eq!(rings.all().len(), ticked, "{:?}", rings.all());
        assert_eq!(alarm.cancel("every").await.map(|(existed, _)| existed), Ok(false));
    });
}

#[test]
fn reminders_fire_within_15_seconds_though_the_owner_of_their_range_has_crashed() {
    let name = "reminders_fire_within_15_seconds_though_the_owner_of_their_range_has_crashed";
    calm(name, 20, |cluster, rings| async move {
        let [a, b, c] = cluster.three();
        // So many that each node owns some, and has some actors.
        for key in 0..60 {
            let node = [&a, &b, &c][key as usize % 3];
            AlarmRef::of(node, key).once(3_000 + key * 200).await.unwrap();
        }
        pause(1_000).await;
        cluster.sim.crash("b");
        pause(35_000).await;
        let rings = rings.all();
        let rung: BTreeSet<_> = rings.iter().map(|ring| ring.key.clone()).collect();
        assert_eq!(rung.len(), 60, "all fire");
        let late = rings.iter().map(|ring| ring.late).max();
        assert!(late < Some(15_000), "the latest came {late:?} ms late");
    });
}

#[test]
fn ticks_missed_while_no_node_was_there_come_once_late_and_say_so() {
    calm("ticks_missed_while_no_node_was_there_come_once_late_and_say_so", 10, |cluster, rings| async move {
        let [a, ..] = cluster.three();
        for key in 0..5 {
            AlarmRef::of(&a, key).every(2_000).await.unwrap();
        }
        pause(1_000).await;
        for node in NODES {
            cluster.sim.crash(node);
        }
        let before = rings.all().len();
        pause(40_000).await;
        cluster.start("a").await;
        pause(20_000).await;
        for key in 0..5 {
            let rings = rings.of(&key.to_string());
            let late: Vec<_> = rings.iter().filter(|ring| ring.late > 2_000).collect();
            assert_eq!(late.len(), 1, "{before} before: {rings:?}");
            assert!(late[0].missed >= 15 && late[0].late >= 2_000 * late[0].missed, "{late:?}");
            let dues: Vec<_> = rings.iter().map(|ring| ring.due).collect();
            assert!(dues.windows(2).all(|two| two[0] < two[1]), "each due time once: {dues:?}");
        }
    });
}

#[test]
fn a_paused_owner_fires_nothing_after_its_lease_and_others_do() {
    calm("a_paused_owner_fires_nothing_after_its_lease_and_others_do", 10, |cluster, rings| async move {
        let [a, ..] = cluster.three();
        for key in 0..30 {
            AlarmRef::of(&a, key).every(2_000).await.unwrap();
        }
        pause(5_000).await;
        let paused_at = cluster.sim.now().as_millis() as u64;
        cluster.sim.pause("b");
        pause(30_000).await;
        cluster.sim.resume("b");
        pause(10_000).await;
        let rings = rings.all();
        let of_b: Vec<_> = rings.iter().filter(|ring| ring.node == "b" && ring.at > paused_at).collect();
        assert!(of_b.is_empty(), "{of_b:?}");
        let mut turns = BTreeMap::<_, u64>::new();
        for ring in &rings {
            *turns.entry((ring.key.clone(), ring.due)).or_default() += 1;
        }
        let twice: Vec<_> = turns.iter().filter(|(_, turns)| **turns > 1).collect();
        assert!(twice.len() <= 30, "only what was under way may come twice: {twice:?}");
        let after = paused_at + 38_000;
        let awake: BTreeSet<_> = rings.iter().filter(|ring| ring.at > after).map(|ring| &ring.key).collect();
        assert_eq!(awake.len(), 30, "all go on");
    });
}

/// What a caller was told of a reminder.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Told {
    Set { due_by: u64 },
    Cancelled { at: u64 },
    Doubt,
}

/// Everybody sets and cancels reminders all the time, and a nemesis has its way for 40 virtual seconds.
fn trouble(seed: u64) {
    sim(seed, Faults::rough()).deadline(Duration::from_secs(900)).run(|sim| async move {
        let rings = Rings::default();
        let cluster = cluster(&sim, &rings);
        cluster.supervise();
        for name in NODES {
            cluster.start(name).await;
        }
        let told = Arc::new(Mutex::new(BTreeMap::<String, Told>::new()));
        for name in NODES {
            set_from(&sim, &cluster, name, &told);
        }
        let restarting = cluster.clone();
        let nemesis = Nemesis::new(&sim, NODES)
            .restart(move |name| restarting.restart(name))
            .store(&cluster.store)
            .lease(Duration::from_secs(4))
            .lasting(Duration::from_millis(500)..Duration::from_secs(8))
            .gap(Duration::from_millis(200)..Duration::from_secs(4));
        nemesis.run(Duration::from_secs(40)).await;
        // What is due comes, and what comes late.
        tokio::time::sleep(Duration::from_secs(150)).await;
        let told = told.lock().unwrap();
        assert!(told.values().any(|told| matches!(told, Told::Set { .. })), "some were set");
        for (key, told) in told.iter() {
            let rings = rings.of(key);
            match told {
                Told::Set { due_by } => assert!(!rings.is_empty(), "{key}, due by {due_by}, is lost"),
                Told::Cancelled { at } => {
                    assert!(rings.iter().all(|ring| ring.at <= *at), "{key} fired after {at}: {rings:?}");
                }
                Told::Doubt => {}
            }
        }
    });
}

/// Sets reminders of fresh actors from `name`, and cancels some of them, for 40 virtual seconds.
fn set_from(sim: &Sim, cluster: &Cluster, name: &'static str, told: &Arc<Mutex<BTreeMap<String, Told>>>) {
    let (cluster, mut random, told, of) = (cluster.clone(), sim.random(), told.clone(), sim.clone());
    sim.spawn(async move {
        for number in 0..60 {
            pause(500 + random.index(400) as u64).await;
            let Some(node) = cluster.node(name) else { continue };
            let key = format!("{name}{number}");
            let alarm = AlarmRef::of(&node, key.as_str());
            let millis = 1_000 + random.index(20_000) as u64;
            told.lock().unwrap().insert(key.clone(), Told::Doubt);
            let call = alarm.ring("by itself").after(Duration::from_millis(millis)).named("once");
            let mut said = match call.await {
                Ok(()) => Told::Set { due_by: of.now().as_millis() as u64 + millis },
                Err(_) => Told::Doubt,
            };
            if random.index(3) == 0 {
                pause(random.index(3_000) as u64).await;
                let Some(node) = cluster.node(name) else { continue };
                said = match node.reminders_of(alarm.id()).cancel("once").await {
                    Ok(_) => Told::Cancelled { at: of.now().as_millis() as u64 },
                    Err(_) => Told::Doubt,
                };
            }
            told.lock().unwrap().insert(key, said);
        }
    });
}

#[test]
fn no_reminder_that_was_set_is_lost_and_none_fires_that_was_cancelled() {
    seeds("no_reminder_that_was_set_is_lost_and_none_fires_that_was_cancelled", 30, trouble);
}
