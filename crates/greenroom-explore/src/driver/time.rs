//! Time: it passes in steps, or when nothing else is left to do.

use std::time::Duration;

use greenroom::rehearsal::{Kind, Party, Step};

use super::{Client, Driver, Violated};

impl Driver {
    /// Lets time pass, and notes who goes on by that alone.
    pub(super) async fn look_for_timed(&mut self) {
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
    pub(super) fn waits_for_time(&self) -> bool {
        let may_give_up = |client: &Client| self.timed.contains(&(u64::from(client.number) + 1));
        let waits = |client: &Client| client.waits() && (may_give_up(client) || !self.stage.is_to_hear(client.number));
        self.clients.iter().any(waits) || self.stage.may_wait_for_time(&self.timed)
    }

    /// Lets time pass until something new can come, but not until a call runs out of it.
    pub(super) async fn perform_time(&mut self, step: &Step) -> Result<(), Violated> {
        (self.steps, self.last) = (self.steps + 1, step.number);
        self.times += 1;
        self.stage.begin_time(step.number);
        let patience = self.stage.until_deadline().map_or(TIME_MAX, |left| left.saturating_sub(MARGIN).min(TIME_MAX));
        let is_of_use = self.let_time_pass(patience).await;
        // In serial runs it passes once between two calls.
        self.is_time_spent = !is_of_use || self.is_serial;
        self.take_panics(step)
    }

    /// Lets timers tick that are due, and clocks show it.
    fn look_at_clock(&mut self) {
        self.watch.look_at_clock();
        self.watch.step(|| self.stage.look_at_clock());
    }

    /// For how long something may yet happen by itself, and what it is called if nothing does. Who waits for an answer may give up
    /// sooner than the library does.
    pub(super) fn patience(&self) -> (Duration, String) {
        if self.is_over() {
            return (AFTERMATH, String::new());
        }
        let waiting = self.stage.waiting();
        let asks = |client: &Client| waiting.iter().any(|one| one.who == Party::Client(client.number));
        let idle = self.clients.iter().any(|client| client.future.is_some() && !asks(client));
        match idle || self.stage.waits_for_time() || self.stage.next_timer().is_some() {
            true => (PATIENCE, "nothing happens any more for two hours".to_owned()),
            false => (BEFORE_DEADLINES, "deadlock".to_owned()),
        }
    }

    /// Lets virtual time pass until something can happen. `false` if nothing will.
    pub(super) async fn let_time_pass(&mut self, patience: Duration) -> bool {
        let (mut pause, mut passed) = (PAUSE_MIN, Duration::ZERO);
        self.look();
        let before: Vec<u64> = self.enabled.iter().map(|step| step.number).collect();
        let turns = self.stage.turns_begun();
        while passed < patience {
            tokio::time::sleep(pause.min(patience - passed)).await;
            passed += pause;
            self.look_at_clock();
            pause = (pause * 2).min(PAUSE_MAX);
            self.look();
            let is_new = |step: &Step| !before.contains(&step.number);
            if self.enabled.iter().any(is_new) || (!before.is_empty() && self.stage.turns_begun() > turns) {
                // All that this moment brings comes, whatever is woken first.
                tokio::time::sleep(PAUSE_MIN).await;
                self.look_at_clock();
                self.look();
                return true;
            }
        }
        false
    }
}

/// Virtual time that passes in one step, at most, and how much of it calls have left then.
const TIME_MAX: Duration = Duration::from_secs(60);
/// The same where it is looked for who waits for it.
const PROBE_MAX: Duration = Duration::from_secs(5);
const MARGIN: Duration = Duration::from_millis(100);
const PAUSE_MIN: Duration = Duration::from_millis(1);
const PAUSE_MAX: Duration = Duration::from_secs(1);
/// Virtual time for which clients may wait for something else than an answer.
const PATIENCE: Duration = Duration::from_secs(2 * 60 * 60);
/// The same for those who wait for answers: less than a call has by default.
const BEFORE_DEADLINES: Duration = Duration::from_secs(8);
/// The same for turns, when all clients have ended.
const AFTERMATH: Duration = Duration::from_secs(60);
