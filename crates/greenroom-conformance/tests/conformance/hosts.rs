//! Registers in hosts that go from node to node while everybody calls them and hosts are killed and frozen.
//!
//! A register's answers carry its *line*: the instance in which its value was last known to begin. The line goes along when the register moves.
//! Within a line nothing may be lost, run twice or interleave, whichever host runs it; a new line begins where the value was lost, or may
//! have been.

use std::cell::{Cell, RefCell};
use std::collections::{BTreeMap, BTreeSet};
use std::rc::Rc;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use greenroom::optimiser::OptimiserMode;
use greenroom::prelude::*;
use greenroom_describe::Description;
use greenroom_host::{CallError, Cx, Dial, Ended, Host, Kind, Turning, arguments, payload};
use greenroom_sim::history::registers::{Asked, Keeps};
use greenroom_sim::{Exclusive, Fault, Faults, Nemesis, Sim, seeds};
use greenroom_wire::codec;
use greenroom_world::World;
use serde::{Deserialize, Serialize};
use serde_json::json;

use crate::cluster::{Cluster, sim};
use crate::operations::wanderers::{Answer, Histories, told};

/// What the hosts' kind looks like to its callers.
#[actor]
#[expect(dead_code, reason = "the attribute makes a reference of it, and nothing in Rust implements it")]
trait Rover {
    async fn swap(&mut self, value: u64) -> Answer;
    async fn read(&self) -> Answer;
    async fn grow(&mut self, bytes: u64);
    async fn go(&mut self, node: String);
    async fn ask(&mut self) -> Answer;
    async fn ask_often(&mut self, value: u64);
}

/// What a register carries: its line, how many values it took, the last one, the host that it is leaving, and what makes it large.
#[derive(Clone, Default, Serialize, Deserialize)]
struct Carried {
    line: u64,
    count: u64,
    value: u64,
    left: String,
    bulk: String,
}

#[derive(Deserialize, Default)]
#[serde(default)]
struct Given {
    value: u64,
    node: String,
    bytes: usize,
}

/// A register, as a host has it.
struct Register {
    key: String,
    host: String,
    /// Instances are numbered as they are made.
    number: u64,
    carried: Carried,
    /// Whether it begins anew where it is taken back.
    forgets: bool,
    watch: Exclusive,
    world: Arc<dyn World>,
}

impl Register {
    async fn run(&mut self, cx: &Cx, method: &str, given: &[u8]) -> Result<Vec<u8>, Ended> {
        let Given { value, node, bytes } = arguments(given)?;
        let before = self.carried.value;
        match method {
            "swap" => {
                let _inside = self.watch.enter(&self.key, &self.host, self.number);
                let count = self.carried.count;
                self.world.sleep_until(self.world.now() + Duration::from_millis(value % 10)).await;
                (self.carried.count, self.carried.value) = (count + 1, value);
            }
            "go" => {
                cx.migrate(&node).await.map_err(|error| match error {
                    CallError::Failed(_, said) => Ended::Failed(String::from_utf8_lossy(&said).into_owned()),
                    error => Ended::Failed(error.to_string()),
                })?;
                return cx.reply(&());
            }
            "ask" => {
                let asked = cx.call("camp", &self.key, "read", &payload(&json!({})).expect("it is small")).await;
                return asked.map_err(|error| Ended::Failed(format!("{error:?}")));
            }
            "ask_often" => {
                for _ in 0..value {
                    let asked = cx.call("camp", &self.key, "read", &payload(&json!({})).expect("it is small")).await;
                    asked.map_err(|error| Ended::Failed(format!("{error:?}")))?;
                }
                return cx.reply(&());
            }
            "grow" => {
                self.carried.bulk = "x".repeat(bytes);
                return cx.reply(&());
            }
            _ => {}
        }
        cx.reply(&(self.carried.line, self.carried.count, before))
    }
}

impl greenroom_host::Actor for Register {
    fn turn<'a>(&'a mut self, cx: &'a Cx, method: &'a str, given: &'a [u8]) -> Turning<'a> {
        Box::pin(self.run(cx, method, given))
    }

    fn state(&self) -> Option<Vec<u8>> {
        payload(&Carried { left: self.host.clone(), ..self.carried.clone() }).ok()
    }

    fn load(&mut self, carried: &[u8]) -> Result<(), String> {
        let carried: Carried = codec::decode(carried).map_err(|error| error.to_string())?;
        // The value that is taken back may be an old one: where it went it may have been changed, and lost.
        if !self.forgets || carried.left != self.host {
            self.carried = carried;
        }
        Ok(())
    }
}

/// The nodes, each with a host on a machine of its own.
struct Hosted {
    sim: Sim,
    cluster: Cluster,
    forgets: bool,
    /// Hosts that offer an older version than others.
    older: &'static [&'static str],
    made: Arc<AtomicU64>,
    watch: Exclusive,
    /// Which lives of nodes have their hosts' door.
    lives: RefCell<BTreeSet<(&'static str, u32)>>,
    closed: Cell<bool>,
}

impl Hosted {
    fn kind(&self, kind: &str, host: &str, world: &Arc<dyn World>) -> Kind {
        let methods = json!([{"name": "swap"}, {"name": "read", "read": true}, {"name": "go"}, {"name": "grow"}, {"name": "ask"}, {"name": "ask_often"}]);
        let description = Description::of_document(json!({
            "greenroom": 1, "kind": kind, "version": if self.older.contains(&host) { 1 } else { 2 }, "compatible": 1, "options": {"migrate": true}, "methods": methods, "states": [],
        }));
        let (host, world, watch, made, forgets) =
            (host.to_owned(), world.clone(), self.watch.clone(), self.made.clone(), self.forgets);
        Kind::new(description.expect("it is a description"), move |key| {
            let number = made.fetch_add(1, Ordering::Relaxed) + 1;
            let carried = Carried { line: number, ..Carried::default() };
            let (key, host, watch, world) = (key.to_owned(), host.clone(), watch.clone(), world.clone());
            Register { key, host, number, carried, forgets, watch, world }
        })
    }

    /// Starts the host of a node.
    fn start_host(&self, host: &str) {
        let machine = self.sim.node(host);
        let world: Arc<dyn World> = machine.clone();
        let serving = Host::new(host).offer(self.kind("rover", host, &world)).offer(self.kind("camp", host, &world));
        let door = format!("{}:{DOOR}", &host["host-".len()..]);
        let dialling = world.clone();
        let dial: Dial = Arc::new(move || {
            let connecting = dialling.connect(&door);
            Box::pin(async move { Ok(Box::new(connecting.await?) as Box<dyn greenroom_host::Connection>) })
        });
        machine.spawn_local("host", async move {
            // Whatever ends it, its registers are then not to be had.
            let _ = serving.serve(world, &dial).await;
        });
    }

    /// Lets hosts in at a node, in each of its lives.
    fn keep_door(self: &Rc<Self>, name: &'static str) {
        let this = self.clone();
        self.sim.spawn(async move {
            while !this.closed.get() {
                if let Some(node) = this.cluster.node(name)
                    && let machine = this.sim.node(name)
                    && this.lives.borrow_mut().insert((name, machine.incarnation()))
                {
                    let world = machine.clone();
                    machine.spawn_local("door of hosts", async move {
                        let mut door =
                            world.listen(&format!("{name}:{DOOR}")).await.expect("nobody else listens there");
                        while let Ok((stream, from)) = door.accept().await {
                            node.let_in(stream, from);
                        }
                    });
                }
                tokio::time::sleep(Duration::from_millis(100)).await;
            }
        });
    }

    /// Breaks the lanes between nodes and their hosts now and then, until all is closed.
    fn break_lanes(self: &Rc<Self>) {
        let (this, mut random) = (self.clone(), self.sim.random());
        self.sim.spawn(async move {
            while !this.closed.get() {
                tokio::time::sleep(random.within(&LASTING)).await;
                let at = random.index(NODES.len());
                this.sim.reset(NODES[at], HOSTS[at]);
            }
        });
    }

    /// Calls all registers from a node, and sends them away, until all is closed.
    fn call_from(self: &Rc<Self>, histories: &Rc<Histories>, name: &'static str, moved: &Rc<Cell<u64>>) {
        let (this, histories, moved, mut random) = (self.clone(), histories.clone(), moved.clone(), self.sim.random());
        self.sim.spawn(async move {
            while !histories.is_closed() {
                tokio::time::sleep(random.within(&(Duration::from_millis(5)..Duration::from_millis(100)))).await;
                let key = REGISTERS[random.index(REGISTERS.len())];
                let Some(node) = this.cluster.node(name) else { continue };
                let rover = RoverRef::of(&node, key);
                match random.index(20) {
                    0..=3 => {
                        let to = NODES[random.index(NODES.len())].to_owned();
                        if rover.go(to).by(PATIENCE).await.is_ok() {
                            moved.set(moved.get() + 1);
                        }
                    }
                    4..=7 => {
                        let place = histories.begin(key, name, Asked::Read);
                        histories.end(key, place, told(rover.read().by(PATIENCE).await));
                    }
                    _ => {
                        let value = histories.next_value();
                        let place = histories.begin(key, name, Asked::Swap(value));
                        histories.end(key, place, told(rover.swap(value).by(PATIENCE).await));
                    }
                }
            }
        });
    }
}

impl Hosted {
    /// Nodes and hosts that know each other; their registers begin anew where they are taken back, if they are to.
    async fn start(sim: &Sim, forgets: bool, older: &'static [&'static str]) -> Rc<Self> {
        let hosted = Self::without_hosts(sim, forgets, older).await;
        HOSTS.iter().for_each(|host| hosted.start_host(host));
        tokio::time::sleep(Duration::from_secs(3)).await;
        hosted
    }

    async fn without_hosts(sim: &Sim, forgets: bool, older: &'static [&'static str]) -> Rc<Self> {
        let cluster = Cluster::new(sim, |builder, _| {
            builder.configure(|config| {
                (config.hosts.lease, config.hosts.grace) = (Duration::from_secs(1), Duration::from_secs(3));
                config.optimiser.mode = OptimiserMode::On;
            })
        });
        let watch = Exclusive::fenced(sim);
        let (made, lives, closed) = Default::default();
        let hosted = Rc::new(Self { sim: sim.clone(), cluster, forgets, older, made, watch, lives, closed });
        hosted.cluster.start_all(NODES).await;
        hosted.cluster.three().iter().for_each(|node| node.pause_optimiser(true));
        NODES.iter().for_each(|name| hosted.keep_door(name));
        hosted
    }
}

/// Registers go from host to host while everybody calls them, and nemeses do to nodes and to hosts what each is `armed` with.
fn scenario(seed: u64, keeps: Keeps, nodes: &'static [Fault], hosts: &'static [Fault]) {
    sim(seed, Faults::none()).deadline(Duration::from_secs(600)).run(|sim: Sim| async move {
        let hosted = Hosted::start(&sim, keeps == Keeps::Nothing, &[]).await;
        let cluster = &hosted.cluster;
        let (histories, moved) = (Histories::new(&sim), Rc::new(Cell::new(0)));
        NODES.iter().for_each(|name| hosted.call_from(&histories, name, &moved));
        cluster.supervise();
        let (restarting, rehosting) = (cluster.clone(), hosted.clone());
        let on_nodes = Nemesis::new(&sim, NODES).restart(move |name| restarting.restart(name));
        let on_hosts = Nemesis::new(&sim, HOSTS).restart(move |host| rehosting.start_host(host));
        if !hosts.is_empty() {
            hosted.break_lanes();
        }
        futures_util::future::join(torment(on_nodes, nodes), torment(on_hosts, hosts)).await;
        tokio::time::sleep(Duration::from_secs(15)).await;
        histories.close();
        hosted.closed.set(true);
        tokio::time::sleep(Duration::from_secs(5)).await;
        let answered = histories.check(keeps);
        assert!(answered > 100, "only {answered} calls were answered");
        assert!(moved.get() > 20, "only {} moves were asked for", moved.get());
    });
}

/// Lets a nemesis do what is on its `menu` for a while.
async fn torment(nemesis: Nemesis, menu: &'static [Fault]) {
    if menu.is_empty() {
        return tokio::time::sleep(TIME).await;
    }
    nemesis.only(menu).lasting(LASTING).gap(Duration::from_millis(300)..Duration::from_secs(3)).run(TIME).await;
}

#[test]
fn while_no_host_dies_a_register_that_moves_loses_nothing_and_runs_nothing_twice() {
    let name = "while_no_host_dies_a_register_that_moves_loses_nothing_and_runs_nothing_twice";
    seeds(name, 30, |seed| scenario(seed, Keeps::Everything, &[Fault::Reset], &[]));
}

#[test]
fn while_hosts_and_nodes_die_and_freeze_a_register_is_never_two_and_loses_its_value_only_as_a_whole() {
    let name = "while_hosts_and_nodes_die_and_freeze_a_register_is_never_two_and_loses_its_value_only_as_a_whole";
    seeds(name, 40, |seed| {
        scenario(seed, Keeps::Nothing, &[Fault::Crash, Fault::Reset, Fault::Pause], &[Fault::Crash, Fault::Pause]);
    });
}

#[test]
fn who_calls_one_kind_of_a_new_host_finds_its_others() {
    let name = "who_calls_one_kind_of_a_new_host_finds_its_others";
    seeds(name, 30, |seed| {
        sim(seed, Faults::none()).run(|sim: Sim| async move {
            let hosted = Hosted::without_hosts(&sim, false, &[]).await;
            // Until the nodes let hosts in.
            tokio::time::sleep(Duration::from_secs(1)).await;
            hosted.start_host(HOSTS[sim.random().index(HOSTS.len())]);
            let asks = hosted.cluster.three().into_iter().map(|node| async move {
                for key in 0..100 {
                    let rover = RoverRef::of(&node, key);
                    while let Err(error) = rover.ask().once().await {
                        assert!(
                            matches!(error, greenroom::CallError::Refused(_)),
                            "its rovers ask, and find no camp: {error}"
                        );
                        tokio::time::sleep(Duration::from_millis(1)).await;
                    }
                }
            });
            futures_util::future::join_all(asks).await;
            hosted.closed.set(true);
        });
    });
}

#[test]
fn what_cannot_go_where_it_is_sent_stays_with_what_it_holds() {
    let name = "what_cannot_go_where_it_is_sent_stays_with_what_it_holds";
    seeds(name, 20, |seed| {
        sim(seed, Faults::none()).run(|sim: Sim| async move {
            let hosted = Hosted::start(&sim, false, &[]).await;
            let [node, ..] = hosted.cluster.three();
            let rover = RoverRef::of(&node, 0);
            let sent = async |to: &str| {
                rover.go(to.to_owned()).await.expect("it is hosted there");
                tokio::time::sleep(Duration::from_secs(2)).await;
            };
            sent("a").await;
            let (line, ..) = rover.swap(7).await.expect("it is there");
            // Too large for any trip.
            rover.grow(5 << 20).await.expect("it is there");
            sent("b").await;
            assert_eq!(rover.read().await, Ok((line, 1, 7)));
            // The cluster does not know yet that nobody hosts it there any more.
            rover.grow(0).await.expect("it is there");
            sim.crash("host-b");
            sent("b").await;
            assert_eq!(rover.read().await, Ok((line, 1, 7)));
            sent("c").await;
            sim.crash("host-a");
            assert_eq!(rover.swap(8).await, Ok((line, 2, 7)), "and it goes where it can");
            hosted.closed.set(true);
        });
    });
}

#[test]
fn the_optimiser_brings_actors_in_hosts_to_who_calls_them_with_what_they_hold() {
    let name = "the_optimiser_brings_actors_in_hosts_to_who_calls_them_with_what_they_hold";
    seeds(name, 5, |seed| {
        sim(seed, Faults::none()).run(|sim: Sim| async move {
            let hosted = Hosted::start(&sim, false, &[]).await;
            let nodes = hosted.cluster.three();
            nodes.iter().for_each(|node| node.pause_optimiser(false));
            let mut lines = BTreeMap::new();
            for round in 1..=600 {
                for key in 0..6 {
                    let (line, count, _) = RoverRef::of(&nodes[0], key).swap(round).await.expect("it answers");
                    assert_eq!((*lines.entry(key).or_insert(line), round), (line, count), "rover {key}");
                }
                tokio::time::sleep(Duration::from_millis(100)).await;
            }
            let moved: Vec<_> = nodes.iter().flat_map(Node::moved_actors).collect();
            assert!(!moved.is_empty(), "nobody has moved");
            assert!(moved.iter().all(|moved| moved.actor.starts_with("rover/") && moved.to == "a"), "{moved:?}");
            hosted.closed.set(true);
        });
    });
}

#[test]
fn the_optimiser_knows_whom_actors_in_hosts_call() {
    seeds("the_optimiser_knows_whom_actors_in_hosts_call", 5, |seed| {
        sim(seed, Faults::none()).run(|sim: Sim| async move {
            let hosted = Hosted::start(&sim, false, &[]).await;
            let nodes = hosted.cluster.three();
            for key in 0..8 {
                RoverRef::of(&nodes[0], key).ask_often(64).await.expect("it answers");
            }
            tokio::time::sleep(Duration::from_secs(3)).await;
            for key in 0..8 {
                let mut partners = Vec::new();
                for node in &nodes {
                    partners.extend(node.explain("rover", &key.to_string()).await.map(|advice| advice.partners));
                }
                let camp = format!("camp/{key}");
                assert_eq!(
                    partners.first().and_then(|of| of.first()).map(|(partner, _)| &**partner),
                    Some(&*camp),
                    "{partners:?}"
                );
            }
            hosted.closed.set(true);
        });
    });
}

#[test]
fn an_actor_in_hosts_does_not_go_back_to_an_older_version() {
    sim(0, Faults::none()).run(|sim: Sim| async move {
        let hosted = Hosted::start(&sim, false, &["host-c"]).await;
        let [node, ..] = hosted.cluster.three();
        let rover = RoverRef::of(&node, 0);
        let (line, ..) = rover.swap(7).await.expect("it is there");
        let refused = rover.go("c".to_owned()).await.expect_err("its host is an older one");
        assert!(refused.to_string().contains("do not go back"), "{refused}");
        for to in ["a", "b"] {
            assert_eq!(rover.go(to.to_owned()).await, Ok(()));
        }
        // Nor does its node send it there as it drains.
        hosted.cluster.node("b").expect("it is there").drain().await;
        assert_eq!(rover.read().await, Ok((line, 1, 7)));
        hosted.closed.set(true);
    });
}

const NODES: &[&str] = &["a", "b", "c"];
const HOSTS: &[&str] = &["host-a", "host-b", "host-c"];
/// Where hosts come in, on each node's machine.
const DOOR: u16 = 7100;
/// The first two are in one range of the directory.
const REGISTERS: [u64; 3] = [0, 1, 2];
const PATIENCE: Duration = Duration::from_secs(4);
const TIME: Duration = Duration::from_secs(30);
const LASTING: std::ops::Range<Duration> = Duration::from_millis(500)..Duration::from_secs(6);
