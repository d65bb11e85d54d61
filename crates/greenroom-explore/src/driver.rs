//! Drives one schedule: asks what can happen, has it chosen, does it, and looks at what is claimed.

use std::panic::{self, AssertUnwindSafe};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::task::{Context, Poll, Wake, Waker};
use std::time::Duration;

use greenroom::rehearsal::{Kind, Party, Performed, Stage, Step};
use greenroom_world::LocalFuture;

use crate::judge::Judges;
use crate::now::Now;
use crate::quiet::said;
use crate::world::{Claim, When, World};

/// What steps are called.
pub(crate) type Names<'a> = dyn Fn(&Step) -> String + 'a;

/// Chooses among the steps that can come, as their names are if asked, of which the one at this place would come; `None` gives the schedule up.
pub(crate) type Choose<'a> = &'a mut dyn FnMut(&Names, &[Step], usize) -> Option<usize>;

/// How a schedule ended in which nothing was violated.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Ended {
    /// Nothing was left to do.
    Whole,
    /// It had more steps than it may have.
    Cut,
    /// Who chooses did not want more of it.
    GivenUp,
}

/// One schedule under way.
pub(crate) struct Driver {
    stage: Stage,
    world: World,
    clients: Vec<Client>,
    claims: Vec<Claim>,
    pub(crate) judges: Judges,
    /// Which claims were true at some time.
    pub(crate) seen: Vec<bool>,
    last: u64,
    pub(crate) steps: usize,
    enabled: Vec<Step>,
}

struct Client {
    number: u32,
    /// `None` once it has ended.
    future: Option<LocalFuture>,
    woken: Arc<Woken>,
    /// The step in which that was seen first.
    woken_in: Option<u64>,
    polls: u32,
}

#[derive(Default)]
struct Woken(AtomicBool);

impl Wake for Woken {
    fn wake(self: Arc<Self>) {
        self.0.store(true, Ordering::Relaxed);
    }
}

/// Why a schedule did not end well.
pub(crate) type Violated = String;

impl Driver {
    pub(crate) fn new(stage: Stage, world: World) -> Self {
        Self {
            stage,
            world,
            clients: Vec::new(),
            claims: Vec::new(),
            judges: Judges::default(),
            seen: Vec::new(),
            last: 0,
            steps: 0,
            enabled: Vec::new(),
        }
    }

    /// Runs the test's body, in the default order.
    pub(crate) async fn set_up(&mut self, body: LocalFuture, steps: usize) -> Result<(), Violated> {
        self.act_alone(body, steps).await
    }

    /// Runs the clients, at most so many steps, and judges the end.
    pub(crate) async fn explore(&mut self, choose: Choose<'_>, steps: usize, tell: bool) -> Result<Ended, Violated> {
        self.claims = self.world.claims();
        self.judges = Judges::begin(self.world.take_monitors(), self.world.is_linearizable(), tell, &self.stage);
        self.seen = vec![false; self.claims.len()];
        self.world.explores(true);
        self.world.let_crowds_in();
        self.enter_clients();
        let ended = self.act(choose, steps).await;
        self.world.explores(false);
        if ended.is_err() {
            self.judges.aftermath(&self.stage);
        }
        let ended = ended?;
        if ended != Ended::Whole {
            return Ok(ended);
        }
        self.judge_end()?;
        self.claims.clear();
        for judge in self.world.take_finally() {
            let judged = self.act_alone(judge, steps).await;
            self.judges.aftermath(&self.stage);
            judged?;
        }
        Ok(Ended::Whole)
    }

    /// Runs one future in the default order; its steps are none of the schedule's.
    async fn act_alone(&mut self, future: LocalFuture, steps: usize) -> Result<(), Violated> {
        let before = std::mem::take(&mut self.steps);
        self.clients = vec![Client::new(0, future)];
        let ended = self.act(&mut |_, _, default| Some(default), steps).await?;
        self.clients.clear();
        self.steps = before;
        if ended == Ended::Whole { Ok(()) } else { Err(format!("it goes on for more than {steps} steps")) }
    }

    fn enter_clients(&mut self) {
        for future in self.world.take_clients() {
            let number = 1 + self.clients.len() as u32;
            self.clients.push(Client::new(number, future));
        }
    }

    /// Does steps until there are none, or as many as there may be.
    async fn act(&mut self, choose: Choose<'_>, steps: usize) -> Result<Ended, Violated> {
        loop {
            self.look();
            if self.enabled.is_empty() {
                if self.is_over() && !self.stage.waits_for_time() {
                    return Ok(Ended::Whole);
                }
                let (patience, told) = self.patience();
                if !self.let_time_pass(patience).await {
                    return if self.is_over() {
                        Ok(Ended::Whole)
                    } else {
                        Err(format!("{told}: {}", self.who_waits()))
                    };
                }
                continue;
            }
            if self.steps >= steps {
                return Ok(Ended::Cut);
            }
            let default = self.default_step();
            let enabled = std::mem::take(&mut self.enabled);
            let name = |step: &Step| self.name(step);
            let chosen = choose(&name, &enabled, default).map(|chosen| enabled[chosen]);
            self.enabled = enabled;
            let Some(step) = chosen else { return Ok(Ended::GivenUp) };
            self.perform(&step)?;
            self.judge_step()?;
        }
    }

    /// Notes what can happen.
    fn look(&mut self) {
        self.enabled.clear();
        self.stage.enabled(&mut self.enabled);
        for client in &mut self.clients {
            if client.future.is_some() && client.woken.0.load(Ordering::Relaxed) {
                let (at, born) = (u64::from(client.number) + 1, *client.woken_in.get_or_insert(self.last));
                self.enabled.push(Step {
                    number: client.step(),
                    kind: Kind::Client,
                    at,
                    by: at,
                    born,
                    read: false,
                    queue: 0,
                });
            }
        }
    }

    /// The messages that wait for turns of their actors.
    pub(crate) fn blocked(&self) -> Vec<Step> {
        let mut blocked = Vec::new();
        self.stage.blocked(&mut blocked);
        blocked
    }

    /// What would come next: what the last step has made, else what is oldest.
    fn default_step(&self) -> usize {
        let made = self.enabled.iter().position(|step| step.born == self.last && self.last != 0);
        made.unwrap_or(0)
    }

    fn name(&self, step: &Step) -> String {
        match step.kind {
            Kind::Client => format!("client {}", step.at - 1),
            _ => self.stage.name(step),
        }
    }

    fn perform(&mut self, step: &Step) -> Result<(), Violated> {
        self.steps += 1;
        self.last = step.number;
        let polled = match step.kind {
            Kind::Client => Some((step.at - 1) as u32),
            _ => match self.stage.perform(step) {
                Performed::Client(number) => Some(number),
                Performed::Whole => None,
            },
        };
        if let Some(number) = polled {
            self.poll_client(number, step.number)?;
        }
        if self.stage.has_panics() {
            return Err(self.stage.take_panics().swap_remove(0));
        }
        Ok(())
    }

    fn poll_client(&mut self, number: u32, step: u64) -> Result<(), Violated> {
        let Some(client) = self.clients.iter_mut().find(|client| client.number == number) else { return Ok(()) };
        let Some(mut future) = client.future.take() else { return Ok(()) };
        client.polls += 1;
        client.woken_in = None;
        client.woken.0.store(false, Ordering::Relaxed);
        let waker = Waker::from(client.woken.clone());
        let polled = self.stage.as_client(number, step, || {
            panic::catch_unwind(AssertUnwindSafe(|| future.as_mut().poll(&mut Context::from_waker(&waker))))
        });
        match polled {
            Ok(Poll::Pending) => client.future = Some(future),
            Ok(Poll::Ready(())) => {}
            Err(payload) => {
                let who = if number == 0 { String::new() } else { format!("client {number} panicked: ") };
                return Err(format!("{who}{}", said(&*payload)));
            }
        }
        Ok(())
    }

    fn judge_step(&mut self) -> Result<(), Violated> {
        if self.world.is_explored() {
            self.judges.step(&self.stage)?;
        }
        if self.claims.is_empty() {
            return Ok(());
        }
        let now = Now::new(self.stage.look());
        for (claim, seen) in self.claims.iter().zip(&mut self.seen) {
            match claim.when {
                When::Always if claim.judge(&now)? == Some(false) => return Err(format!("not always: {}", claim.name)),
                When::Sometimes if !*seen => *seen = claim.judge(&now)? == Some(true),
                _ => {}
            }
        }
        Ok(())
    }

    fn judge_end(&mut self) -> Result<(), Violated> {
        self.judges.end()?;
        let now = Now::new(self.stage.look());
        for claim in self.claims.iter().filter(|claim| claim.when == When::AtTheEnd) {
            if claim.judge(&now)? != Some(true) {
                return Err(format!("not in the end: {}", claim.name));
            }
        }
        Ok(())
    }

    fn is_over(&self) -> bool {
        self.clients.iter().all(|client| client.future.is_none())
    }

    /// For how long something may yet happen by itself, and what it is called if nothing does. Who waits for an answer may give up
    /// sooner than the library does.
    fn patience(&self) -> (Duration, String) {
        if self.is_over() {
            return (AFTERMATH, String::new());
        }
        let waiting = self.stage.waiting();
        let asks = |client: &Client| waiting.iter().any(|one| one.who == Party::Client(client.number));
        let idle = self.clients.iter().any(|client| client.future.is_some() && !asks(client));
        match idle || self.stage.waits_for_time() || self.stage.next_timer().is_some() {
            true => (PATIENCE, format!("nothing happens any more for {PATIENCE:?}")),
            false => (BEFORE_DEADLINES, "deadlock".to_owned()),
        }
    }

    /// Lets virtual time pass until something can happen. `false` if nothing will.
    async fn let_time_pass(&mut self, patience: Duration) -> bool {
        let (mut pause, mut passed) = (PAUSE_MIN, Duration::ZERO);
        while passed < patience {
            tokio::time::sleep(pause).await;
            passed += pause;
            self.stage.look_at_clock();
            pause = (pause * 2).min(PAUSE_MAX);
            self.look();
            if !self.enabled.is_empty() {
                return true;
            }
        }
        false
    }

    fn who_waits(&self) -> String {
        let waiting = self.stage.waiting();
        let asking = waiting.iter().map(|one| format!("{} waits for {}.{}", one.who, one.target, one.method));
        let asking: Vec<String> = asking.collect();
        if asking.is_empty() { "clients wait for something that never comes".to_owned() } else { asking.join(", ") }
    }
}

impl Client {
    fn new(number: u32, future: LocalFuture) -> Self {
        let woken = Arc::new(Woken(AtomicBool::new(true)));
        Self { number, future: Some(future), woken, woken_in: Some(0), polls: 0 }
    }

    /// The number of its next step.
    fn step(&self) -> u64 {
        1 << 62 | u64::from(self.number) << 32 | u64::from(self.polls)
    }
}

const PAUSE_MIN: Duration = Duration::from_millis(1);
const PAUSE_MAX: Duration = Duration::from_secs(1);
/// Virtual time for which clients may wait for something else than an answer.
const PATIENCE: Duration = Duration::from_secs(600);
/// The same for those who wait for answers: less than a call has by default.
const BEFORE_DEADLINES: Duration = Duration::from_secs(8);
/// The same for turns, when all clients have ended.
const AFTERMATH: Duration = Duration::from_secs(60);
