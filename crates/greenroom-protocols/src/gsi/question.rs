//! Questions: this cluster's to the others, and theirs to it.

use super::memory::{Seen, covers};
use super::{Action, Body, Carried, ClusterId, ConfigEpoch, Entry, Instance, Mode, Round, Standing, State, Verdict};
use crate::time::Timestamp;

impl<O: Clone, R, U: Clone> Entry<O, R, U> {
    /// Asks whoever has not answered, before it is time: a model in which no time passes has no other way.
    #[doc(hidden)]
    pub fn ask_again(&mut self, now: Timestamp, out: &mut Vec<Action<O, R, U>>) {
        self.ask(now, false, out);
        self.check_invariants();
    }

    /// Asks whoever has not answered; only the first question of a round carries operations.
    pub(super) fn ask(&mut self, now: Timestamp, first: bool, out: &mut Vec<Action<O, R, U>>) {
        let Some(mut inquiry) = self.inquiry.take() else { return };
        inquiry.resend_at = now + self.config.resend_after;
        let operations =
            || inquiry.carried.iter().map(|call| Carried { id: call.id, operation: call.operation.clone() });
        let leased = self.leased == Some(self.configuration.epoch);
        let is_lost = |cluster| self.configuration.standing(cluster) == Some(Standing::Lost);
        let unanswered = inquiry.asked.iter().filter(|(cluster, asked)| asked.verdict.is_none() && !is_lost(**cluster));
        for (cluster, asked) in unanswered {
            let carries = asked.carries && (first || !self.config.checks.carried_once);
            let carried = if carries { operations().collect() } else { Vec::new() };
            let doubtful = self.instance.is_some() || self.report_at.is_some();
            self.send(*cluster, Body::Ask { round: inquiry.round, carried, leased, doubtful }, out);
        }
        self.inquiry = Some(inquiry);
    }

    /// Answers a question, by the first rule that applies (Geo §3.2).
    pub(super) fn asked(
        &mut self,
        now: Timestamp,
        from: ClusterId,
        epoch: ConfigEpoch,
        (round, carried, leased, doubtful): (Round, Vec<Carried<O>>, bool, bool),
        out: &mut Vec<Action<O, R, U>>,
    ) {
        if epoch > self.configuration.epoch {
            out.push(Action::FetchConfiguration(epoch));
        }
        let checks = self.config.checks;
        let seen = self.memory.take(from, round);
        let listed = matches!(self.configuration.standing(from), Some(Standing::Full | Standing::Draining));
        let agreed = listed && epoch == self.configuration.epoch || !checks.configuration;
        if agreed {
            self.open_home(now, out);
        }
        // Who has an instance goes first: it is perhaps the only one.
        let pessimistic = self.config.mode == Mode::Pessimistic && checks.doubt;
        let yields = pessimistic && doubtful && self.instance.is_none();
        let verdict = match self.state {
            _ if self.recovering && checks.recovery => Verdict::Unknown,
            State::Owned(round) if listed => Verdict::Held(Instance { cluster: self.me, round }),
            _ if !agreed => Verdict::Unknown,
            _ if pessimistic && !doubtful && self.instance.is_some() => Verdict::Unknown,
            State::Requested if self.precedes(from) && !yields => Verdict::Fail,
            state => {
                if state == State::Requested && checks.arbitration {
                    self.state = State::Loser;
                }
                Verdict::Pass { ran: self.memory.ran().clone(), last: self.last }
            }
        };
        // Under a lease it does not count what came first.
        let leases = leased && self.has_lease();
        let fresh = match seen {
            Seen::New => agreed && (self.memory.is_whole() || leases) || !checks.whole,
            Seen::Strange => agreed && leases || !checks.floor,
            Seen::Before => false,
        };
        let carries = !carried.is_empty();
        let runs = matches!(verdict, Verdict::Held(_)) && carries && fresh;
        if runs {
            self.memory.runs(now, from, round);
        }
        let declined = self.memory.declines(from, round) && (carries || !leased || !checks.memory);
        let remembers_ms = self.memory.age_ms(now);
        if let (Verdict::Held(held), true) = (&verdict, doubtful) {
            self.reload(held.round, out);
        }
        self.send(from, Body::Answer { round, verdict, declined, carried: carries, remembers_ms }, out);
        if runs {
            out.extend(carried.into_iter().map(|call| Action::Run { origin: from, call }));
        }
    }

    pub(super) fn answered(
        &mut self,
        now: Timestamp,
        from: ClusterId,
        round: Round,
        verdict: Verdict,
        (declined, carried, remembers_ms): (bool, bool, u64),
        out: &mut Vec<Action<O, R, U>>,
    ) {
        let checks = self.config.checks;
        let Some(inquiry) = self.inquiry.as_mut().filter(|inquiry| inquiry.round == round || !checks.round) else {
            return;
        };
        let Some(asked) = inquiry.asked.get_mut(&from) else { return };
        asked.heard = true;
        asked.remembers = covers(remembers_ms, now.since(inquiry.began)) || !checks.memory;
        asked.declined |= declined && (carried || asked.remembers);
        if let Verdict::Pass { ran, last } = &verdict
            && checks.ran
        {
            ran.iter().for_each(|(cluster, round)| self.memory.fence(*cluster, *round));
            self.memory.passed(from, *last);
        }
        if verdict != Verdict::Unknown {
            asked.verdict = Some(verdict);
            self.silent.remove(&from);
        }
        self.conclude_if_over(now, out);
    }
}
