//! Turns that are run again before their commits: what is not kept must have no say in what is.

use std::collections::HashMap;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, SystemTime};

use greenroom::prelude::*;

#[derive(Default, Actor)]
struct Meter {
    total: Register<u64>,
    largest: u64,
    seen: Map<String, u64>,
    by_size: HashMap<u64, String>,
    last: Option<SystemTime>,
    #[volatile]
    since_crash: u64,
    #[volatile]
    cached: Option<u64>,
}

/// Stands for chance: another number each time.
fn chance() -> u64 {
    static CHANCE: AtomicU64 = AtomicU64::new(7);
    CHANCE.fetch_add(1, Ordering::Relaxed)
}

#[actor(reliable, start = "Low")]
impl Meter {
    /// Uses what is volatile, and lets it decide nothing.
    pub async fn add(&mut self, n: u64) -> u64 {
        self.since_crash += 1;
        let total = self.cached.unwrap_or(*self.total.get()) + n;
        self.total.set(total);
        self.cached = Some(total);
        self.largest = self.largest.max(n);
        self.seen.insert(n.to_string(), total);
        self.by_size.insert(n, total.to_string());
        total
    }

    /// Does what needs another key and another time in each run.
    pub async fn make(&mut self, cx: &Cx) -> MeterRef {
        let made = Meter::create(cx);
        made.add(1).send();
        MeterRef::me(cx).add(1).after(Duration::from_secs(60)).send();
        tokio::time::sleep(Duration::from_millis(3)).await;
        MeterRef::me(cx).add(2).after(Duration::from_secs(60)).send();
        self.last = Some(cx.choose(SystemTime::now));
        made
    }

    /// Reads what may be another one in each run.
    pub async fn copy(&mut self, clock: ClockRef) -> u64 {
        let one = clock.time().await.unwrap_or_default();
        let late = clock.fails().await.map_err(|error| error.to_string());
        self.total.set(one);
        self.seen.insert(format!("{late:?}"), one);
        one
    }

    /// The same in a function that knows nothing of second runs.
    pub async fn copy_by_hand(&mut self, clock: ClockRef) -> u64 {
        let (one, other) = tokio::join!(clock.time(), clock.time());
        self.total.set(one.unwrap_or_default() + other.unwrap_or_default());
        *self.total.get()
    }

    /// Writes down what is lost by a failover.
    pub async fn tally(&mut self) {
        self.since_crash += 1;
        self.total.set(self.since_crash);
    }

    /// Answers by it.
    pub async fn answer(&mut self) -> u64 {
        self.since_crash += 1;
        self.since_crash
    }

    /// Lets it do something to others, or to the actor as a whole.
    pub async fn act(&mut self, cx: &Cx, how: String) {
        self.since_crash += 1;
        let first = self.since_crash == 1;
        match (&*how, first) {
            ("send", false) => MeterRef::of(cx, "other").add(1).send(),
            ("argument", _) => MeterRef::of(cx, "other").add(self.since_crash).send(),
            ("tell", false) => ClockRef::of(cx, "it").set(1).send(),
            ("timer", false) => MeterRef::me(cx).add(1).after(Duration::from_secs(60)).send(),
            ("due", _) => MeterRef::me(cx).add(1).after(Duration::from_secs(60 * self.since_crash)).send(),
            ("create", false) => drop(Meter::create(cx)),
            ("jump", false) => cx.jump("High"),
            ("halt", false) => cx.halt(),
            ("panic", true) => panic!("on purpose"),
            _ => {}
        }
    }

    #[on(climb, state = "Low", ignore = "High")]
    async fn climb(&mut self, cx: &Cx) {
        cx.jump("High");
    }

    pub async fn dice(&mut self, cx: &Cx) -> u64 {
        let thrown = cx.choose(chance);
        self.total.set(thrown);
        thrown
    }

    pub async fn loaded_dice(&mut self) {
        self.total.set(chance());
    }

    pub async fn close(&mut self, cx: &Cx) {
        cx.halt();
    }

    /// Reads commit nothing.
    pub async fn warmth(&self) -> u64 {
        self.since_crash
    }
}

/// Tells another time each time.
#[derive(Default, Actor)]
struct Clock {
    at: u64,
}

#[actor]
impl Clock {
    pub async fn time(&self) -> u64 {
        chance()
    }

    pub async fn fails(&self) -> Result<u64, u64> {
        Err(chance())
    }

    pub async fn set(&mut self, at: u64) {
        self.at = at;
    }
}

fn found(node: &Node, called: Result<(), String>, method: &str, what: &str) {
    let said = called.expect_err(&format!("{method} was not found"));
    let name = format!(".{method} would commit something else");
    assert!(said.contains(&name) && said.contains(what) && said.contains("cx.choose"), "{said}");
    let listed = node.interference();
    assert!(listed.iter().any(|one| said.contains(one)), "{said} in {listed:?}");
}

async fn node(rerun: bool) -> Node {
    let builder = Node::builder().register::<Meter>().register::<Clock>().journal("memory:");
    let builder = builder.configure(|config| {
        (config.reliable.partitions, config.reliable.rerun, config.shards) = (2, rerun, 1);
    });
    builder.start().await.expect("it starts")
}

fn text<T, E: std::fmt::Display>(called: Result<T, E>) -> Result<(), String> {
    called.map(drop).map_err(|error| error.to_string())
}

#[tokio::test]
async fn a_turn_that_what_is_volatile_decides_nothing_of_is_committed() {
    let node = node(true).await;
    let meter = MeterRef::of(&node, "a");
    for n in 1..=20 {
        assert_eq!(meter.add(n).await, Ok(n * (n + 1) / 2));
    }
    assert!(meter.warmth().await.expect("a read says what it likes") > 0);
    meter.climb().await.expect("it climbs");
    meter.close().await.expect("it halts");
    assert_eq!(meter.add(3).await, Ok(3), "it is run again on what there is after its end");
    assert_eq!(node.interference(), Vec::<String>::new());
    node.stop().await;
}

#[tokio::test]
async fn keys_times_and_reads_raise_no_alarm() {
    let node = node(true).await;
    let (meter, clock) = (MeterRef::of(&node, "a"), ClockRef::of(&node, "it"));
    let made = meter.make().await.expect("the second run makes the same actor").bind(&node);
    while made.warmth().await != Ok(1) {
        tokio::time::sleep(Duration::from_millis(5)).await;
    }
    let read = meter.copy(clock.clone()).await.expect("the second run reads the same");
    assert!(meter.copy(clock.clone()).await.expect("and again") > read);
    meter.copy_by_hand(clock).await.expect("whose reads are not known runs once");
    assert_eq!(node.interference(), Vec::<String>::new());
    node.stop().await;
}

#[tokio::test]
async fn a_turn_that_lets_volatile_fields_decide_is_found_and_its_fault_named() {
    let node = node(true).await;
    let meter = MeterRef::of(&node, "a");
    // The first turn of an activation is the same as after a failover.
    meter.answer().await.expect("nothing is lost yet");
    found(&node, text(meter.tally().await), "tally", "field `total` differs");
    assert!(meter.tally().await.is_err(), "it is found again on an activation that is fresh");
    assert_eq!(meter.add(1).await, Ok(1), "nothing of it is kept, and other methods go on");
    node.stop().await;
}

#[tokio::test]
async fn what_a_volatile_field_lets_a_turn_say_or_do_is_found_and_named() {
    let node = node(true).await;
    let meter = MeterRef::of(&node, "says");
    meter.answer().await.expect("nothing is lost yet");
    found(&node, text(meter.answer().await), "answer", "its answer differs");
    for (how, what) in [
        ("send", "what it sends to meter/other.add differs"),
        ("argument", "what it sends to meter/other.add differs"),
        ("tell", "what it sends to clock/it.set differs"),
        ("timer", "the timer for meter/timer.add differs"),
        ("due", "when the timer for meter/due.add is due differs"),
        ("create", "what it sends to meter/@"),
        ("jump", "the machine state that it jumps to differs"),
        ("halt", "whether the actor halts differs"),
        ("panic", "it fails (the turn panicked: on purpose)"),
    ] {
        let meter = MeterRef::of(&node, how);
        meter.tally().await.expect("nothing is lost yet");
        found(&node, text(meter.act(how).await), "act", what);
    }
    node.stop().await;
}

#[tokio::test]
async fn chance_that_is_chosen_raises_no_alarm_and_chance_that_is_not_does() {
    let checked = node(true).await;
    let meter = MeterRef::of(&checked, "a");
    let first = meter.dice().await.expect("the second run gets the same number");
    assert!(meter.dice().await.expect("and again") > first);
    found(&checked, text(meter.loaded_dice().await), "loaded_dice", "field `total` differs");
    checked.stop().await;
    let free = node(false).await;
    MeterRef::of(&free, "a").loaded_dice().await.expect("a turn may use chance");
    assert!(free.interference().is_empty());
    free.stop().await;
}
