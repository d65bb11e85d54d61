//! The safety checks of delivery, each of which a test can take out to show that it matters.

/// Which safety checks are in force; all of them, unless a test says otherwise.
#[doc(hidden)]
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub struct Checks {
    /// A number is acknowledged only when its commit is known to be applied (R1).
    pub acknowledge_after_commit: bool,
    /// A number above the expected one is refused, not acknowledged (R1).
    pub refuse_gaps: bool,
    /// The receive record is written in the commit that holds the turn's effects (R2).
    pub receipt_in_commit: bool,
    /// A number that waits for its turn is not queued again (R2).
    pub high_water_mark: bool,
    /// A commit is over when it is applied: none stays open until its messages have arrived (R3).
    pub commit_closes: bool,
    /// Messages leave when the commit that holds them is applied.
    pub send_after_commit: bool,
    /// A commit holds the owner's fence.
    pub fence: bool,
    /// Creations are counted like any message, and tombstones stay until their number is passed (R4).
    pub counted_creation: bool,
    /// An owner answers questions about creations, and lets recorded answers go whose time is over, after a commit that began later:
    /// a deposed owner does neither (R4).
    pub confirmed_by_commit: bool,
    /// A message for one incarnation is not given to another (R5).
    pub incarnation: bool,
    /// Numbers of another life of the sender are told apart (R5).
    pub life: bool,
    /// A message that fails again and again is parked (R6).
    pub parking: bool,
    /// A parked message is one operator's at a time.
    pub parked_once: bool,
    /// Deaths during a turn are counted before it begins again, and a message that has caused several is parked.
    pub counted_deaths: bool,
    /// Nothing is sent above the receiver's limit (R7).
    pub credit: bool,
    /// Replies to, and by, earlier owners are dropped.
    pub reply_epoch: bool,
    /// A page that has not brought what was read for is read again after a while, and not at once.
    pub pages_rest: bool,
    /// A repeated call from outside gets the recorded answer.
    pub recorded_answer: bool,
}

impl Default for Checks {
    fn default() -> Self {
        Self {
            acknowledge_after_commit: true,
            refuse_gaps: true,
            receipt_in_commit: true,
            high_water_mark: true,
            commit_closes: true,
            send_after_commit: true,
            fence: true,
            counted_creation: true,
            confirmed_by_commit: true,
            incarnation: true,
            life: true,
            parking: true,
            parked_once: true,
            counted_deaths: true,
            credit: true,
            reply_epoch: true,
            pages_rest: true,
            recorded_answer: true,
        }
    }
}
