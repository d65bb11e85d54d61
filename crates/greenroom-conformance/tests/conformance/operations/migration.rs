//! Actors that go to another node with what they hold in memory.

use std::collections::BTreeSet;
use std::time::Duration;

use greenroom::prelude::*;
use greenroom::{Builder, Node, Unmoved};
use greenroom_sim::Faults;
use serde::{Deserialize, Serialize};

use crate::cluster::Cluster;
use crate::scenario::{self, calm};

/// Keeps in memory all that it was told; nothing of it is stored.
#[derive(Default, Serialize, Deserialize, Actor)]
struct Diary {
    lines: Vec<u64>,
    arrivals: u64,
}

#[actor(migrate)]
impl Diary {
    async fn activated(&mut self) {
        self.arrivals += 1;
    }

    pub async fn write(&mut self, line: u64) -> usize {
        self.lines.push(line);
        self.lines.len()
    }

    pub async fn slowly(&mut self, line: u64) -> usize {
        tokio::time::sleep(Duration::from_millis(200)).await;
        self.lines.push(line);
        self.lines.len()
    }

    pub async fn read(&self, cx: &Cx) -> (String, Vec<u64>) {
        (cx.node_name().to_owned(), self.lines.clone())
    }

    pub async fn arrivals(&self) -> u64 {
        self.arrivals
    }

    pub async fn go(&mut self, cx: &Cx, node: String) -> Result<(), String> {
        cx.migrate_to(&node).map_err(|unmoved| unmoved.to_string())
    }
}

/// What it holds is not serde: hooks carry it.
#[derive(Default, Actor)]
struct Held {
    thing: Option<Box<dyn Fn() -> u64 + Send + Sync>>,
    ballast: usize,
}

#[actor]
impl Held {
    async fn migrating(&mut self) -> (u64, Vec<u8>) {
        (self.thing.as_ref().map_or(0, |thing| thing()), vec![0; self.ballast])
    }

    async fn migrated(&mut self, cx: &Cx, carried: (u64, Vec<u8>)) {
        let _ = cx;
        self.thing = Some(Box::new(move || carried.0));
    }

    pub async fn hold(&mut self, number: u64, ballast: usize) {
        self.thing = Some(Box::new(move || number));
        self.ballast = ballast;
    }

    pub async fn held(&self, cx: &Cx) -> (String, u64) {
        (cx.node_name().to_owned(), self.thing.as_ref().map_or(0, |thing| thing()))
    }

    pub async fn go(&mut self, cx: &Cx, node: String) -> bool {
        cx.migrate_to(&node).is_ok()
    }
}

/// It could be carried, but for what it has at heart.
#[derive(Default, Actor)]
struct Secretive {
    told: u64,
}

struct Unspeakable;

impl Serialize for Unspeakable {
    fn serialize<S: serde::Serializer>(&self, _: S) -> Result<S::Ok, S::Error> {
        Err(serde::ser::Error::custom("it is not to be told"))
    }
}

impl<'de> Deserialize<'de> for Unspeakable {
    fn deserialize<D: serde::Deserializer<'de>>(_: D) -> Result<Self, D::Error> {
        Ok(Self)
    }
}

#[actor]
impl Secretive {
    async fn migrating(&mut self) -> Unspeakable {
        Unspeakable
    }

    async fn migrated(&mut self, carried: Unspeakable) {
        let Unspeakable = carried;
    }

    pub async fn tell(&mut self, cx: &Cx) -> (String, u64) {
        self.told += 1;
        (cx.node_name().to_owned(), self.told)
    }

    pub async fn go(&mut self, cx: &Cx, node: String) -> bool {
        cx.migrate_to(&node).is_ok()
    }
}

/// Node `c` has it in another form.
#[derive(Default, Serialize, Deserialize, Actor)]
struct Form {
    number: u64,
}

#[actor(kind = "form", migrate)]
impl Form {
    pub async fn put(&mut self, number: u64) {
        self.number = number;
    }

    pub async fn see(&self, cx: &Cx) -> (String, u64) {
        (cx.node_name().to_owned(), self.number)
    }

    pub async fn go(&mut self, cx: &Cx, node: String) -> bool {
        cx.migrate_to(&node).is_ok()
    }
}

#[derive(Default, Serialize, Deserialize, Actor)]
struct LaterForm {
    number: String,
}

#[actor(kind = "form", migrate)]
impl LaterForm {
    pub async fn put(&mut self, number: u64) {
        self.number = number.to_string();
    }

    pub async fn see(&self, cx: &Cx) -> (String, u64) {
        (cx.node_name().to_owned(), self.number.parse().unwrap_or_default())
    }

    pub async fn go(&mut self, cx: &Cx, node: String) -> bool {
        cx.migrate_to(&node).is_ok()
    }
}

/// All that it knows is in the store.
#[derive(Default, Serialize, Deserialize, Actor)]
struct Ledger {
    sum: u64,
}

#[actor(persistent, save = "turn")]
impl Ledger {
    pub async fn add(&mut self, number: u64) -> u64 {
        self.sum += number;
        self.sum
    }

    pub async fn at(&self, cx: &Cx) -> (String, u64, u64) {
        (cx.node_name().to_owned(), self.sum, cx.epoch())
    }

    pub async fn go(&mut self, cx: &Cx, node: String) -> Result<(), String> {
        cx.migrate_to(&node).map_err(|unmoved| unmoved.to_string())
    }
}

/// It does not say how its state travels.
#[derive(Default, Actor)]
struct Rooted {}

#[actor]
impl Rooted {
    pub async fn go(&mut self, cx: &Cx, node: String) -> bool {
        matches!(cx.migrate_to(&node), Err(Unmoved::NotCarried { .. }))
    }
}

/// Keeps a reference, and stays where it is.
#[derive(Default, Actor)]
struct Reader {
    diary: Option<DiaryRef>,
}

#[actor(placement = "local")]
impl Reader {
    pub async fn open(&mut self, cx: &Cx, key: u64) {
        self.diary = Some(DiaryRef::of(cx, key));
    }

    pub async fn read(&mut self) -> Result<String, String> {
        let diary = self.diary.as_ref().ok_or("it has no diary")?;
        let answer = diary.read().by(Duration::from_millis(300)).await;
        answer.map(|(at, _)| at).map_err(|error| error.to_string())
    }

    pub async fn write(&mut self, line: u64) {
        if let Some(diary) = &self.diary {
            diary.write(line).send();
        }
    }
}

fn equip(builder: Builder, name: &str) -> Builder {
    let builder = builder.register::<Diary>().register::<Reader>().register::<Held>().register::<Rooted>();
    let builder = builder.register::<Secretive>().register::<Ledger>();
    if name == "c" { builder.register::<LaterForm>() } else { builder.register::<Form>() }
}

/// Waits until the actor is on `node`.
async fn arrives(diary: &DiaryRef, node: &str) -> Vec<u64> {
    for _ in 0..200 {
        if let Ok((at, lines)) = diary.read().await
            && at == node
        {
            return lines;
        }
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
    panic!("it does not arrive at {node}");
}

fn elsewhere(at: &str) -> &'static str {
    if at == "b" { "c" } else { "b" }
}

#[test]
fn an_actor_that_moves_keeps_its_state_and_the_order_of_its_messages() {
    calm(100, equip, async |cluster| {
        let [a, ..] = cluster.three();
        for key in 0..4_u64 {
            let diary = DiaryRef::of(&a, key);
            let (at, _) = diary.read().await.expect("nothing is wrong");
            let to = elsewhere(&at);
            let slow = tokio::task::spawn_local(diary.slowly(0).into_future());
            tokio::time::sleep(Duration::from_millis(20)).await;
            diary.go(to.to_owned()).send();
            for line in 1..=50 {
                diary.write(line).send();
                if line % 10 == 0 {
                    tokio::time::sleep(Duration::from_millis(30)).await;
                }
            }
            assert_eq!(slow.await.unwrap(), Ok(1));
            assert_eq!(diary.write(51).await, Ok(52));
            assert_eq!(arrives(&diary, to).await, (0..=51).collect::<Vec<_>>());
            assert_eq!(diary.arrivals().await, Ok(2), "once here and once there");
        }
    });
}

/// A diary that was elsewhere and has come to `a`, and a reader there who has read it in between.
async fn brought_home(a: &Node) -> (ReaderRef, DiaryRef) {
    for key in 0.. {
        let diary = DiaryRef::of(a, key);
        let (at, _) = diary.read().await.expect("nothing is wrong");
        if at != "a" {
            let reader = ReaderRef::of(a, key);
            reader.open(key).await.expect("nothing is wrong");
            assert_eq!(reader.read().await, Ok(at));
            assert_eq!(diary.go("a".to_owned()).await, Ok(()));
            arrives(&diary, "a").await;
            return (reader, diary);
        }
    }
    unreachable!("all diaries of the world are at a");
}

#[test]
fn who_calls_an_actor_that_has_come_to_its_node_needs_no_other_node_any_more() {
    calm(20, equip, async |cluster| {
        let [a, ..] = cluster.three();
        let (reader, _) = brought_home(&a).await;
        assert_eq!(reader.read().await, Ok("a".to_owned()), "by a way around, perhaps");
        for other in ["a", "b", "c"] {
            cluster.sim.cut("a", other);
        }
        assert_eq!(reader.read().await, Ok("a".to_owned()));
    });
}

#[test]
fn what_is_sent_to_an_actor_that_has_come_to_its_node_needs_no_other_node_any_more() {
    calm(20, equip, async |cluster| {
        let [a, ..] = cluster.three();
        let (reader, diary) = brought_home(&a).await;
        reader.write(1).await.expect("nothing is wrong");
        tokio::time::sleep(Duration::from_millis(100)).await;
        for other in ["a", "b", "c"] {
            cluster.sim.cut("a", other);
        }
        reader.write(2).await.expect("nothing is wrong");
        let lines = diary.read().await.map(|(_, lines)| lines);
        assert_eq!(lines, Ok(vec![1, 2]));
    });
}

#[test]
fn an_actor_that_cannot_be_packed_goes_on_where_it_is() {
    calm(20, equip, async |cluster| {
        let [a, ..] = cluster.three();
        let secretive = SecretiveRef::of(&a, "x");
        let (at, _) = secretive.tell().await.expect("nothing is wrong");
        assert_eq!(secretive.go(elsewhere(&at).to_owned()).await, Ok(true), "it is asked only");
        assert_eq!(secretive.tell().await, Ok((at, 2)), "nothing is lost");
    });
}

#[test]
fn an_actor_that_its_target_cannot_read_goes_on_where_it_was_at_once() {
    calm(20, equip, async |cluster| {
        let [a, ..] = cluster.three();
        // On `c`, another one is tried.
        for key in 0..6_u64 {
            let form = FormRef::of(&a, key);
            form.put(7).await.expect("nothing is wrong");
            let (at, _) = form.see().await.expect("nothing is wrong");
            let to = if at == "c" { "a" } else { "c" };
            assert_eq!(form.go(to.to_owned()).await, Ok(true), "it is asked only");
            let begun = cluster.sim.now();
            assert_eq!(form.see().await, Ok((at, 7)), "it is taken back");
            assert!(cluster.sim.now() - begun < Duration::from_secs(1), "nobody waits for a target that has said no");
        }
    });
}

#[test]
fn what_is_in_a_store_goes_to_the_node_that_is_named_without_being_carried() {
    calm(40, equip, async |cluster| {
        let [a, ..] = cluster.three();
        let ledger = LedgerRef::of(&a, "x");
        assert_eq!(ledger.add(40).await.unwrap(), 40);
        for to in ["b", "c", "a", "b"] {
            let (_, _, before) = ledger.at().await.expect("nothing is wrong");
            assert_eq!(ledger.go(to.to_owned()).await, Ok(()));
            let (at, sum, epoch) = ledger.at().await.expect("nothing is wrong");
            assert_eq!((at.as_str(), sum), (to, 40));
            assert!(epoch >= before, "{epoch} is not after {before}");
        }
        assert_eq!(ledger.add(2).await.unwrap(), 42);
    });
}

#[test]
fn hooks_carry_what_is_not_serde_and_what_is_too_large_stays() {
    calm(40, equip, async |cluster| {
        let [a, ..] = cluster.three();
        let held = HeldRef::of(&a, "x");
        held.hold(42, 0).await.expect("nothing is wrong");
        let (at, _) = held.held().await.expect("nothing is wrong");
        let to = elsewhere(&at);
        assert_eq!(held.go(to.to_owned()).await, Ok(true));
        assert_eq!(held.held().await, Ok((to.to_owned(), 42)));
        held.hold(43, 5 << 20).await.expect("nothing is wrong");
        assert_eq!(held.go("a".to_owned()).await, Ok(true), "it is asked only");
        assert_eq!(held.held().await, Ok((to.to_owned(), 43)), "it goes on where it is");
        assert_eq!(RootedRef::of(&a, "x").go("b".to_owned()).await, Ok(true), "it says that it cannot");
        let unknown = DiaryRef::of(&a, "x").go("nowhere".to_owned()).await;
        assert!(matches!(unknown, Err(CallError::Actor(said)) if said.contains("nowhere")));
    });
}

#[test]
fn a_drain_takes_volatile_state_along() {
    calm(100, equip, async |cluster| {
        let [a, b, c] = cluster.three();
        for key in 0..30_u64 {
            for line in 0..3 {
                DiaryRef::of(&a, key).write(line).await.expect("nothing is wrong");
            }
        }
        let writes = {
            let c = c.clone();
            tokio::task::spawn_local(async move {
                for line in 3..20 {
                    for key in 0..30_u64 {
                        DiaryRef::of(&c, key).write(line).send();
                    }
                    tokio::time::sleep(Duration::from_millis(10)).await;
                }
            })
        };
        assert!(b.drain().await.is_whole());
        writes.await.unwrap();
        tokio::time::sleep(Duration::from_millis(500)).await;
        for key in 0..30_u64 {
            let (_, mut lines) = DiaryRef::of(&c, key).read().await.expect("two nodes serve");
            // What its caller's own node sent after it arrived there may be before what still comes from where it was.
            lines.sort_unstable();
            assert_eq!(lines, (0..20).collect::<Vec<_>>(), "actor {key}");
        }
    });
}

/// Acknowledged lines that must be there, as long as no node that had them has died.
async fn wander(cluster: &Cluster, crash: Option<&str>) {
    let [a, ..] = cluster.three();
    let diaries: Vec<_> = (0..8_u64).map(|key| DiaryRef::of(&a, key)).collect();
    let mut line = 0;
    let mut kept: Vec<BTreeSet<u64>> = vec![BTreeSet::new(); diaries.len()];
    for round in 0..30 {
        if round == 15
            && let Some(name) = crash
        {
            cluster.sim.crash(name);
            kept.iter_mut().for_each(BTreeSet::clear);
        }
        for (key, diary) in diaries.iter().enumerate() {
            line += 1;
            if diary.write(line).by(Duration::from_secs(1)).await.is_ok() && crash.is_none() {
                kept[key].insert(line);
            }
            let target = ["a", "b", "c"][(round + key) % 3];
            // Its answer may be lost among faults.
            let _ = diary.go(target.to_owned()).by(Duration::from_secs(1)).await;
        }
    }
    tokio::time::sleep(Duration::from_secs(12)).await;
    for (key, diary) in diaries.iter().enumerate() {
        let mut answer = Err("never asked".to_owned());
        for _ in 0..100 {
            answer = diary.read().by(Duration::from_secs(1)).await.map_err(|error| error.to_string());
            if answer.is_ok() {
                break;
            }
            tokio::time::sleep(Duration::from_millis(100)).await;
        }
        let (_, lines) = answer.unwrap_or_else(|error| panic!("actor {key} is lost: {error}"));
        let found: BTreeSet<u64> = lines.iter().copied().collect();
        assert!(found.is_superset(&kept[key]), "actor {key} has lost {:?}", kept[key].difference(&found));
        assert_eq!(found.len(), lines.len(), "actor {key} has run a call twice: {lines:?}");
    }
}

#[test]
fn actors_that_wander_all_the_time_lose_nothing() {
    calm(100, equip, async |cluster| wander(&cluster, None).await);
}

#[test]
fn an_actor_answers_again_when_a_node_is_killed_in_the_middle_of_moves() {
    scenario::run(100, Faults::none(), equip, async |cluster| wander(&cluster, Some("c")).await);
}
