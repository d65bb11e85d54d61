//! Work that blocks: it has threads of its own, waits in a bounded queue, and is a part of its turn.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{Receiver, Sender, channel};
use std::sync::{Arc, Barrier, Mutex};
use std::time::Duration;

use greenroom::prelude::*;
use greenroom::{PoolSize, Threads};
use tokio::time::timeout;

use super::node;

/// Whether the thread of [`Clerk::haunt`] has ended.
static LAID: AtomicBool = AtomicBool::new(false);

/// One end of a channel for each closure that is to wait.
type Gates = Arc<Mutex<Vec<Receiver<()>>>>;

/// Blocks threads, by gates that tests open.
struct Clerk {
    gates: Gates,
    all: Arc<Barrier>,
    ran: Arc<Mutex<Vec<u64>>>,
}

impl Actor for Clerk {}

#[actor]
impl Clerk {
    /// Blocks a thread until somebody opens a gate.
    pub async fn wait(&mut self, cx: &Cx, work: u64) -> Result<u64, NotBegun> {
        let gate = self.gates.lock().unwrap().pop().expect("there is a gate for each");
        let ran = self.ran.clone();
        cx.blocking(move || {
            gate.recv().unwrap();
            ran.lock().unwrap().push(work);
            work
        })
        .await
    }

    /// Blocks its shard, as it must not.
    pub async fn doze(&mut self) {
        std::thread::sleep(Duration::from_millis(3));
    }

    /// Calls one that does.
    pub async fn let_doze(&mut self, cx: &Cx, other: String) -> u64 {
        ClerkRef::of(cx, other).doze().await.map_or(0, |()| 1)
    }

    /// Blocks for no time.
    pub async fn note(&mut self, cx: &Cx, work: u64) -> Result<u64, NotBegun> {
        let ran = self.ran.clone();
        cx.blocking(move || {
            ran.lock().unwrap().push(work);
            work
        })
        .await
    }

    /// Blocks a thread until all others have one.
    pub async fn meet(&mut self, cx: &Cx) -> Result<u64, NotBegun> {
        let all = self.all.clone();
        cx.blocking(move || u64::from(all.wait().is_leader())).await
    }

    pub async fn fail(&mut self, cx: &Cx) -> Result<u64, NotBegun> {
        cx.blocking(|| panic!("the disk is gone")).await
    }

    /// A runtime of the closure's own, as libraries have that block.
    pub async fn run_inside(&mut self, cx: &Cx) -> Result<u64, NotBegun> {
        cx.blocking(|| tokio::runtime::Builder::new_current_thread().build().unwrap().block_on(async { 7 })).await
    }

    /// Leaves something at its thread that is dropped when that ends.
    pub async fn haunt(&mut self, cx: &Cx) -> Result<u64, NotBegun> {
        struct Ghost;
        impl Drop for Ghost {
            fn drop(&mut self) {
                LAID.store(true, Ordering::SeqCst);
            }
        }
        thread_local! {
            static GHOST: Ghost = const { Ghost };
        }
        cx.blocking(|| GHOST.with(|_| 0)).await
    }
}

/// Opens gates from the shard that all actors are on.
struct Porter {
    open: Mutex<Vec<Sender<()>>>,
}

impl Actor for Porter {}

#[actor]
impl Porter {
    pub async fn open(&mut self) -> u64 {
        let open = self.open.lock().unwrap().pop().expect("there is one for each gate");
        open.send(()).unwrap();
        7
    }
}

/// A node of one shard, with so many gates.
struct Office {
    node: Node,
    ran: Arc<Mutex<Vec<u64>>>,
}

impl Office {
    async fn open(gates: usize, set: fn(&mut Threads)) -> Self {
        let (senders, receivers): (Vec<_>, Vec<_>) = (0..gates).map(|_| channel()).unzip();
        let (gates, open) = (Arc::new(Mutex::new(receivers)), Arc::new(Mutex::new(senders)));
        let (ran, all) = (Arc::new(Mutex::new(Vec::new())), Arc::new(Barrier::new(MEETING as usize)));
        let log = ran.clone();
        let node = node(|builder| {
            let clerk = move |_: &Cx| Clerk { gates: gates.clone(), all: all.clone(), ran: log.clone() };
            let porter = move |_: &Cx| Porter { open: Mutex::new(std::mem::take(&mut *open.lock().unwrap())) };
            let builder = builder.register_with(clerk).register_with(porter);
            builder.configure(|config| {
                config.shards = 1;
                set(&mut config.threads);
            })
        })
        .await;
        Self { node, ran }
    }

    fn clerk(&self, key: &str) -> ClerkRef {
        ClerkRef::of(&self.node, key)
    }

    fn porter(&self) -> PorterRef {
        PorterRef::of(&self.node, "only")
    }

    fn figure(&self, name: &str) -> u64 {
        let figures = self.node.figures();
        let figure = figures.iter().find(|figure| figure.name() == format!("greenroom_blocking_{name}"));
        figure.expect("the pool says it").value() as u64
    }

    /// Until the pool's figure has this value.
    async fn until(&self, name: &str, value: u64) {
        let reached = async {
            while self.figure(name) != value {
                tokio::task::yield_now().await;
            }
        };
        let all = ["threads", "waiting", "begun_total", "done_total", "refused_total"];
        let is = || all.map(|name| format!("{name} {}", self.figure(name))).join(", ");
        timeout(PATIENCE, reached).await.unwrap_or_else(|_| panic!("{name} is to be {value}: {}", is()));
    }
}

fn one_thread(threads: &mut Threads) {
    threads.blocking = PoolSize::Fixed(1);
}

fn one_thread_and_two_that_wait(threads: &mut Threads) {
    one_thread(threads);
    threads.blocking_len_max = 2;
}

#[tokio::test]
async fn an_actor_that_blocks_a_thread_holds_up_no_other_of_its_shard() {
    let office = Office::open(1, |_| {}).await;
    let waits = tokio::spawn(office.clerk("ada").wait(1).by(PATIENCE).into_future());
    // It ends only if another actor of its one shard has a turn meanwhile.
    office.until("begun_total", 1).await;
    assert_eq!(office.porter().open().await.unwrap(), 7);
    assert_eq!(waits.await.unwrap().unwrap(), 1);
    assert_eq!(office.figure("done_total"), 1);
}

#[tokio::test]
async fn an_exclusive_turn_keeps_its_actor_while_its_closure_runs() {
    let office = Office::open(1, |_| {}).await;
    let ada = office.clerk("ada");
    let waits = tokio::spawn(ada.wait(1).by(PATIENCE).into_future());
    office.until("begun_total", 1).await;
    let follows = tokio::spawn(ada.note(2).by(PATIENCE).into_future());
    assert_eq!(office.clerk("bob").note(3).await.unwrap(), 3, "there are threads for others");
    office.porter().open().await.unwrap();
    assert_eq!((waits.await.unwrap().unwrap(), follows.await.unwrap().unwrap()), (1, 2));
    assert_eq!(*office.ran.lock().unwrap(), [3, 1, 2]);
}

#[tokio::test]
async fn what_finds_the_queue_full_is_refused_and_all_else_runs_in_order() {
    let office = Office::open(1, one_thread_and_two_that_wait).await;
    let mut calls = vec![tokio::spawn(office.clerk("0").wait(0).by(PATIENCE).into_future())];
    office.until("begun_total", 1).await;
    for work in 1..=2 {
        calls.push(tokio::spawn(office.clerk(&work.to_string()).note(work).by(PATIENCE).into_future()));
        office.until("waiting", work).await;
    }
    let refused = office.clerk("3").note(3).await.unwrap_err();
    assert_eq!(refused, CallError::Actor(NotBegun::Full { waiting: 2, threads: 1 }));
    for part in ["2 closures wait", "`blocking`", "`blocking_len_max`", "`[threads]`"] {
        assert!(refused.to_string().contains(part), "{refused}");
    }
    office.porter().open().await.unwrap();
    for (work, call) in calls.into_iter().enumerate() {
        assert_eq!(call.await.unwrap().unwrap(), work as u64);
    }
    assert_eq!(*office.ran.lock().unwrap(), [0, 1, 2]);
    let counts = ["begun_total", "done_total", "refused_total", "waiting"].map(|name| office.figure(name));
    assert_eq!(counts, [3, 3, 1, 0]);
}

#[tokio::test]
async fn what_cannot_begin_before_its_turns_deadline_never_does() {
    let office = Office::open(1, one_thread).await;
    let waits = tokio::spawn(office.clerk("ada").wait(1).by(PATIENCE).into_future());
    office.until("begun_total", 1).await;
    let late = office.clerk("bob").note(2).by(Duration::from_secs(1)).await.unwrap_err();
    let CallError::Actor(NotBegun::Late { threads: 1, .. }) = &late else { panic!("{late:?}") };
    assert!(late.to_string().contains("`blocking` threads in `[threads]`"), "{late}");
    assert_eq!((office.figure("waiting"), office.figure("refused_total")), (0, 1));
    office.porter().open().await.unwrap();
    assert_eq!(waits.await.unwrap().unwrap(), 1);
    assert_eq!(office.clerk("carol").note(3).await.unwrap(), 3);
    assert_eq!(*office.ran.lock().unwrap(), [1, 3]);
}

#[tokio::test]
async fn what_nobody_waits_for_any_more_never_begins() {
    let office = Office::open(1, one_thread).await;
    let waits = tokio::spawn(office.clerk("ada").wait(1).by(PATIENCE).into_future());
    office.until("begun_total", 1).await;
    let given_up = tokio::spawn(office.clerk("bob").note(2).by(PATIENCE).into_future());
    office.until("waiting", 1).await;
    given_up.abort();
    office.until("waiting", 0).await;
    office.porter().open().await.unwrap();
    assert_eq!(waits.await.unwrap().unwrap(), 1);
    assert_eq!(office.clerk("bob").note(3).await.unwrap(), 3, "its turn is over");
    assert_eq!(*office.ran.lock().unwrap(), [1, 3]);
    assert_eq!(office.figure("refused_total"), 1);
}

#[tokio::test]
async fn a_closure_that_has_begun_runs_to_its_end_though_nobody_waits() {
    let office = Office::open(1, one_thread).await;
    let late = office.clerk("ada").wait(1).by(Duration::from_secs(1)).await.unwrap_err();
    assert!(matches!(late, CallError::Unknown(Doubt::TimedOut(_))), "nobody is told that it has not begun: {late:?}");
    let follows = tokio::spawn(office.clerk("ada").note(2).by(PATIENCE).into_future());
    office.porter().open().await.unwrap();
    assert_eq!(follows.await.unwrap().unwrap(), 2, "its turn waited for it");
    assert_eq!(*office.ran.lock().unwrap(), [1, 2]);
}

#[tokio::test]
async fn a_closure_that_panics_fails_its_turn_and_its_thread_goes_on() {
    let office = Office::open(0, one_thread).await;
    let failed = office.clerk("ada").fail().await.unwrap_err();
    assert_eq!(failed, CallError::Unknown(Doubt::Panicked { message: "the disk is gone".to_owned() }));
    assert_eq!(office.clerk("ada").note(1).await.unwrap(), 1);
    assert_eq!(office.figure("threads"), 1);
}

#[tokio::test]
async fn a_closure_may_use_a_runtime_of_its_own() {
    let office = Office::open(0, |_| {}).await;
    assert_eq!(office.clerk("ada").run_inside().await.unwrap(), 7);
}

#[tokio::test]
async fn threads_begin_with_the_first_closures_and_end_with_the_node() {
    let office = Office::open(0, |_| {}).await;
    assert_eq!(office.node.blocking_pool().why, "nothing has blocked yet");
    assert_eq!(office.figure("threads"), 0, "nobody has blocked");
    office.clerk("ada").haunt().await.unwrap();
    let pool = office.node.blocking_pool();
    assert_eq!((pool.threads, pool.waiting, pool.begun), (1, 0, 1));
    assert!(pool.why.contains("calls a second"), "{}", pool.why);
    office.node.stop().await;
    office.until("threads", 0).await;
    let ended = async {
        while !LAID.load(Ordering::SeqCst) {
            tokio::task::yield_now().await;
        }
    };
    timeout(PATIENCE, ended).await.expect("the thread ends");
}

#[tokio::test]
async fn a_method_that_blocks_its_shard_is_named_and_no_other() {
    let office = Office::open(0, |_| {}).await;
    let stalls = || office.node.blocking_pool().stalls;
    let noticed = async {
        while stalls().iter().all(|stall| stall.times < 20) {
            assert_eq!(office.clerk("bob").let_doze("ada".to_owned()).await.unwrap(), 1);
            office.clerk("bob").note(1).await.unwrap();
        }
    };
    timeout(PATIENCE, noticed).await.expect("it is noticed");
    let found = stalls();
    let waiting: Vec<_> = found.iter().filter(|stall| stall.waits).map(|stall| &*stall.method).collect();
    assert_eq!(waiting, ["clerk.doze"], "{found:?}");
    assert!(found[0].micros >= 3000, "{found:?}");
}

#[tokio::test]
async fn a_node_that_sizes_its_pool_gives_threads_to_all_closures_that_wait_for_each_other() {
    let office = Office::open(0, |_| {}).await;
    let meet = |key: u64| office.clerk(&key.to_string()).meet().by(PATIENCE).into_future();
    let meeting: Vec<_> = (0..MEETING).map(|key| tokio::spawn(meet(key))).collect();
    let mut leaders = 0;
    for met in meeting {
        leaders += met.await.unwrap().unwrap();
    }
    assert_eq!(leaders, 1);
    assert!(office.figure("threads_max") >= MEETING, "it had four at first");
}

/// Closures that wait for each other: more than a pool begins with.
const MEETING: u64 = 6;
/// Far longer than anything here takes.
const PATIENCE: Duration = Duration::from_secs(60);
