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

/// Chooses among the steps that can come: their names if asked, and the place of the one that would come.
pub(crate) type Choose<'a> = &'a mut dyn FnMut(&dyn Fn(&Step) -> String, &[Step], usize) -> usize;

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

    /// Runs the clients, at most so many steps, and judges the end. `true` if it has ended.
    pub(crate) async fn explore(&mut self, choose: Choose<'_>, steps: usize, tell: bool) -> Result<bool, Violated> {
        self.claims = self.world.claims();
        self.judges = Judges::begin(self.world.take_monitors(), self.world.is_linearizable(), tell, &self.stage);
        self.seen = vec![false; self.claims.len()];
        self.enter_clients();
        self.world.explores(true);
        let ended = self.act(choose, steps).await;
        self.world.explores(false);
        if ended.is_err() {
            self.judges.aftermath(&self.stage);
        }
        if !ended? {
            return Ok(false);
        }
        self.judge_end()?;
        self.claims.clear();
        for judge in self.world.take_finally() {
            let judged = self.act_alone(judge, steps).await;
            self.judges.aftermath(&self.stage);
            judged?;
        }
        Ok(true)
    }

    /// Runs one future in the default order; its steps are none of the schedule's.
    async fn act_alone(&mut self, future: LocalFuture, steps: usize) -> Result<(), Violated> {
        let before = std::mem::take(&mut self.steps);
        self.clients = vec![Client::new(0, future)];
        let ended = self.act(&mut |_, _, default| default, steps).await?;
        self.clients.clear();
        self.steps = before;
        if ended { Ok(()) } else { Err(format!("it goes on for more than {steps} steps")) }
    }

    fn enter_clients(&mut self) {
        for future in self.world.take_clients() {
            let number = 1 + self.clients.len() as u32;
            self.clients.push(Client::new(number, future));
        }
    }

    /// Does steps until there are none. `false` if there are more than so many.
    async fn act(&mut self, choose: Choose<'_>, steps: usize) -> Result<bool, Violated> {
        loop {
            self.look();
            if self.enabled.is_empty() {
                if self.is_over() && !self.stage.waits_for_time() {
                    return Ok(true);
                }
                let (patience, told) = self.patience();
                if !self.let_time_pass(patience).await {
                    return if self.is_over() { Ok(true) } else { Err(format!("{told}: {}", self.who_waits())) };
                }
                continue;
            }
            if self.steps >= steps {
                return Ok(false);
            }
            let default = self.default_step();
            let enabled = std::mem::take(&mut self.enabled);
            let name = |step: &Step| self.name(step);
            let step = enabled[choose(&name, &enabled, default)];
            self.enabled = enabled;
            self.perform(&step)?;
            self.judge_step()?;
        }
    }

    /// Notes what can happen.
    fn look(&mut self) {
        self.enabled.clear();
        self.stage.enabled(&mut self.enabled);
        for client in &self.clients {
            if client.future.is_some() && client.woken.0.load(Ordering::Relaxed) {
                let at = u64::from(client.number) + 1;
                self.enabled.push(Step { number: client.step(), kind: Kind::Client, at, by: at, born: 0 });
            }
        }
    }

    /// What would come next: what the last step has made, else what is oldest.
    fn default_step(&self) -> usize {
        let made = self.enabled.iter().position(|step| step.born == self.last && self.last != 0);
        let oldest = || self.enabled.iter().enumerate().min_by_key(|(_, step)| step.number).map_or(0, |(at, _)| at);
        made.unwrap_or_else(oldest)
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
        match self.stage.take_panics().into_iter().next() {
            Some(panic) => Err(panic),
            None => Ok(()),
        }
    }

    fn poll_client(&mut self, number: u32, step: u64) -> Result<(), Violated> {
        let Some(client) = self.clients.iter_mut().find(|client| client.number == number) else { return Ok(()) };
        let Some(mut future) = client.future.take() else { return Ok(()) };
        client.polls += 1;
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
        Self { number, future: Some(future), woken, polls: 0 }
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
