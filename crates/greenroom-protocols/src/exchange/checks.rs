//! The rules of the exchange, each of which a test can take out to show that it matters.

/// Which rules are in force; all of them, unless a test says otherwise.
#[doc(hidden)]
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub struct Checks {
    /// Who is in an exchange answers Busy (O1).
    pub one_at_a_time: bool,
    /// Scores change with each choice (O2).
    pub scores_change: bool,
    /// Nothing is given before Confirm (O3).
    pub confirm: bool,
    /// An answer is for the exchange in hand: who has given up an offer has forgotten it (O4).
    pub in_hand: bool,
    /// Nobody is further ahead than its credit, and the first actor that comes back ends the sending (O5, O9).
    pub credit: bool,
    /// Who waits for promised actors, or has undecided moves, takes part in no other exchange (O6).
    pub promises: bool,
    /// Candidates whose partners are elsewhere are refused (O7).
    pub stale: bool,
    /// Of two offers that meet the lower node's stands (O8).
    pub lower_stands: bool,
    /// Locks end by themselves (O10).
    pub locks_end: bool,
    /// Locks outlive what the other side may send (O11).
    pub locks_outlive: bool,
    /// An order moves only the activation of its epoch: kept by who carries it out (O12).
    pub epochs: bool,
    /// An offer whose number is not above the proposer's last one is dropped (O13).
    pub numbers: bool,
    /// Orders have a deadline (O14).
    pub deadlines: bool,
    /// Balance acts only well beyond δ (O19).
    pub hysteresis: bool,
    /// Balance by activations needs no node that is full, and fills one that is far below the mean (O27).
    pub newcomers: bool,
    /// Who is being filled is so until it has the mean (O28).
    pub filling: bool,
    /// When both sides send nothing more, what has not come is not waited for any longer (O30).
    pub over: bool,
    /// An actor wishes for each place that is better, not for the best alone (O20).
    pub every_wish: bool,
    /// Fruitless partners are skipped for a while (O20).
    pub fruitless: bool,
    /// Balance takes whole sets before it takes single actors (O21).
    pub whole_sets: bool,
    /// An actor's load goes with it in the books (O22).
    pub books: bool,
    /// What breaks the balance waits.
    pub balance: bool,
}

impl Default for Checks {
    fn default() -> Self {
        Self {
            one_at_a_time: true,
            scores_change: true,
            confirm: true,
            in_hand: true,
            credit: true,
            promises: true,
            stale: true,
            lower_stands: true,
            locks_end: true,
            locks_outlive: true,
            epochs: true,
            numbers: true,
            deadlines: true,
            hysteresis: true,
            newcomers: true,
            filling: true,
            over: true,
            every_wish: true,
            fruitless: true,
            whole_sets: true,
            books: true,
            balance: true,
        }
    }
}
