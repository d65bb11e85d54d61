//! What clusters say to each other about one actor.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use super::{CallId, ClusterId, ConfigEpoch, Instance, Round};

/// A message about one actor.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Debug, Serialize, Deserialize)]
pub struct Message<O, R, U> {
    /// The number of the sender's configuration.
    pub configuration: ConfigEpoch,
    /// What it says.
    pub body: Body<O, R, U>,
}

/// An operation on its way to an instance.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Debug, Serialize, Deserialize)]
pub struct Carried<O> {
    /// The call's number where it came in.
    pub id: CallId,
    /// What to run.
    pub operation: O,
}

/// What a message says.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Debug, Serialize, Deserialize)]
pub enum Body<O, R, U> {
    /// May I own it? If you do, run this.
    Ask {
        /// The asker's round.
        round: Round,
        /// Operations for the owner: with the first question of a round only.
        carried: Vec<Carried<O>>,
        /// Whether the round began under the lease of the actor's home, by the sender's configuration.
        #[serde(default)]
        leased: bool,
        /// Whether the asker has an instance which may not be the only one, or had one that ended in doubt.
        #[serde(default, skip_serializing_if = "std::ops::Not::not")]
        doubtful: bool,
    },
    /// Answers a question.
    Answer {
        /// The asker's round.
        round: Round,
        /// The answer.
        verdict: Verdict,
        /// Whether the answerer neither ran nor will run this round's operations, as far as it remembers.
        declined: bool,
        /// Whether it answers the question that carried them: then it is sure.
        #[serde(default)]
        carried: bool,
        /// How long the answerer has remembered everything that it ran, in ms.
        #[serde(default)]
        remembers_ms: u64,
    },
    /// Run this on this instance.
    Forward {
        /// The instance.
        to: Instance,
        /// What to run.
        call: Carried<O>,
    },
    /// That instance is not here (any more), or cannot be told from others; the call has not run.
    NotHere {
        /// The instance.
        to: Instance,
        /// The call.
        call: CallId,
    },
    /// The instance ran the call.
    Result {
        /// The call.
        call: CallId,
        /// What came out.
        result: R,
    },
    /// You own the actor: here is what my instance has and yours has not seen.
    HandOver {
        /// The receiver's instance.
        to: Instance,
        /// The number of this hand-over, which rises with each of the sender's.
        number: Round,
        /// The updates.
        unseen: U,
    },
    /// I have them: the instance may go.
    HandedOver {
        /// The number of the hand-over.
        number: Round,
    },
    /// I do not own the actor any more: keep them.
    NotOwner {
        /// The number of the hand-over.
        number: Round,
    },
}

/// The answer to a question (Geo §3.2).
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Debug, Serialize, Deserialize)]
pub enum Verdict {
    /// I do not own it.
    Pass {
        /// The last round of each cluster whose operations I have run: do not run those again.
        ran: BTreeMap<ClusterId, Round>,
        /// The last round that I have begun: what it carries may have run elsewhere.
        #[serde(default)]
        last: Round,
    },
    /// My own round has precedence.
    Fail,
    /// I own it.
    Held(Instance),
    /// I cannot tell: my range recovers, or what I have is in doubt, or we disagree on the configuration.
    Unknown,
}
