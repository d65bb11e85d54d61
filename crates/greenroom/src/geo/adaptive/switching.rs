//! A switch of one actor in one cluster: its callers keep reading what they have written.
//!
//! A cluster that has to do with an instance in another one now, or had before, lets new calls wait until what is under way has
//! ended: the calls that are out, or the instance here with its updates confirmed. Then the instances elsewhere confirm what
//! they have and take in the latest version, and what waits goes on. Should that take too long, it goes on all the same: the
//! state's updates are in one order however many instances there are.

use std::collections::BTreeSet;
use std::time::Duration;

use greenroom_protocols::gsi::ClusterId;
use greenroom_world::Timestamp;

use crate::shard::raw::RawParcel;

/// A switch under way.
pub(in crate::geo) struct Switching {
    /// Whether each cluster is to have an instance.
    pub(in crate::geo) per_cluster: bool,
    /// Calls that wait for it.
    parked: Vec<RawParcel>,
    /// The instances elsewhere that have not answered, once they are asked.
    asked: Option<BTreeSet<ClusterId>>,
    request: u64,
    resend_at: Timestamp,
    until: Timestamp,
}

/// What a switch must do now.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(in crate::geo) enum Step {
    /// Nothing, until the next look.
    Wait,
    /// End the instance here.
    End,
    /// Ask these clusters to refresh, under this number.
    Ask(BTreeSet<ClusterId>, u64),
    /// It is over.
    Over,
}

impl Switching {
    /// A switch that has `patience`, and asks under the number `request`.
    pub(in crate::geo) fn new(now: Timestamp, per_cluster: bool, request: u64, patience: Duration) -> Self {
        let (parked, until) = (Vec::new(), now + patience);
        Self { per_cluster, parked, asked: None, request, resend_at: now, until }
    }

    /// Turns to another mode than it was begun for: it begins anew, with those who wait.
    pub(in crate::geo) fn turn(&mut self, now: Timestamp, per_cluster: bool, request: u64) {
        (self.per_cluster, self.request, self.asked, self.resend_at) = (per_cluster, request, None, now);
    }

    /// Lets a call wait; it comes back if there is no room.
    pub(in crate::geo) fn park(&mut self, parcel: RawParcel) -> Option<RawParcel> {
        if self.parked.len() >= PARKED_MAX {
            return Some(parcel);
        }
        self.parked.push(parcel);
        None
    }

    /// Those who wait.
    pub(in crate::geo) fn into_parked(self) -> Vec<RawParcel> {
        self.parked
    }

    /// Takes in that a cluster's instances are refreshed.
    pub(in crate::geo) fn refreshed(&mut self, from: ClusterId, request: u64) {
        if let Some(asked) = self.asked.as_mut().filter(|_| request == self.request) {
            asked.remove(&from);
        }
    }

    /// What must happen: `settled` says that nothing is under way here any more, `others` who may have instances and is heard.
    pub(in crate::geo) fn step(
        &mut self,
        now: Timestamp,
        settled: bool,
        others: impl Fn() -> BTreeSet<ClusterId>,
    ) -> Step {
        if self.until <= now {
            return Step::Over;
        }
        let due = self.resend_at <= now;
        match &mut self.asked {
            None if !settled && due && !self.per_cluster => {
                self.resend_at = now + RESEND_AFTER;
                Step::End
            }
            None if !settled => Step::Wait,
            None => {
                let asked = others();
                self.resend_at = now + RESEND_AFTER;
                self.asked = Some(asked.clone());
                if asked.is_empty() { Step::Over } else { Step::Ask(asked, self.request) }
            }
            Some(asked) => {
                let heard = others();
                asked.retain(|cluster| heard.contains(cluster));
                if asked.is_empty() {
                    return Step::Over;
                }
                if !due {
                    return Step::Wait;
                }
                self.resend_at = now + RESEND_AFTER;
                Step::Ask(asked.clone(), self.request)
            }
        }
    }
}

/// Calls of one actor that may wait for a switch.
const PARKED_MAX: usize = 4096;
/// Time after which what was not answered is asked again.
const RESEND_AFTER: Duration = Duration::from_millis(400);

#[cfg(test)]
mod tests {
    use super::*;

    fn at(ms: u64) -> Timestamp {
        Timestamp::from_nanos(ms * 1_000_000)
    }

    #[test]
    fn a_switch_waits_for_what_is_under_way_then_for_the_others() {
        let others = || BTreeSet::from([ClusterId(1), ClusterId(2)]);
        let mut switch = Switching::new(at(0), false, 7, Duration::from_secs(5));
        assert_eq!(switch.step(at(0), false, others), Step::End);
        assert_eq!(switch.step(at(20), false, others), Step::Wait);
        assert_eq!(switch.step(at(400), false, others), Step::End, "the word may have been lost");
        assert_eq!(switch.step(at(420), true, others), Step::Ask(others(), 7));
        switch.refreshed(ClusterId(1), 6);
        switch.refreshed(ClusterId(1), 7);
        assert_eq!(switch.step(at(440), true, others), Step::Wait);
        assert_eq!(switch.step(at(840), true, others), Step::Ask(BTreeSet::from([ClusterId(2)]), 7));
        assert_eq!(switch.step(at(860), true, || BTreeSet::from([ClusterId(1)])), Step::Over, "the other is not heard");
    }

    #[test]
    fn a_switch_has_its_time_and_may_turn_back_before() {
        let others = || BTreeSet::from([ClusterId(1)]);
        let mut switch = Switching::new(at(0), true, 1, Duration::from_secs(5));
        assert_eq!(switch.step(at(0), false, others), Step::Wait, "the calls that are out end by themselves");
        assert_eq!(switch.step(at(10), true, others), Step::Ask(others(), 1));
        switch.turn(at(20), false, 2);
        switch.refreshed(ClusterId(1), 1);
        assert_eq!(switch.step(at(30), false, others), Step::End);
        assert_eq!(switch.step(at(5000), false, others), Step::Over);
    }
}
