//! Threads: how many a pool has for work that blocks them or keeps them long (after ActOp, EuroSys '16, §5).
//!
//! One [`Pool`] machine a pool hears each window what its classes of work have asked for ([`Class`]), takes them for the
//! arrivals of a queue with t servers, and adds a thread while that cuts the mean wait by at least η (Erlang's C, Allen and
//! Cunneen's mean wait). A change needs three windows that agree, and threads go one at a time. [`Why`] says how it came to
//! what it has.
//!
//! [`closed_form`] is the paper's own answer, which takes a pool for one server that is t times as fast. It is kept to be
//! compared with, and sizes nothing.
//!
//! Pure: no clock, no I/O, no randomness.

pub mod closed_form;
mod load;
pub mod queue;
#[cfg(test)]
mod tests;

use std::cmp::Ordering;
use std::fmt;
use std::time::Duration;

pub use self::load::{Class, Load};

/// How a pool is sized.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct Config {
    /// Cores that the node may use.
    pub cores: f64,
    /// What another thread must cut the mean wait by; 100 µs as in the paper.
    pub eta: Duration,
    /// Threads that it begins with, and at least; 1 by default. More than one keeps work that blocks for long from holding up all
    /// the rest before that is measured.
    pub threads_min: usize,
    /// Threads at most; 256 by default.
    pub threads_max: usize,
    /// Windows that must agree before anything changes; 3 by default. Where the threads that there are cannot do the work, one adds
    /// others.
    pub windows: u32,
}

impl Default for Config {
    /// For one core.
    fn default() -> Self {
        Self { cores: 1.0, eta: Duration::from_micros(100), threads_min: 1, threads_max: 256, windows: 3 }
    }
}

/// Decides how many threads one pool has.
#[derive(Clone, PartialEq, Debug)]
pub struct Pool {
    config: Config,
    /// Windows in a row that wanted more, or fewer, and the least change that all of them wanted.
    agreed: Agreed,
    why: Why,
}

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Agreed {
    /// The last window wanted what there is.
    Content,
    More {
        windows: u32,
        threads: usize,
    },
    Fewer {
        windows: u32,
    },
}

/// Why a pool has the size that it has: what its last window has said.
#[derive(Clone, PartialEq, Debug)]
pub struct Why {
    /// Threads that there are to be.
    pub threads: usize,
    /// Threads that the last window wanted.
    pub wanted: usize,
    /// Windows in a row that wanted more, or in a row that wanted fewer.
    pub agreed: u32,
    /// What came in the last window.
    pub load: Load,
    /// The mean wait for a thread: with one thread fewer than there are to be, with these, and with one more; `None` where they
    /// cannot do the work.
    pub waits: [Option<Duration>; 3],
    /// What kept the last window from wanting another thread.
    pub limit: Limit,
}

/// What keeps a window from wanting another thread.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum Limit {
    /// Nothing comes.
    Idle,
    /// Another one would cut the mean wait by too little.
    Gain,
    /// The threads that there are can keep all cores busy.
    Cores,
    /// There may be no more.
    Bound,
}

impl Pool {
    /// A pool of which nothing is known, with as few threads as it may have.
    ///
    /// # Panics
    /// If it may have no thread, or no core.
    pub fn new(config: Config) -> Self {
        let threads = config.threads_min;
        assert!((1..=config.threads_max).contains(&threads), "a pool without threads makes no progress: {config:?}");
        assert!(config.cores > 0.0 && config.cores.is_finite(), "a node has {} cores", config.cores);
        let (load, waits) = (Load::default(), [None, Some(Duration::ZERO), Some(Duration::ZERO)]);
        let why = Why { threads, wanted: threads, agreed: 0, load, waits, limit: Limit::Idle };
        Self { config, agreed: Agreed::Content, why }
    }

    /// Threads that it is to have: at least one.
    pub fn threads(&self) -> usize {
        self.why.threads
    }

    /// Why it is to have these.
    pub fn why(&self) -> &Why {
        &self.why
    }

    /// Hears what came in a window, and how much came to all pools of the node together, in calls a second. How many threads
    /// there are to be, if that has changed.
    pub fn window(&mut self, classes: &[Class], all_pools: f64) -> Option<usize> {
        let load = Load::of(classes);
        let (wanted, limit) = wanted(&load, all_pools, &self.config);
        let wanted = wanted.max(self.config.threads_min);
        let before = self.why.threads;
        let agreed = match self.agreed {
            Agreed::More { windows, threads } if wanted > before => {
                Agreed::More { windows: windows + 1, threads: threads.min(wanted) }
            }
            _ if wanted > before => Agreed::More { windows: 1, threads: wanted },
            Agreed::Fewer { windows } if wanted < before => Agreed::Fewer { windows: windows + 1 },
            _ if wanted < before => Agreed::Fewer { windows: 1 },
            _ => Agreed::Content,
        };
        let (threads, agreed) = match agreed {
            // What waits would grow with each further window, and its wait with it.
            Agreed::More { .. } if load.wait(before).is_none() => (wanted, Agreed::Content),
            Agreed::More { windows, threads } if windows >= self.config.windows => (threads, Agreed::Content),
            Agreed::Fewer { windows } if windows >= self.config.windows => (before - 1, Agreed::Content),
            still => (before, still),
        };
        assert!(
            (self.config.threads_min..=self.config.threads_max).contains(&threads),
            "a pool is to have {threads} threads"
        );
        let windows = match agreed {
            Agreed::Content => 0,
            Agreed::More { windows, .. } | Agreed::Fewer { windows } => windows,
        };
        let waits = [threads - 1, threads, threads + 1].map(|threads| load.wait(threads));
        self.agreed = agreed;
        self.why = Why { threads, wanted, agreed: windows, load, waits, limit };
        (threads != before).then_some(threads)
    }
}

/// How many threads this load asks for, of all that comes to the node's pools, and why no more.
pub fn wanted(load: &Load, all_pools: f64, config: &Config) -> (usize, Limit) {
    if load.rate <= 0.0 {
        return (1, Limit::Idle);
    }
    let threads_max = config.threads_max;
    let share = load.rate / all_pools.max(load.rate);
    // More than these would wait for each other's cores, whatever the queue says.
    let for_cores = (config.cores / load.busy_part()).ceil().max(1.0);
    let mut threads = load.offered().min(threads_max as f64) as usize + 1;
    loop {
        if threads as f64 >= for_cores {
            return ((for_cores as usize).min(threads_max), Limit::Cores);
        }
        if threads >= threads_max {
            return (threads_max, Limit::Bound);
        }
        let cut = load.wait_s(threads) - load.wait_s(threads + 1);
        if cut * share < config.eta.as_secs_f64() {
            return (threads, Limit::Gain);
        }
        threads += 1;
    }
}

impl fmt::Display for Why {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { threads, wanted, agreed, load, waits: [fewer, now, more], limit } = self;
        let wait = |wait: &Option<Duration>| wait.map_or("for ever".to_owned(), |wait| format!("{wait:.1?}"));
        let Load { rate, service, .. } = load;
        let offered = load.offered();
        write!(
            f,
            "{threads} thread{}: {rate:.1} calls a second of {service:.1?} keep {offered:.2} busy; ",
            if *threads == 1 { "" } else { "s" }
        )?;
        write!(f, "a call waits {}, with one thread fewer {}, with one more {}", wait(now), wait(fewer), wait(more))?;
        let limit = match limit {
            Limit::Idle => "nothing comes",
            Limit::Gain => "another one would cut the wait by too little",
            Limit::Cores => "these keep all cores busy",
            Limit::Bound => "more are not allowed",
        };
        let others = match wanted.cmp(threads) {
            Ordering::Equal => return write!(f, "; {limit}"),
            Ordering::Greater => "more",
            Ordering::Less => "fewer",
        };
        let windows = if *agreed == 1 { "window in a row wants" } else { "windows in a row want" };
        write!(f, "; {agreed} {windows} {others}, the last one {wanted}: {limit}")
    }
}
