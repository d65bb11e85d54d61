use std::collections::BTreeSet;
use std::time::Duration;

use greenroom::prelude::*;
use greenroom_sim::Random;

use super::*;
use crate::strategy::Strategy;

#[derive(Default, Actor)]
struct Cell {
    value: u64,
}

#[actor]
impl Cell {
    async fn activated(&mut self, cx: &Cx) -> Result<(), String> {
        self.value = cx.key().len() as u64;
        Ok(())
    }

    pub async fn read(&self) -> u64 {
        tokio::task::yield_now().await;
        self.value
    }

    pub async fn write(&mut self, cx: &Cx, value: u64, pause: bool) {
        if pause {
            tokio::time::sleep(Duration::from_millis(70)).await;
        }
        self.value = CellRef::of(cx, "other").read().await.unwrap_or(0) + value;
    }

    pub async fn lend(&self, cx: &Cx, key: String) -> u64 {
        CellRef::of(cx, key).read().await.expect("it answers")
    }
}

fn subject_of<F: Future<Output = ()> + 'static>(
    equip: impl Fn(Builder) -> Builder + Send + Sync + 'static,
    reach: Reach,
    body: impl Fn(World) -> F + Send + Sync + 'static,
) -> Subject {
    let body: Body = Arc::new(move |world| Box::pin(body(world)));
    Subjects { equip: Arc::new(equip), stores: Arc::default(), body, reach, test: "a test".to_owned() }.subject()
}

fn chooser(strategy: Strategy) -> Box<dyn Chooser> {
    strategy.choosers().remove(0)
}

/// A test in which much is still under way when its schedules end, or violate something.
fn subject() -> Subject {
    subject_of(
        |builder: Builder| builder.register::<Cell>(),
        reach(40),
        |world: World| async move {
            CellRef::of(&world, "first").write(1, false).await.expect("it answers");
            for client in 0..3_u64 {
                let (cell, other) = (CellRef::of(&world, "first"), CellRef::of(&world, "another"));
                world.client(async move {
                    other.write(client, client == 1).send();
                    assert_ne!(cell.lend("another".to_owned()).await, Ok(6), "clients leave in the middle");
                    cell.write(7, true).send();
                    let _ =
                        tokio::time::timeout(Duration::from_millis(50), cell.lend("first".to_owned()).into_future())
                            .await;
                });
            }
        },
    )
}

fn reach(steps: usize) -> Reach {
    Reach { steps, ..Reach::default() }
}

fn strategy() -> Plan {
    Plan::Chooser(Rc::new(RefCell::new(chooser(Strategy::Walk))))
}

#[test]
fn a_schedule_on_a_node_that_was_used_is_as_one_on_a_new_node() {
    let (mut random, mut runs) = (Random::new(7), Vec::new());
    let used = subject();
    for _ in 0..200 {
        let plan = strategy();
        if let Plan::Chooser(chooser) = &plan {
            chooser.borrow_mut().begin(random.bits());
        }
        runs.push(used.run(plan, Tell::All));
        assert!(used.hall.borrow().is_some(), "the node is as new, and stays");
    }
    drop(used);
    let (new, names) = (subject(), |ran: &Ran| ran.told.iter().map(|told| told.name.clone()).collect::<Vec<_>>());
    for first in &runs {
        let again = new.run(Plan::Picks(first.picks.clone()), Tell::All);
        new.renew();
        assert_eq!((first.violated.as_ref(), names(first)), (again.violated.as_ref(), names(&again)));
        assert_eq!(first.trace, again.trace);
    }
    let violated = runs.iter().filter(|ran| ran.violated.is_some()).count();
    assert!((1..200).contains(&violated), "some end in the middle, {violated}");
}

#[derive(Default, serde::Serialize, serde::Deserialize, Actor)]
struct Saved {
    value: u64,
}

#[actor(persistent)]
impl Saved {
    pub async fn add(&mut self, cx: &Cx, value: u64) -> Result<u64, StateError> {
        self.value += value;
        cx.save(self).await?;
        Ok(self.value)
    }
}

#[test]
fn what_one_schedule_has_saved_is_not_met_by_the_next_one() {
    let equip = |builder: Builder| builder.register::<Saved>();
    let subject = subject_of(equip, reach(40), |world: World| async move {
        for _ in 0..2 {
            let saved = SavedRef::of(&world, "1");
            world.client(async move { assert!(saved.add(1).await.is_ok_and(|value| value <= 2)) });
        }
    });
    for _ in 0..3 {
        assert_eq!(subject.run(strategy(), Tell::Nothing).violated, None);
        assert!(subject.hall.borrow().is_some(), "the node is as new, and stays");
    }
}

#[derive(Default, Actor)]
struct Parent;

#[actor]
impl Parent {
    pub async fn give_birth(&mut self, cx: &Cx) {
        cx.spawn(Cell::default());
    }
}

#[test]
fn what_may_be_left_of_a_schedule_is_not_met_by_the_next_one() {
    let equip = |builder: Builder| builder.register::<Parent>();
    let subject = subject_of(equip, reach(40), |world: World| async move {
        ParentRef::of(&world, "1").give_birth().await.expect("it answers");
    });
    subject.run(strategy(), Tell::Nothing);
    assert!(subject.hall.borrow().is_none(), "a spawned actor outlives its parent's turn");
}

#[derive(Default, Actor)]
struct Node {
    said: Vec<u64>,
}

#[actor]
impl Node {
    pub async fn say(&mut self, what: u64) -> u64 {
        self.said.push(what);
        self.said.len() as u64
    }

    pub async fn listen(&self) -> u64 {
        self.said.iter().fold(0, |sum, said| sum * 10 + said)
    }

    /// Asks another one while it excludes others.
    pub async fn ask(&mut self, cx: &Cx, other: u64) {
        let heard = NodeRef::of(cx, other).listen().await.unwrap_or(99);
        self.said.push(heard);
    }

    /// Asks another one, and tells it, while others go on.
    pub async fn pass_on(&self, cx: &Cx, other: u64) {
        let other = NodeRef::of(cx, other);
        let heard = other.listen().await.unwrap_or(99);
        other.say(heard % 7).send();
    }

    pub async fn tell(&mut self, cx: &Cx, other: u64) {
        NodeRef::of(cx, other).say(3).send();
        self.said.push(4);
    }
}

/// A program of two or three clients that make up to three calls in all.
fn program(seed: u64) -> Subject {
    subject_of(
        |builder: Builder| builder.register::<Node>(),
        reach(200),
        move |world: World| async move {
            let mut random = Random::new(seed);
            let clients = 2 + random.index(2);
            for client in 0..clients {
                let calls = if client == 0 && clients == 2 { 2 } else { 1 };
                let calls: Vec<_> =
                    (0..calls).map(|_| (random.index(5), random.index(2) as u64, random.index(2) as u64)).collect();
                let world_of_client = world.clone();
                world.client(async move {
                    for (what, at, other) in calls {
                        let node = NodeRef::of(&world_of_client, at);
                        let _ = match what {
                            0 => node.say(5).await.map(drop),
                            1 => node.listen().await.map(drop),
                            2 => node.ask(other).await,
                            3 => node.pass_on(other).await,
                            _ => {
                                node.tell(other).send();
                                Ok(())
                            }
                        };
                    }
                });
            }
        },
    )
}

#[test]
fn a_step_that_is_to_come_early_comes_when_it_can() {
    let subject = subject_of(
        |builder: Builder| builder.register::<Node>(),
        reach(40),
        |world: World| async move {
            let (first, then) = (NodeRef::of(&world, 1_u64), NodeRef::of(&world, 2_u64));
            world.client(async move {
                first.say(5).send();
                then.say(5).send();
            });
        },
    );
    let names = |deviations: &str| -> Vec<String> {
        let deviations = deviations.parse().expect("it is well formed");
        let ran = subject.run(Plan::Deviations(deviations), Tell::Steps);
        ran.told.into_iter().map(|told| told.name).collect()
    };
    assert_eq!(names(""), ["client 1", "node/1.say<client 1", "node/2.say<client 1"]);
    assert_eq!(names("1:node/2.say<client 1"), ["client 1", "node/2.say<client 1", "node/1.say<client 1"]);
}

#[test]
fn steps_of_one_name_are_told_apart() {
    let step = |number| Step { number, kind: Kind::Start, at: 0, by: 0, born: 0, read: false, queue: 0 };
    let name = |step: &Step| if step.number == 2 { "time".to_owned() } else { "account/ada.set<teller/1".to_owned() };
    let names = names_of(&name, &[step(1), step(2), step(3)]);
    assert_eq!(names, ["account/ada.set<teller/1", "time", "account/ada.set<teller/1#2"]);
}

/// The traces and violations that `chooser` finds, and its runs.
fn traces(subject: &Subject, chooser: Box<dyn Chooser>) -> (BTreeSet<(u64, bool)>, u64) {
    let (chooser, mut found, mut runs) = (Rc::new(RefCell::new(chooser)), BTreeSet::new(), 0);
    loop {
        chooser.borrow_mut().begin(0);
        let ran = subject.run(Plan::Chooser(chooser.clone()), Tell::Nothing);
        runs += 1;
        assert!(!ran.is_cut && runs < 200_000);
        if !ran.is_given_up {
            let is_new = found.insert((ran.trace, ran.violated.is_some()));
            assert!(is_new, "a trace is run once");
        }
        if chooser.borrow().has_all() {
            return (found, runs);
        }
    }
}

#[test]
fn all_traces_are_those_of_sleep_sets_alone() {
    let (mut all, mut by_sleep_sets) = (0, 0);
    for seed in 0..40 {
        let subject = program(seed);
        let (expected, more) = traces(&subject, crate::strategy::sleep_sets());
        let (found, runs) = traces(&subject, chooser(Strategy::Dpor));
        assert_eq!(found, expected, "program {seed}");
        assert!(runs <= more, "program {seed}: {runs} runs instead of {more}");
        (all, by_sleep_sets) = (all + runs, by_sleep_sets + more);
    }
    println!("{all} runs instead of {by_sleep_sets}");
}

#[test]
fn all_traces_are_those_of_blind_search_where_that_ends() {
    let mut ended = 0;
    for seed in 0..40 {
        let subject = program(seed);
        let (all, mut blind) = (Rc::new(RefCell::new(chooser(Strategy::All))), BTreeSet::new());
        let is_over = (0..BLIND_MAX).any(|_| {
            all.borrow_mut().begin(0);
            let ran = subject.run(Plan::Chooser(all.clone()), Tell::Nothing);
            blind.insert((ran.trace, ran.violated.is_some()));
            all.borrow().has_all()
        });
        if is_over {
            assert_eq!(traces(&subject, chooser(Strategy::Dpor)).0, blind, "program {seed}");
            ended += 1;
        }
    }
    assert!(ended >= 8, "blind search ends for {ended} programs");
}

const BLIND_MAX: usize = 400;
