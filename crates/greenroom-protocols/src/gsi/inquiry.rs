//! One round: who was asked, and what came back.

use std::collections::BTreeMap;

use super::{Call, ClusterId, Instance, Round, Verdict};
use crate::time::Timestamp;

/// A round under way.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub(super) struct Inquiry<O> {
    pub(super) round: Round,
    /// Everyone that must pass.
    pub(super) asked: BTreeMap<ClusterId, Asked>,
    /// The calls that travel with the question.
    pub(super) carried: Vec<Call<O>>,
    pub(super) began: Timestamp,
    pub(super) resend_at: Timestamp,
    pub(super) silent_at: Timestamp,
}

/// One cluster in a round.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub(super) struct Asked {
    /// Its last answer other than Unknown.
    pub(super) verdict: Option<Verdict>,
    /// Whether anything came from it.
    pub(super) heard: bool,
    /// Whether it surely neither ran nor will run what the round carries.
    pub(super) declined: bool,
    /// Whether its last answer tells all that it ran since the round began.
    pub(super) remembers: bool,
    /// Whether the question to it carries operations.
    pub(super) carries: bool,
}

/// How a round ended.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Conclusion {
    Won,
    Lost,
    Elsewhere(Instance),
    Silence,
}

impl Asked {
    /// Whether nothing has come from it.
    pub(super) fn is_silent(&self) -> bool {
        !self.heard
    }
}

impl<O> Inquiry<O> {
    /// Whether everyone has answered, except who is lost.
    pub(super) fn is_complete(&self, is_lost: impl Fn(ClusterId) -> bool) -> bool {
        self.asked.iter().all(|(cluster, asked)| asked.verdict.is_some() || is_lost(*cluster))
    }

    /// Whether a cluster has said nothing at all, not even that it cannot tell yet.
    pub(super) fn is_silent(&self) -> bool {
        self.asked.values().any(Asked::is_silent)
    }

    /// Whether every cluster declined what the round carries.
    pub(super) fn is_declined(&self) -> bool {
        self.asked.values().all(|asked| asked.declined || !asked.carries)
    }

    /// Whether the owner runs, or ran, what the round carries.
    pub(super) fn is_running(&self) -> bool {
        let holds = |asked: &Asked| matches!(asked.verdict, Some(Verdict::Held(_)));
        self.asked.values().any(|asked| holds(asked) && asked.carries && !asked.declined)
    }

    /// Whether the owner is known and nothing that the round carries depends on the other answers.
    pub(super) fn is_settled(&self) -> bool {
        self.is_running()
            || self.carried.is_empty()
                && self.asked.values().any(|asked| matches!(asked.verdict, Some(Verdict::Held(_))))
    }

    /// Whether all who have passed have told what they ran since the round began.
    pub(super) fn is_remembered(&self) -> bool {
        self.asked.values().all(|asked| asked.remembers)
    }

    /// What the answers mean, if no more come (Geo §3.2, "first applicable rule").
    pub(super) fn conclusion(&self, lost: bool, fail_counts: bool) -> Conclusion {
        let verdicts = || self.asked.values().filter_map(|asked| asked.verdict.as_ref());
        let held = verdicts().find_map(|verdict| match verdict {
            Verdict::Held(instance) => Some(*instance),
            _ => None,
        });
        if let Some(instance) = held {
            Conclusion::Elsewhere(instance)
        } else if lost || fail_counts && verdicts().any(|verdict| *verdict == Verdict::Fail) {
            Conclusion::Lost
        } else if self.asked.values().all(|asked| matches!(asked.verdict, Some(Verdict::Pass { .. }))) {
            Conclusion::Won
        } else {
            Conclusion::Silence
        }
    }
}
