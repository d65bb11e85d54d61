//! Why a closure never began.

use serde::{Deserialize, Serialize};

/// Why a closure that was given to [`Cx::blocking`](crate::Cx::blocking) was not run: nothing of it has happened, and it is
/// dropped. It is plain data, so that handlers can give it to their callers.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize, thiserror::Error)]
#[non_exhaustive]
pub enum NotBegun {
    /// As many closures wait as may. Retry after a pause.
    #[error(
        "{waiting} closures wait for the node's {threads} threads for what blocks, and no more may; retry after a pause, block for \
         less, or set more `blocking` threads or a longer `blocking_len_max` in `[threads]` of the node's configuration"
    )]
    Full {
        /// Closures that wait.
        waiting: u64,
        /// Threads that there may be now.
        threads: u64,
    },
    /// The turn's deadline came, or was near, before a thread was free. Retry with more time.
    #[error(
        "none of the node's {threads} threads for what blocks was free before the turn's deadline, for {waited_ms} ms; give the \
         call more time, block for less, or set more `blocking` threads in `[threads]` of the node's configuration"
    )]
    Late {
        /// For how long it waited.
        waited_ms: u64,
        /// Threads that there may be now.
        threads: u64,
    },
    /// Nobody waits for the turn any more: see [`Cx::cancelled`](crate::Cx::cancelled).
    #[error("nobody waits any more for the turn that the closure is a part of")]
    Abandoned,
    /// The node has stopped. Retry: another node will answer.
    #[error("the node is stopping; retry, another node will answer")]
    Stopping,
    /// The system gives no thread. Retry after a pause.
    #[error("no thread could be started for what blocks: {reason}; let the process have more threads")]
    NoThread {
        /// What the system said.
        reason: String,
    },
}
