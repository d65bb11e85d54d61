//! Drives one schedule: asks what can happen, has it chosen, does it, and looks at what is claimed.

use std::collections::{BTreeMap, BTreeSet};
use std::panic::{self, AssertUnwindSafe};
use std::rc::Rc;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::task::{Context, Poll, Wake, Waker};
use std::time::Duration;

use greenroom::rehearsal::{Kind, Party, Performed, Stage, Step, mix};
use greenroom_world::LocalFuture;

use crate::judge::Judges;
use crate::now::Now;
use crate::quiet::said;
use crate::reach::Reach;
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

/// The half of a schedule in which all get their turns, if it comes so far: what must come yet has to.
#[derive(Default)]
struct Fair {
    /// When each client and actor was served last, by its hash.
    served: BTreeMap<u64, usize>,
    /// Steps of it.
    steps: usize,
    /// Which claims for the end were true in it.
    held: Vec<bool>,
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
    reach: Reach,
    /// Clients that are left out.
    without: BTreeSet<u32>,
    /// How often time has passed, and whether that was of no use since something else has come.
    times: u64,
    is_time_spent: bool,
    /// Whether calls are to come one at a time.
    is_serial: bool,
    /// Clients and actors that wait for moments beside answers, as hashes.
    timed: Rc<BTreeSet<u64>>,
    /// Those that were found so, if they are looked for.
    probed: Option<BTreeSet<u64>>,
    fair: Fair,
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
    /// A schedule in `world`, without these clients.
    pub(crate) fn new(stage: Stage, world: World, reach: Reach, without: BTreeSet<u32>) -> Self {
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
            reach,
            without,
            times: 0,
            is_time_spent: false,
            is_serial: false,
            timed: Rc::default(),
            probed: None,
            fair: Fair::default(),
        }
    }

    /// Runs the test's body, in the default order.
    pub(crate) async fn set_up(&mut self, body: LocalFuture) -> Result<(), Violated> {
        self.act_alone(body).await
    }

    /// Lets those wait for moments beside answers.
    pub(crate) fn know_timed(&mut self, timed: Rc<BTreeSet<u64>>) {
        self.timed = timed;
    }

    /// Looks for such while it runs.
    pub(crate) fn probe(&mut self) {
        self.probed = Some(BTreeSet::new());
    }

    pub(crate) fn take_probed(&mut self) -> BTreeSet<u64> {
        self.probed.take().unwrap_or_default()
    }

    /// Clients that are left out.
    pub(crate) fn without(&self) -> &BTreeSet<u32> {
        &self.without
    }

    /// Lets the clients' calls come one at a time: nothing goes wrong.
    pub(crate) fn be_serial(&mut self) {
        self.is_serial = true;
    }

    /// Runs the clients, and judges the end.
    pub(crate) async fn explore(&mut self, choose: Choose<'_>, tell: bool) -> Result<Ended, Violated> {
        self.claims = self.world.claims();
        self.judges = Judges::begin(self.world.take_monitors(), self.world.is_linearizable(), tell, &self.stage);
        self.seen = vec![false; self.claims.len()];
        self.fair.held = vec![false; self.claims.len()];
        self.world.explores(true);
        self.world.let_crowds_in();
        if !self.reach.faults.is_empty() && !self.is_serial {
            let placement = if self.reach.nodes > 1 { self.world.choose(PLACEMENTS) } else { 0 };
            self.stage.place(self.reach.nodes, placement as u64);
        }
        self.enter_clients();
        let ended = self.act(choose).await;
        self.world.explores(false);
        if ended.is_err() {
            self.judges.aftermath(&self.stage);
        }
        let ended = ended?;
        match ended {
            Ended::Whole => self.judge_end()?,
            Ended::Cut => return self.judge_cut().map(|()| ended),
            Ended::GivenUp => return Ok(ended),
        }
        self.claims.clear();
        for judge in self.world.take_finally() {
            let judged = self.act_alone(judge).await;
            self.judges.aftermath(&self.stage);
            judged?;
        }
        Ok(Ended::Whole)
    }

    /// Runs one future in the default order; its steps are none of the schedule's.
    async fn act_alone(&mut self, future: LocalFuture) -> Result<(), Violated> {
        let before = std::mem::take(&mut self.steps);
        self.clients = vec![Client::new(0, future)];
        let ended = self.act(&mut |_, _, default| Some(default)).await?;
        self.clients.clear();
        self.steps = before;
        if ended == Ended::Whole { Ok(()) } else { Err(format!("it goes on for more than {} steps", self.reach.steps)) }
    }

    fn enter_clients(&mut self) {
        let (all, without) = (self.world.take_clients(), &self.without);
        let numbered = (1..).zip(all).filter(|(number, _)| !without.contains(number));
        self.clients.extend(numbered.map(|(number, future)| Client::new(number, future)));
    }

    /// Does steps until there are none, or as many as there may be.
    async fn act(&mut self, choose: Choose<'_>) -> Result<Ended, Violated> {
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
            if self.steps >= self.reach.steps {
                return Ok(Ended::Cut);
            }
            if self.probed.is_some() && self.world.is_explored() {
                self.look_for_timed().await;
            }
            self.look_further();
            let default = if self.is_fair() { self.leave_the_fairest() } else { self.default_step() };
            let enabled = std::mem::take(&mut self.enabled);
            let name = |step: &Step| self.name(step);
            let chosen = choose(&name, &enabled, default).map(|chosen| enabled[chosen]);
            self.enabled = enabled;
            let Some(step) = chosen else { return Ok(Ended::GivenUp) };
            match step.kind {
                Kind::Time => self.perform_time(&step).await?,
                _ => self.perform(&step)?,
            }
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

    /// Notes what may come although something else can: time may pass, and something may go wrong.
    fn look_further(&mut self) {
        if !self.world.is_explored() {
            return;
        }
        if !self.reach.in_time && !self.is_time_spent && self.waits_for_time() {
            self.enabled.push(Step {
                number: mix(TIME, self.times),
                kind: Kind::Time,
                at: 0,
                by: 0,
                born: NEVER,
                read: false,
                queue: 0,
            });
        }
        if !self.reach.faults.is_empty() && !self.is_serial && !self.is_fair() {
            self.stage.faults(&self.reach.faults.left(), &mut self.enabled);
        }
    }

    /// Whether the schedule has come so far that all get their turns.
    fn is_fair(&self) -> bool {
        self.world.is_explored() && self.steps >= self.reach.steps / 2
    }

    /// Leaves nothing to choose but the step of whom nothing has come for the longest time.
    fn leave_the_fairest(&mut self) -> usize {
        let served = |step: &Step| self.fair.served.get(&step.at).map_or(0, |at| at + 1);
        if let Some(fairest) = self.enabled.iter().min_by_key(|step| served(step)).copied() {
            self.fair.served.insert(fairest.at, self.steps);
            self.enabled = vec![fairest];
            self.fair.steps += 1;
        }
        0
    }

    /// Lets time pass, and notes who goes on by that alone.
    async fn look_for_timed(&mut self) {
        let before: Vec<u64> = self.enabled.iter().map(|step| step.number).collect();
        // Half of what is left, so that there is some for the steps to come.
        let left =
            self.stage.until_deadline().map_or(PROBE_MAX, |left| (left.saturating_sub(MARGIN) / 2).min(PROBE_MAX));
        self.let_time_pass(left).await;
        let is_new = |step: &&Step| matches!(step.kind, Kind::Client | Kind::Wake) && !before.contains(&step.number);
        let found: Vec<u64> = self.enabled.iter().filter(is_new).map(|step| step.at).collect();
        self.probed.iter_mut().for_each(|probed| probed.extend(&found));
    }

    /// Whether somebody may wait for a moment to come.
    fn waits_for_time(&self) -> bool {
        if self.stage.may_wait_for_time(|actor| self.timed.contains(&actor)) {
            return true;
        }
        let waits = |client: &&Client| client.future.is_some() && !client.woken.0.load(Ordering::Relaxed);
        let mut waiting = self.clients.iter().filter(waits).peekable();
        if waiting.peek().is_none() {
            return false;
        }
        let hears = self.stage.listeners();
        waiting.any(|client| !hears.contains(&client.number) || self.timed.contains(&(u64::from(client.number) + 1)))
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
            Kind::Time => "time".to_owned(),
            _ => self.stage.name(step),
        }
    }

    /// Lets time pass until something new can come, but not until a call runs out of it.
    async fn perform_time(&mut self, step: &Step) -> Result<(), Violated> {
        (self.steps, self.last) = (self.steps + 1, step.number);
        self.times += 1;
        self.stage.begin_time(step.number);
        let patience = self.stage.until_deadline().map_or(TIME_MAX, |left| left.saturating_sub(MARGIN).min(TIME_MAX));
        let is_of_use = self.let_time_pass(patience).await;
        // In serial runs it passes once between two calls.
        self.is_time_spent = !is_of_use || self.is_serial;
        self.take_panics()
    }

    fn perform(&mut self, step: &Step) -> Result<(), Violated> {
        self.steps += 1;
        self.last = step.number;
        self.is_time_spent = false;
        if let Kind::Fault(fault) = step.kind {
            self.reach.faults.spend(fault);
        }
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
        self.take_panics()
    }

    fn take_panics(&self) -> Result<(), Violated> {
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
        if self.fair.steps > 0 {
            self.judges.be_patient(self.reach.patience)?;
        }
        if self.claims.is_empty() {
            return Ok(());
        }
        let now = Now::new(self.stage.look());
        if self.fair.steps > 0 {
            for (claim, held) in self.claims.iter().zip(&mut self.fair.held) {
                *held |= claim.when == When::AtTheEnd && claim.judge(&now)? == Some(true);
            }
        }
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

    /// It has gone on for so long, with turns for all, that what must come had to.
    fn judge_cut(&mut self) -> Result<(), Violated> {
        if self.fair.steps < self.reach.patience {
            return Ok(());
        }
        let never =
            self.claims.iter().zip(&self.fair.held).find(|(claim, held)| claim.when == When::AtTheEnd && !**held);
        never.map_or(Ok(()), |(claim, _)| Err(format!("not within {} fair steps: {}", self.fair.steps, claim.name)))
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
        self.look();
        let before: Vec<u64> = self.enabled.iter().map(|step| step.number).collect();
        let turns = self.stage.turns_begun();
        while passed < patience {
            tokio::time::sleep(pause.min(patience - passed)).await;
            passed += pause;
            self.stage.look_at_clock();
            pause = (pause * 2).min(PAUSE_MAX);
            self.look();
            let is_new = |step: &Step| !before.contains(&step.number);
            if self.enabled.iter().any(is_new) || (!before.is_empty() && self.stage.turns_begun() > turns) {
                // All that this moment brings comes, whatever is woken first.
                tokio::time::sleep(PAUSE_MIN).await;
                self.stage.look_at_clock();
                self.look();
                return true;
            }
        }
        false
    }

    fn who_waits(&self) -> String {
        let waiting = self.stage.waiting();
        let asking = waiting.iter().map(|one| format!("{} waits for {}.{}", one.who, one.target, one.method));
        // In an order that does not depend on who else has asked and was answered.
        let mut asking: Vec<String> = asking.collect();
        asking.sort_unstable();
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

/// Ways in which actors may sit on nodes.
const PLACEMENTS: usize = 4;
/// Tells the passing of time from other steps.
const TIME: u64 = 13 << 60;
/// No step has this number.
const NEVER: u64 = u64::MAX;
/// Virtual time that passes in one step, at most, and how much of it calls have left then.
const TIME_MAX: Duration = Duration::from_secs(60);
/// The same where it is looked for who waits for it.
const PROBE_MAX: Duration = Duration::from_secs(5);
const MARGIN: Duration = Duration::from_millis(100);
const PAUSE_MIN: Duration = Duration::from_millis(1);
const PAUSE_MAX: Duration = Duration::from_secs(1);
/// Virtual time for which clients may wait for something else than an answer.
const PATIENCE: Duration = Duration::from_secs(600);
/// The same for those who wait for answers: less than a call has by default.
const BEFORE_DEADLINES: Duration = Duration::from_secs(8);
/// The same for turns, when all clients have ended.
const AFTERMATH: Duration = Duration::from_secs(60);
