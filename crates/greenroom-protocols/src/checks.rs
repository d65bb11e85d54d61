//! The safety checks, each of which a test can take out to show that it matters.

use crate::delivery;

/// Which safety checks are in force; all of them, unless a test says otherwise.
///
/// Simulations and model checks switch one off and must then find the violation that it prevents. Nothing else may.
#[doc(hidden)]
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub struct Checks {
    /// A newcomer replaces a node of its name only once that one's lease has run out.
    pub name_wait: bool,
    /// Activations on a dead node are replaced only after its lease has run out (M1).
    pub lease_wait: bool,
    /// A lease is granted only by a table read that began after the renewal and shows the node active (M1, M3).
    pub fresh_read: bool,
    /// Suspicion alone evicts only where at least three nodes are active (M2).
    pub tie_break: bool,
    /// A joiner becomes active only against a table whose every active node has reached it (M4).
    pub join_probe: bool,
    /// Suspicions that are too old, or of unknown age, do not count (M5).
    pub suspicion_expiry: bool,
    /// A host refuses a grant whose epoch is not above what it has released (D5).
    pub epoch_check: bool,
    /// A host refuses a grant by a node that does not own the range in the host's own view (D2, D3).
    pub view_check: bool,
    /// A tenure of a range begins anew when another node may have owned it in a version that was skipped (D2).
    pub skipped_views: bool,
    /// A new owner of a range grants nothing until every active node has reported (D2, D3).
    pub report_wait: bool,
    /// A release removes only the entry with exactly its node and epoch (D5).
    pub exact_release: bool,
    /// A move takes an actor only from exactly the activation whose state the asker holds.
    pub exact_move: bool,
    /// A new owner of a range decides no move until every active node has reported.
    pub move_wait: bool,
    /// A host drops a state on the move only on the word of the owner of its own view.
    pub void_view: bool,
    /// A host reports the states that have come to it and are not decided.
    pub transit_report: bool,
    /// Who holds what an actor was judges the owner's grant by what had been released there when it began to.
    pub held_floor: bool,
    /// A host refuses a grant for another incarnation of its node (D4).
    pub incarnation_check: bool,
    /// A reminder's hint is kept for a while when its record is not there yet.
    pub hint_grace: bool,
    /// A reminder's hint is removed only when no write can come true any more that names it.
    pub hint_fence: bool,
    /// The turn of a reminder's tick reads the record before it runs.
    pub tick_check: bool,
    /// A reminder's tick counts as done by its turn's outcome, and not as soon as the turn is over.
    pub tick_outcome: bool,
    /// Processes that die during turns of a reminder's tick are counted before its next turn.
    pub tick_deaths: bool,
    /// Those of reliable actors.
    pub delivery: delivery::Checks,
}

impl Default for Checks {
    fn default() -> Self {
        Self {
            name_wait: true,
            lease_wait: true,
            fresh_read: true,
            tie_break: true,
            join_probe: true,
            suspicion_expiry: true,
            epoch_check: true,
            view_check: true,
            skipped_views: true,
            report_wait: true,
            exact_release: true,
            exact_move: true,
            move_wait: true,
            void_view: true,
            transit_report: true,
            held_floor: true,
            incarnation_check: true,
            hint_grace: true,
            hint_fence: true,
            tick_check: true,
            tick_outcome: true,
            tick_deaths: true,
            delivery: delivery::Checks::default(),
        }
    }
}
