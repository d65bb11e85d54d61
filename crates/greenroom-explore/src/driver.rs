//! Drives one schedule: asks what can happen, has it chosen, does it, and looks at what is claimed.

mod clients;
mod judged;
mod time;

use std::collections::BTreeSet;
use std::rc::Rc;

use greenroom::rehearsal::{Kind, Performed, Stage, Step, mix};
use greenroom_world::LocalFuture;

use self::clients::Client;
use self::judged::Fair;
use crate::hall::Hall;
use crate::judge::Judges;
use crate::reach::Reach;
use crate::run::Tell;
use crate::vigil::Vigil;
use crate::watch::{Noticed, Watch};
use crate::world::{Claim, World};

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
    watch: Watch,
    vigil: Rc<Vigil>,
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

/// Why a schedule did not end well.
pub(crate) type Violated = String;

impl Driver {
    /// A schedule in `world`, without these clients.
    pub(crate) fn new(hall: &Hall, vigil: Rc<Vigil>, world: World, reach: Reach, without: BTreeSet<u32>) -> Self {
        Self {
            stage: hall.stage().clone(),
            watch: Watch::new(hall.sim().clone()),
            vigil,
            world,
            clients: Vec::new(),
            claims: Vec::new(),
            judges: Judges::default(),
            seen: Vec::new(),
            last: 0,
            steps: 0,
            enabled: Vec::with_capacity(ENABLED),
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
    pub(crate) async fn explore(&mut self, choose: Choose<'_>, tell: Tell) -> Result<Ended, Violated> {
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
        self.watch.look_at_clock();
        loop {
            self.look();
            if self.enabled.is_empty() {
                if self.is_over() && !self.stage.waits_for_time() {
                    return Ok(Ended::Whole);
                }
                let (patience, told) = self.patience();
                if !self.let_time_pass(patience).await {
                    return if self.is_over() || (self.world.is_explored() && !self.reach.deadlocks) {
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
            if !self.world.is_explored() {
                self.vigil.know(step.at, || self.name(&step));
            }
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
            if client.is_woken() {
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
            self.stage.faults(self.reach.faults.left(), &mut self.enabled);
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
            Kind::Time => "time".to_owned(),
            _ => self.stage.name(step),
        }
    }

    fn perform(&mut self, step: &Step) -> Result<(), Violated> {
        self.steps += 1;
        self.last = step.number;
        self.is_time_spent = false;
        if let Kind::Fault(fault) = step.kind {
            self.reach.faults.spend(fault);
        }
        self.vigil.begin_step(step.at);
        let polled = match step.kind {
            Kind::Client => Some((step.at - 1) as u32),
            _ => match self.watch.step(|| self.stage.perform(step)) {
                Performed::Client(number) => Some(number),
                Performed::Whole => None,
            },
        };
        let ended = polled.map_or(Ok(()), |number| self.poll_client(number, step.number));
        self.vigil.end_step();
        ended?;
        self.take_panics(step)
    }

    /// What has gone wrong in this step.
    fn take_panics(&mut self, step: &Step) -> Result<(), Violated> {
        if self.stage.has_panics() {
            let mut panics = self.stage.take_panics();
            if self.may_not_panic() {
                return Err(panics.swap_remove(0));
            }
        }
        let Some(noticed) = self.watch.noticed() else { return Ok(()) };
        let who = match step.kind {
            Kind::Client if step.at == 1 => "the test".to_owned(),
            Kind::Client => self.name(step),
            _ => self.stage.look().name_of(step.at).unwrap_or_else(|| "a turn".to_owned()),
        };
        Err(match noticed {
            Noticed::Thread => format!(
                "{who} starts a thread, which no schedule decides: a turn with `#[blocking]`, or `cx.blocking`, has one that \
                 the node knows of"
            ),
            Noticed::Sleep => format!(
                "{who} lets its thread sleep, and all that runs on it: await `tokio::time::sleep`, or let `#[blocking]` have \
                 what blocks"
            ),
        })
    }

    /// Whether who panics breaks the test: it does itself, in any case.
    fn may_not_panic(&self) -> bool {
        self.reach.panics || !self.world.is_explored()
    }

    fn is_over(&self) -> bool {
        self.clients.iter().all(|client| client.future.is_none())
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

/// Steps that can come at once, about.
const ENABLED: usize = 16;
/// Ways in which actors may sit on nodes.
const PLACEMENTS: usize = 4;
/// Tells the passing of time from other steps.
const TIME: u64 = 13 << 60;
/// No step has this number.
const NEVER: u64 = u64::MAX;
