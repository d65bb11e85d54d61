//! One setting, measured on a node of its own.

use std::time::{Duration, Instant};

use futures_util::StreamExt;
use futures_util::future::try_join_all;
use futures_util::stream::FuturesUnordered;
use greenroom::{CallError, Node, NotBegun};
use serde_json::{Value, json};
use tokio::sync::mpsc::Receiver;

use super::arrivals::{Arrival, Arrivals};
use super::pool::PoolState;
use super::{rate, settle_time, span};
use crate::arrivals::{self, Offered};
use crate::cli::BeatThreads;
use crate::cluster::cpu_seconds;
use crate::driver::{Plan, output_rate};
use crate::kinds;
use crate::kinds::heartbeat::{Blocks, MonitorRef};
use crate::report::{Latency, Record, Report};

/// The threads of a node.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) struct Setting {
    pub(super) shards: u32,
    pub(super) threads: BeatThreads,
}

/// What came of one setting.
pub(super) struct Measured {
    pub(super) setting: Setting,
    pub(super) offered: Offered,
    /// Beats that did not block, and those that did.
    pub(super) light: Report,
    pub(super) blocking: Report,
    /// From the first beat that counts to the last answer.
    pub(super) elapsed: Duration,
    /// What this process computed in that time: the node, and who sends the beats.
    pub(super) cpu_seconds: f64,
    pub(super) pool: PoolSeen,
}

/// The pool's part of it.
#[derive(Default)]
pub(super) struct PoolSeen {
    /// At the end.
    pub(super) last: PoolState,
    /// Mean wait for a thread.
    pub(super) wait: Option<Duration>,
    /// Its sizes, and from when on it had each.
    pub(super) sizes: Vec<(Duration, PoolState)>,
}

impl Measured {
    pub(super) fn served(&self) -> u64 {
        self.light.messages + self.blocking.messages
    }

    pub(super) fn served_per_s(&self) -> f64 {
        self.served() as f64 / self.elapsed.as_secs_f64().max(1e-9)
    }

    pub(super) fn errors(&self) -> u64 {
        self.light.errors + self.blocking.errors
    }

    pub(super) fn lost(&self) -> u64 {
        self.light.lost + self.blocking.lost
    }

    /// Microseconds that a beat took of all cores.
    pub(super) fn cpu_us(&self) -> f64 {
        self.cpu_seconds * 1e6 / self.served().max(1) as f64
    }

    /// It as a row of a table.
    pub(super) fn row(&self) -> Value {
        let (light, blocking) = (latency(&self.light), latency(&self.blocking));
        json!({
            "shards": self.setting.shards,
            "threads": self.setting.threads.to_string(),
            "served_per_s": output_rate(self.served_per_s()),
            "p50_us": light.map(|light| light.p50),
            "p99_us": light.map(|light| light.p99),
            "blocking_mean_us": blocking.map(|blocking| blocking.mean),
            "blocking_p50_us": blocking.map(|blocking| blocking.p50),
            "blocking_p99_us": blocking.map(|blocking| blocking.p99),
            "pool_threads": self.pool.last.threads,
            "pool_begun": self.pool.last.begun,
            "refused": self.offered.refused,
            "errors": self.errors(),
            "lost": self.lost(),
            "cpu_us": output_rate(self.cpu_us()),
        })
    }
}

/// The times of beats that were served, if any were.
pub(super) fn latency(beats: &Report) -> Option<Latency> {
    (beats.messages > 0).then(|| Latency::of(&beats.latency_ns))
}

/// Measures `setting` on a fresh node.
pub(super) async fn measure(plan: &Plan, setting: Setting) -> Result<Measured, String> {
    let builder = kinds::register(Node::builder()).configure(|config| {
        config.shards = setting.shards as usize;
        if let BeatThreads::Pool(size) = setting.threads {
            config.threads.blocking = size;
        }
    });
    let node = builder.start().await.map_err(|error| error.to_string())?;
    let measured = load(plan, setting, &node).await;
    node.stop().await;
    measured
}

async fn load(plan: &Plan, setting: Setting, node: &Node) -> Result<Measured, String> {
    let monitors: Vec<MonitorRef> =
        (0..plan.actors).map(|place| MonitorRef::of(node, format!("monitor-{place}"))).collect();
    // Beats find them active.
    for some in monitors.chunks(AT_ONCE) {
        let rousing = try_join_all(some.iter().map(async |monitor| monitor.beats().await));
        rousing.await.map_err(|error| format!("a monitor could not be activated: {error}"))?;
    }
    let settle = settle_time(plan, setting);
    let began = Instant::now();
    let arrivals = Arrivals::new(plan.seed, rate(plan), plan.actors, plan.heartbeat.block.part);
    let counted = settle..settle + span(plan);
    let started = arrivals::start(arrivals, |arrival| arrival.at, began, counted);
    let (arrivals, offered) = started.map_err(|error| format!("no thread for what comes: {error}"))?;
    let mut client = Client { plan, setting, node, monitors, began, settle, counts: None, pool: Vec::new() };
    let (light, blocking) = client.send(arrivals).await;
    let ended = Instant::now();
    let offered = offered.join().map_err(|_| "the thread of what comes has panicked".to_owned())?;
    let (light, blocking) = (light.end(), blocking.end());
    let first =
        client.counts.ok_or("no beat came in the time that counts; give it a longer --duration or a higher --rate")?;
    let last = PoolState::of(node);
    Ok(Measured {
        setting,
        offered,
        light,
        blocking,
        elapsed: ended - (began + settle),
        cpu_seconds: cpu_seconds("self") - first.cpu_seconds,
        pool: PoolSeen { last, wait: last.wait_since(&first.pool), sizes: client.pool },
    })
}

/// Who sends the beats: outside of all actors, on the driver's thread.
struct Client<'a> {
    plan: &'a Plan,
    setting: Setting,
    node: &'a Node,
    monitors: Vec<MonitorRef>,
    began: Instant,
    settle: Duration,
    /// How things were when the first beat came that counts.
    counts: Option<Before>,
    pool: Vec<(Duration, PoolState)>,
}

struct Before {
    cpu_seconds: f64,
    pool: PoolState,
}

impl Client<'_> {
    /// Sends what arrives, and waits for all answers: of beats that do not block, and of those that do.
    async fn send(&mut self, mut arrivals: Receiver<Arrival>) -> (Record, Record) {
        let (mut light, mut blocking) = (Record::begin(), Record::begin());
        let (mut open, mut due, mut over) = (FuturesUnordered::new(), Vec::with_capacity(AT_ONCE), false);
        let mut looks = tokio::time::interval(LOOK);
        while !over || !open.is_empty() {
            tokio::select! {
                biased;
                _ = looks.tick() => self.look(),
                Some((arrival, answer, at)) = open.next(), if !open.is_empty() => {
                    let arrival: Arrival = arrival;
                    if arrival.at < self.settle {
                        continue;
                    }
                    let record = if arrival.blocks { &mut blocking } else { &mut light };
                    match answer {
                        Ok(_) => {
                            record.count(1);
                            // From when it was due: what kept it from being sent is a part of its wait.
                            record.time(Instant::saturating_duration_since(&at, self.began + arrival.at));
                        }
                        Err(error) => record.fail(&error),
                    }
                }
                taken = arrivals.recv_many(&mut due, AT_ONCE), if !over && open.len() < OPEN_MAX => {
                    over = taken == 0;
                    for arrival in due.drain(..) {
                        if arrival.at >= self.settle && self.counts.is_none() {
                            let pool = PoolState::of(self.node);
                            self.counts = Some(Before { cpu_seconds: cpu_seconds("self"), pool });
                        }
                        open.push(self.beat(arrival));
                    }
                }
            }
        }
        (light, blocking)
    }

    /// Sends one beat; its answer, and when it came.
    fn beat(
        &self,
        arrival: Arrival,
    ) -> impl Future<Output = (Arrival, Result<u64, CallError<NotBegun>>, Instant)> + use<> {
        let options = &self.plan.heartbeat;
        let blocks = match self.setting.threads {
            _ if !arrival.blocks => Blocks::No,
            BeatThreads::Fused => Blocks::Turn(options.block.time),
            BeatThreads::Pool(_) => Blocks::Pool(options.block.time),
        };
        let call = self.monitors[arrival.monitor].beat(options.work, blocks).by(ANSWER_MAX);
        async move {
            let answer = call.await;
            (arrival, answer, Instant::now())
        }
    }

    /// Notes the pool's size where it has changed.
    fn look(&mut self) {
        let now = PoolState::of(self.node);
        let size = |pool: &PoolState| (pool.threads, pool.threads_max);
        if self.pool.last().is_none_or(|(_, last)| size(last) != size(&now)) {
            self.pool.push((self.began.elapsed(), now));
        }
    }
}

/// Beats that are sent without a look at their answers, and monitors that are activated at once.
const AT_ONCE: usize = 256;
/// Beats without an answer yet; beyond that, what is due waits to be sent.
const OPEN_MAX: usize = 16_384;
/// A beat that has no answer by then has failed.
const ANSWER_MAX: Duration = Duration::from_secs(5);
/// Time between two looks at the pool.
const LOOK: Duration = Duration::from_secs(1);
