//! Every distributed protocol of Greenroom as a pure state machine: events and `now` in, actions out.
//!
//! Nothing here knows an async runtime, a clock, a socket, a thread or a source of randomness; nothing iterates a hash
//! map. The async code around these machines only moves bytes and time.
//!
//! What a machine relies on, of itself and of the code that drives it, it asserts: one that finds it broken panics, and its node
//! stops. What comes from elsewhere (other nodes, clusters, stores, operators) is never asserted: it may be late, wrong or
//! hostile, and no machine panics of it.
//!
//! | module | what it keeps true |
//! |---|---|
//! | [`membership`] | one table says which nodes live; a node without a lease starts no turn |
//! | [`failure_detection`] | a silent node is suspected within about 2 s; suspicion alone decides nothing |
//! | [`directory`] | within a cluster at most one node hosts an actor |
//! | [`reminders`] | no reminder is lost, each due time has its turn, none has one after it was cancelled |
//! | [`delivery`] | every message between reliable actors is processed exactly once |
//! | [`gsi`] | across clusters at most one owns an actor |
//! | [`cluster_list`] | at most one list of clusters follows another, and a cluster that it removes owns nothing once its time is up |
//! | [`bcas`] | an update of a stored state that is confirmed is in it exactly once |
//! | [`update_log`] | the same, with the history of all updates |
//! | [`courses`] | what one sender sends an actor is not overtaken while the sender learns where the actor is |
//! | [`credit`] | a slow node makes no other node's memory grow |
//! | [`shedding`] | what a shard takes on ends in time; replies and protocols are never turned away |
//! | [`vlb`] | the same for a state in memory, as long as its leader lives |
//! | [`reply_stream`] | no more of a stream is under way than its consumer has room for, and none of it is lost unseen |
//! | [`versions`] | a call runs only where the actor's kind has a version that serves the caller's |
//! | [`adaptive`] | an actor has as many instances as what is asked of it makes cheapest, and does not flap |
//! | [`heavy_edges`] | which actors send each other most is known in bounded memory, and right in the mean |
//! | [`callers`] | an actor that is called mostly from one other cluster wishes to be there |
//! | [`flows`] | an actor wishes to be where its last messages went, and ever less often when moving does not pay |
//! | [`threads`] | a pool has as many threads as make its callers wait less, and no more |
//! | [`exchange`] | pairs of nodes agree which actors move between them; no actor is promised to two, and every lock ends |
//! | [`host`] | at most one host runs an actor's turns, and what a lost one says does not count |
//! | [`supervision`] | a failing actor is restarted at most so often, ever more slowly |

pub mod adaptive;
pub mod bcas;
pub mod callers;
pub mod checks;
pub mod cluster_list;
pub mod courses;
pub mod credit;
pub mod delivery;
pub mod directory;
pub mod exchange;
pub mod failure_detection;
pub mod flows;
pub mod gathering;
pub mod gsi;
pub mod heavy_edges;
pub mod host;
pub mod membership;
mod mix;
pub mod names;
pub mod node;
pub mod passage;
pub mod reminders;
pub mod reply_stream;
pub mod shedding;
pub mod state_versions;
pub mod supervision;
pub mod threads;
pub mod time;
pub mod update_log;
pub mod versions;
pub mod vlb;
pub mod wait_for;
mod ways;
