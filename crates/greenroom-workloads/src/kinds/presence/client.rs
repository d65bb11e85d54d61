//! Clients: one on each node, so that what they ask comes from everywhere.

use std::iter::Peekable;
use std::sync::{Mutex, PoisonError};
use std::thread::JoinHandle;
use std::time::Duration;

use futures_util::StreamExt;
use futures_util::future::Either;
use futures_util::stream::FuturesUnordered;
use greenroom::prelude::*;
use hdrhistogram::Histogram;
use serde::{Deserialize, Serialize};
use tokio::sync::Notify;
use tokio::sync::mpsc::Receiver;
use tokio::time::Instant;

use super::clock::Clock;
use super::home::HomeRef;
use super::player::PlayerRef;
use super::{GAME_LEN, Ways, home_key, player_key};
use crate::arrivals::{self, Offered, Times};
use crate::cli::Graph;
use crate::dice::Dice;
use crate::report;

/// Lets players act. All its turns are `&self`: the driver waits while it runs.
#[derive(Default, Actor)]
pub struct Client {
    clock: Clock,
    seen: Mutex<Seen>,
    over: Notify,
}

/// What a client does.
#[derive(Clone, Copy, Debug, Serialize, Deserialize)]
pub struct ClientOrder {
    /// Players.
    pub players: u32,
    /// With whom they talk.
    pub graph: Graph,
    /// Homes: each is on another node than the next one.
    pub homes: u32,
    /// Requests.
    pub pace: Pace,
    /// What players are drawn from.
    pub seed: u64,
    /// When it begins, in nanoseconds since 1970.
    pub from_ns: u64,
    /// From when on the times of answers count.
    pub steady_ns: u64,
    /// When it ends.
    pub until_ns: u64,
}

/// How many requests come.
#[derive(Clone, Copy, PartialEq, Debug, Serialize, Deserialize)]
pub enum Pace {
    /// So many a second, whether they are answered or not.
    Open(f64),
    /// So many at once, each after the answer of another one.
    Closed(usize),
}

/// What a client has seen.
#[derive(Clone, Default, Debug, Serialize, Deserialize)]
pub struct Seen {
    /// Whether it has ended.
    pub is_over: bool,
    /// Requests that were made.
    pub asked: u64,
    /// Those that were not, as too many waited for their answers.
    pub refused: u64,
    /// Those that failed.
    pub errors: u64,
    /// The first failure.
    pub complaint: Option<String>,
    /// Each second's answers: those of players in games, and how far the messages went that this took.
    pub seconds: Vec<(u64, Ways)>,
    /// Times of answers from `steady_ns` on, as pairs of nanoseconds and count.
    pub latency_ns: Vec<(u64, u64)>,
}

#[actor(kind = "presence_client", placement = "local", idle = "1h")]
impl Client {
    /// Opens homes on this node.
    pub async fn host(&self, cx: &Cx, homes: Vec<u32>) -> Result<(), String> {
        for home in homes {
            HomeRef::of(cx, home_key(home)).open().await.map_err(|error| error.to_string())?;
        }
        Ok(())
    }

    /// Begins and returns at once.
    pub async fn start(&self, cx: &Cx, order: ClientOrder) {
        ClientRef::of(cx, cx.key()).run(order).send();
    }

    /// Makes requests until the end.
    pub async fn run(&self, cx: &Cx, order: ClientOrder) {
        let mut run = Run {
            order,
            clock: self.clock,
            dice: Dice::new(order.seed),
            players: (0..order.players).map(|player| PlayerRef::of(cx, player_key(player))).collect(),
            seen: Seen::default(),
            latency: report::histogram(),
        };
        match order.pace {
            Pace::Open(rate) => run.open(rate).await,
            Pace::Closed(at_once) => run.closed(at_once).await,
        }
        *self.seen.lock().unwrap_or_else(PoisonError::into_inner) = run.end();
        self.over.notify_waiters();
    }

    /// What it has seen, once it has ended or after `patience_ms` milliseconds.
    pub async fn wait(&self, patience_ms: u64) -> Seen {
        let over = self.over.notified();
        if !self.seen().is_over {
            let _ = tokio::time::timeout(Duration::from_millis(patience_ms), over).await;
        }
        self.seen()
    }
}

impl Client {
    /// One that goes by this clock.
    pub(super) fn by(clock: Clock) -> Self {
        Self { clock, ..Self::default() }
    }

    fn seen(&self) -> Seen {
        self.seen.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }
}

/// A client that makes requests.
struct Run {
    order: ClientOrder,
    clock: Clock,
    dice: Dice,
    players: Vec<PlayerRef>,
    seen: Seen,
    latency: Histogram<u64>,
}

/// When a request was due, and what came of it.
type Answer = (u64, Result<Ways, String>);

impl Run {
    async fn open(&mut self, rate: f64) {
        let mut requests = match Requests::start(self.clock, &self.order, rate) {
            Ok(requests) => requests,
            Err(error) => {
                self.seen.errors += 1;
                self.seen.complaint = Some(format!("no thread for requests: {error}"));
                return;
            }
        };
        let mut flying = FuturesUnordered::new();
        loop {
            tokio::select! {
                biased;
                Some(answer) = flying.next() => self.count(answer),
                due = requests.next() => {
                    let Some(due) = due else { break };
                    if flying.len() < FLYING_LEN_MAX {
                        flying.push(self.request(self.order.from_ns + due.as_nanos() as u64));
                    } else {
                        self.seen.refused += 1;
                    }
                }
            }
        }
        while let Some(answer) = flying.next().await {
            self.count(answer);
        }
        self.seen.refused += requests.refused();
    }

    async fn closed(&mut self, at_once: usize) {
        let now = self.clock.now_ns();
        tokio::time::sleep(Duration::from_nanos(self.order.from_ns.saturating_sub(now))).await;
        let mut flying = FuturesUnordered::new();
        for _ in 0..at_once {
            flying.push(self.request(self.clock.now_ns()));
        }
        while let Some(answer) = flying.next().await {
            self.count(answer);
            let now = self.clock.now_ns();
            if now < self.order.until_ns {
                flying.push(self.request(now));
            }
        }
    }

    fn request(&mut self, due: u64) -> impl Future<Output = Answer> + use<> {
        self.seen.asked += 1;
        let drawn = self.dice.below(self.players.len() as u64) as u32;
        let (player, homes) = (&self.players[drawn as usize], self.order.homes);
        let acted = match self.order.graph {
            Graph::Games => Either::Left(Either::Left(player.act().into_future())),
            Graph::Random => {
                let all = self.players.len() as u64;
                let others = (0..GAME_LEN).map(|_| (u64::from(drawn) + 1 + self.dice.below(all - 1)) % all);
                let others = others.map(|other| other as u32).collect();
                Either::Left(Either::Right(player.mingle(others).into_future()))
            }
            Graph::Torn => {
                let either = (0..GAME_LEN).map(|_| (drawn + self.dice.below(2) as u32) % homes.max(1));
                Either::Right(Either::Left(player.visit(either.collect()).into_future()))
            }
            Graph::Adversary => Either::Right(Either::Right(player.stray(drawn, homes).into_future())),
        };
        async move { (due, acted.await.map_err(|error| error.to_string())) }
    }

    fn count(&mut self, (due, result): Answer) {
        let now = self.clock.now_ns();
        let ways = match result {
            Ok(ways) => ways,
            Err(complaint) => {
                self.seen.errors += 1;
                self.seen.complaint.get_or_insert(complaint);
                return;
            }
        };
        // Players who wait for a game answer at once.
        if ways.messages() == 0 {
            return;
        }
        let second = (now.saturating_sub(self.order.from_ns) / 1_000_000_000) as usize;
        if self.seen.seconds.len() <= second {
            self.seen.seconds.resize(second + 1, Default::default());
        }
        let (answers, all) = &mut self.seen.seconds[second];
        *answers += 1;
        *all += ways;
        if due >= self.order.steady_ns {
            report::add(&mut self.latency, now.saturating_sub(due), 1);
        }
    }

    fn end(self) -> Seen {
        Seen { is_over: true, latency_ns: report::buckets(&self.latency), ..self.seen }
    }
}

/// When requests are due, from the beginning of the run on.
enum Requests {
    /// By the machine's time, of which a thread of its own has more than a runtime.
    Timed(Receiver<Duration>, JoinHandle<Offered>),
    /// By the simulated world's, from when the run begins; and when the next one is due.
    Simulated(Peekable<Times>, Instant, Duration),
}

impl Requests {
    fn start(clock: Clock, order: &ClientOrder, rate: f64) -> std::io::Result<Self> {
        let times = Times::new(order.seed, rate);
        let span = Duration::from_nanos(order.until_ns.saturating_sub(order.from_ns));
        let begins_in = Duration::from_nanos(order.from_ns.saturating_sub(clock.now_ns()));
        if clock.is_simulated() {
            return Ok(Self::Simulated(times.peekable(), Instant::now() + begins_in, span));
        }
        let began = std::time::Instant::now() + begins_in;
        let (arrivals, offered) = arrivals::start(times, |at| *at, began, Duration::ZERO..span)?;
        Ok(Self::Timed(arrivals, offered))
    }

    /// When the next one is due, once it is; `None` if there are no more. Whoever does not wait for it misses none.
    async fn next(&mut self) -> Option<Duration> {
        match self {
            Self::Timed(arrivals, _) => arrivals.recv().await,
            Self::Simulated(times, began, span) => {
                let due = times.peek().copied().filter(|due| due < span)?;
                tokio::time::sleep_until(*began + due).await;
                times.next()
            }
        }
    }

    /// How many came while too many others waited to be taken.
    fn refused(self) -> u64 {
        match self {
            Self::Timed(_, offered) => offered.join().map_or(0, |offered| offered.refused),
            Self::Simulated(..) => 0,
        }
    }
}

/// Requests of one client that wait for their answers.
const FLYING_LEN_MAX: usize = 4096;
