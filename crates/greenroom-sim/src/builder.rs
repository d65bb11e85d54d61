//! Setting up and running a simulation.

use std::cell::{Cell, RefCell};
use std::panic::{self, AssertUnwindSafe};
use std::rc::Rc;
use std::sync::Arc;
use std::time::Duration;

use tokio::runtime::Runtime;

use crate::executor::{self, Open};
use crate::faults::Faults;
use crate::frame::{Classify, FrameClass, Narrator};
use crate::random::Random;
use crate::shared::{Core, Shared, lock};
use crate::sim::Sim;
use crate::stepped::Stepped;
use crate::trace::Log;

/// Settings of a simulation.
#[derive(Clone)]
pub struct Builder {
    seed: u64,
    faults: Faults,
    classify: Classify,
    narrator: Option<Narrator>,
    deadline: Duration,
    polls_max: u64,
    log: Log,
}

impl Default for Builder {
    fn default() -> Self {
        Self {
            seed: 0,
            faults: Faults::default(),
            classify: |_| FrameClass::Essential,
            narrator: None,
            deadline: DEADLINE_DEFAULT,
            polls_max: POLLS_MAX_DEFAULT,
            log: Log::Tail,
        }
    }
}

impl Builder {
    /// What decides everything that is left to chance; 0 by default.
    pub fn seed(mut self, seed: u64) -> Self {
        self.seed = seed;
        self
    }

    /// What may go wrong; [`Faults::rough`] by default.
    pub fn faults(mut self, faults: Faults) -> Self {
        self.faults = faults;
        self
    }

    /// Tells user and control frames from essential ones; by default all are essential, and only delayed.
    pub fn classify(mut self, classify: Classify) -> Self {
        self.classify = classify;
        self
    }

    /// Says in the trace what frames are; by default it has their lengths alone.
    pub fn narrator(mut self, narrator: Narrator) -> Self {
        self.narrator = Some(narrator);
        self
    }

    /// Virtual time after which a run that has not ended fails; 10 minutes by default.
    pub fn deadline(mut self, deadline: Duration) -> Self {
        self.deadline = deadline;
        self
    }

    /// Polls at one virtual instant after which a run fails as stuck; 200 000 by default.
    pub fn polls_max(mut self, polls_max: u64) -> Self {
        self.polls_max = polls_max;
        self
    }

    /// How much of the trace is kept; [`Log::Tail`] by default, [`Log::Print`] when a seed is replayed.
    pub fn log(mut self, log: Log) -> Self {
        self.log = log;
        self
    }

    /// Opens a simulation whose scenario comes in parts.
    ///
    /// # Panics
    /// If the thread has one already.
    pub fn stepped(self) -> Stepped {
        let (runtime, shared) = self.make();
        Stepped::new(runtime, shared)
    }

    fn make(self) -> (Runtime, Arc<Shared>) {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_time().start_paused(true).build();
        let runtime = runtime.expect("a runtime without reactor needs nothing of the system");
        let log = if REPLAY.get() && self.log != Log::Full { Log::Print } else { self.log };
        let mut core = Core::new(Random::new(self.seed), self.faults, self.classify, log, self.deadline);
        core.narrator = self.narrator.map(|make| make());
        core.trace.is_narrated = core.narrator.is_some();
        let tokio = runtime.enter();
        let shared = Arc::new(Shared::new(self.seed, core, log, self.polls_max));
        drop(tokio);
        (runtime, shared)
    }

    /// Runs a scenario to its end, blocking this thread, and returns its result. All nodes are dropped then.
    ///
    /// # Panics
    /// When the scenario or a node's task does, when virtual time passes the deadline, and when tasks run on and on
    /// without time passing.
    pub fn run<F, T>(self, scenario: impl FnOnce(Sim) -> F) -> T
    where
        F: Future<Output = T> + 'static,
        T: 'static,
    {
        let (runtime, shared) = self.make();
        let tokio = runtime.enter();
        let sim = Sim { shared: shared.clone() };
        let local = tokio::task::LocalSet::new();
        let outcome = panic::catch_unwind(AssertUnwindSafe(|| {
            let _table = Open::table();
            let _trace = Recorded(&shared);
            let (done, result) = (Rc::new(Cell::new(false)), Rc::new(RefCell::new(None)));
            let scenario = scenario(sim.clone());
            let ended = (done.clone(), result.clone());
            executor::spawn(
                &shared,
                None,
                "the scenario",
                Box::pin(async move {
                    *ended.1.borrow_mut() = Some(scenario.await);
                    ended.0.set(true);
                }),
            );
            runtime.block_on(local.run_until(executor::drive(shared.clone(), &done)));
            result.take().expect("the scenario is done and has left its result")
        }));
        // Outside of the runtime the clock is the machine's.
        let took = sim.now();
        drop(local);
        drop(tokio);
        LAST.replace(sim.trace_lines());
        SIMULATED.set(SIMULATED.get() + took);
        outcome.unwrap_or_else(|panic| panic::resume_unwind(panic))
    }
}

/// Ends the trace with the run.
struct Recorded<'a>(&'a Shared);

impl Drop for Recorded<'_> {
    fn drop(&mut self) {
        lock(&self.0.core).trace.is_over = true;
    }
}

thread_local! {
    static REPLAY: Cell<bool> = const { Cell::new(false) };
    static LAST: RefCell<Vec<String>> = const { RefCell::new(Vec::new()) };
    static SIMULATED: Cell<Duration> = const { Cell::new(Duration::ZERO) };
}

/// Makes the thread's simulations print their trace.
pub(crate) fn replay_on_this_thread() {
    REPLAY.set(true);
}

/// The trace of the thread's last simulation.
pub(crate) fn take_last_trace() -> Vec<String> {
    LAST.take()
}

/// Virtual time that the thread's simulations have taken since this was asked last.
pub(crate) fn take_simulated() -> Duration {
    SIMULATED.take()
}

const DEADLINE_DEFAULT: Duration = Duration::from_secs(600);
const POLLS_MAX_DEFAULT: u64 = 200_000;
