//! Adaptive actors: as many instances as cost least, by how they are used.

use std::collections::BTreeMap;
use std::rc::Rc;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use greenroom::{Adaptive, GeoActivation, GeoInstances, GeoKind, Inspected, Node};
use greenroom_sim::{Sim, seeds};

use super::pages::{Library, PageRef, Setup, configure};
use super::state_faults::{Trouble, scenario};
use super::world::{FAR, run};

const ADAPTIVE: Setup = Setup { clusters: 2, adaptive: true, ..Setup::of("bcas") };

/// What a cluster's callers do, again and again.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Use {
    Nothing,
    Look,
    Write,
    /// Waits for nothing but that it is noted.
    Jot,
}

/// Callers at one node of each cluster, who do what they are told, and check that they read what they have written.
struct Callers {
    library: Rc<Library>,
    uses: Rc<std::cell::Cell<[Use; 2]>>,
    written: Rc<std::cell::RefCell<Vec<u64>>>,
}

impl Callers {
    fn start(sim: &Sim, library: Rc<Library>) -> Self {
        let uses = Rc::new(std::cell::Cell::new([Use::Nothing; 2]));
        let written = Rc::new(std::cell::RefCell::new(Vec::new()));
        for (at, node) in [(0, "e1"), (1, "u2")] {
            let (library, uses, written, sim_here) = (library.clone(), uses.clone(), written.clone(), sim.clone());
            sim.spawn(async move {
                let mut line = at * 1_000_000;
                loop {
                    tokio::time::sleep(Duration::from_millis(90)).await;
                    let page = PageRef::of(&library.node(node), "news");
                    match uses.get()[at as usize] {
                        Use::Nothing => {}
                        Use::Look => {
                            // Each looks for what it has jotted down last, wherever that was.
                            line += 1;
                            let began = sim_here.now();
                            if line % 16 == 0 {
                                page.jot(line).await.expect("all is well");
                                written.borrow_mut().push(line);
                                let seen = page.glance().await.expect("all is well");
                                assert!(
                                    seen.tentative.contains(&line),
                                    "{node} has not its own {line} of {began:?}: {seen:?}"
                                );
                            } else {
                                page.glance().await.expect("all is well");
                            }
                        }
                        Use::Jot => {
                            line += 1;
                            page.jot(line).await.expect("all is well");
                            written.borrow_mut().push(line);
                        }
                        Use::Write => {
                            line += 1;
                            page.write(line).await.expect("all is well");
                            written.borrow_mut().push(line);
                        }
                    }
                }
            });
        }
        Self { library, uses, written }
    }

    async fn do_for(&self, uses: [Use; 2], seconds: u64) {
        self.uses.set(uses);
        tokio::time::sleep(Duration::from_secs(seconds)).await;
    }

    /// Ends what they do; what was written is there once.
    async fn check(&self) {
        self.do_for([Use::Nothing; 2], 5).await;
        let lines = PageRef::of(&self.library.node("e2"), "news").read().await.expect("all is well");
        let mut counts = BTreeMap::<u64, usize>::new();
        lines.iter().for_each(|line| *counts.entry(*line).or_default() += 1);
        for line in self.written.borrow().iter() {
            assert_eq!(counts.get(line), Some(&1), "{line} in {lines:?}");
        }
    }

    fn switches(&self) -> u64 {
        let of = |node: Node| node.multi_cluster().map_or(0, |status| status.counts.switches);
        self.library.names().map(|name| of(self.library.node(name))).sum()
    }

    /// What a node that has an instance says of it.
    async fn inspected(&self) -> (Vec<&'static str>, Option<Adaptive>) {
        let (mut on, mut said) = (Vec::new(), None);
        for name in self.library.names() {
            if let Inspected::Here(found) = self.library.node(name).inspect("page", "news").await {
                on.push(name);
                said = found.instances;
            }
        }
        (on, said)
    }

    /// Round trips of a look at what is known, from both clusters.
    async fn trips(&self) -> [u32; 2] {
        let mut trips = [0; 2];
        for (at, node) in [(0, "e1"), (1, "u2")] {
            let began = self.library.sim.now();
            PageRef::of(&self.library.node(node), "news").glance().await.expect("all is well");
            trips[at] = ((self.library.sim.now() - began).as_secs_f64() / (2.0 * FAR.as_secs_f64())).floor() as u32;
        }
        trips
    }
}

#[test]
fn reads_in_both_clusters_make_an_instance_in_each_and_one_clusters_updates_make_one_there() {
    seeds("reads_in_both_clusters_make_an_instance_in_each_and_one_clusters_updates_make_one_there", 10, |seed| {
        run(seed, |sim| async move {
            let callers = Callers::start(&sim, Rc::new(Library::open(&sim, ADAPTIVE).await));
            callers.do_for([Use::Look, Use::Nothing], 2).await;
            callers.do_for([Use::Look, Use::Look], 2).await;
            assert_eq!(callers.trips().await, [0, 1], "there is one instance, where it was called first");
            let (on, said) = callers.inspected().await;
            assert!(on.len() == 1 && said.expect("it is adaptive").why.contains("never switched"));
            callers.do_for([Use::Look, Use::Look], 20).await;
            assert_eq!(callers.trips().await, [0, 0], "there is one in each cluster");
            let (on, said) = callers.inspected().await;
            let said = said.expect("it is adaptive");
            assert_eq!((on.len(), &*said.instances, said.epoch), (2, "per_cluster", 1));
            assert!(said.why.contains("us: ") && said.why.contains(" reads"), "{said:?}");
            assert!(said.back.starts_with("one instance, when") && said.at_unix_seconds.is_some(), "{said:?}");
            callers.do_for([Use::Nothing, Use::Write], 40).await;
            let (on, said) = callers.inspected().await;
            let said = said.expect("it is adaptive");
            assert_eq!((&*said.instances, said.home.as_deref(), said.epoch), ("single", Some("us"), 2), "{said:?}");
            assert!(on.len() == 1 && on[0].starts_with('u'), "{on:?}");
            assert_eq!(callers.trips().await, [1, 0]);
            callers.check().await;
            assert_eq!(callers.switches(), 2);
        });
    });
}

#[test]
fn one_instance_goes_on_to_the_cluster_whose_updates_it_takes() {
    seeds("one_instance_goes_on_to_the_cluster_whose_updates_it_takes", 10, |seed| {
        run(seed, |sim| async move {
            let callers = Callers::start(&sim, Rc::new(Library::open(&sim, ADAPTIVE).await));
            PageRef::of(&callers.library.node("e1"), "news").glance().await.expect("all is well");
            let (on, _) = callers.inspected().await;
            assert!(on.len() == 1 && on[0].starts_with('e'), "it is where it was called first: {on:?}");
            callers.do_for([Use::Nothing, Use::Jot], 40).await;
            let (on, said) = callers.inspected().await;
            let said = said.expect("it is adaptive");
            // A call on its way to the old home may have the instance stay there; it is moved again then.
            assert_eq!((&*said.instances, said.home.as_deref()), ("single", Some("us")), "{said:?}");
            assert!((1..=2).contains(&said.epoch), "{said:?}");
            assert!(said.why.contains("where it is to be"), "{said:?}");
            assert!(on.len() == 1 && on[0].starts_with('u'), "{on:?}");
            assert_eq!(callers.trips().await, [1, 0]);
            callers.check().await;
            assert_eq!(callers.switches(), said.epoch, "it is never anything but one instance that goes to us");
        });
    });
}

#[test]
fn a_steady_mix_does_not_flap() {
    let mixes = [[Use::Look, Use::Look], [Use::Write, Use::Write], [Use::Look, Use::Write], [Use::Write, Use::Look]];
    seeds("a_steady_mix_does_not_flap", 8, |seed| {
        run(seed, move |sim| async move {
            let callers = Callers::start(&sim, Rc::new(Library::open(&sim, ADAPTIVE).await));
            let mix = mixes[seed as usize % mixes.len()];
            callers.do_for(mix, 120).await;
            assert!(callers.switches() <= 1, "{} switches under {mix:?}", callers.switches());
            callers.check().await;
        });
    });
}

#[test]
fn callers_read_what_they_have_written_across_switches() {
    seeds("callers_read_what_they_have_written_across_switches", 6, |seed| {
        run(seed, |sim| async move {
            let callers = Callers::start(&sim, Rc::new(Library::open(&sim, ADAPTIVE).await));
            for _ in 0..2 {
                callers.do_for([Use::Look, Use::Look], 20).await;
                callers.do_for([Use::Nothing, Use::Write], 36).await;
                callers.do_for([Use::Look, Use::Look], 20).await;
                callers.do_for([Use::Write, Use::Nothing], 36).await;
            }
            assert!(callers.switches() >= 3, "{} switches", callers.switches());
            callers.check().await;
        });
    });
}

#[test]
fn confirmed_updates_of_adaptive_actors_are_there_once_whatever_fails() {
    let switches = Arc::new(AtomicU64::new(0));
    let seen = switches.clone();
    seeds("confirmed_updates_of_adaptive_actors_are_there_once_whatever_fails", 12, move |seed| {
        let setup = Setup { placed: seed % 2 == 1, clusters: 3, ..ADAPTIVE };
        let trouble = if seed % 2 == 0 { Trouble::Clusters } else { Trouble::Anything };
        let seen = seen.clone();
        scenario(seed, setup, trouble, move |library| {
            let of = |node: Node| node.multi_cluster().map_or(0, |status| status.counts.switches);
            let all: u64 = library.names().filter_map(|name| library.try_node(name)).map(of).sum();
            seen.fetch_add(all, Ordering::Relaxed);
        });
    });
    assert!(switches.load(Ordering::Relaxed) > 0, "no actor has switched in any seed");
}

#[test]
fn a_switch_is_made_by_another_node_when_the_one_that_decides_is_lost() {
    seeds("a_switch_is_made_by_another_node_when_the_one_that_decides_is_lost", 10, |seed| {
        run(seed, |sim| async move {
            let callers = Callers::start(&sim, Rc::new(Library::open(&sim, ADAPTIVE).await));
            callers.do_for([Use::Look, Use::Look], 20).await;
            assert_eq!(callers.inspected().await.1.expect("it is adaptive").instances, "per_cluster");
            // The callers' own nodes live on; one of the others decides, or neither does.
            callers.do_for([Use::Nothing; 2], 1).await;
            for node in ["e2", "u1"] {
                sim.crash(node);
                callers.library.cluster_of(node).start(node).await;
            }
            callers.library.all_answer().await;
            tokio::time::sleep(Duration::from_secs(10)).await;
            callers.do_for([Use::Nothing, Use::Write], 50).await;
            let said = callers.inspected().await.1.expect("it is adaptive");
            assert_eq!((&*said.instances, said.home.as_deref()), ("single", Some("us")), "{said:?}");
            callers.check().await;
        });
    });
}

#[test]
fn kinds_that_cannot_adapt_are_refused_with_the_remedy() {
    // no seeds: nothing happens.
    run(0, |sim| async move {
        type Change = fn(&mut greenroom::Config);
        let wrong: [(Change, &str); 4] = [
            (|config| kind(config, "vlb", None), "say protocol = \"bcas\""),
            (
                |config| kind(config, "bcas", Some(GeoActivation::Pessimistic)),
                "activation = \"pessimistic\": leave that out",
            ),
            (|config| geo(config).adaptive.ratio = 0.1, "`geo.adaptive.ratio` is 0.1"),
            (
                |config| {
                    let mut adaptive = GeoKind::default();
                    adaptive.instances = Some(GeoInstances::Adaptive);
                    geo(config).kinds.insert("notes".to_owned(), adaptive);
                },
                "give it a field `Versioned<S>`",
            ),
        ];
        for (change, said) in wrong {
            let mut config = greenroom::Config::default();
            configure(&mut config, "eu", "e1", ADAPTIVE);
            config.insecure_listen = true;
            change(&mut config);
            let builder = Node::builder().config(config).world(sim.node("e1"));
            let builder = builder.register::<super::pages::Page>().register::<super::world::Notes>();
            let refused = builder.start().await.expect_err("it cannot be had").to_string();
            assert!(refused.contains(said), "{refused}");
        }
    });
}

fn geo(config: &mut greenroom::Config) -> &mut greenroom::GeoConfig {
    config.geo.as_mut().expect("it is in a multi-cluster")
}

fn kind(config: &mut greenroom::Config, protocol: &str, activation: Option<GeoActivation>) {
    config.kinds.entry("page".to_owned()).or_default().protocol = Some(protocol.to_owned());
    geo(config).kinds.entry("page".to_owned()).or_default().activation = activation;
}
