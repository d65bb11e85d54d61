//! The safety checks of GSI, each of which a test can take out to show that it matters.

/// Which safety checks are in force; all of them, unless a test says otherwise.
#[doc(hidden)]
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub struct Checks {
    /// Answers of an abandoned round are dropped (G1).
    pub round: bool,
    /// A re-run from Doubtful is in state Requested, and loses like any other (G2).
    pub rerun_is_a_round: bool,
    /// Only questions of one's own configuration are passed (G3).
    pub configuration: bool,
    /// A leaving cluster is dropped only after it was drained everywhere (G3).
    pub drain: bool,
    /// A range in recovery answers Unknown (G4).
    pub recovery: bool,
    /// So does, if pessimistic, who has an instance in doubt.
    pub doubt: bool,
    /// A round that was answered with Fail activates nothing (G5).
    pub fail: bool,
    /// A loser keeps its instance until the owner has its unseen updates (G6).
    pub hand_over: bool,
    /// What is sent to an earlier ownership is not run (G8).
    pub ownership: bool,
    /// Away from home no round is won, and a home that is asked does not pass.
    pub home: bool,
    /// A home activates without a question only once nothing is owned away from home.
    pub lease: bool,
    /// Of two rounds that meet one loses.
    pub arbitration: bool,
    /// The next owner declines what an earlier one has run.
    pub ran: bool,
    /// What a silent cluster may run is not carried again.
    pub declined: bool,
    /// What was read while a round asked is used only if no cluster has had an instance of late.
    pub quiet: bool,
    /// A round carries its operations once, and not with each question that is sent again.
    pub carried_once: bool,
    /// Who may have forgotten what it ran is not believed to have declined it.
    pub memory: bool,
    /// An owner runs only what began after it owned.
    pub whole: bool,
    /// It runs nothing of a round of which it cannot tell when that began.
    pub floor: bool,
    /// Who may be taken for lost gives up what must be single.
    pub lost: bool,
    /// An instance that stays reads its stored state again once another one may have saved.
    pub reload: bool,
}

impl Default for Checks {
    fn default() -> Self {
        Self {
            round: true,
            rerun_is_a_round: true,
            configuration: true,
            drain: true,
            recovery: true,
            doubt: true,
            fail: true,
            hand_over: true,
            ownership: true,
            home: true,
            lease: true,
            arbitration: true,
            ran: true,
            declined: true,
            quiet: true,
            carried_once: true,
            memory: true,
            whole: true,
            floor: true,
            lost: true,
            reload: true,
        }
    }
}
